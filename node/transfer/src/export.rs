//! Export of everything that an organization owns: records of one moment, then each object at one version.

pub(crate) mod records;

use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_node_files::{FileName, Files};
use assay_node_objects::{AuditLog, HistoryPosition, ReadError};
use assay_storage_model::event::format_micros;
use assay_storage_model::{ObjectKey, OrgId};

use crate::file::{FORMAT, Footer, Header, Object, Writer};
use crate::{Say, TransferContext, TransferError};

/// Minimum time between two progress messages.
const SAID_EVERY: Duration = Duration::from_secs(5);
/// Upper bound of the attempts to read a page while readers are busy.
const ATTEMPTS_MAX: u32 = 60;
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Exports the organization with this name. The output is valid only after a successful return.
pub fn export(context: &TransferContext, name: &str, out: impl Write, say: Say<'_>) -> Result<Footer, TransferError> {
    let exported = context.runtime.block_on(records::records_of(&context.records, name))?;
    let header = Header {
        format: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        organization: exported.org,
        name: name.to_owned(),
        exported: format_micros(now_micros()),
    };
    let mut exporting =
        Exporting { context, file: Writer::start(out, &header)?, objects: 0, said: Instant::now(), say };
    for record in exported.before() {
        exporting.file.record(record?)?;
    }
    for object in exported.versioned() {
        exporting.object(object)?;
    }
    for record in exported.after() {
        exporting.file.record(record?)?;
    }
    for object in exported.unversioned() {
        exporting.object(object)?;
    }
    exporting.files(exported.org)?;
    exporting.object(AuditLog::home(exported.org).object)?;
    Ok(exporting.file.finish()?)
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

struct Exporting<'g, W: Write> {
    context: &'g TransferContext,
    file: Writer<W>,
    objects: u64,
    said: Instant,
    say: Say<'g>,
}

impl<W: Write> Exporting<'_, W> {
    /// Exports the index of files and then their content, so that the content of each listed file follows.
    fn files(&mut self, org: OrgId) -> Result<(), TransferError> {
        self.object(FileName::index(org))?;
        let files = Files::new(self.context.objects.clone());
        let mut cursor = None;
        loop {
            let page = self.context.runtime.block_on(files.contents(org, cursor))?;
            for object in page.objects {
                self.object(object)?;
            }
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Exports an object.
    ///
    /// It omits an object without writes, and an object that was deleted before its first page was read.
    fn object(&mut self, object: ObjectKey) -> Result<(), TransferError> {
        self.objects += 1;
        let (mut from, mut version) = (HistoryPosition::default(), None);
        loop {
            let page = match past(self.context, object, from, version) {
                Ok(page) => page,
                Err(ReadError::Gone { .. }) if version.is_none() => return Ok(()),
                Err(why) => return Err(TransferError::Read { object, why }),
            };
            if version.is_none() && !page.lines.is_empty() {
                let version = page.version.to_string();
                self.file.object(Object { kind: object.kind, id: object.id, version })?;
            }
            for line in &page.lines {
                self.file.operation(line)?;
            }
            version = Some(page.version);
            if self.said.elapsed() >= SAID_EVERY {
                self.said = Instant::now();
                (self.say)(&format!("{} objects, {} operations so far", self.objects, self.file.operations()));
            }
            match page.next {
                Some(next) => from = next,
                None => return Ok(()),
            }
        }
    }
}

/// Reads a page, with retries while readers are busy.
pub(crate) fn past(
    context: &TransferContext,
    object: ObjectKey,
    from: HistoryPosition,
    version: Option<assay_storage_model::Xact>,
) -> Result<assay_node_objects::HistoryPage, ReadError> {
    let mut attempts = 0;
    loop {
        match context.runtime.block_on(context.objects.past(object, from, version)) {
            Err(ReadError::Busy { .. } | ReadError::Unavailable(_)) if attempts < ATTEMPTS_MAX => {
                attempts += 1;
                std::thread::sleep(ASKED_AGAIN_AFTER);
            }
            page => return page,
        }
    }
}
