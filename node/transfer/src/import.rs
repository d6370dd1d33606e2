//! Import of an organization, which reads its file twice: first to check it, then to write its content.

mod records;

use std::collections::HashSet;
use std::io::BufRead;
use std::time::{Duration, Instant};

use assay_node_files::FileName;
use assay_node_objects::HistoryOp;
use assay_node_records::RecordsError;
use assay_storage_model::{ObjectKey, ObjectKind};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::damaged;
use crate::export::records::RecordLine;
use crate::file::{Footer, Line, Object, Reader};
use crate::import::records::{ImportProgress, OrganizationImport, RECORDS_AT_ONCE_BYTES, RECORDS_AT_ONCE_MAX};
use crate::replay::Replay;
use crate::versions::Versions;
use crate::{Say, TransferContext, TransferError};

/// Minimum time between two progress messages.
const SAID_EVERY: Duration = Duration::from_secs(5);
/// Upper bound of the attempts to reach a silent catalog.
const ATTEMPTS_MAX: u32 = 120;
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Upper bound of the records without secret that the result names.
const NAMED_MAX: usize = 1000;

/// Result of an import.
#[derive(Clone, Debug)]
pub struct Imported {
    pub organization: Uuid,
    pub name: String,
    pub footer: Footer,
    /// Number of records and operations that this import wrote. Existing ones do not count.
    pub records: u64,
    pub operations: u64,
    /// Records that had a secret and must be created again.
    pub without_secret: Vec<Value>,
    pub without_secret_count: u64,
}

/// Imports the file that `open` opens, optionally under another name. The file is read twice from its start.
pub fn import<R: BufRead>(
    context: &TransferContext,
    name: Option<&str>,
    open: &mut dyn FnMut() -> std::io::Result<R>,
    say: Say<'_>,
) -> Result<Imported, TransferError> {
    let mut survey = look(context, name, open()?, say)?;
    let all_is_here = survey.import.before == ImportProgress::All;
    if !all_is_here {
        again(|| context.runtime.block_on(survey.import.begin()))?;
        survey.import.before = ImportProgress::Some;
        let mut importing = Importing {
            context,
            survey: &survey,
            versions: Versions::default(),
            records: Vec::new(),
            bytes: 0,
            made: 0,
            written: 0,
        };
        let footer = importing.read(open()?, say)?;
        if footer != survey.footer {
            return Err(damaged("it changed while it was read, so the import is incomplete"));
        }
        let (made, written) = (importing.made, importing.written);
        again(|| context.runtime.block_on(survey.import.finish()))?;
        return Ok(survey.imported(made, written));
    }
    Ok(survey.imported(0, 0))
}

/// Findings of the first reading.
struct Survey {
    import: OrganizationImport,
    footer: Footer,
    /// Records that are not imported.
    out: HashSet<Uuid>,
    without_secret: Vec<Value>,
}

impl Survey {
    fn imported(self, records: u64, operations: u64) -> Imported {
        Imported {
            organization: self.import.org.0,
            name: self.import.name,
            footer: self.footer,
            records,
            operations,
            without_secret_count: self.out.len() as u64,
            without_secret: self.without_secret,
        }
    }

    /// Returns whether a record is not imported, because it has no secret or grants access to such a record.
    fn stays_out(&self, record: &RecordLine) -> bool {
        let on = record.body.get("object_id").and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
        record.without_secret || on.is_some_and(|id| self.out.contains(&id))
    }
}

/// Checks the file without writing anything.
fn look<R: BufRead>(
    context: &TransferContext,
    name: Option<&str>,
    file: R,
    say: Say<'_>,
) -> Result<Survey, TransferError> {
    let mut reader = Reader::start(file)?;
    let org = reader.header.organization;
    let name = name.unwrap_or(&reader.header.name).to_owned();
    let import = again(|| context.runtime.block_on(OrganizationImport::open(&context.records, org, &name)))?;
    let (out, without_secret) = (HashSet::new(), Vec::new());
    let mut survey = Survey { import, footer: Footer::default(), out, without_secret };
    let (mut is_in_object, mut operations, mut said) = (false, 0_u64, Instant::now());
    while let Some(line) = reader.next_line()? {
        match line {
            Line::Record(record) if record.without_secret => {
                survey.out.insert(record.id);
                if survey.without_secret.len() < NAMED_MAX {
                    let of = |field: &str| record.body.get(field).cloned().unwrap_or(Value::Null);
                    let named = json!({"kind": record.kind, "name": of("name"), "object_type": of("object_type"), "object_id": of("object_id")});
                    survey.without_secret.push(named);
                }
            }
            Line::Record(record) => survey.import.check_record(&record)?,
            Line::Object(_) => is_in_object = true,
            Line::Operation(_) if !is_in_object => return Err(damaged("an operation has no object")),
            Line::Operation(text) => drop(HistoryOp::parse(&text).map_err(damaged)?),
        }
        operations += 1;
        if said.elapsed() >= SAID_EVERY {
            said = Instant::now();
            say(&format!("checking the file: {operations} lines so far, nothing is written yet"));
        }
    }
    survey.footer = reader.finish()?;
    survey.import.check_projects()?;
    survey.import.comes_from(&survey.footer.sha256)?;
    Ok(survey)
}

/// State of the second reading.
struct Importing<'c> {
    context: &'c TransferContext,
    survey: &'c Survey,
    versions: Versions,
    /// Records that are not written yet.
    records: Vec<RecordLine>,
    bytes: usize,
    made: u64,
    written: u64,
}

impl Importing<'_> {
    fn read<R: BufRead>(&mut self, file: R, say: Say<'_>) -> Result<Footer, TransferError> {
        let mut reader = Reader::start(file)?;
        if reader.header.organization != self.survey.import.org {
            return Err(damaged("it changed while it was read"));
        }
        let context = self.context;
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
                    object = self.object(context, &next)?;
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
                let of = &self.survey.footer;
                say(&format!("{objects} of {} objects, {passed} of {} operations", of.objects, of.operations));
            }
        }
        self.end(object)?;
        self.bring()?;
        reader.finish()
    }

    /// Starts an object. Returns `None` for objects that are not imported, such as the audit log.
    fn object<'p>(&self, context: &'p TransferContext, object: &Object) -> Result<Option<Replay<'p>>, TransferError> {
        if object.kind == ObjectKind::AuditLog {
            return Ok(None);
        }
        let key = ObjectKey::new(self.survey.import.org, object.kind, object.id);
        if key == FileName::index(key.org) {
            // References may have been added since an earlier import stopped. Repeated merges change nothing.
            return Ok(Some(Replay::anew(context, key)));
        }
        if key.kind == ObjectKind::Files {
            return Replay::start(context, key).map(Some);
        }
        if !again(|| context.runtime.block_on(context.records.has_record(&key)))? {
            // The object's record was imported and has been deleted since.
            tracing::info!(object = %key, "it has no record here, so no rows are imported");
            return Ok(None);
        }
        Replay::start(context, key).map(Some)
    }

    fn end(&mut self, object: Option<Replay<'_>>) -> Result<(), TransferError> {
        if let Some(object) = object {
            self.written += object.end(&mut self.versions)?;
        }
        Ok(())
    }

    fn record(&mut self, mut record: RecordLine) -> Result<(), TransferError> {
        if self.survey.stays_out(&record) {
            return Ok(());
        }
        self.versions.learn(&record);
        self.versions.in_record(self.survey.import.org, &mut record);
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
        let bring = || self.context.runtime.block_on(self.survey.import.put_records(&records));
        self.made += again(bring)? as u64;
        Ok(())
    }
}

/// Repeats an idempotent request while the catalog is unavailable.
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
