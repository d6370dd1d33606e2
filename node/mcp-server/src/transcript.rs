//! Traces as transcripts: the tree of their spans, with values that are cut.
//!
//! Values are written as JSON on one line each, so recorded text cannot look like another line of the transcript.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::bounds::{CONTENT_BYTES_MAX, CUT, cut, json_len};

/// Bytes of an answer that belong to no span: its head, its notes and its cursor.
const HEAD_BYTES: usize = 4 << 10;
/// Bound of a value at which a span always fits into an answer.
const VALUE_BYTES_MIN: usize = 64;
/// Upper bound of names, tags and scores of a span.
const LABEL_BYTES_MAX: usize = 400;
/// Deepest indentation. Deeper spans have it as well, and a number says how deep they are.
const INDENT_MAX: usize = 12;
/// Recorded values of a span, in the order of a transcript.
const VALUES: [&str; 5] = ["error", "input", "output", "expected", "metadata"];

/// Span of a trace with its depth in the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TreeSpan<'r> {
    pub row: &'r Value,
    pub depth: usize,
}

/// Page of a transcript.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TranscriptPage {
    pub text: String,
    pub spans: Vec<Value>,
    /// Position of the first span of the next page.
    pub next: Option<usize>,
    /// Whether a value was cut.
    pub was_cut: bool,
}

/// Returns the spans in the order of the tree: each before its children, which are ordered by their start.
///
/// Spans without a known parent are roots. Each span occurs once, even if parents form a cycle.
pub(crate) fn ordered(rows: &[Value]) -> Vec<TreeSpan<'_>> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        by_id.entry(span_id(row)).or_insert(index);
    }
    let parent_of = |index: usize| {
        let parents = rows[index]["span_parents"].as_array()?;
        let known = parents.iter().filter_map(|parent| by_id.get(parent.as_str()?).copied());
        known.into_iter().find(|parent| *parent != index)
    };
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    let mut roots = Vec::new();
    for index in 0..rows.len() {
        match parent_of(index) {
            Some(parent) => children[parent].push(index),
            None => roots.push(index),
        }
    }
    let by_start = |indexes: &mut Vec<usize>| {
        indexes.sort_by(|a, b| start(&rows[*a]).total_cmp(&start(&rows[*b])).then(a.cmp(b)));
    };
    by_start(&mut roots);
    children.iter_mut().for_each(by_start);
    let mut ordered = Vec::with_capacity(rows.len());
    let mut is_seen = vec![false; rows.len()];
    // Spans of a cycle are reached from no root, so they follow as roots.
    for root in roots.into_iter().chain(0..rows.len()) {
        let mut pending = vec![(root, 0)];
        while let Some((index, depth)) = pending.pop() {
            if std::mem::replace(&mut is_seen[index], true) {
                continue;
            }
            ordered.push(TreeSpan { row: &rows[index], depth });
            pending.extend(children[index].iter().rev().map(|child| (*child, depth + 1)));
        }
    }
    ordered
}

/// Returns the id of a span, or else that of its row.
pub(crate) fn span_id(row: &Value) -> &str {
    row["span_id"].as_str().or_else(|| row["id"].as_str()).unwrap_or_default()
}

fn start(row: &Value) -> f64 {
    row["metrics"]["start"].as_f64().unwrap_or(f64::INFINITY)
}

/// Renders the spans from a position on, as many as fit. Values have at most `value_bytes` bytes.
pub(crate) fn page(spans: &[TreeSpan<'_>], from: usize, value_bytes: usize) -> TranscriptPage {
    let room = CONTENT_BYTES_MAX - HEAD_BYTES;
    let mut page = TranscriptPage::default();
    let mut bytes = 0;
    for (index, span) in spans.iter().enumerate().skip(from) {
        let mut shown = ShownSpan::of(span, value_bytes);
        let (mut smaller, is_first) = (value_bytes, page.spans.is_empty());
        while is_first && !shown.fits(room) && smaller > VALUE_BYTES_MIN {
            smaller = (smaller / 2).max(VALUE_BYTES_MIN);
            shown = ShownSpan::of(span, smaller);
        }
        let more = json_len(&shown.fields) + 1;
        if !is_first && (page.text.len() + shown.text.len() > room || bytes + more > room) {
            page.next = Some(index);
            break;
        }
        bytes += more;
        page.was_cut |= shown.was_cut;
        page.text.push_str(&shown.text);
        page.spans.push(shown.fields);
    }
    page
}

/// Span as text and as fields.
struct ShownSpan {
    text: String,
    fields: Value,
    was_cut: bool,
}

impl ShownSpan {
    fn of(span: &TreeSpan<'_>, value_bytes: usize) -> ShownSpan {
        let row = span.row;
        let mut fields = Map::new();
        fields.insert("depth".into(), span.depth.into());
        for (name, value) in labels(row) {
            fields.insert(name.into(), cut(&value, LABEL_BYTES_MAX).0);
        }
        let indent = "  ".repeat(span.depth.min(INDENT_MAX));
        let mut text = format!("{indent}- ");
        if span.depth > INDENT_MAX {
            text.push_str(&format!("(depth {}) ", span.depth));
        }
        text.push_str(&head(&fields));
        text.push('\n');
        let mut was_cut = false;
        for name in VALUES {
            if row[name].is_null() || row[name].as_object().is_some_and(Map::is_empty) {
                continue;
            }
            let (value, is_shorter) = cut(&row[name], value_bytes);
            was_cut |= is_shorter;
            text.push_str(&format!("{indent}    {name}: {value}\n"));
            fields.insert(name.into(), value);
        }
        ShownSpan { text, fields: Value::Object(fields), was_cut }
    }

    fn fits(&self, room: usize) -> bool {
        self.text.len() <= room && json_len(&self.fields) < room
    }
}

/// Returns the short fields of a span that are not null.
fn labels(row: &Value) -> Vec<(&'static str, Value)> {
    let metric = |name: &str| row["metrics"][name].clone();
    let labels = [
        ("span_id", Value::from(span_id(row))),
        ("id", row["id"].clone()),
        ("name", row["span_attributes"]["name"].clone()),
        ("type", row["span_attributes"]["type"].clone()),
        ("model", row["metadata"]["model"].clone()),
        ("created", row["created"].clone()),
        ("duration", row["duration"].clone()),
        ("prompt_tokens", metric("prompt_tokens")),
        ("completion_tokens", metric("completion_tokens")),
        ("tokens", row["total_tokens"].clone()),
        ("cost", row["cost"].clone()),
        ("scores", row["scores"].clone()),
        ("tags", row["tags"].clone()),
    ];
    let is_said = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    labels.into_iter().filter(|(_, value)| is_said(value)).collect()
}

/// Returns the first line of a span.
fn head(fields: &Map<String, Value>) -> String {
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let mut line = format!("{} {}", word(&field("type")), field("name"));
    if let Some(seconds) = field("duration").as_f64() {
        line.push_str(&format!(" duration={seconds:.3}s"));
    }
    for name in ["prompt_tokens", "completion_tokens", "tokens", "model", "scores", "tags", "created"] {
        if !field(name).is_null() {
            line.push_str(&format!(" {name}={}", field(name)));
        }
    }
    if let Some(cost) = field("cost").as_f64() {
        line.push_str(&format!(" cost=${cost:.6}"));
    }
    line.push_str(&format!(" span_id={}", word(&field("span_id"))));
    line
}

/// Returns a text without quotes if it is one plain word, or else its JSON.
fn word(value: &Value) -> String {
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    match value {
        Value::Null => "span".into(),
        Value::String(text) if is_plain(text) && !text.ends_with(CUT) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the schema of a span.
pub(crate) fn span_schema() -> Value {
    json!({
        "type": "object", "required": ["depth"],
        "properties": {
            "depth": {"type": "integer", "description": "Depth in the tree; 0 for a root"},
            "span_id": {"type": "string"}, "id": {"description": "Id of the row"},
            "duration": {"description": "Seconds"}, "cost": {"description": "US dollars"},
        },
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::bounds::tests::values;

    fn span(id: &str, parents: &[&str], start: f64) -> Value {
        json!({"id": format!("row-{id}"), "span_id": id, "span_parents": parents, "metrics": {"start": start}})
    }

    fn shape(rows: &[Value]) -> Vec<(String, usize)> {
        ordered(rows).iter().map(|span| (span_id(span.row).to_owned(), span.depth)).collect()
    }

    fn expect(shape: &[(String, usize)], wanted: &[(&str, usize)]) {
        let wanted: Vec<_> = wanted.iter().map(|(id, depth)| ((*id).to_owned(), *depth)).collect();
        assert_eq!(shape, wanted);
    }

    #[test]
    fn children_follow_their_parent_in_the_order_of_their_start() {
        let rows = [
            span("late", &["root"], 5.0),
            span("root", &[], 0.0),
            span("leaf", &["early"], 2.0),
            span("early", &["root"], 1.0),
            span("orphan", &["missing"], 9.0),
        ];
        expect(&shape(&rows), &[("root", 0), ("early", 1), ("leaf", 2), ("late", 1), ("orphan", 0)]);
    }

    #[test]
    fn every_span_occurs_once_even_in_a_cycle() {
        let rows = [span("a", &["b"], 1.0), span("b", &["a"], 2.0), span("c", &["c"], 3.0), span("c", &["b"], 4.0)];
        let mut ids: Vec<String> = shape(&rows).into_iter().map(|(id, _)| id).collect();
        ids.sort();
        assert_eq!(ids, ["a", "b", "c", "c"]);
    }

    #[test]
    fn a_line_tells_what_matters() {
        let rows = [json!({
            "id": "r", "span_id": "a1", "span_attributes": {"name": "chat\nx", "type": "llm"}, "duration": 1.5,
            "metrics": {"prompt_tokens": 100, "completion_tokens": 50}, "total_tokens": 150, "cost": 0.0012,
            "metadata": {"model": "gpt-4o"}, "scores": {"good": 0.5}, "tags": [], "error": null,
            "input": {"question": "line\nbreak"}, "output": "x".repeat(500),
        })];
        let page = page(&ordered(&rows), 0, 100);
        let lines: Vec<&str> = page.text.lines().collect();
        assert_eq!(
            lines[0],
            "- llm \"chat\\nx\" duration=1.500s prompt_tokens=100 completion_tokens=50 tokens=150 model=\"gpt-4o\" \
             scores={\"good\":0.5} cost=$0.001200 span_id=a1"
        );
        assert_eq!(lines[1], "    input: {\"question\":\"line\\nbreak\"}");
        assert!(lines[2].starts_with("    output: \"xxx") && lines[2].ends_with("…[cut]\""), "{}", lines[2]);
        assert!(page.was_cut && page.next.is_none() && lines.len() == 4, "{page:?}");
        assert_eq!(page.spans[0]["output"].as_str().map(|text| text.ends_with(CUT)), Some(true));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn pages_cover_all_spans_and_fit(
            rows in vec((0_usize..20, values(), values()), 1..40), value_bytes in 64_usize..40_000, times in 1_usize..20,
        ) {
            let rows: Vec<Value> = rows.iter().enumerate().map(|(index, (parent, input, output))| {
                let long = output.to_string().repeat(times);
                json!({"id": index.to_string(), "span_id": index.to_string(), "span_parents": [parent.to_string()],
                    "span_attributes": {"name": input}, "input": input, "output": long, "error": output})
            }).collect();
            let spans = ordered(&rows);
            prop_assert_eq!(spans.len(), rows.len());
            let (mut from, mut count) = (0, 0);
            loop {
                let page = page(&spans, from, value_bytes);
                prop_assert!(!page.spans.is_empty() && page.text.len() <= CONTENT_BYTES_MAX);
                prop_assert!(json_len(&json!(page.spans)) <= CONTENT_BYTES_MAX);
                count += page.spans.len();
                let Some(next) = page.next else { break };
                prop_assert_eq!(next, count);
                from = next;
            }
            prop_assert_eq!(count, rows.len());
        }
    }
}
