//! Cases of a plan that an earlier process of the same run has written.

use std::collections::HashMap;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::ids::root_row_id;
use super::{CaseIndex, EvalPlan};
use crate::totals::CaseTally;

/// Case that an earlier process of the same run has written.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenCase {
    pub case: CaseIndex,
    pub tally: CaseTally,
}

/// Finder of written cases among the root rows of an object, which may come in pages.
#[derive(Debug)]
pub struct WrittenCases {
    /// Cases that have not been found, by the id of their root row.
    missing: HashMap<Uuid, CaseIndex>,
}

impl WrittenCases {
    pub fn new(plan: &EvalPlan) -> WrittenCases {
        let cases = (0..plan.case_count()).map(CaseIndex);
        let root = |case| Some((root_row_id(plan.job_id, &plan.datum(case)?.key, plan.trial(case)), case));
        WrittenCases { missing: cases.filter_map(root).collect() }
    }

    /// Returns the case of a root row, once. Rows without an end are not complete.
    pub fn find(&mut self, row: &Map<String, Value>) -> Option<WrittenCase> {
        row.get("metrics").filter(|metrics| metrics["end"].is_number())?;
        let id = Uuid::parse_str(row.get("id")?.as_str()?).ok()?;
        let case = self.missing.remove(&id)?;
        Some(WrittenCase { case, tally: CaseTally::of_root(row) })
    }
}
