//! Integrity check before a log is opened. It compares the files with the watermark, decides, and changes nothing.
//!
//! - J1: Damage or loss at or below a group's watermark is corruption.
//! - J2: Damage in any file but the last of its queue is corruption, because those files were synced when they were
//!   closed.
//! - J3: Other damage, in a last file above every watermark, is a torn tail and is cut where it begins.

use std::path::{Path, PathBuf};

use assay_storage_model::GroupId;
use assay_storage_model::sabotage::{self, Sabotage};

use crate::error::Corruption;
use crate::recovery_scan::{RecoveredGroup, Survey};
use crate::scan::{End, Scanned};
use crate::watermark::{Level, Levels};

/// Corruptions that prevent an open, and cuts that are required before it.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub corruptions: Vec<Corruption>,
    pub cuts: Vec<Cut>,
}

/// Unwritten or unacknowledged end of a last file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub file: PathBuf,
    /// New length of the file. A file without a header is removed.
    pub at: u64,
    pub bytes: u64,
    /// Description of the torn tail, or `None` if only reserved space is freed.
    pub torn: Option<String>,
}

/// Judges a directory by its survey and the levels of its watermark.
pub(crate) fn judge(dir: &Path, survey: &Survey, levels: &Levels) -> Judgement {
    let mut judgement = Judgement::default();
    let whole_log = |what: String| Corruption { group: None, file: dir.to_path_buf(), index: None, what };
    judgement.corruptions.extend(survey.gaps.iter().cloned().map(whole_log));
    for (place, file) in survey.files.iter().enumerate() {
        let is_last = survey.files.get(place + 1).is_none_or(|next| next.queue != file.queue);
        judge_file(&mut judgement, file, is_last);
    }
    // Missing records were probably in a damaged file.
    let damaged = survey.files.iter().find(|file| matches!(file.end, End::Damaged { .. }));
    let suspect = damaged.map_or(dir, |file| file.path.as_path());
    for (group, found) in &survey.groups {
        let named = |index, what| Corruption { group: Some(*group), file: suspect.to_path_buf(), index, what };
        let problems = found.problems.iter();
        judgement.corruptions.extend(problems.map(|problem| named(problem.index, problem.what.clone())));
    }
    for (group, level) in &levels.of {
        if let Some((index, what)) = below(survey.groups.get(group), level) {
            let corruption = Corruption { group: Some(*group), file: suspect.to_path_buf(), index, what };
            judgement.corruptions.push(corruption);
        }
    }
    if sabotage::is(Sabotage::TruncateAtBadChecksum) {
        judgement.corruptions.clear();
    }
    judgement
}

fn judge_file(judgement: &mut Judgement, file: &Scanned, is_last: bool) {
    let (at, torn) = match &file.end {
        End::Whole => return,
        End::Unused { at } => (*at, None),
        End::Damaged { at, what } => (*at, Some(what.clone())),
    };
    if is_last || sabotage::is(Sabotage::TruncateAtBadChecksum) {
        judgement.cuts.push(Cut { file: file.path.clone(), at, bytes: file.bytes - at, torn });
    } else {
        let what = torn.unwrap_or_else(|| "nothing but zeros".to_string());
        let what = format!("at byte {at}: {what}, in a file that was complete"); // J2
        judgement.corruptions.push(Corruption { group: None, file: file.path.clone(), index: None, what });
    }
}

/// Compares the watermark of a group with the files (J1), and returns what the files lack.
fn below(found: Option<&RecoveredGroup>, level: &Level) -> Option<(Option<u64>, String)> {
    let nothing = RecoveredGroup::default();
    let found = found.unwrap_or(&nothing);
    let purged = found.group.head.purged.as_ref().map(|purged| purged.index);
    if let Some(index) = level.purged.filter(|index| purged.is_none_or(|purged| purged < *index)) {
        return Some((Some(index), format!("the log was purged to here and its note says {purged:?}")));
    }
    if let Some((index, checksum)) = level.last.filter(|(index, _)| purged.is_none_or(|purged| purged < *index)) {
        let last = found.group.last.map(|mark| mark.index);
        if last.is_none_or(|last| last < index) {
            let missing = last.map_or(found.group.next_index().unwrap_or(index), |last| last + 1);
            return Some((Some(missing), format!("records from here to {index} were durable and are missing")));
        }
        if found.checksum_at(index) != Some(checksum) {
            return Some((Some(index), "the record here differs from the durable one".to_string()));
        }
    }
    let (number, checksum) = level.vote?;
    match &found.group.vote {
        None => Some((None, format!("vote {number} was durable and is missing"))),
        Some(vote) if vote.number < number => {
            Some((None, format!("vote {number} was durable and the files have vote {}", vote.number)))
        }
        Some(vote) if vote.number == number && vote.checksum() != checksum => {
            Some((None, format!("vote {number} differs from the durable one")))
        }
        Some(_) => None,
    }
}

/// Returns the first of the most specific corruptions.
pub(crate) fn worst(corruptions: &[Corruption]) -> Option<Corruption> {
    let names_most = |corruption: &&Corruption| {
        (
            corruption.group.is_some(),
            corruption.index.is_some(),
            std::cmp::Reverse(corruption.group.unwrap_or(GroupId(0))),
        )
    };
    corruptions.iter().max_by_key(names_most).cloned()
}
