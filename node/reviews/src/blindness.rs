//! Masking of rows for reviewers of a blind project.
//!
//! The mask applies to a row until the reviewer submits a review of it. The mask hides other people's reviews, the
//! human scores of the row, and other people's comments.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{REVIEW_TYPE, SUBMITTERS};

/// Reader of a blind project who may not change the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blindness {
    pub user: Uuid,
    /// Names of the project's human scores.
    pub scores: BTreeSet<String>,
}

impl Blindness {
    /// Returns whether the reader submitted a review of a row.
    ///
    /// `submitters` is the row's list of submitters as JSON.
    pub fn has_submitted(&self, submitters: Option<&str>) -> bool {
        let Some(text) = submitters else { return false };
        let listed: Vec<String> = serde_json::from_str(text).unwrap_or_default();
        listed.contains(&self.user.to_string())
    }

    /// Returns whether a row is the reader's own review. Rows of other types may have any reviewer in their metadata.
    pub fn is_own_review(&self, span_type: Option<&str>, reviewer: Option<&str>) -> bool {
        span_type == Some(REVIEW_TYPE) && reviewer == Some(self.user.to_string().as_str())
    }

    /// Returns whether a row is hidden from the reader.
    ///
    /// A row is hidden if it is another person's review and the reader has not submitted a review.
    pub fn hides(&self, span_type: Option<&str>, reviewer: Option<&str>, submitters: Option<&str>) -> bool {
        span_type == Some(REVIEW_TYPE) && !self.is_own_review(span_type, reviewer) && !self.has_submitted(submitters)
    }

    /// Removes the human scores from an object of scores.
    pub fn without_human(&self, scores: &mut Map<String, Value>) {
        scores.retain(|name, _| !self.scores.contains(name));
    }

    /// Returns whether the reader wrote a comment or an audit entry.
    ///
    /// The server and the console set the author of both.
    pub fn is_own_note(&self, note: &Value) -> bool {
        note["metadata"]["user_id"] == self.user.to_string().as_str()
    }

    /// Returns the masked row, or `None` if the row is hidden.
    pub fn masked(&self, mut row: Map<String, Value>) -> Option<Map<String, Value>> {
        let metadata = row.get("metadata").unwrap_or(&Value::Null);
        let submitters = metadata.get(SUBMITTERS).map(Value::to_string);
        let span_type = row.get("span_attributes").and_then(|of| of.get("type")).and_then(Value::as_str);
        let reviewer = metadata.get("reviewer_id").and_then(Value::as_str);
        if self.hides(span_type, reviewer, submitters.as_deref()) {
            return None;
        }
        if !self.is_own_review(span_type, reviewer) && !self.has_submitted(submitters.as_deref()) {
            if let Some(Value::Object(scores)) = row.get_mut("scores") {
                self.without_human(scores);
            }
            for notes in ["comments", "audit_data"] {
                if let Some(Value::Array(notes)) = row.get_mut(notes) {
                    notes.retain(|note| self.is_own_note(note));
                }
            }
        }
        Some(row)
    }
}
