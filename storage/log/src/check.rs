//! Check of a log that no process has open, for `assay doctor`. It is read-only.
//!
//! It verifies every checksum, every link and the watermark.

use std::fmt;
use std::path::{Path, PathBuf};

use assay_storage_disk::Disk;
use assay_storage_model::GroupId;
use raft_engine::env::DefaultFileSystem;

use crate::GroupState;
use crate::integrity::{self, Judgement};
use crate::recovery_scan::{Survey, survey};
use crate::scan::{End, Scanned};
use crate::watermark::{self, Level, Levels};

/// Result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    pub dir: PathBuf,
    pub verdict: Verdict,
    pub files: Vec<FileReport>,
    pub groups: Vec<GroupReport>,
    /// Damage that was found, with file, group and index as far as they are known.
    pub problems: Vec<String>,
    /// Harmless observations for the operator.
    pub remarks: Vec<String>,
}

/// Summary of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Log in which every byte is as written.
    Sound,
    /// Log with a torn write of a crash. The write was never acknowledged, and the next open cuts it.
    TornTail,
    /// Log with wrong or missing durable data, which will not open.
    Corrupt,
    /// Log that could not be read.
    Unreadable,
}

#[derive(Clone, Debug)]
pub struct FileReport {
    pub name: String,
    pub bytes: u64,
    pub batches: u64,
    pub records: u64,
    /// Offset and description of the first damage.
    pub damage: Option<(u64, String)>,
}

#[derive(Clone, Debug)]
pub struct GroupReport {
    pub group: GroupId,
    pub state: GroupState,
    pub records: u64,
    /// Last index in the watermark, or `None` if the watermark has no record of the group.
    pub watermark_last: Option<u64>,
}

/// Reads the log in `dir` and its watermark without changing them.
pub fn check(disk: &dyn Disk, dir: &Path) -> Report {
    let mut report = Report {
        dir: dir.to_path_buf(),
        verdict: Verdict::Sound,
        files: Vec::new(),
        groups: Vec::new(),
        problems: Vec::new(),
        remarks: Vec::new(),
    };
    let surveyed = match survey(&DefaultFileSystem, dir) {
        Ok(surveyed) => surveyed,
        Err(error) => {
            report.problems.push(error.to_string());
            report.verdict = Verdict::Unreadable;
            return report;
        }
    };
    let levels = match levels_of(disk, dir, &surveyed) {
        Ok(levels) => levels,
        Err(what) => {
            report.problems.push(what);
            Levels::default()
        }
    };
    let Judgement { corruptions, cuts } = integrity::judge(dir, &surveyed, &levels);
    report.problems.extend(corruptions.iter().map(ToString::to_string));
    report.remarks.extend(levels.torn.iter().cloned());
    for cut in &cuts {
        let (file, at, bytes) = (cut.file.display(), cut.at, cut.bytes);
        report.remarks.push(match &cut.torn {
            Some(what) => format!(
                "{file}: {bytes} bytes from {at} on are torn, above the watermark, and will be cut at the next start: {what}. \
                 Their content was never acknowledged; the last record before them may have been in flight too"
            ),
            None => format!("{file}: {bytes} bytes from {at} on are reserved and unused"),
        });
    }
    report.verdict = match (report.problems.is_empty(), cuts.iter().any(|cut| cut.torn.is_some())) {
        (false, _) => Verdict::Corrupt,
        (true, true) => Verdict::TornTail,
        (true, false) => Verdict::Sound,
    };
    report.files = surveyed.files.iter().map(file_report).collect();
    report.groups = surveyed
        .groups
        .iter()
        .map(|(id, found)| GroupReport {
            group: *id,
            state: found.group.state(),
            records: found.records,
            watermark_last: levels.of.get(id).and_then(|level: &Level| level.last).map(|(index, _)| index),
        })
        .collect();
    report
}

fn levels_of(disk: &dyn Disk, dir: &Path, surveyed: &Survey) -> Result<Levels, String> {
    let path = watermark::path_beside(dir).map_err(|error| error.to_string())?;
    match disk.exists(&path) {
        Ok(true) => watermark::load(disk, &path).map_err(|error| error.to_string()),
        Ok(false) if surveyed.files.is_empty() => Ok(Levels::default()),
        Ok(false) => Err(format!("{} is missing: the required content of the log is unknown", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn file_report(file: &Scanned) -> FileReport {
    let name = file.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let damage = match &file.end {
        End::Damaged { at, what } => Some((*at, what.clone())),
        End::Whole | End::Unused { .. } => None,
    };
    FileReport { name, bytes: file.bytes, batches: file.batches, records: file.records, damage }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "log {}: {:?}", self.dir.display(), self.verdict)?;
        for file in &self.files {
            writeln!(f, "  {}: {} bytes, {} batches, {} records", file.name, file.bytes, file.batches, file.records)?;
        }
        for GroupReport { group, state, records, watermark_last } in &self.groups {
            let purged = state.purged.as_ref().map(|purged| purged.index);
            writeln!(
                f,
                "  group {group}: {records} records from {}, last {:?}, purged {purged:?}, watermark {watermark_last:?}, vote {}",
                state.first,
                state.last,
                if state.vote.is_some() { "present" } else { "none" },
            )?;
        }
        self.remarks.iter().try_for_each(|remark| writeln!(f, "  remark: {remark}"))?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "  PROBLEM: {problem}"))
    }
}
