//! Coverage of a run: the events it has to include. Without them the verdict is `unknown`, whatever the other checkers
//! report.

use std::collections::BTreeMap;

use serde::Serialize;

/// Counts of what happened, and what there had to be at least.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Coverage {
    pub counts: BTreeMap<String, u64>,
    pub wanted: BTreeMap<String, u64>,
}

impl Coverage {
    pub fn add(&mut self, what: &str, count: u64) {
        *self.counts.entry(what.to_owned()).or_default() += count;
    }

    /// Requires at least this many events `what`.
    pub fn want(&mut self, what: &str, at_least: u64) {
        self.wanted.insert(what.to_owned(), at_least);
    }

    /// Returns the required events that did not happen often enough.
    pub fn gaps(&self) -> Vec<String> {
        let count = |what: &str| self.counts.get(what).copied().unwrap_or(0);
        let short = self.wanted.iter().filter(|(what, at_least)| count(what) < **at_least);
        short.map(|(what, at_least)| format!("{what}: {} of at least {at_least}", count(what))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_happen_is_a_gap() {
        let mut coverage = Coverage::default();
        coverage.want("kills", 2);
        coverage.add("kills", 1);
        assert_eq!(coverage.gaps(), ["kills: 1 of at least 2"]);
        coverage.add("kills", 1);
        assert!(coverage.gaps().is_empty());
    }
}
