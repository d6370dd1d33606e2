//! Reviews of a row by one person, and changes to them.

use std::fmt;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::settling::ReviewedRow;
use crate::{REVIEW_TYPE, SUBMITTERS};

/// Upper bound of the number of scores in one change.
const SCORES_MAX: usize = 1000;
const COMMENT_BYTES_MAX: usize = 64 << 10;
/// Metadata member with the id of the reviewer, which only the server writes.
const REVIEWER: &str = "reviewer_id";
/// Metadata member with the submission flag, which only the server writes.
const SUBMITTED: &str = "submitted";
/// Metadata member with the comment, which only the server writes.
const COMMENT: &str = "comment";

/// Reason for refusing a change, worded for its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewError(pub String);

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Person who reviews a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewer {
    pub id: Uuid,
    pub name: String,
}

/// Stored review.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Review {
    pub id: String,
    pub reviewer: Option<Uuid>,
    pub name: String,
    pub submitted: bool,
    pub scores: Map<String, Value>,
    pub expected: Option<Value>,
    /// Metadata without the members that the server writes.
    pub metadata: Map<String, Value>,
    pub comment: Option<String>,
    pub submitters: Vec<String>,
    pub created: Value,
}

/// Change to the caller's review. Absent fields keep their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    pub scores: Map<String, Value>,
    pub expected: Option<Value>,
    pub metadata: Option<Map<String, Value>>,
    pub comment: Option<String>,
    pub submitted: Option<bool>,
}

/// Returns the id of a person's review of a row.
pub fn review_id(row: &str, user: Uuid) -> Uuid {
    let space = Uuid::parse_str(row).unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, row.as_bytes()));
    Uuid::new_v5(&space, user.to_string().as_bytes())
}

impl Review {
    /// Reads a review from a row of type `review`. Returns `None` if the row has no id.
    pub fn read(row: &Value) -> Option<Review> {
        let mut metadata = row["metadata"].as_object().cloned().unwrap_or_default();
        let reviewer = metadata.remove(REVIEWER);
        let submitted = metadata.remove(SUBMITTED).is_some_and(|flag| flag == true);
        let comment = metadata.remove(COMMENT).and_then(|text| Some(text.as_str()?.to_owned()));
        let submitters = metadata.remove(SUBMITTERS).map(|list| ids(&list)).unwrap_or_default();
        let name = row["span_attributes"]["name"].as_str().unwrap_or_default();
        Some(Review {
            id: row["id"].as_str()?.to_owned(),
            reviewer: reviewer.and_then(|id| Uuid::parse_str(id.as_str()?).ok()),
            name: name.strip_prefix("Review by ").unwrap_or(name).to_owned(),
            submitted,
            scores: row["scores"].as_object().cloned().unwrap_or_default(),
            expected: row.get("expected").filter(|value| !value.is_null()).cloned(),
            metadata,
            comment,
            submitters,
            created: row["created"].clone(),
        })
    }

    /// Returns the review as the API shows it to a reader.
    pub fn to_json(&self, reader: Uuid) -> Value {
        json!({
            "id": self.id, "reviewer_id": self.reviewer, "reviewer_name": self.name, "submitted": self.submitted,
            "scores": self.scores, "expected": self.expected, "metadata": self.metadata, "comment": self.comment,
            "created": self.created, "is_mine": self.reviewer == Some(reader),
        })
    }
}

/// Returns the strings of a JSON array.
pub(crate) fn ids(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|id| Some(id.as_str()?.to_owned())).collect()
}

impl Change {
    /// Reads a change from the body of a request.
    pub fn read(mut body: Map<String, Value>) -> Result<Change, ReviewError> {
        let mut take = |name: &str| body.remove(name).filter(|value| !value.is_null());
        let scores = match take("scores") {
            None => Map::new(),
            Some(Value::Object(scores)) => scores,
            Some(_) => return wrong("`scores` has to be an object with a number or null for each score"),
        };
        if scores.len() > SCORES_MAX {
            return wrong(&format!("`scores` has {} members; the maximum is {SCORES_MAX}", scores.len()));
        }
        for (name, score) in &scores {
            let is_score = score.is_null() || score.as_f64().is_some_and(|score| (0.0..=1.0).contains(&score));
            if !is_score {
                return wrong(&format!("`scores.{name}` has to be a number between 0 and 1, or null"));
            }
        }
        let metadata = match take("metadata") {
            None => None,
            Some(Value::Object(metadata)) => Some(metadata),
            Some(_) => return wrong("`metadata` has to be an object"),
        };
        let kept = [REVIEWER, SUBMITTED, COMMENT, SUBMITTERS];
        if let Some(name) = metadata.iter().flat_map(Map::keys).find(|name| kept.contains(&name.as_str())) {
            return wrong(&format!("`metadata.{name}` is written by the server; use another name"));
        }
        let comment = match take("comment") {
            None => None,
            Some(Value::String(text)) if text.len() <= COMMENT_BYTES_MAX => Some(text),
            Some(Value::String(_)) => {
                return wrong(&format!("`comment` is longer than {COMMENT_BYTES_MAX} bytes"));
            }
            Some(_) => return wrong("`comment` has to be a text"),
        };
        let submitted = match take("submitted") {
            None => None,
            Some(Value::Bool(flag)) => Some(flag),
            Some(_) => return wrong("`submitted` has to be true or false"),
        };
        let expected = take("expected");
        match body.keys().next() {
            Some(name) => {
                wrong(&format!("`{name}` is unknown; a review has scores, expected, metadata, comment and submitted"))
            }
            None => Ok(Change { scores, expected, metadata, comment, submitted }),
        }
    }

    /// Returns whether the change leaves the review as it is.
    pub fn is_empty(&self) -> bool {
        *self == Change::default()
    }

    /// Returns the rows to write: the review, and any comment on the reviewed row.
    pub fn rows(&self, row: &ReviewedRow, before: Option<&Review>, reviewer: &Reviewer, now: &str) -> Vec<Value> {
        let id = review_id(&row.id, reviewer.id).to_string();
        let mut metadata = self.metadata.clone().unwrap_or_default();
        metadata.insert(REVIEWER.into(), reviewer.id.to_string().into());
        let submitted = self.submitted.or(before.map(|before| before.submitted)).unwrap_or(false);
        metadata.insert(SUBMITTED.into(), submitted.into());
        if let Some(comment) = &self.comment {
            metadata.insert(COMMENT.into(), comment.as_str().into());
        }
        let mut review = json!({
            "id": id, "_is_merge": true, "span_id": id, "root_span_id": row.root_span_id,
            "span_parents": [row.span_id],
            "span_attributes": {"type": REVIEW_TYPE, "name": format!("Review by {}", reviewer.name)},
            "metadata": metadata, "_audit_source": "app",
        });
        if before.is_none() {
            review["created"] = now.into();
        }
        if !self.scores.is_empty() {
            review["scores"] = self.scores.clone().into();
        }
        if let Some(expected) = &self.expected {
            review["expected"] = expected.clone();
        }
        let comment = self.comment.as_ref().filter(|text| !text.is_empty()).map(|text| {
            json!({
                "created": now, "origin": {"id": row.id}, "comment": {"text": text}, "_audit_source": "app",
                "_audit_metadata": {"user_id": reviewer.id},
            })
        });
        std::iter::once(review).chain(comment).collect()
    }
}

fn wrong<T>(why: &str) -> Result<T, ReviewError> {
    Err(ReviewError(why.to_owned()))
}
