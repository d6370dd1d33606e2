//! An organization read from a file: once to see that it is whole and may come, and once to write it.

use std::collections::HashSet;
use std::io::BufRead;
use std::time::{Duration, Instant};

use assay_node_objects::PastOp;
use assay_node_records::{Arriving, Came, Carried, RECORDS_AT_ONCE_BYTES, RECORDS_AT_ONCE_MAX, RecordsError};
use assay_storage_model::{ObjectKey, ObjectKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::damaged;
use crate::file::{Footer, Line, Object, Reader};
use crate::replay::Replay;
use crate::versions::Versions;
use crate::{Place, Say, TransferError};

/// How often somebody is told how far it is.
const SAID_EVERY: Duration = Duration::from_secs(5);
/// A catalog that does not answer is asked again.
const ATTEMPTS_MAX: u32 = 120;
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Secrets that are named one by one where somebody is told what is missing.
const NAMED_MAX: usize = 1000;

/// What an import did.
#[derive(Clone, Debug)]
pub struct Imported {
    pub organization: Uuid,
    pub name: String,
    pub footer: Footer,
    /// Records and operations on rows that were written now; the others were here.
    pub records: u64,
    pub operations: u64,
    /// What kept a secret there and has to be made again.
    pub without_secret: Vec<Value>,
    pub without_secret_count: u64,
}

/// From what `open` gives, from its start whenever it is asked; under another name where one is given.
pub fn import<R: BufRead>(
    place: &Place,
    name: Option<&str>,
    open: &mut dyn FnMut() -> std::io::Result<R>,
    say: Say<'_>,
) -> Result<Imported, TransferError> {
    let mut seen = look(place, name, open()?, say)?;
    let all_is_here = seen.arriving.before == Came::All;
    if !all_is_here {
        again(|| place.runtime.block_on(place.records.admin_begin(&seen.arriving)))?;
        seen.arriving.before = Came::Some;
        let mut coming = Coming {
            place,
            seen: &seen,
            versions: Versions::default(),
            records: Vec::new(),
            bytes: 0,
            made: 0,
            written: 0,
        };
        let footer = coming.read(open()?, say)?;
        if footer != seen.footer {
            return Err(damaged("it changed while it was read: what was written so far is here, and is not all"));
        }
        let (made, written) = (coming.made, coming.written);
        again(|| place.runtime.block_on(place.records.admin_end(&seen.arriving)))?;
        return Ok(seen.imported(made, written));
    }
    Ok(seen.imported(0, 0))
}

/// What the first reading found.
struct Seen {
    arriving: Arriving,
    footer: Footer,
    /// Records that stay out.
    out: HashSet<Uuid>,
    without_secret: Vec<Value>,
}

impl Seen {
    fn imported(self, records: u64, operations: u64) -> Imported {
        Imported {
            organization: self.arriving.org.0,
            name: self.arriving.name,
            footer: self.footer,
            records,
            operations,
            without_secret_count: self.out.len() as u64,
            without_secret: self.without_secret,
        }
    }

    /// A record without its secret, and what is granted on it.
    fn stays_out(&self, record: &Carried) -> bool {
        let on = record.body.get("object_id").and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
        record.without_secret || on.is_some_and(|id| self.out.contains(&id))
    }
}

/// Writes nothing.
fn look<R: BufRead>(place: &Place, name: Option<&str>, file: R, say: Say<'_>) -> Result<Seen, TransferError> {
    let mut reader = Reader::start(file)?;
    let org = reader.header.organization;
    let name = name.unwrap_or(&reader.header.name).to_owned();
    let arriving = again(|| place.runtime.block_on(place.records.admin_arriving(org, &name)))?;
    let (out, without_secret) = (HashSet::new(), Vec::new());
    let mut seen = Seen { arriving, footer: Footer::default(), out, without_secret };
    let (mut is_in_object, mut operations, mut said) = (false, 0_u64, Instant::now());
    while let Some(line) = reader.next_line()? {
        match line {
            Line::Record(record) if record.without_secret => {
                seen.out.insert(record.id);
                if seen.without_secret.len() < NAMED_MAX {
                    let of = |field: &str| record.body.get(field).cloned().unwrap_or(Value::Null);
                    let named = json!({"kind": record.kind, "name": of("name"), "object_type": of("object_type"), "object_id": of("object_id")});
                    seen.without_secret.push(named);
                }
            }
            Line::Record(record) => place.records.admin_looks_at(&mut seen.arriving, &record)?,
            Line::Object(_) => is_in_object = true,
            Line::Operation(_) if !is_in_object => return Err(damaged("an operation is on no object")),
            Line::Operation(text) => drop(PastOp::parse(&text).map_err(damaged)?),
        }
        operations += 1;
        if said.elapsed() >= SAID_EVERY {
            said = Instant::now();
            say(&format!("looking at the file: {operations} lines so far, nothing is written yet"));
        }
    }
    seen.footer = reader.finish()?;
    seen.arriving.comes_from(&seen.footer.sha256)?;
    Ok(seen)
}

/// The second reading.
struct Coming<'c> {
    place: &'c Place,
    seen: &'c Seen,
    versions: Versions,
    /// Not yet made.
    records: Vec<Carried>,
    bytes: usize,
    made: u64,
    written: u64,
}

impl Coming<'_> {
    fn read<R: BufRead>(&mut self, file: R, say: Say<'_>) -> Result<Footer, TransferError> {
        let mut reader = Reader::start(file)?;
        if reader.header.organization != self.seen.arriving.org {
            return Err(damaged("it changed while it was read"));
        }
        let place = self.place;
        let (mut object, mut said): (Option<Replay<'_>>, _) = (None, Instant::now());
        let (mut objects, mut passed) = (0_u64, 0_u64);
        while let Some(line) = reader.next_line()? {
            match line {
                Line::Record(record) => {
                    self.end(object.take())?;
                    self.record(*record)?;
                }
                Line::Object(next) => {
                    self.end(object.take())?;
                    self.bring()?;
                    objects += 1;
                    object = self.object(place, &next)?;
                }
                Line::Operation(text) => {
                    passed += 1;
                    if let Some(object) = &mut object {
                        object.operation(&text, &mut self.versions)?;
                    }
                }
            }
            if said.elapsed() >= SAID_EVERY {
                said = Instant::now();
                let of = &self.seen.footer;
                say(&format!("{objects} of {} objects, {passed} of {} operations", of.objects, of.operations));
            }
        }
        self.end(object)?;
        self.bring()?;
        reader.finish()
    }

    /// None of what is not written here: an organization's log begins anew.
    fn object<'p>(&self, place: &'p Place, object: &Object) -> Result<Option<Replay<'p>>, TransferError> {
        if object.kind == ObjectKind::AuditLog {
            return Ok(None);
        }
        let key = ObjectKey::new(self.seen.arriving.org, object.kind, object.id);
        if !again(|| place.runtime.block_on(place.records.admin_has(&key)))? {
            // It came with its record, and the record was deleted since.
            tracing::info!(object = %key, "it has no record here, and no rows come");
            return Ok(None);
        }
        Replay::start(place, key).map(Some)
    }

    fn end(&mut self, object: Option<Replay<'_>>) -> Result<(), TransferError> {
        if let Some(object) = object {
            self.written += object.end(&mut self.versions)?;
        }
        Ok(())
    }

    fn record(&mut self, mut record: Carried) -> Result<(), TransferError> {
        if self.seen.stays_out(&record) {
            return Ok(());
        }
        self.versions.learn(&record);
        self.versions.in_record(self.seen.arriving.org, &mut record);
        self.bytes += Value::Object(record.body.clone()).to_string().len();
        self.records.push(record);
        if self.records.len() == RECORDS_AT_ONCE_MAX || self.bytes >= RECORDS_AT_ONCE_BYTES {
            self.bring()?;
        }
        Ok(())
    }

    fn bring(&mut self) -> Result<(), TransferError> {
        let records = std::mem::take(&mut self.records);
        self.bytes = 0;
        let bring = || self.place.runtime.block_on(self.place.records.admin_bring(&self.seen.arriving, &records));
        self.made += again(bring)? as u64;
        Ok(())
    }
}

/// Asked again where nothing was done or doing it twice is the same.
fn again<T>(mut ask: impl FnMut() -> Result<T, RecordsError>) -> Result<T, RecordsError> {
    let mut attempts = 0;
    loop {
        match ask() {
            Err(RecordsError::Busy(_) | RecordsError::Unavailable(_) | RecordsError::Unknown(_))
                if attempts < ATTEMPTS_MAX =>
            {
                attempts += 1;
                std::thread::sleep(ASKED_AGAIN_AFTER);
            }
            answer => return answer,
        }
    }
}
