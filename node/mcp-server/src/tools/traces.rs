//! Tool for traces: a transcript of the tree of spans, or the messages of the trace.

use serde_json::{Value, json};

use crate::arguments::{Argument, ArgumentKind, Arguments, NAME_BYTES_MAX};
use crate::bounds::{CONTENT_BYTES_MAX, cut, fitting};
use crate::data::{RowBatch, RowQuery, ToolData, ToolFailure};
use crate::tools::rows::{NAME, OBJECT_ABOUT, PREVIEW_SLACK, PROJECT_ABOUT, VALUE_BYTES_ABOUT, source_id, source_tree};
use crate::tools::{Tool, ToolKind, ToolOutput, cursor_schema, notes_schema, object_schema, objects_schema};
use crate::transcript::{ordered, page, span_schema};

/// Upper bound of the spans of a trace that are read.
const SPANS_MAX: u64 = 2000;
/// Upper bound of the bytes of one value, in a trace and in a single span.
const VALUE_BYTES_MAX: u64 = 60 << 10;
const VALUE_BYTES_IN_TRACE: u64 = 600;
const VALUE_BYTES_IN_SPAN: u64 = 16 << 10;
/// Upper bound of the bytes of one message of a thread.
const MESSAGE_BYTES: u64 = 4 << 10;
/// Bytes of an answer that belong to no message.
const HEAD_BYTES: usize = 4 << 10;
/// Columns of a span: alias and expression.
const COLUMNS: [(&str, &str); 18] = [
    ("id", "id"),
    ("span_id", "span_id"),
    ("root_span_id", "root_span_id"),
    ("span_parents", "span_parents"),
    ("created", "created"),
    ("span_attributes", "span_attributes"),
    ("metrics", "metrics"),
    ("duration", "metrics.duration"),
    ("total_tokens", "metrics.total_tokens"),
    ("cost", "metrics.estimated_cost"),
    ("scores", "scores"),
    ("tags", "tags"),
    ("error", "error"),
    ("metadata", "metadata"),
    ("input", "input"),
    ("output", "output"),
    ("expected", "expected"),
    ("is_root", "is_root"),
];

/// Kinds of objects that have traces.
const TRACED: &[&str] = &["project_logs", "experiment", "playground_logs"];

pub(crate) const GET_TRACE: Tool = Tool {
    kind: ToolKind::GetTrace,
    name: "get_trace",
    title: "Read a trace",
    about: "Reads one trace as a transcript: its spans as a tree, with type, name, duration, tokens, cost, errors, \
            inputs and outputs. Long values are cut. Pass `span_id` to read one span in full, or view=thread for the \
            messages of its model calls.",
    arguments: &[
        Argument::required("object_type", ArgumentKind::Choice(TRACED), "Kind of the object with the trace."),
        Argument::required("object", NAME, OBJECT_ABOUT),
        Argument::optional("project", NAME, PROJECT_ABOUT),
        Argument::required(
            "trace_id",
            ArgumentKind::Text { bytes_max: NAME_BYTES_MAX },
            "The root_span_id of the trace, or the id of any of its rows or spans.",
        ),
        Argument::optional("span_id", NAME, "Id of one span, which is then read with longer values."),
        Argument::optional(
            "view",
            ArgumentKind::Choice(&["tree", "thread"]),
            "tree: all spans. thread: the messages of model calls, each once. The default is tree.",
        ),
        Argument::optional("cursor", NAME, "Cursor of the previous answer for the same trace."),
        Argument::optional(
            "value_bytes",
            ArgumentKind::Number { least: 64, most: VALUE_BYTES_MAX, default: None },
            VALUE_BYTES_ABOUT,
        ),
    ],
    output: || {
        let mut schema = object_schema(json!({
            "trace_id": {"type": "string"}, "span_count": {"type": "integer", "description": "Number of spans that were read"}, "cursor": cursor_schema(),
            "notes": notes_schema(),
        }));
        schema["properties"]["spans"] = json!({"type": "array", "items": span_schema()});
        schema["properties"]["messages"] = objects_schema();
        schema
    },
};

/// Trace of a request.
struct Trace<'a> {
    source: &'a str,
    object: String,
    id: String,
    /// Only span to read.
    span: Option<&'a str>,
}

impl Trace<'_> {
    /// Returns the query for spans with a condition.
    fn query(&self, condition: Value, preview: Option<u64>, limit: u64) -> RowQuery {
        let columns: Vec<Value> =
            COLUMNS.iter().map(|(alias, of)| json!({"alias": alias, "expr": {"btql": of}})).collect();
        let query = json!({
            "select": columns, "from": source_tree(self.source, &self.object), "filter": condition, "limit": limit,
        });
        RowQuery { query, limit, is_whole: true, preview, cursor: None, version: None }
    }

    /// Returns the query for the spans to read.
    fn spans_query(&self, preview: Option<u64>) -> RowQuery {
        let of_trace = equals("root_span_id", &self.id);
        let condition = match self.span {
            Some(span) => json!({"op": "and", "left": of_trace, "right": named(span)}),
            None => of_trace,
        };
        self.query(condition, preview, SPANS_MAX + 1)
    }

    /// Reads the spans. A span or a row may name the trace.
    async fn spans<D: ToolData>(&mut self, data: &D, preview: Option<u64>) -> Result<RowBatch, ToolFailure> {
        let found = data.rows(&self.spans_query(preview)).await?;
        if !found.rows.is_empty() {
            return Ok(found);
        }
        let of_trace = equals("root_span_id", &self.id);
        let anything = json!({"op": "or", "left": of_trace, "right": named(&self.id)});
        let anything = data.rows(&self.query(anything, Some(VALUE_BYTES_IN_TRACE), 1)).await?;
        let root = anything.rows.first().and_then(|row| row["root_span_id"].as_str());
        let Some(root) = root else {
            let id: String = self.id.chars().take(80).collect();
            return Err(ToolFailure::Refused(format!(
                "no trace, span or row has the id `{id}` in this object. Find ids with sql_query: SELECT root_span_id, \
                 input FROM ... WHERE is_root"
            )));
        };
        self.id = root.to_owned();
        data.rows(&self.spans_query(preview)).await
    }
}

/// Returns the condition that a span or its row has an id.
fn named(id: &str) -> Value {
    json!({"op": "or", "left": equals("span_id", id), "right": equals("id", id)})
}

fn equals(column: &str, value: &str) -> Value {
    json!({"op": "eq", "left": {"op": "ident", "name": [column]}, "right": {"op": "literal", "value": value}})
}

pub(crate) async fn get_trace<D: ToolData>(data: &D, arguments: Arguments<'_>) -> Result<ToolOutput, ToolFailure> {
    let source = arguments.required("object_type");
    let object = source_id(data, source, arguments.required("object"), arguments.text("project")).await?;
    let span = arguments.text("span_id");
    let mut trace = Trace { source, object, id: arguments.required("trace_id").to_owned(), span };
    let is_thread = arguments.text("view") == Some("thread");
    let default = match (is_thread, span) {
        (true, _) => MESSAGE_BYTES,
        (false, Some(_)) => VALUE_BYTES_IN_SPAN,
        (false, None) => VALUE_BYTES_IN_TRACE,
    };
    let value_bytes = arguments.given("value_bytes").unwrap_or(default);
    let preview = (!is_thread).then_some(value_bytes + PREVIEW_SLACK);
    let mut batch = trace.spans(data, preview).await?;
    let mut notes = std::mem::take(&mut batch.warnings);
    if batch.rows.len() as u64 > SPANS_MAX {
        batch.rows.truncate(usize::try_from(SPANS_MAX).unwrap_or(usize::MAX));
        notes.push(format!("the trace has more than {SPANS_MAX} spans, and these are some: use sql_query for others"));
    }
    let value_bytes = usize::try_from(value_bytes).unwrap_or(usize::MAX);
    let shown = TraceView { trace: &trace, rows: &batch.rows, from: arguments.offset("cursor")?, value_bytes, notes };
    match is_thread {
        true => shown.thread(data),
        false => shown.tree(),
    }
}

/// Spans of a trace, with what of them is shown.
struct TraceView<'a> {
    trace: &'a Trace<'a>,
    rows: &'a [Value],
    from: usize,
    value_bytes: usize,
    notes: Vec<String>,
}

impl TraceView<'_> {
    /// Returns the transcript of the spans.
    fn tree(mut self) -> Result<ToolOutput, ToolFailure> {
        let spans = ordered(self.rows);
        if let (Some(only), true) = (self.trace.span, spans.is_empty()) {
            let only: String = only.chars().take(80).collect();
            let why = format!("the trace has no span `{only}`: call get_trace without `span_id` to see its spans");
            return Err(ToolFailure::Refused(why));
        }
        let page = page(&spans, self.from, self.value_bytes);
        if page.was_cut {
            self.notes.push(self.how_to_read_on());
        }
        let cursor = page.next.map(|next| next.to_string());
        if let Some(next) = page.next {
            self.notes.push(format!("{} more spans follow: pass `cursor`", spans.len() - next));
        }
        let mut text = format!("trace {}, {} spans read\n{}", json!(self.trace.id), self.rows.len(), page.text);
        for note in &self.notes {
            text.push_str(&format!("({note})\n"));
        }
        let structured = json!({
            "trace_id": self.trace.id, "span_count": self.rows.len(), "spans": page.spans, "cursor": cursor,
            "notes": self.notes,
        });
        Ok(ToolOutput { structured, text: Some(text), is_recorded: true })
    }

    /// Returns how an agent gets the rest of cut values.
    fn how_to_read_on(&self) -> String {
        let Trace { source, object, .. } = self.trace;
        let object: String = object.chars().take(80).collect();
        let by_query = format!(
            "select a part of it with sql_query, such as SELECT input.messages[0] FROM {source}('{object}') WHERE \
             span_id = '...'"
        );
        match self.trace.span.is_some() {
            true => format!("values that end with …[cut] are longer: {by_query}"),
            false => format!("values that end with …[cut] are longer: pass `span_id` to read one span, or {by_query}"),
        }
    }

    /// Returns the messages of the model calls of the trace.
    fn thread<D: ToolData>(mut self, data: &D) -> Result<ToolOutput, ToolFailure> {
        let rows: Vec<Value> = ordered(self.rows).iter().map(|span| span.row.clone()).collect();
        let all = data.thread(&rows);
        let mut was_cut = false;
        let messages = all.iter().skip(self.from).map(|message| {
            let (content, is_shorter) = cut(&message["content"], self.value_bytes);
            was_cut |= is_shorter;
            json!({"role": cut(&message["role"], 100).0, "content": content})
        });
        let messages: Vec<Value> = messages.collect();
        let count = fitting(&messages, CONTENT_BYTES_MAX - HEAD_BYTES);
        let next = (count < messages.len()).then_some(self.from + count);
        if was_cut {
            self.notes.push("messages that end with …[cut] are longer: raise `value_bytes`".into());
        }
        if let Some(next) = next {
            self.notes.push(format!("{} more messages follow: pass `cursor`", all.len() - next));
        }
        Ok(ToolOutput::recorded(json!({
            "trace_id": self.trace.id, "span_count": self.rows.len(), "messages": messages[..count],
            "cursor": next.map(|next| next.to_string()), "notes": self.notes,
        })))
    }
}
