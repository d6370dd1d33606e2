//! Scan of a directory's files in the order in which raft-engine replays them.
//!
//! It collects records, votes and notes per group, and every inconsistency. It is read-only and runs before each open
//! and in `assay doctor`.
//!
//! The engine keeps two queues, and copies the few live records of old files to the rewrite queue. A group is its
//! rewritten table without the records that later commands removed, overlaid with its appended table. Later records
//! replace earlier ones that they overlap. A copy of several batches counts only if its last batch exists.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;

use assay_storage_model::GroupId;
use raft_engine::env::FileSystem;

use crate::error::LogError;
use crate::files::{self, LogFile, Queue};
use crate::frame::Mark;
use crate::group::Group;
use crate::group_metadata::{self, COMMITTED_KEY, HEAD_KEY, Head, OWN_GROUP, VOTE_KEY, Vote};
use crate::scan::{self, ScanItem, Scanned};

/// Key by which the engine marks batches that belong together.
const TOGETHER_KEY: &[u8] = b"__\x01";
const TOGETHER_BEGIN: u8 = 0;
const TOGETHER_END: u8 = 2;

/// Content of a directory.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub files: Vec<Scanned>,
    pub groups: BTreeMap<GroupId, RecoveredGroup>,
    /// Defects of the files themselves, each with the file.
    pub gaps: Vec<String>,
}

/// Group as recovered from the files.
#[derive(Debug, Default)]
pub(crate) struct RecoveredGroup {
    pub group: Group,
    pub records: u64,
    pub problems: Vec<Problem>,
    first: u64,
    marks: VecDeque<Mark>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub index: Option<u64>,
    pub what: String,
}

impl RecoveredGroup {
    /// Returns the checksum of the record at an index, if the files have it.
    pub fn checksum_at(&self, index: u64) -> Option<u32> {
        let place = usize::try_from(index.checked_sub(self.first)?).ok()?;
        self.marks.get(place).map(|mark| mark.checksum)
    }
}

/// Reads every byte of every log file in `dir`.
pub(crate) fn survey<F: FileSystem>(files: &F, dir: &Path) -> Result<Survey, LogError> {
    let listed = files::list(dir)?;
    let mut replay = Replay::default();
    let mut survey = Survey { gaps: gaps(&listed), ..Survey::default() };
    for file in &listed {
        let mut take = |items| replay.take(file.queue, items);
        let scanned = scan::scan(files, file, &mut take).map_err(|error| LogError::io(file.path.display(), error))?;
        survey.files.push(scanned);
    }
    survey.groups = replay.finish();
    Ok(survey)
}

/// Finds gaps in the file numbers. The engine silently forgets the files before a gap.
fn gaps(files: &[LogFile]) -> Vec<String> {
    let pairs = files.windows(2).filter(|pair| pair[0].queue == pair[1].queue);
    pairs
        .filter(|pair| pair[1].sequence != pair[0].sequence + 1)
        .map(|pair| format!("the files between {} and {} are missing", pair[0].path.display(), pair[1].path.display()))
        .collect()
}

/// Records and values of one group in one queue.
#[derive(Debug, Default)]
struct Table {
    first: u64,
    marks: VecDeque<Mark>,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    problems: Vec<Problem>,
}

impl Table {
    /// Inserts records. Like the engine, it forgets earlier records before a gap if a gap is permitted.
    fn put(&mut self, marks: impl IntoIterator<Item = Mark>, gap_is_normal: bool) {
        for mark in marks {
            let next = self.first + self.marks.len() as u64;
            if self.marks.is_empty() || mark.index < self.first {
                self.marks.clear();
                self.first = mark.index;
            } else if mark.index > next {
                if !gap_is_normal {
                    let what = format!("records {next} to {} are missing before this one", mark.index - 1);
                    self.problems.push(Problem { index: Some(next), what });
                }
                self.marks.clear();
                self.first = mark.index;
            } else {
                self.marks.truncate((mark.index - self.first) as usize);
            }
            self.marks.push_back(mark);
        }
    }

    fn compact(&mut self, below: u64) {
        let gone = below.saturating_sub(self.first).min(self.marks.len() as u64);
        self.marks.drain(..gone as usize);
        self.first += gone;
    }
}

type Tables = BTreeMap<u64, Table>;

#[derive(Debug, Default)]
struct Replay {
    rewritten: Tables,
    appended: Tables,
    /// Commands of the append queue, which also delete rewritten records.
    commands: Vec<ScanItem>,
    /// Rewritten batches that count only as a whole.
    together: HashMap<u64, Vec<ScanItem>>,
}

impl Replay {
    fn take(&mut self, queue: Queue, items: Vec<ScanItem>) {
        match queue {
            Queue::Append => {
                let commands = items.iter().filter(|item| {
                    matches!(item, ScanItem::Clean { .. } | ScanItem::Compact { .. } | ScanItem::Delete { .. })
                });
                self.commands.extend(commands.cloned());
                items.into_iter().for_each(|item| apply(&mut self.appended, item, false));
            }
            Queue::Rewrite => self.take_rewritten(items),
        }
    }

    fn take_rewritten(&mut self, items: Vec<ScanItem>) {
        let mark = items.iter().find_map(|item| match item {
            ScanItem::Put { group, key, value } if key == TOGETHER_KEY && value.len() == 1 => Some((*group, value[0])),
            _ => None,
        });
        let complete = match mark {
            None => items,
            Some((group, TOGETHER_BEGIN)) => {
                self.together.insert(group, items);
                return;
            }
            Some((group, part)) => {
                let Some(before) = self.together.get_mut(&group) else { return };
                before.extend(items);
                if part != TOGETHER_END {
                    return;
                }
                self.together.remove(&group).unwrap_or_default()
            }
        };
        complete.into_iter().for_each(|item| apply(&mut self.rewritten, item, true));
    }

    fn finish(mut self) -> BTreeMap<GroupId, RecoveredGroup> {
        for command in self.commands {
            apply(&mut self.rewritten, command, true);
        }
        for (group, appended) in self.appended {
            let table = self.rewritten.entry(group).or_default();
            table.put(appended.marks, true);
            table.values.extend(appended.values);
            table.problems.extend(appended.problems);
        }
        self.rewritten.remove(&OWN_GROUP);
        let groups = self.rewritten.into_iter();
        groups.filter(|(_, table)| !table.is_trace()).map(|(group, table)| (GroupId(group), found(table))).collect()
    }
}

impl Table {
    /// Returns whether nothing is left. The engine makes a table for every group that a command names, even for a
    /// removed one.
    fn is_trace(&self) -> bool {
        self.marks.is_empty() && self.values.is_empty() && self.problems.is_empty()
    }
}

fn apply(tables: &mut Tables, item: ScanItem, gap_is_normal: bool) {
    match item {
        ScanItem::Records { group, marks } => tables.entry(group).or_default().put(marks, gap_is_normal),
        ScanItem::Put { key, .. } if key == TOGETHER_KEY => {}
        ScanItem::Put { group, key, value } => {
            tables.entry(group).or_default().values.insert(key, value);
        }
        ScanItem::Delete { group, key } => {
            tables.entry(group).or_default().values.remove(&key);
        }
        ScanItem::Clean { group } => {
            tables.remove(&group);
        }
        ScanItem::Compact { group, below } => tables.entry(group).or_default().compact(below),
    }
}

/// Evaluates a table: selects its live records and checks that they are consecutive.
fn found(table: Table) -> RecoveredGroup {
    let Table { first, marks, values, mut problems } = table;
    let mut note = |key: &[u8], what: Result<(), String>| {
        if let Err(what) = what {
            problems.push(Problem { index: None, what: format!("{}: {what}", String::from_utf8_lossy(key)) });
        }
    };
    let mut group = Group::default();
    if let Some(value) = values.get(HEAD_KEY) {
        note(HEAD_KEY, Head::decode(value).map(|head| group.head = head));
    }
    if let Some(value) = values.get(VOTE_KEY) {
        note(VOTE_KEY, Vote::decode(value).map(|vote| group.vote = Some(vote)));
    }
    if let Some(value) = values.get(COMMITTED_KEY) {
        note(COMMITTED_KEY, group_metadata::decode_committed(value).map(|bytes| group.committed = Some(bytes)));
    }
    let from = group.head.purged.as_ref().map_or(first, |purged| purged.index.saturating_add(1));
    let to = group.head.end.unwrap_or(u64::MAX);
    let mut previous: Option<Mark> = None;
    let mut records = 0;
    for mark in marks.iter().filter(|mark| (from..to).contains(&mark.index)) {
        match previous {
            None if mark.index != from => {
                let what = format!("records {from} to {} are missing", mark.index - 1);
                problems.push(Problem { index: Some(from), what });
            }
            _ if mark.previous != previous.map_or(group.before_first(), |previous| previous.checksum) => {
                let what = "this record does not follow its predecessor".to_string();
                problems.push(Problem { index: Some(mark.index), what });
            }
            _ => {}
        }
        if previous.is_none() {
            group.first = mark.index;
        }
        previous = Some(*mark);
        records += 1;
    }
    group.last = previous;
    RecoveredGroup { group, records, problems, first, marks }
}
