//! Comparison of restored objects with the living ones: pure.
//!
//! D1: a living row from before the restored time that the restored state lacks is found by its object's number of
//!     rows, or by its newest write.
//! D2: rows that were written or deleted behind the restored time are no difference.

use std::collections::BTreeMap;

use assay_storage_model::{ObjectKind, Xact};
use serde::{Serialize, Serializer};
use uuid::Uuid;

/// Kinds of objects that a drill compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DrillKind {
    ProjectLogs,
    Functions,
    Experiment,
    Dataset,
}

impl DrillKind {
    pub const ALL: [DrillKind; 4] =
        [DrillKind::ProjectLogs, DrillKind::Functions, DrillKind::Experiment, DrillKind::Dataset];

    /// Returns the kind of an object in the store, or `None` if no drill compares it.
    pub fn of(kind: ObjectKind) -> Option<DrillKind> {
        match kind {
            ObjectKind::ProjectLogs => Some(DrillKind::ProjectLogs),
            ObjectKind::ProjectPrompts => Some(DrillKind::Functions),
            ObjectKind::Experiment => Some(DrillKind::Experiment),
            ObjectKind::Dataset => Some(DrillKind::Dataset),
            ObjectKind::PlaygroundLogs | ObjectKind::AuditLog | ObjectKind::Files => None,
        }
    }

    /// Returns the source of its rows in queries.
    pub fn source(self) -> &'static str {
        match self {
            DrillKind::ProjectLogs => "project_logs",
            DrillKind::Functions => "project_functions",
            DrillKind::Experiment => "experiment",
            DrillKind::Dataset => "dataset",
        }
    }
}

/// Rows of a restored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoredObject {
    pub rows: u64,
    /// Last write, which may be a deletion.
    pub newest: Xact,
}

/// Rows of an object at the living server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingObject {
    pub kind: DrillKind,
    pub id: Uuid,
    pub name: String,
    /// Rows that were last written before the restored time.
    pub rows_before: u64,
    /// Newest write among them.
    pub newest_before: Option<Xact>,
    /// All rows of this moment.
    pub rows: u64,
}

/// DrillVerdict about one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DrillVerdict {
    /// The restored state lacks rows.
    Lacks,
    /// The same rows, and others behind the restored time.
    ChangedSince,
    /// The same number of rows, of the same newest write.
    Equal,
}

/// Object with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedObject {
    pub kind: DrillKind,
    pub id: Uuid,
    pub name: String,
    pub verdict: DrillVerdict,
    pub restored_rows: u64,
    /// Living rows that were last written before the restored time.
    pub expected_rows: u64,
    pub living_rows: u64,
    #[serde(serialize_with = "optional_xact")]
    pub restored_newest: Option<Xact>,
    #[serde(serialize_with = "optional_xact")]
    pub expected_newest: Option<Xact>,
}

fn optional_xact<S: Serializer>(xact: &Option<Xact>, serializer: S) -> Result<S::Ok, S::Error> {
    xact.map(|xact| xact.to_string()).serialize(serializer)
}

/// Comparison of all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Objects with those that lack rows first.
    pub objects: Vec<ComparedObject>,
    /// Restored objects that the key does not see at the living server, of other organizations or deleted since.
    pub not_compared: u64,
}

impl Comparison {
    /// Returns whether no object lacks rows.
    pub fn holds(&self) -> bool {
        self.objects.iter().all(|object| object.verdict != DrillVerdict::Lacks)
    }

    pub fn count(&self, verdict: DrillVerdict) -> usize {
        self.objects.iter().filter(|object| object.verdict == verdict).count()
    }
}

/// Compares the living objects with the restored ones.
pub fn compare(restored: &BTreeMap<(DrillKind, Uuid), RestoredObject>, living: Vec<LivingObject>) -> Comparison {
    let mut seen = 0;
    let compared = living.into_iter().map(|object| {
        let found = restored.get(&(object.kind, object.id)).copied();
        seen += u64::from(found.is_some());
        let verdict = verdict(found, &object);
        let LivingObject { kind, id, name, rows_before, newest_before, rows } = object;
        ComparedObject {
            kind,
            id,
            name,
            verdict,
            restored_rows: found.map_or(0, |found| found.rows),
            expected_rows: rows_before,
            living_rows: rows,
            restored_newest: found.map(|found| found.newest),
            expected_newest: newest_before,
        }
    });
    let mut objects: Vec<_> = compared.collect();
    objects.sort_by(|one, other| (one.verdict, one.kind, &one.name).cmp(&(other.verdict, other.kind, &other.name)));
    Comparison { objects, not_compared: restored.len() as u64 - seen }
}

fn verdict(restored: Option<RestoredObject>, living: &LivingObject) -> DrillVerdict {
    let (rows, newest) = restored.map_or((0, Xact::ZERO), |restored| (restored.rows, restored.newest));
    if living.rows_before > rows || living.newest_before.is_some_and(|before| before > newest) {
        return DrillVerdict::Lacks;
    }
    let is_same = living.rows_before == rows && living.rows == rows;
    if is_same { DrillVerdict::Equal } else { DrillVerdict::ChangedSince }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xact(second: u32) -> Xact {
        Xact::new(second, 0)
    }

    fn living(rows_before: u64, newest: u32, rows: u64) -> LivingObject {
        let newest_before = (rows_before > 0).then(|| xact(newest));
        let (kind, id, name) = (DrillKind::Dataset, Uuid::nil(), "a".to_owned());
        LivingObject { kind, id, name, rows_before, newest_before, rows }
    }

    #[test]
    fn rows_of_before_are_expected_and_later_changes_are_not() {
        let restored = Some(RestoredObject { rows: 10, newest: xact(50) });
        assert_eq!(verdict(restored, &living(10, 50, 10)), DrillVerdict::Equal);
        assert_eq!(verdict(restored, &living(10, 50, 12)), DrillVerdict::ChangedSince, "two rows more");
        assert_eq!(verdict(restored, &living(8, 50, 10)), DrillVerdict::ChangedSince, "two rows again");
        assert_eq!(verdict(restored, &living(8, 49, 8)), DrillVerdict::ChangedSince, "two rows less");
        assert_eq!(verdict(restored, &living(11, 50, 11)), DrillVerdict::Lacks, "a row too few");
        assert_eq!(verdict(restored, &living(9, 51, 9)), DrillVerdict::Lacks, "an older version of a row");
        assert_eq!(verdict(None, &living(1, 1, 1)), DrillVerdict::Lacks);
        assert_eq!(verdict(None, &living(0, 0, 5)), DrillVerdict::ChangedSince, "it is younger");
        assert_eq!(verdict(None, &living(0, 0, 0)), DrillVerdict::Equal, "it is empty");
    }

    #[test]
    fn what_lacks_rows_is_named_first() {
        let restored = BTreeMap::from([
            ((DrillKind::Dataset, Uuid::nil()), RestoredObject { rows: 1, newest: xact(5) }),
            ((DrillKind::Experiment, Uuid::nil()), RestoredObject { rows: 1, newest: xact(5) }),
            ((DrillKind::Dataset, Uuid::max()), RestoredObject { rows: 1, newest: xact(5) }),
        ]);
        let named = |kind, name: &str, rows| LivingObject { kind, name: name.to_owned(), ..living(rows, 5, rows) };
        let found = compare(&restored, vec![named(DrillKind::Dataset, "a", 1), named(DrillKind::Experiment, "b", 2)]);
        let names: Vec<_> = found.objects.iter().map(|object| object.name.as_str()).collect();
        assert_eq!((names, found.not_compared, found.holds()), (vec!["b", "a"], 1, false));
        assert_eq!((found.count(DrillVerdict::Lacks), found.count(DrillVerdict::Equal)), (1, 1));
    }
}
