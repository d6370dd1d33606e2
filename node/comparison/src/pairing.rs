//! Pairs of rows with the same comparison key, their order and their selection.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::row::ComparedRow;

/// Difference up to which two numbers count as equal.
pub(crate) const SAME_WITHIN: f64 = 1e-9;

/// Kind of a pair, which compares the first experiment with the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Up,
    Down,
    Same,
    /// Pair without a row of the base.
    New,
    /// Pair without a row of the first experiment.
    Missing,
    /// Pair with an error in a trial of the first experiment.
    Errors,
}

impl Kind {
    pub const ALL: [Kind; 6] = [Kind::Up, Kind::Down, Kind::Same, Kind::New, Kind::Missing, Kind::Errors];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Up => "up",
            Kind::Down => "down",
            Kind::Same => "same",
            Kind::New => "new",
            Kind::Missing => "missing",
            Kind::Errors => "errors",
        }
    }
}

/// Sort key of pairs. Pairs without a value come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Delta,
    Score,
    Key,
}

impl Order {
    pub const ALL: [Order; 3] = [Order::Delta, Order::Score, Order::Key];

    pub fn name(self) -> &'static str {
        match self {
            Order::Delta => "delta",
            Order::Score => "score",
            Order::Key => "key",
        }
    }
}

/// Selection and order of the pairs to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Score or metric that determines the kind and the order of pairs.
    pub score: Option<String>,
    pub only: Option<Kind>,
    pub order: Order,
    pub is_descending: bool,
}

/// Rows with the same key, by experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair<'r> {
    pub key: &'r str,
    /// Trials of each experiment, in the order of the request.
    pub cells: Vec<Vec<&'r ComparedRow>>,
}

impl Pair<'_> {
    /// Returns the mean over the trials of an experiment, or `None` if no trial has a value.
    pub fn mean(&self, experiment: usize, name: &str) -> Option<f64> {
        let values: Vec<f64> = self.cells[experiment].iter().filter_map(|row| row.value(name)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Returns the mean of an experiment minus the mean of the base.
    pub fn delta(&self, experiment: usize, base: usize, name: &str) -> Option<f64> {
        Some(self.mean(experiment, name)? - self.mean(base, name)?)
    }

    fn is_of(&self, kind: Kind, base: usize, score: Option<&str>) -> bool {
        let delta = || self.delta(0, base, score?);
        match kind {
            Kind::Up => delta().is_some_and(|delta| delta > SAME_WITHIN),
            Kind::Down => delta().is_some_and(|delta| delta < -SAME_WITHIN),
            Kind::Same => delta().is_some_and(|delta| delta.abs() <= SAME_WITHIN),
            Kind::New => self.cells[base].is_empty() && !self.cells[0].is_empty(),
            Kind::Missing => self.cells[0].is_empty() && !self.cells[base].is_empty(),
            Kind::Errors => self.cells[0].iter().any(|row| row.has_error),
        }
    }
}

/// Pairs of all rows, sorted by key.
#[derive(Clone, Debug)]
pub struct Pairing<'r> {
    pairs: Vec<Pair<'r>>,
}

impl<'r> Pairing<'r> {
    /// Pairs the rows of the given number of experiments.
    pub fn of(rows: &'r [ComparedRow], experiments: usize) -> Pairing<'r> {
        let mut by_key: BTreeMap<&str, Vec<Vec<&ComparedRow>>> = BTreeMap::new();
        for row in rows {
            by_key.entry(&row.key).or_insert_with(|| vec![Vec::new(); experiments])[row.experiment].push(row);
        }
        Pairing { pairs: by_key.into_iter().map(|(key, cells)| Pair { key, cells }).collect() }
    }

    pub fn pairs(&self) -> &[Pair<'r>] {
        &self.pairs
    }

    /// Returns the selected pairs, compared with the experiment `base`.
    pub fn selected(&self, base: usize, selection: &Selection) -> Vec<&Pair<'r>> {
        let score = selection.score.as_deref();
        let is_shown = |pair: &&Pair<'_>| selection.only.is_none_or(|kind| pair.is_of(kind, base, score));
        let mut shown: Vec<&Pair<'r>> = self.pairs.iter().filter(is_shown).collect();
        let value = |pair: &Pair<'_>| match selection.order {
            Order::Delta => pair.delta(0, base, score?),
            Order::Score => pair.mean(0, score?),
            Order::Key => None,
        };
        // The sort is stable, so equal pairs stay in the order of their keys.
        match selection.order {
            Order::Key if selection.is_descending => shown.reverse(),
            Order::Key => {}
            _ => shown.sort_by(|a, b| by_value(value(a), value(b), selection.is_descending)),
        }
        shown
    }
}

fn by_value(a: Option<f64>, b: Option<f64>, is_descending: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if is_descending => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn row(experiment: usize, key: &str, score: Option<f64>) -> ComparedRow {
        let scores = score.into_iter().map(|score| ("s".to_owned(), score)).collect();
        ComparedRow { experiment, key: key.into(), scores, ..ComparedRow::default() }
    }

    fn selection(only: Option<Kind>, order: Order, is_descending: bool) -> Selection {
        Selection { score: Some("s".into()), only, order, is_descending }
    }

    fn keys(pairs: &[&Pair<'_>]) -> Vec<String> {
        pairs.iter().map(|pair| pair.key.to_owned()).collect()
    }

    #[test]
    fn regressions_come_first_and_trials_count_by_their_mean() {
        let rows = [
            row(0, "a", Some(1.0)),
            row(1, "a", Some(0.0)),
            row(0, "b", Some(0.0)),
            row(0, "b", Some(1.0)),
            row(1, "b", Some(1.0)),
            row(0, "c", Some(1.0)),
            row(1, "c", Some(1.0)),
            row(0, "new", Some(1.0)),
            row(1, "gone", Some(1.0)),
            row(0, "none", None),
        ];
        let pairing = Pairing::of(&rows, 2);
        let shown = |only, order, down| keys(&pairing.selected(1, &selection(only, order, down)));
        assert_eq!(shown(None, Order::Delta, false), ["b", "c", "a", "gone", "new", "none"]);
        assert_eq!(shown(None, Order::Delta, true), ["a", "c", "b", "gone", "new", "none"]);
        assert_eq!(shown(Some(Kind::Down), Order::Delta, false), ["b"]);
        assert_eq!(shown(Some(Kind::Up), Order::Delta, false), ["a"]);
        assert_eq!(shown(Some(Kind::Same), Order::Delta, false), ["c"]);
        assert_eq!(shown(Some(Kind::New), Order::Key, false), ["new", "none"]);
        assert_eq!(shown(Some(Kind::Missing), Order::Key, false), ["gone"]);
        assert_eq!(shown(None, Order::Key, true), ["none", "new", "gone", "c", "b", "a"]);
        assert!(shown(Some(Kind::Errors), Order::Key, false).is_empty());
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_pair_and_every_pair_of_two_is_of_one_kind(
            rows in prop::collection::vec((0..2_usize, 0..6_u8, prop::option::of(0..3_u8)), 0..40),
        ) {
            let rows: Vec<ComparedRow> = rows
                .into_iter()
                .map(|(experiment, key, score)| row(experiment, &key.to_string(), score.map(f64::from)))
                .collect();
            let pairing = Pairing::of(&rows, 2);
            let paired: usize = pairing.pairs().iter().flat_map(|pair| &pair.cells).map(Vec::len).sum();
            prop_assert_eq!(paired, rows.len());
            for pair in pairing.pairs() {
                let of = |kind: &&Kind| **kind != Kind::Errors && pair.is_of(**kind, 1, Some("s"));
                let kinds = Kind::ALL.iter().filter(of).count();
                let is_without_a_score = pair.cells.iter().all(|cell| !cell.is_empty()) && pair.delta(0, 1, "s").is_none();
                prop_assert_eq!(kinds, usize::from(!is_without_a_score));
            }
        }
    }
}
