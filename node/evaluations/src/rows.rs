//! Rows of a case: its root, its task, its scorers, and the spans below them (functions.md 8.1, 7.2 and F-68).

mod scoring;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use assay_node_scorers::results::merged_tags;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::datum::EvalDatum;
use crate::plan::{EvalCaseIds, EvalPlan, EvalScorer, EvalSpanIds};
use crate::time::{iso_text, seconds};
use scoring::RootScoring;

/// Row of a span, as the write path takes it.
pub type SpanRow = Map<String, Value>;

/// Upper bound of the spans below the task and the scorers of one case.
pub const CASE_SPANS_MAX: usize = 10_000;

/// End of a call of the task or of a scorer, after all attempts.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalCallOutcome {
    /// Value of the function, or why it has none.
    pub result: Result<Value, String>,
    /// Rows of the spans that the call logged below its own span.
    pub spans: Vec<SpanRow>,
    /// What a task changed in its case through its hooks. Those of scorers are ignored.
    pub notes: Option<EvalCaseNotes>,
}

/// Metadata and tags of a case after its task. Scorers and the root row have these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvalCaseNotes {
    pub metadata: Map<String, Value>,
    pub tags: Vec<String>,
}

impl EvalCallOutcome {
    /// Returns an outcome without spans and notes.
    pub fn new(result: Result<Value, String>) -> EvalCallOutcome {
        EvalCallOutcome { result, spans: Vec::new(), notes: None }
    }
}

/// Call that has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallRecord {
    pub start_ms: u64,
    pub end_ms: u64,
    pub outcome: EvalCallOutcome,
}

/// State of a case at the time of a write.
#[derive(Debug)]
pub(crate) struct CaseRecord {
    pub start_ms: u64,
    /// `None` while scorers still run.
    pub end_ms: Option<u64>,
    /// `None` for a case that never started.
    pub task: Option<CallRecord>,
    /// Results by scorer, empty if no scorer started.
    pub scorers: Vec<CallRecord>,
    /// Reason why the case ended early.
    pub error: Option<String>,
}

/// Rows to write, and the count of spans that exceed the limit.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CaseRows {
    pub rows: Vec<SpanRow>,
    pub omitted_spans: u64,
    /// Spans below the task and the scorers among the rows.
    spans: usize,
}

/// Identity of a case, which all of its rows share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseFrame<'c> {
    pub plan: &'c EvalPlan,
    pub datum: &'c EvalDatum,
    pub ids: &'c EvalCaseIds,
}

/// Returns the arguments of the scorers of a case, without the reference to its trace.
pub(crate) fn scorer_arguments(datum: &EvalDatum, output: &Value) -> Map<String, Value> {
    let arguments = [
        ("input", datum.input.clone()),
        ("output", output.clone()),
        // A scorer gets null if nothing is expected.
        ("expected", datum.expected.clone()),
        ("metadata", Value::Object(datum.metadata.clone())),
    ];
    arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl CaseFrame<'_> {
    /// Returns all rows of the case, and takes the spans of its calls. The root row is the first one.
    pub fn rows(&self, record: &mut CaseRecord) -> CaseRows {
        let mut scoring = RootScoring::default();
        let output = record.task.as_ref().and_then(|task| task.outcome.result.as_ref().ok());
        let mut scored = Vec::with_capacity(record.scorers.len());
        for ((scorer, ids), call) in self.plan.scorers().iter().zip(&self.ids.scorers).zip(&record.scorers) {
            scored.push(self.scorer_row(scorer, ids, call, output, &mut scoring));
        }
        let mut all = CaseRows { rows: vec![self.root_row(record, scoring, true)], ..CaseRows::default() };
        if let Some(task) = &mut record.task {
            all.rows.push(self.task_row(task));
            self.append_spans(&mut all, task);
        }
        for (row, call) in scored.into_iter().zip(&mut record.scorers) {
            all.rows.push(row);
            self.append_spans(&mut all, call);
        }
        all
    }

    /// Returns only the root row, without the output, for a case whose rows were refused.
    pub fn reduced_rows(&self, record: &CaseRecord) -> CaseRows {
        let mut scoring = RootScoring::default();
        for (scorer, call) in self.plan.scorers().iter().zip(&record.scorers) {
            scoring.add(scorer, &call.outcome.result);
        }
        CaseRows { rows: vec![self.root_row(record, scoring, false)], ..CaseRows::default() }
    }

    fn root_row(&self, record: &CaseRecord, scoring: RootScoring, has_output: bool) -> SpanRow {
        let datum = self.datum;
        let parents = self.plan.target().span.as_ref().map(|span| json!([span.span_id]));
        let mut row = self.span(&self.ids.root, parents.unwrap_or_default(), record.start_ms, record.end_ms);
        set(&mut row, "span_attributes", json!({"name": "eval", "type": "eval"}));
        set(&mut row, "input", datum.input.clone());
        let result = record.task.as_ref().map(|task| &task.outcome.result);
        if let Some(Ok(output)) = result.filter(|_| has_output) {
            set(&mut row, "output", output.clone());
        }
        if !datum.expected.is_null() {
            set(&mut row, "expected", datum.expected.clone());
        }
        let error = record.error.as_deref().or_else(|| result?.as_ref().err().map(String::as_str));
        if let Some(error) = error {
            set(&mut row, "error", error.into());
        }
        let mut metadata = datum.metadata.clone();
        set_object(&mut metadata, "scorer_errors", scoring.scorer_errors);
        set_object(&mut metadata, "classifier_errors", scoring.classifier_errors);
        set_object(&mut row, "metadata", metadata);
        set_object(&mut row, "scores", scoring.scores);
        set_object(&mut row, "classifications", scoring.classifications);
        let tags = merged_tags(&datum.tags, &scoring.tags);
        if !tags.is_empty() {
            set(&mut row, "tags", tags.into());
        }
        if let Some(origin) = &datum.origin {
            set(&mut row, "origin", Value::Object(origin.clone()));
        }
        self.with_propagated(row)
    }

    fn task_row(&self, task: &CallRecord) -> SpanRow {
        let mut row = self.child(&self.ids.task, task);
        set(&mut row, "span_attributes", json!({"name": "task", "type": "task"}));
        set(&mut row, "input", self.datum.input.clone());
        match &task.outcome.result {
            Ok(output) => set(&mut row, "output", output.clone()),
            Err(error) => set(&mut row, "error", error.as_str().into()),
        }
        self.with_propagated(row)
    }

    fn scorer_row(
        &self,
        scorer: &EvalScorer,
        ids: &EvalSpanIds,
        call: &CallRecord,
        task_output: Option<&Value>,
        scoring: &mut RootScoring,
    ) -> SpanRow {
        let result = scoring.add(scorer, &call.outcome.result);
        let mut row = self.child(ids, call);
        let span_type = scorer.kind.span_type();
        let attributes = json!({"name": scorer.name, "type": span_type, "purpose": "scorer"});
        set(&mut row, "span_attributes", attributes);
        let arguments = scorer_arguments(self.datum, task_output.unwrap_or(&Value::Null));
        set(&mut row, "input", Value::Object(arguments));
        let members = [
            ("output", result.output),
            ("scores", result.scores.map(Value::Object)),
            ("metadata", result.metadata.map(Value::Object)),
            ("classifications", result.classifications.map(Value::Object)),
            ("error", result.error.map(Value::String)),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                set(&mut row, name, value);
            }
        }
        self.with_propagated(row)
    }

    /// Appends the spans below a call, except those that the run itself writes.
    fn append_spans(&self, all: &mut CaseRows, call: &mut CallRecord) {
        let own = [self.ids.root.row_id, self.ids.task.row_id].into_iter();
        let own: HashSet<Uuid> = own.chain(self.ids.scorers.iter().map(|ids| ids.row_id)).collect();
        let is_own = |row: &SpanRow| {
            let id = row.get("id").and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
            id.is_some_and(|id| own.contains(&id))
        };
        for row in std::mem::take(&mut call.outcome.spans).into_iter().filter(|row| !is_own(row)) {
            if all.spans < CASE_SPANS_MAX {
                all.spans += 1;
                all.rows.push(row);
            } else {
                all.omitted_spans += 1;
            }
        }
    }

    fn child(&self, ids: &EvalSpanIds, call: &CallRecord) -> SpanRow {
        self.span(ids, json!([self.ids.root.span_id]), call.start_ms, Some(call.end_ms))
    }

    fn span(&self, ids: &EvalSpanIds, parents: Value, start_ms: u64, end_ms: Option<u64>) -> SpanRow {
        let mut row = SpanRow::new();
        set(&mut row, "id", ids.row_id.to_string().into());
        set(&mut row, "span_id", ids.span_id.to_string().into());
        set(&mut row, "root_span_id", self.ids.root_span_id.as_str().into());
        set(&mut row, "span_parents", parents);
        set(&mut row, "created", iso_text(start_ms).into());
        let metrics = match end_ms {
            Some(end_ms) => json!({"start": seconds(start_ms), "end": seconds(end_ms)}),
            None => json!({"start": seconds(start_ms)}),
        };
        set(&mut row, "metrics", metrics);
        row
    }

    fn with_propagated(&self, mut row: SpanRow) -> SpanRow {
        merge(&mut row, &self.plan.target().propagated);
        row
    }
}

fn set(row: &mut SpanRow, name: &str, value: Value) {
    row.insert(name.to_owned(), value);
}

/// Sets an object, unless it is empty.
fn set_object(row: &mut SpanRow, name: &str, members: Map<String, Value>) {
    if !members.is_empty() {
        row.insert(name.to_owned(), Value::Object(members));
    }
}

/// Merges members deeply. Those of `from` count.
fn merge(into: &mut SpanRow, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(known)), Value::Object(members)) => merge(known, members),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}
