//! Saved state of an import, which makes it resumable. It is replaced as a whole after each acknowledged page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::ImportError;
use crate::ids::short_hash;
use crate::planner::PlannedPage;
use crate::source::{ImportSource, ImportWindow, SourceTask, TASKS_MAX};
use crate::tally::Tally;

/// Upper bound of different notes about what has no equivalent. Others are counted together.
const NOTES_MAX: usize = 200;
const OTHER_NOTES: &str = "other things without an equivalent";

/// Version of the saved form.
const FORMAT: u32 = 1;

/// Parts of a state that never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHeader {
    pub format: u32,
    pub source: String,
    /// Identity of the source, without secrets.
    pub identity: String,
    /// Address of the target and its project.
    pub target: String,
    pub project: String,
    pub window: ImportWindow,
}

impl StateHeader {
    pub fn new(source: &dyn ImportSource, target: &str, project: &str, window: ImportWindow) -> StateHeader {
        StateHeader {
            format: FORMAT,
            source: source.name().to_owned(),
            identity: source.identity(),
            target: target.to_owned(),
            project: project.to_owned(),
            window,
        }
    }
}

/// Returns a hash that names the import: its source, its target and its project.
pub fn source_hash(header: &StateHeader) -> u64 {
    short_hash(&[&header.source, &header.identity, &header.target, &header.project])
}

/// State of an import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportState {
    pub header: StateHeader,
    /// Tasks that are still to do. The last one is next.
    pub tasks: Vec<SourceTask>,
    /// Pages that the target has acknowledged.
    pub pages: u64,
    pub tally: Tally,
    /// Number of hashes in the file of known rows that belong to this state. Later ones are of an unacknowledged page.
    pub known: u64,
    pub unmapped: BTreeMap<String, u64>,
    /// Whether the comparison at the end was equal.
    #[serde(default)]
    pub is_verified: bool,
}

impl ImportState {
    pub fn new(header: StateHeader, mut tasks: Vec<SourceTask>) -> ImportState {
        tasks.reverse();
        let (tally, unmapped) = (Tally::default(), BTreeMap::new());
        ImportState { header, tasks, pages: 0, tally, known: 0, unmapped, is_verified: false }
    }

    /// Parses a saved state, which must be of the same import.
    pub fn resumed(saved: &[u8], header: &StateHeader) -> Result<ImportState, ImportError> {
        let state: ImportState = serde_json::from_slice(saved).map_err(|why| ImportError::State(why.to_string()))?;
        let there = &state.header;
        for (what, saved, given) in [
            ("source", &there.source, &header.source),
            ("source", &there.identity, &header.identity),
            ("target", &there.target, &header.target),
            ("project", &there.project, &header.project),
        ] {
            if saved != given {
                return Err(ImportError::OtherImport(format!("its {what} is {saved}, not {given}")));
            }
        }
        if there.format != FORMAT {
            return Err(ImportError::State(format!("it has the format {}", there.format)));
        }
        Ok(state)
    }

    pub fn next(&self) -> Option<&SourceTask> {
        self.tasks.last()
    }

    /// Records that the target acknowledged the page of the next task.
    pub fn acknowledge(&mut self, page: &PlannedPage, next: Vec<SourceTask>) -> Result<(), ImportError> {
        self.tasks.pop();
        self.tasks.extend(next.into_iter().rev());
        if self.tasks.len() > TASKS_MAX {
            return Err(ImportError::TooMany { what: "waiting tasks", max: TASKS_MAX });
        }
        self.pages += 1;
        self.tally = page.tally.clone();
        self.known += page.known.len() as u64;
        for (what, count) in &page.unmapped {
            let key =
                if self.unmapped.len() < NOTES_MAX || self.unmapped.contains_key(what) { what } else { OTHER_NOTES };
            *self.unmapped.entry(key.to_owned()).or_default() += count;
        }
        Ok(())
    }
}
