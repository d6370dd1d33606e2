//! Expected results of a store for one object after a prefix of its stream: existing rows, their second steps, and
//! their documents.

use std::collections::BTreeSet;

use super::row::{Family, Part, Row};
use super::words::Vocabulary;

#[derive(Clone, Debug)]
pub struct Expected {
    object: u64,
    family: Family,
    rows: u64,
    /// Rows whose merge has not been written.
    unfinished: BTreeSet<u64>,
}

impl Expected {
    pub(super) fn new(object: u64, family: Family, rows: u64, unfinished: BTreeSet<u64>) -> Expected {
        Expected { object, family, rows, unfinished }
    }

    /// The object's number in its workload.
    pub fn object(&self) -> u64 {
        self.object
    }

    /// Rows that exist; their numbers are below this.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn unfinished(&self) -> usize {
        self.unfinished.len()
    }

    pub fn row(&self, number: u64) -> Option<Row> {
        (number < self.rows).then(|| self.family.row(number))
    }

    /// Returns the existing part of the row: the whole once its merge is written.
    pub fn part(&self, number: u64) -> Option<Part> {
        let part = if self.unfinished.contains(&number) { Part::Start } else { Part::Whole };
        (number < self.rows).then_some(part)
    }

    /// The row's document, as JSON text; equal as a value to what a store folded, though not in the order of members.
    pub fn doc(&self, number: u64) -> Option<Vec<u8>> {
        let mut doc = Vec::new();
        self.row(number)?.render(self.part(number)?, Vocabulary::shared(), &mut doc);
        Some(doc)
    }
}
