//! Traces of the example log: a question, its classification, a search, a tool and an answer.

use assay_storage_model::event::format_micros;
use serde_json::{Map, Value, json};

use crate::DAYS;
use crate::catalog::{
    ANSWER_MODEL, CITIES, INTENT_MODEL, RELEASES, TOPICS, Topic, question, system_prompt, tool_error, usage,
};
use crate::random::Dice;

const DAY_MICROS: i64 = 86_400_000_000;
/// Users of the assistant.
const USERS: i64 = 120;
/// Longest time between the start and the end of a trace.
const TRACE_MICROS_MAX: i64 = 120_000_000;

/// Returns the events of traces that ended before `now`, oldest first.
pub(crate) fn log(dice: &mut Dice, count: usize, now: i64) -> Vec<Value> {
    let mut starts: Vec<i64> = (0..count).map(|_| start(dice, now)).collect();
    starts.sort_unstable();
    starts.into_iter().flat_map(|start| trace(dice, start, now)).collect()
}

/// Returns the start of a trace. People ask more in the second half of the day.
fn start(dice: &mut Dice, now: i64) -> i64 {
    let day = dice.between(0, DAYS);
    let within = dice.between(0, DAY_MICROS).max(dice.between(0, DAY_MICROS));
    now - day * DAY_MICROS - (DAY_MICROS - within).clamp(TRACE_MICROS_MAX, DAY_MICROS - 1)
}

/// Spans of one trace, whose clock moves on with each of them.
struct TraceWriter<'a> {
    dice: &'a mut Dice,
    clock: i64,
    root: String,
    children: Vec<Value>,
}

impl TraceWriter<'_> {
    /// Adds a span below the root that takes about as long as given.
    fn span(&mut self, name: &str, span_type: &str, typical_ms: f64, members: Value) {
        let id = self.dice.id();
        let end = self.clock + self.dice.latency(typical_ms);
        let mut event = event(&id, &self.root, Some(&self.root), (name, span_type), (self.clock, end));
        merge(&mut event, members);
        self.clock = end;
        self.children.push(Value::Object(event));
    }

    fn model_call(&mut self, name: &str, model: &str, typical_ms: f64, (messages, answer): (Value, &str)) {
        let mut metrics = usage(model, &messages.to_string(), answer);
        metrics["time_to_first_token"] = json!(self.dice.latency(typical_ms / 5.0) as f64 / 1e6);
        let output = json!([{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": answer}}]);
        self.span(
            name,
            "llm",
            typical_ms,
            json!({"input": messages, "output": output, "metadata": {"model": model, "temperature": 0.2},
                "metrics": metrics}),
        );
    }
}

fn trace(dice: &mut Dice, start: i64, now: i64) -> Vec<Value> {
    let topic = &TOPICS[usize::try_from(dice.between(0, TOPICS.len() as i64)).unwrap_or_default()];
    let (asked, booking) = question(dice, topic);
    let release = RELEASES[usize::try_from((now - start) / DAY_MICROS / 3).map_or(0, |age| 2 - age.min(2))];
    let root = dice.id();
    let mut writer =
        TraceWriter { clock: start + dice.between(1000, 4000), dice, root: root.clone(), children: vec![] };
    let intent = json!([
        {"role": "system", "content": "Name the category of the question in one word."},
        {"role": "user", "content": asked},
    ]);
    writer.model_call("classify intent", INTENT_MODEL, 450.0, (intent, topic.category));
    writer.span("search articles", "function", 80.0, search(topic, &asked));
    let error = booking_looked_up(&mut writer, topic, &booking);
    let is_poor = error.is_some() || writer.dice.happens(0.08);
    let answer = match (error, is_poor) {
        (Some(_), _) => "I cannot see your booking at the moment. Please try again in a few minutes.",
        (None, true) => topic.poor_answer,
        (None, false) => topic.answer,
    };
    let messages = json!([
        {"role": "system", "content": system_prompt(0)},
        {"role": "user", "content": format!("Articles:\n{}: {}\n\nQuestion: {asked}", topic.title, topic.answer)},
    ]);
    writer.model_call("answer", ANSWER_MODEL, 1900.0, (messages, answer));
    let TraceWriter { dice, clock, children, .. } = writer;
    let mut event = event(&root, &root, None, ("support request", "task"), (start, clock + 1500));
    merge(&mut event, json!({"input": asked, "output": answer, "metadata": about(dice, topic, release)}));
    merge(&mut event, reaction(dice, topic, (is_poor, error)));
    std::iter::once(Value::Object(event)).chain(children).collect()
}

fn search(topic: &Topic, asked: &str) -> Value {
    json!({
        "input": {"query": asked, "limit": 3},
        "output": [{"id": topic.article, "title": topic.title, "text": topic.answer, "similarity": 0.87}],
        "metadata": {"index": "help-center", "embedding_model": "text-embedding-3-small"},
    })
}

/// Looks up the booking if the topic needs it. Returns the error of the tool.
fn booking_looked_up(writer: &mut TraceWriter<'_>, topic: &Topic, booking: &str) -> Option<&'static str> {
    if !topic.needs_booking {
        return None;
    }
    let input = json!({"booking": booking});
    if writer.dice.happens(0.04) {
        let error = tool_error(writer.dice);
        writer.span("look up booking", "tool", 5000.0, json!({"input": input, "error": error}));
        return Some(error);
    }
    let fare = *writer.dice.pick(&["flexible", "basic"]);
    let output = json!({"booking": booking, "to": writer.dice.pick(&CITIES), "fare": fare, "paid": true});
    writer.span("look up booking", "tool", 140.0, json!({"input": input, "output": output}));
    None
}

fn about(dice: &mut Dice, topic: &Topic, release: &str) -> Value {
    let user = dice.between(0, USERS);
    json!({
        "user_id": format!("user-{user:03}"), "session_id": format!("session-{user:03}-{}", dice.between(0, 9)),
        "category": topic.category, "release": release, "environment": "production",
    })
}

/// Returns the scores, tags and error of a request.
fn reaction(dice: &mut Dice, topic: &Topic, (is_poor, error): (bool, Option<&str>)) -> Value {
    let mut members = Map::new();
    if dice.happens(0.3) {
        let is_helpful = dice.happens(if is_poor { 0.1 } else { 0.9 });
        members.insert("scores".into(), json!({"helpful": i32::from(is_helpful)}));
    }
    let mut tags = vec![topic.category];
    if error.is_some() {
        tags.push("needs-attention");
    }
    members.insert("tags".into(), json!(tags));
    Value::Object(members)
}

/// Returns the members that each span has.
pub(crate) fn event(
    id: &str,
    root: &str,
    parent: Option<&str>,
    (name, span_type): (&str, &str),
    (start, end): (i64, i64),
) -> Map<String, Value> {
    let event = json!({
        "id": id, "span_id": id, "root_span_id": root, "span_parents": parent.map(|parent| [parent]),
        "span_attributes": {"name": name, "type": span_type}, "created": format_micros(start),
        "metrics": {"start": start as f64 / 1e6, "end": end as f64 / 1e6},
    });
    match event {
        Value::Object(event) => event,
        _ => Map::new(),
    }
}

/// Merges members into an event. Metrics are added to those of the event.
pub(crate) fn merge(event: &mut Map<String, Value>, members: Value) {
    let Value::Object(members) = members else { return };
    for (name, value) in members {
        match (event.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            (_, value) => drop(event.insert(name, value)),
        }
    }
}
