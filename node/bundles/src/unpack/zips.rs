//! Python bundles: a zip, whose directory is checked before its contents are read.

use std::io::Cursor;

use zip::{CompressionMethod, System, ZipArchive};

use crate::error::{BundleRefusal, EntryProblem};
use crate::limits::BundleLimits;
use crate::unpack::plan::{EntryFacts, PlannedFile, ZipPlan};
use crate::unpack::{BundleSink, MeteredSink};

/// Signature of an entry in the directory of a zip.
const HEADER_SIGNATURE: &[u8] = b"PK\x01\x02";
/// Upper bound of the signatures in a zip, which bounds the memory for its directory. Zips within the zip have them too.
const HEADERS_MAX: usize = 150_000;

/// Position in the directory of a zip of the lengths of an entry's name, extra field and comment.
const LENGTHS_AT: usize = 28;
/// Bytes of an entry in the directory of a zip before its name.
const HEADER_BYTES: usize = 46;

type Archive<'z> = ZipArchive<Cursor<&'z [u8]>>;

/// Reads the zip: first all directories, then the files in the order of their contents.
pub(super) fn read_zip<S: BundleSink>(
    stored: &[u8],
    limits: &BundleLimits,
    sink: &mut MeteredSink<'_, S>,
) -> Result<(), S::Error> {
    let mut archive = open_archive(stored)?;
    let plan = plan_of(&archive, limits)?;
    for directory in &plan.directories {
        sink.directory(directory)?;
    }
    let mut end = 0;
    for file in &plan.files {
        end = read_file(&mut archive, file, end, sink)?;
    }
    Ok(())
}

fn open_archive(stored: &[u8]) -> Result<Archive<'_>, BundleRefusal> {
    let headers = stored.windows(HEADER_SIGNATURE.len()).filter(|bytes| *bytes == HEADER_SIGNATURE).count();
    if headers > HEADERS_MAX {
        return Err(BundleRefusal::Headers { max: HEADERS_MAX });
    }
    let archive = ZipArchive::new(Cursor::new(stored)).map_err(|error| BundleRefusal::Zip(error.to_string()))?;
    if archive.has_duplicate_names() {
        let directory = usize::try_from(archive.central_directory_start()).ok().and_then(|start| stored.get(start..));
        return Err(match directory.and_then(repeated_name) {
            Some(name) => BundleRefusal::entry(&name, EntryProblem::Duplicate),
            None => BundleRefusal::Zip("two entries have the same name".into()),
        });
    }
    if archive.is_empty() {
        return Err(BundleRefusal::Empty);
    }
    Ok(archive)
}

/// Finds a name that occurs twice. The library keeps only one entry of a name and does not tell which.
fn repeated_name(mut directory: &[u8]) -> Option<String> {
    let mut names = std::collections::HashSet::new();
    while directory.starts_with(HEADER_SIGNATURE) {
        let length = |number: usize| {
            let at = LENGTHS_AT + 2 * number;
            directory.get(at..at + 2).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
        };
        let (name, others) = (length(0)?, length(1)? + length(2)?);
        let bytes = directory.get(HEADER_BYTES..HEADER_BYTES + name)?;
        if !names.insert(bytes) {
            return Some(String::from_utf8_lossy(bytes).into_owned());
        }
        directory = directory.get(HEADER_BYTES + name + others..)?;
    }
    None
}

fn plan_of(archive: &Archive<'_>, limits: &BundleLimits) -> Result<ZipPlan, BundleRefusal> {
    let broken = |error: zip::result::ZipError| BundleRefusal::Zip(error.to_string());
    let entries = (0..archive.len()).map(|index| archive.by_index_data(index)).collect::<Result<Vec<_>, _>>();
    let entries = entries.map_err(broken)?;
    let names = entries.iter().map(|entry| entry.name()).collect::<Result<Vec<_>, _>>().map_err(broken)?;
    let facts = entries.iter().zip(&names).enumerate().map(|(index, (entry, name))| EntryFacts {
        index,
        name,
        // Bits of the type are checked on all systems; the others have a meaning only on Unix.
        mode: match entry.system() {
            System::Unix => entry.external_attributes() >> 16,
            _ => (entry.external_attributes() >> 16) & !0o7777,
        },
        is_encrypted: entry.encrypted(),
        foreign_method: match entry.compression() {
            CompressionMethod::Stored | CompressionMethod::Deflated => None,
            other => Some(other.to_string()),
        },
        bytes: entry.size(),
        header_start: entry.header_start(),
    });
    ZipPlan::new(facts, limits)
}

/// Reads a file that begins at or after `end`, the end of the one before. Returns its own end.
fn read_file<S: BundleSink>(
    archive: &mut Archive<'_>,
    file: &PlannedFile,
    end: u64,
    sink: &mut MeteredSink<'_, S>,
) -> Result<u64, S::Error> {
    let refusal = |problem| BundleRefusal::entry(&file.path, problem);
    let directory_start = archive.central_directory_start();
    let mut content =
        archive.by_index(file.index).map_err(|error| refusal(EntryProblem::Content(error.to_string())))?;
    let own_end = content.data_start().and_then(|start| start.checked_add(content.compressed_size()));
    let Some(own_end) = own_end.filter(|own_end| file.header_start >= end && *own_end <= directory_start) else {
        return Err(refusal(EntryProblem::Overlap).into());
    };
    let claimed = content.size();
    let damage = |error: std::io::Error| refusal(EntryProblem::Content(error.to_string()));
    let found = sink.file(&file.path, file.is_executable, &mut content, damage, |_| Ok(()))?;
    if found != claimed {
        return Err(refusal(EntryProblem::Size { claimed, found }).into());
    }
    Ok(own_end)
}
