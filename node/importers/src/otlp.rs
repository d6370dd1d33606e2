//! Files of OpenTelemetry and OpenInference: JSON, JSON lines and protobuf.

use assay_node_otel::{Encoding, Limits, OtelError, decode};
use serde_json::{Value, json};

use crate::error::ImportError;
use crate::fields::text;
use crate::item::{NeutralItem, NeutralSpan};
use crate::openinference;
use crate::records::{RecordForm, form_of};
use crate::source::{ImportSource, SourceAnswer, SourcePage, SourceRequest, SourceTask};

pub(crate) const FILES: &str = "files";
pub(crate) const RECORDS: &str = "records";

/// Files in a directory, or one file.
#[derive(Clone, Debug)]
pub struct OtlpSource {
    /// Path as the user named it.
    pub path: String,
}

impl ImportSource for OtlpSource {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn identity(&self) -> String {
        self.path.clone()
    }

    fn first_tasks(&self) -> Vec<SourceTask> {
        vec![SourceTask::new(FILES)]
    }

    fn request(&self, task: &SourceTask) -> SourceRequest {
        file_request(task)
    }

    fn page(&self, task: &SourceTask, answer: &SourceAnswer) -> Result<SourcePage, ImportError> {
        if task.step == FILES {
            return Ok(files(answer, |_| true));
        }
        let mut page = SourcePage::default();
        let wrong = |why: OtelError| ImportError::File { file: task.text("file").to_owned(), why: why.to_string() };
        if !answer.message().is_empty() {
            export(answer.message(), Encoding::Protobuf, &mut page).map_err(wrong)?;
        }
        for record in &answer.records {
            if record.get("resourceSpans").or_else(|| record.get("resource_spans")).is_some() {
                export(record.to_string().as_bytes(), Encoding::Json, &mut page).map_err(wrong)?;
            } else if record.pointer("/context/span_id").is_some() {
                span(record, &mut page).map_err(wrong)?;
            } else {
                page.note("records of files that are neither exports nor spans");
            }
        }
        page.next.extend(answer.next_offset.map(|offset| task.at(offset)));
        Ok(page)
    }
}

impl SourceAnswer {
    /// Returns the message of a file.
    fn message(&self) -> &[u8] {
        &self.body
    }
}

/// Returns the request of a task about files.
pub(crate) fn file_request(task: &SourceTask) -> SourceRequest {
    if task.step == FILES {
        return SourceRequest::Files;
    }
    let file = task.text("file").to_owned();
    let form = form_of(&file).unwrap_or(RecordForm::Lines);
    SourceRequest::Records { form, offset: task.number(0), file }
}

/// Returns the tasks for the files of a directory, in order of their names.
pub(crate) fn files(answer: &SourceAnswer, is_wanted: impl Fn(&str) -> bool) -> SourcePage {
    let mut page = SourcePage::default();
    let mut names: Vec<&str> = answer.records.iter().filter_map(|file| text(file, "file")).collect();
    names.sort_unstable();
    for name in names {
        match form_of(name) {
            Some(_) if is_wanted(name) => page.next.push(SourceTask::about(RECORDS, json!({"file": name}))),
            Some(_) => page.note(format!("the file {name}, which is of no known kind")),
            None if name.ends_with(".gz") => page.note(format!("the compressed file {name}: decompress it first")),
            None => page.note(format!("the file {name}, whose form is unknown")),
        }
    }
    page
}

/// Adds the spans of an export.
pub(crate) fn export(bytes: &[u8], encoding: Encoding, page: &mut SourcePage) -> Result<Vec<usize>, OtelError> {
    let rows = decode(bytes, encoding, Limits::default())?.rows(None);
    let mut places = Vec::new();
    for mapped in rows.taken {
        if let Some(span) = span_of(mapped.row) {
            places.push(page.items.len());
            page.items.push(NeutralItem::Span(Box::new(span)));
        }
    }
    for rejected in rows.rejected {
        page.note(format!("spans that cannot be read: {}", rejected.why));
    }
    Ok(places)
}

/// Adds a span in the form of OpenInference.
pub(crate) fn span(record: &Value, page: &mut SourcePage) -> Result<Option<usize>, OtelError> {
    let export_of = json!({"resourceSpans": [{"scopeSpans": [{"spans": [openinference::otlp_span(record)]}]}]});
    Ok(export(export_of.to_string().as_bytes(), Encoding::Json, page)?.first().copied())
}

/// Converts a row of an export to a span. Its id stays, so that the application may send the span again.
fn span_of(row: Value) -> Option<NeutralSpan> {
    let Value::Object(mut fields) = row else { return None };
    let mut take = |key: &str| match fields.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (id, span, trace) = (take("id")?, take("span_id")?, take("root_span_id")?);
    let parents = fields.remove("span_parents").unwrap_or_default();
    let parents = parents.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let key = format!("span/{id}");
    Some(NeutralSpan { key, row_id: Some(id), trace, span, parents, fields, ..NeutralSpan::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(records: Vec<Value>) -> SourceAnswer {
        SourceAnswer { status: 200, records, ..SourceAnswer::default() }
    }

    #[test]
    fn files_are_read_in_the_order_of_their_names() {
        let list = answer(vec![json!({"file": "b.jsonl"}), json!({"file": "a.pb"}), json!({"file": "c.jsonl.gz"})]);
        let page = OtlpSource { path: "dir".into() }.page(&SourceTask::new(FILES), &list).unwrap();
        let files: Vec<&str> = page.next.iter().map(|task| task.text("file")).collect();
        assert_eq!(files, ["a.pb", "b.jsonl"]);
        assert!(page.unmapped.keys().any(|note| note.contains("decompress")));
    }

    #[test]
    fn exports_and_spans_become_rows_with_their_own_ids() {
        let otlp = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7", "name": "otlp",
            "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000"}]}]}]});
        let open = json!({"name": "openinference", "span_kind": "LLM", "parent_id": "00f067aa0ba902b7",
            "context": {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b8"},
            "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z", "status_code": "OK",
            "attributes": {"llm": {"model_name": "m", "token_count": {"prompt": 3, "completion": 4}},
                "input": {"value": "hello"}}});
        let task = SourceTask::about(RECORDS, json!({"file": "x.jsonl"}));
        let source = OtlpSource { path: "dir".into() };
        let page = source.page(&task, &answer(vec![otlp, open, json!({"x": 1})])).unwrap();
        let spans: Vec<&NeutralSpan> = page
            .items
            .iter()
            .filter_map(|item| if let NeutralItem::Span(span) = item { Some(&**span) } else { None })
            .collect();
        assert_eq!(spans[0].row_id.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"));
        assert_eq!(spans[1].parents, ["00f067aa0ba902b7"]);
        assert_eq!(spans[1].fields["metrics"]["prompt_tokens"], 3);
        assert_eq!(spans[1].fields["input"], "hello");
        assert_eq!(spans[1].fields["span_attributes"]["type"], "llm");
        assert_eq!(page.unmapped.values().sum::<u64>(), 1);
    }
}
