//! State derived from all reviews of a row: mean scores, submitters, and completion.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::review::{Review, ids};
use crate::{ASSIGNMENTS, DEFAULT_LIST, REVIEW_LISTS, SUBMITTERS};

/// Difference up to which two means count as equal.
const EQUAL: f64 = 1e-9;
/// Statuses of a row whose review is complete.
const DONE: [&str; 4] = ["COMPLETE", "COMPLETED", "APPROVED", "REJECTED"];

/// Reviewed row, reduced to the fields that matter to its reviews.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReviewedRow {
    pub id: String,
    pub span_id: String,
    pub root_span_id: String,
    pub scores: Map<String, Value>,
    pub status: Option<String>,
    pub assignees: Vec<Uuid>,
    pub submitters: Vec<String>,
}

/// Returns whether a status marks a complete review.
pub fn is_complete_status(status: Option<&str>) -> bool {
    status.is_some_and(|status| DONE.contains(&status))
}

impl ReviewedRow {
    pub fn read(row: &Value) -> Option<ReviewedRow> {
        let text = |name: &str| Some(row[name].as_str()?.to_owned());
        let metadata = &row["metadata"];
        let id = text("id")?;
        Some(ReviewedRow {
            span_id: text("span_id").unwrap_or_else(|| id.clone()),
            root_span_id: text("root_span_id").unwrap_or_else(|| id.clone()),
            scores: row["scores"].as_object().cloned().unwrap_or_default(),
            status: metadata[REVIEW_LISTS][DEFAULT_LIST]["status"].as_str().map(str::to_owned),
            assignees: ids(&metadata[ASSIGNMENTS]).iter().filter_map(|id| Uuid::parse_str(id).ok()).collect(),
            submitters: ids(&metadata[SUBMITTERS]),
            id,
        })
    }

    /// Returns the write that marks the review as complete.
    pub fn completed(&self, now: &str) -> Value {
        json!({
            "id": self.id, "_is_merge": true, "_audit_source": "app",
            "metadata": {REVIEW_LISTS: {DEFAULT_LIST: {"status": "COMPLETE", "completed_at": now}}},
        })
    }
}

/// Returns whether a review contributes to the mean scores. In a blind project, only submitted reviews do.
fn is_counted(review: &Review, is_blind: bool) -> bool {
    review.submitted || !is_blind
}

/// Returns the names of the scores that a review contributes to its row.
pub fn contributed(review: &Review, is_blind: bool) -> BTreeSet<String> {
    if is_counted(review, is_blind) { review.scores.keys().cloned().collect() } else { BTreeSet::new() }
}

/// Returns the mean of each score.
fn means(reviews: &[Review], is_blind: bool) -> BTreeMap<&str, f64> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for review in reviews.iter().filter(|review| is_counted(review, is_blind)) {
        for (name, score) in &review.scores {
            if let Some(score) = score.as_f64() {
                let (sum, count) = sums.entry(name).or_default();
                *sum += score;
                *count += 1.0;
            }
        }
    }
    sums.into_iter().map(|(name, (sum, count))| (name, sum / count)).collect()
}

/// Returns the merges that bring the row and its reviews up to date with all reviews.
///
/// The result is empty if they are already up to date. `withdrawn` names scores that a review contributed before its last
/// change: the row loses those that no review contributes any more. Other scores of the row may come from elsewhere.
pub fn settle(row: &ReviewedRow, reviews: &[Review], withdrawn: &BTreeSet<String>, is_blind: bool) -> Vec<Value> {
    let submitters: BTreeSet<String> = reviews
        .iter()
        .filter(|review| review.submitted)
        .filter_map(|review| Some(review.reviewer?.to_string()))
        .collect();
    let is_settled = |list: &[String]| list.len() == submitters.len() && list.iter().all(|id| submitters.contains(id));
    let mut writes = Vec::new();
    let means = means(reviews, is_blind);
    let shown = |name: &str| row.scores.get(name).and_then(Value::as_f64);
    let lost = withdrawn.iter().filter(|name| !means.contains_key(name.as_str()) && shown(name).is_some());
    let lost = lost.map(|name| (name.clone(), Value::Null));
    let other = means.iter().filter(|(name, mean)| shown(name).is_none_or(|score| (score - **mean).abs() > EQUAL));
    let other = other.map(|(name, mean)| ((*name).to_owned(), (*mean).into()));
    let changed: Map<String, Value> = other.chain(lost).collect();
    if !changed.is_empty() || !is_settled(&row.submitters) {
        let mut merge = merge_of(&row.id);
        if !changed.is_empty() {
            merge["scores"] = changed.into();
        }
        if !is_settled(&row.submitters) {
            merge["metadata"] = json!({SUBMITTERS: submitters});
        }
        writes.push(merge);
    }
    for review in reviews.iter().filter(|review| !is_settled(&review.submitters)) {
        let mut merge = merge_of(&review.id);
        merge["metadata"] = json!({SUBMITTERS: submitters});
        writes.push(merge);
    }
    writes
}

fn merge_of(id: &str) -> Value {
    json!({"id": id, "_is_merge": true, "_audit_source": "app"})
}
