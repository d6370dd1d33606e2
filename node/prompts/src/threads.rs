//! Threads: variables of judge prompts that have the messages of a trace.

use serde_json::{Map, Value, json};

use crate::messages::role_of;
use crate::prompt::{Prompt, PromptBody};

/// Names of the variables.
pub const THREAD_VARIABLES: [&str; 9] = [
    "thread",
    "thread_with_system",
    "thread_count",
    "first_message",
    "last_message",
    "user_messages",
    "assistant_messages",
    "human_ai_pairs",
    "preprocessed",
];
/// Levels of a message in which mentions are looked for.
const MENTION_DEPTH_MAX: usize = 64;

/// A trace that a scorer is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceReference {
    pub object_type: String,
    pub object_id: String,
    pub root_span_id: String,
}

impl TraceReference {
    fn read(value: &Value) -> Option<TraceReference> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned);
        Some(TraceReference {
            object_type: text("object_type")?,
            object_id: text("object_id")?,
            root_span_id: text("root_span_id")?,
        })
    }
}

/// Takes the trace out of an input: `trace` is neither a variable nor logged.
pub fn take_trace(input: &mut Value) -> Option<TraceReference> {
    let members = input.as_object_mut()?;
    let trace = members.shift_remove("trace").and_then(|trace| TraceReference::read(trace.get("trace_ref")?));
    trace.or_else(|| TraceReference::read(members.get("trace_ref")?))
}

impl Prompt {
    /// Returns whether a template of a judge mentions a variable of [`THREAD_VARIABLES`]. Other prompts have none.
    pub fn mentions_thread(&self) -> bool {
        let mentions = match &self.body {
            PromptBody::Chat { messages, tools } => {
                messages.iter().any(|message| value_mentions(message, 0)) || tools.as_deref().is_some_and(text_mentions)
            }
            PromptBody::Completion { content } => text_mentions(content),
        };
        self.judge.is_some() && mentions
    }
}

fn value_mentions(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > MENTION_DEPTH_MAX => false,
        Value::String(text) => text_mentions(text),
        Value::Array(items) => items.iter().any(|item| value_mentions(item, depth + 1)),
        Value::Object(members) => members.values().any(|member| value_mentions(member, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether one of the names is a word in a tag, and is not a member of another name.
fn text_mentions(text: &str) -> bool {
    let pieces = || text.split('{').skip(1);
    // what follows two braces, or a brace and a percent sign
    let tags =
        pieces().zip(std::iter::once("-").chain(pieces())).filter_map(|(piece, before)| match before.is_empty() {
            true => Some(piece),
            false => piece.strip_prefix('%'),
        });
    tags.map(|tag| tag.split('}').next().unwrap_or_default()).any(tag_mentions)
}

fn tag_mentions(tag: &str) -> bool {
    let mut before = ' ';
    tag.split_inclusive(|c: char| !is_word(c)).any(|piece| {
        let word = piece.trim_end_matches(|c| !is_word(c));
        let is_member = before == '.';
        before = piece.chars().last().unwrap_or(' ');
        !is_member && THREAD_VARIABLES.contains(&word)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the thread variables of what a preprocessor made of a trace. What is no list is a thread without messages.
pub fn thread_variables(preprocessed: &Value) -> Map<String, Value> {
    let all = preprocessed.as_array().map(Vec::as_slice).unwrap_or_default();
    let of_role = |role: &str| all.iter().filter(|message| role_of(message) == role).cloned().collect::<Vec<_>>();
    let thread: Vec<Value> = all.iter().filter(|message| role_of(message) != "system").cloned().collect();
    let (user, assistant) = (of_role("user"), of_role("assistant"));
    let pairs = user.iter().zip(&assistant).map(|(human, ai)| json!({"human": human, "assistant": ai})).collect();
    Map::from_iter([
        ("thread_count".to_owned(), thread.len().into()),
        ("first_message".to_owned(), thread.first().cloned().unwrap_or_default()),
        ("last_message".to_owned(), thread.last().cloned().unwrap_or_default()),
        ("thread".to_owned(), Value::Array(thread)),
        ("thread_with_system".to_owned(), all.to_vec().into()),
        ("user_messages".to_owned(), user.into()),
        ("assistant_messages".to_owned(), assistant.into()),
        ("human_ai_pairs".to_owned(), pairs),
        ("preprocessed".to_owned(), preprocessed.clone()),
    ])
}

/// Adds thread variables. Variables of the input with the same name win.
pub fn add_thread_variables(variables: &mut Value, thread: Map<String, Value>) {
    if let Value::Object(variables) = variables {
        for (name, value) in thread {
            variables.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_tags_are_mentions() {
        for text in [
            "{{thread}}",
            "{{ thread }}",
            "{{#user_messages}}x{{/user_messages}}",
            "{{{last_message.content}}}",
            "{{&thread_count}}",
            "{% for p in human_ai_pairs %}",
            "{%if thread_with_system%}",
            "a {{b}} {{first_message}}",
            "{{ thread | dump }}",
        ] {
            assert!(text_mentions(text), "{text}");
        }
        for text in [
            "thread",
            "{thread}",
            "{{input.thread}}",
            "{{threads}}",
            "{{my_thread}}",
            "{{b}} thread",
            "",
            "{{",
            "{ % thread %}",
        ] {
            assert!(!text_mentions(text), "{text}");
        }
    }

    #[test]
    fn only_judges_have_threads() {
        let mut data = json!({"prompt": {"type": "chat", "messages": [{"role": "user", "content": [{"type": "text", "text": "{{thread}}"}]}]}});
        assert!(!Prompt::read(&data).expect("a prompt").mentions_thread());
        data["parser"] = json!({"type": "llm_classifier", "choice": ["a"]});
        assert!(Prompt::read(&data).expect("a prompt").mentions_thread());
    }

    #[test]
    fn variables_are_made_of_messages() {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let (s, u, a, v) =
            (message("system", "s"), message("user", "u"), message("assistant", "a"), message("user", "v"));
        let variables = thread_variables(&json!([s, u, a, v]));
        let expected = json!({
            "thread": [u, a, v], "thread_with_system": [s, u, a, v], "thread_count": 3, "first_message": u, "last_message": v,
            "user_messages": [u, v], "assistant_messages": [a], "human_ai_pairs": [{"human": u, "assistant": a}],
            "preprocessed": [s, u, a, v],
        });
        assert_eq!(Value::Object(variables.clone()), expected);
        assert!(THREAD_VARIABLES.iter().all(|name| variables.contains_key(*name)));
        let none = thread_variables(&json!("text"));
        assert_eq!(
            (&none["thread"], &none["first_message"], &none["preprocessed"]),
            (&json!([]), &Value::Null, &json!("text"))
        );
        let mut own = json!({"thread": "mine"});
        add_thread_variables(&mut own, variables);
        assert_eq!((&own["thread"], &own["thread_count"]), (&json!("mine"), &json!(3)));
    }

    #[test]
    fn a_trace_is_taken_out_of_the_input() {
        let reference = json!({"object_type": "experiment", "object_id": "o", "root_span_id": "r"});
        let mut input = json!({"output": 1, "trace": {"trace_ref": reference}});
        let trace = take_trace(&mut input).expect("a trace");
        assert_eq!((trace.object_id.as_str(), trace.root_span_id.as_str()), ("o", "r"));
        assert_eq!(input, json!({"output": 1}));
        assert!(take_trace(&mut json!({"trace_ref": reference})).is_some());
        for mut other in [json!(1), json!({"trace": 5}), json!({"trace_ref": {"object_id": "o"}})] {
            assert_eq!(take_trace(&mut other), None);
        }
    }
}
