//! Definitions of human scores: their audience, and whether a review fills them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::review::Review;

/// Location of a score's value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    Scores,
    Expected,
    /// Path in the metadata.
    Metadata(Vec<String>),
    /// No stored value, because reads compute the score from other scores.
    Computed,
}

/// Condition that hides a score from a row. All expressions have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Expressions over the row.
    pub clauses: Vec<String>,
    /// Expressions that each hold for at least one span below the row.
    pub subspan_clauses: Vec<String>,
    /// Expressions that each hold for at least one span of the trace.
    pub trace_clauses: Vec<String>,
}

impl Condition {
    pub fn is_empty(&self) -> bool {
        self.clauses.is_empty() && self.subspan_clauses.is_empty() && self.trace_clauses.is_empty()
    }
}

/// Definition of a score that people give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanScore {
    pub name: String,
    destination: Destination,
    /// Users who give the score. Everybody gives it if `users` and `groups` are both empty.
    users: Vec<Uuid>,
    groups: Vec<Uuid>,
    /// Types of the objects whose rows have the score. An empty list means all types.
    object_types: Vec<String>,
    /// Condition under which the score is hidden.
    pub hidden_if: Condition,
}

impl HumanScore {
    /// Reads a definition from the body of a project score. Returns `None` for a score that programs give.
    pub fn read(body: &Map<String, Value>) -> Option<HumanScore> {
        let name = body.get("name")?.as_str()?.to_owned();
        let config = body.get("config").and_then(Value::as_object);
        let member = |name: &str| config.and_then(|config| config.get(name));
        let place = member("destination").and_then(Value::as_str);
        let destination = match (body.get("score_type")?.as_str()?, place) {
            ("slider", _) => Destination::Scores,
            ("categorical", Some("expected")) | ("free-form", Some("expected")) => Destination::Expected,
            ("categorical", _) => Destination::Scores,
            ("free-form", place) => {
                let path = place.map(|path| path.strip_prefix("metadata.").unwrap_or(path)).unwrap_or(&name);
                Destination::Metadata(path.split('.').map(str::to_owned).collect())
            }
            ("weighted" | "minimum" | "maximum", _) => Destination::Computed,
            _ => return None,
        };
        let visibility = member("visibility");
        let ids = |list: &str| {
            let items = visibility.and_then(|of| of[list].as_array()).into_iter().flatten();
            items.filter_map(|id| Uuid::parse_str(id.as_str()?).ok()).collect()
        };
        let object_types = member("object_types").map(texts).unwrap_or_default();
        let when = member("condition").map(|condition| &condition["when"]);
        let clauses = |list: &str| when.map(|when| texts(&when[list])).unwrap_or_default();
        let hidden_if = Condition {
            clauses: clauses("clauses"),
            subspan_clauses: clauses("subspan_clauses"),
            trace_clauses: clauses("trace_clauses"),
        };
        Some(HumanScore { name, destination, users: ids("users"), groups: ids("groups"), object_types, hidden_if })
    }

    /// Returns whether the score's value is among the scores of the reviewed row.
    pub fn is_among_scores(&self) -> bool {
        matches!(self.destination, Destination::Scores | Destination::Computed)
    }

    /// Returns whether people enter the score, so that a complete review requires it.
    pub fn is_entered(&self) -> bool {
        self.destination != Destination::Computed
    }

    /// Returns whether a user gives the score to rows of an object type.
    ///
    /// `groups` are the groups of the user.
    pub fn is_for(&self, object_type: &str, user: Uuid, groups: &BTreeSet<Uuid>) -> bool {
        let everybody = self.users.is_empty() && self.groups.is_empty();
        let named = self.users.contains(&user) || self.groups.iter().any(|group| groups.contains(group));
        (everybody || named) && (self.object_types.is_empty() || self.object_types.iter().any(|of| of == object_type))
    }

    /// Returns whether a review has a value for the score. Null and empty text do not count as values.
    pub fn is_filled(&self, review: &Review) -> bool {
        let is_value = |value: &Value| !value.is_null() && value.as_str() != Some("");
        match &self.destination {
            Destination::Scores => review.scores.get(&self.name).is_some_and(is_value),
            Destination::Expected => review.expected.as_ref().is_some_and(is_value),
            Destination::Metadata(path) => {
                let (first, rest) = path.split_first().expect("a path has a member");
                let start = review.metadata.get(first);
                let value = start.and_then(|start| rest.iter().try_fold(start, |value, key| value.get(key)));
                value.is_some_and(is_value)
            }
            Destination::Computed => true,
        }
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}
