//! Rows that rules may score: which rows are candidates, and when a span is finished.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::state::ScoringState;

/// Purpose of spans below a scorer.
pub const SCORER_PURPOSE: &str = "scorer";
/// Types of spans that scoring, automations and reviews write.
pub const EXCLUDED_SPAN_TYPES: [&str; 6] = ["score", "facet", "classifier", "preprocessor", "automation", "review"];
/// Value of `log_id` of the rows of a project's log.
const LOGS: &str = "g";
/// Members that name another object than a project's log.
const OTHER_OBJECTS: [&str; 3] = ["experiment_id", "dataset_id", "prompt_session_id"];
/// Upper bound of the remembered spans whose descendants are no candidates.
pub const EXCLUDED_SPANS_MAX: usize = 100_000;

/// Reason why no rule scores a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CandidateExclusion {
    #[error("the row is not a row of a project's log")]
    OtherObject,
    #[error("the row has no id")]
    NoId,
    #[error("the row is deleted")]
    Deleted,
    #[error("the span has the purpose of a scorer")]
    Purpose,
    #[error("the span has a type that scoring, automations or reviews write")]
    SpanType,
    #[error("the span is below a span that is not scored")]
    Descendant,
    #[error("online scoring of the row is disabled")]
    Disabled,
}

/// Checks whether rules may score a row, as far as the row alone tells (G-44).
pub fn check_candidate(row: &Map<String, Value>, state: &ScoringState) -> Result<(), CandidateExclusion> {
    let is_set = |name: &str| row.get(name).is_some_and(|value| !value.is_null());
    let is_log = row.get("log_id").is_none_or(|log| log.is_null() || log == LOGS);
    if !is_log || OTHER_OBJECTS.iter().any(|name| is_set(name)) {
        return Err(CandidateExclusion::OtherObject);
    }
    if text(row, "id").is_none() {
        return Err(CandidateExclusion::NoId);
    }
    if row.get("_object_delete") == Some(&Value::Bool(true)) {
        return Err(CandidateExclusion::Deleted);
    }
    check_span(row)?;
    if matches!(state, ScoringState::Disabled(_)) { Err(CandidateExclusion::Disabled) } else { Ok(()) }
}

/// Returns whether rules may score a row, as far as the row alone tells.
pub fn is_candidate(row: &Map<String, Value>, state: &ScoringState) -> bool {
    check_candidate(row, state).is_ok()
}

/// Returns whether scoring, an automation or a review wrote a span, as far as the span alone tells.
pub fn is_scoring_span(row: &Map<String, Value>) -> bool {
    check_span(row).is_err()
}

/// Checks that scoring did not write a span. Descendants of an excluded span are excluded too.
pub(crate) fn check_span(row: &Map<String, Value>) -> Result<(), CandidateExclusion> {
    let attribute = |name: &str| row.get("span_attributes").and_then(|attributes| attributes.get(name)?.as_str());
    if attribute("purpose") == Some(SCORER_PURPOSE) {
        return Err(CandidateExclusion::Purpose);
    }
    if attribute("type").is_some_and(|found| EXCLUDED_SPAN_TYPES.contains(&found)) {
        return Err(CandidateExclusion::SpanType);
    }
    Ok(())
}

pub(crate) fn text<'a>(row: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    row.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns the span id of a row. Rows of clients without spans have the id of the row.
pub fn span_id_of(row: &Map<String, Value>) -> Option<&str> {
    text(row, "span_id").or_else(|| text(row, "id"))
}

/// Returns the trace of a row.
pub fn root_span_id_of(row: &Map<String, Value>) -> Option<&str> {
    text(row, "root_span_id").or_else(|| span_id_of(row))
}

/// Returns the ids of the parents of a span.
pub(crate) fn parents(row: &Map<String, Value>) -> impl Iterator<Item = &str> {
    row.get("span_parents").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Spans whose descendants are no candidates, by trace. The oldest are forgotten first.
#[derive(Clone, Debug, Default)]
pub struct ExcludedSpans {
    spans: HashSet<(String, String)>,
    order: VecDeque<(String, String)>,
}

impl ExcludedSpans {
    /// Checks whether rules may score a row, also by its parents, and remembers the span if they may not.
    ///
    /// Parents have to be observed before their children, as clients write them.
    pub fn observe(&mut self, row: &Map<String, Value>, state: &ScoringState) -> Result<(), CandidateExclusion> {
        let found = check_candidate(row, state).and_then(|()| self.check_parents(row));
        let has_descendants = matches!(
            found,
            Err(CandidateExclusion::Purpose | CandidateExclusion::SpanType | CandidateExclusion::Descendant)
        );
        if let (true, Some(trace), Some(span)) = (has_descendants, root_span_id_of(row), span_id_of(row)) {
            self.remember((trace.to_owned(), span.to_owned()));
        }
        found
    }

    fn check_parents(&self, row: &Map<String, Value>) -> Result<(), CandidateExclusion> {
        let Some(trace) = root_span_id_of(row) else { return Ok(()) };
        let is_excluded = |parent: &str| self.spans.contains(&(trace.to_owned(), parent.to_owned()));
        if parents(row).any(is_excluded) { Err(CandidateExclusion::Descendant) } else { Ok(()) }
    }

    fn remember(&mut self, span: (String, String)) {
        if !self.spans.insert(span.clone()) {
            return;
        }
        self.order.push_back(span);
        if self.order.len() > EXCLUDED_SPANS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.spans.remove(&oldest);
        }
    }
}

/// Returns the rows of a trace that are its subject: without those of scoring, and without their descendants.
pub fn scored_rows_of_trace<'a>(rows: &[&'a Map<String, Value>]) -> Vec<&'a Map<String, Value>> {
    let mut children: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        for parent in parents(row) {
            children.entry(parent).or_default().push(index);
        }
    }
    let mut is_excluded: Vec<bool> = rows.iter().map(|row| check_span(row).is_err()).collect();
    let mut open: Vec<usize> = (0..rows.len()).filter(|index| is_excluded[*index]).collect();
    while let Some(index) = open.pop() {
        let below = span_id_of(rows[index]).and_then(|span| children.get(span)).into_iter().flatten();
        for child in below {
            if !is_excluded[*child] {
                is_excluded[*child] = true;
                open.push(*child);
            }
        }
    }
    rows.iter().zip(is_excluded).filter(|(_, is_excluded)| !is_excluded).map(|(row, _)| *row).collect()
}

/// Returns whether the span of a row has ended, or came whole with a result (G-42).
pub fn is_finished(row: &Map<String, Value>, came_whole: bool) -> bool {
    let is_set = |name: &str| row.get(name).is_some_and(|value| !value.is_null());
    has_ended(row) || (came_whole && (is_set("output") || is_set("error")))
}

fn has_ended(row: &Map<String, Value>) -> bool {
    row.get("metrics").and_then(|metrics| metrics.get("end")).is_some_and(|end| !end.is_null())
}

/// Returns the newest write that finished a span, after one more write.
///
/// `earlier` is the result for the writes before. `before` is the row before the write, and `after` the row with it. A
/// write that replaces the row starts again. A merge finishes a span only by its first end.
pub fn finish_after_write(
    earlier: Option<u64>,
    xact: u64,
    is_whole: bool,
    before: Option<&Map<String, Value>>,
    after: &Map<String, Value>,
) -> Option<u64> {
    let earlier = earlier.filter(|_| !is_whole);
    let was_finished = !is_whole && before.is_some_and(has_ended);
    if is_finished(after, is_whole) && !was_finished { Some(xact) } else { earlier }
}

/// Version of a row as the executor reads it from the log.
#[derive(Clone, Copy, Debug)]
pub struct RowVersion<'a> {
    pub row: &'a Map<String, Value>,
    pub xact: u64,
    /// Newest write after the position of the executor that finished the span: [`finish_after_write`].
    pub finish_xact: Option<u64>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn rows_of_scoring_and_of_other_objects_are_no_candidates() {
        use CandidateExclusion::{Deleted, Disabled, NoId, OtherObject, Purpose, SpanType};
        let cases = [
            (json!({"id": "r"}), None),
            (json!({"id": "r", "log_id": "g", "experiment_id": null}), None),
            (json!({"id": "r", "span_attributes": {"type": "llm", "purpose": null}}), None),
            (json!({"id": "r", "log_id": "p"}), Some(OtherObject)),
            (json!({"id": "r", "experiment_id": "e"}), Some(OtherObject)),
            (json!({"id": "r", "dataset_id": "d"}), Some(OtherObject)),
            (json!({"input": 1}), Some(NoId)),
            (json!({"id": "r", "_object_delete": true}), Some(Deleted)),
            (json!({"id": "r", "span_attributes": {"purpose": "scorer"}}), Some(Purpose)),
        ];
        for (value, expected) in cases {
            let found = check_candidate(&row(value.clone()), &ScoringState::Absent).err();
            assert_eq!(found, expected, "{value}");
        }
        for span_type in EXCLUDED_SPAN_TYPES {
            let found = check_candidate(
                &row(json!({"id": "r", "span_attributes": {"type": span_type}})),
                &ScoringState::Absent,
            );
            assert_eq!(found, Err(SpanType));
        }
        assert_eq!(check_candidate(&row(json!({"id": "r"})), &ScoringState::disabled()), Err(Disabled));
    }

    #[test]
    fn descendants_of_excluded_spans_are_no_candidates() {
        let span = |id: &str, trace: &str, parent: &str, span_type: &str| {
            row(json!({"id": id, "span_id": id, "root_span_id": trace, "span_parents": [parent],
                "span_attributes": {"type": span_type}}))
        };
        let mut excluded = ExcludedSpans::default();
        let mut observe = |row: &Map<String, Value>| excluded.observe(row, &ScoringState::Absent);
        assert_eq!(observe(&span("s", "t", "root", "review")), Err(CandidateExclusion::SpanType));
        assert_eq!(observe(&span("a", "t", "s", "llm")), Err(CandidateExclusion::Descendant));
        assert_eq!(observe(&span("b", "t", "a", "llm")), Err(CandidateExclusion::Descendant));
        assert_eq!(observe(&span("c", "t", "root", "llm")), Ok(()));
        assert_eq!(observe(&span("d", "other", "s", "llm")), Ok(()));
        let rows = [
            span("b", "t", "a", "llm"),
            span("a", "t", "s", "llm"),
            span("s", "t", "r", "score"),
            span("c", "t", "r", "llm"),
        ];
        let rows: Vec<_> = rows.iter().collect();
        let kept: Vec<_> = scored_rows_of_trace(&rows).into_iter().filter_map(span_id_of).collect();
        assert_eq!(kept, ["c"]);
    }

    #[test]
    fn the_oldest_excluded_spans_are_forgotten_at_the_limit() {
        let mut excluded = ExcludedSpans::default();
        for index in 0..=EXCLUDED_SPANS_MAX {
            excluded.remember(("t".to_owned(), index.to_string()));
        }
        let child = |parent: usize| row(json!({"id": "c", "root_span_id": "t", "span_parents": [parent.to_string()]}));
        assert_eq!(excluded.check_parents(&child(0)), Ok(()));
        assert_eq!(excluded.check_parents(&child(EXCLUDED_SPANS_MAX)), Err(CandidateExclusion::Descendant));
    }

    #[test]
    fn a_span_is_finished_by_its_end_or_when_it_came_whole_with_a_result() {
        let cases = [
            (json!({"metrics": {"end": 2}}), true, true),
            (json!({"output": 1}), true, false),
            (json!({"error": "e"}), true, false),
            (json!({"output": null, "metrics": {"start": 1, "end": null}}), false, false),
            (json!({"input": 1}), false, false),
        ];
        for (value, whole, merged) in cases {
            let row = row(value);
            assert_eq!((is_finished(&row, true), is_finished(&row, false)), (whole, merged), "{row:?}");
        }
    }

    #[test]
    fn only_a_first_end_or_a_whole_row_finishes_a_span() {
        let start = row(json!({"metrics": {"start": 1}}));
        let end = row(json!({"metrics": {"start": 1, "end": 2}}));
        let finish = |earlier, is_whole, before, after| finish_after_write(earlier, 7, is_whole, before, after);
        assert_eq!(finish(None, false, Some(&start), &end), Some(7));
        assert_eq!(finish(None, false, Some(&end), &end), None);
        assert_eq!(finish(Some(5), false, Some(&end), &end), Some(5));
        assert_eq!(finish(Some(5), true, Some(&end), &end), Some(7));
        assert_eq!(finish(Some(5), true, Some(&end), &start), None, "the new row is not finished");
        assert_eq!(finish(None, false, None, &end), Some(7));
    }
}
