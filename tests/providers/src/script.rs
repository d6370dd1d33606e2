//! The script that stands for a model: the same prompt has the same answer in every wire format.
//!
//! | prompt | answer |
//! |---|---|
//! | the last text is `fail 429` | an error with this status |
//! | tools, and no results of them yet | a call of each of the first two tools, or of the one that is forced |
//! | tools, and the last text begins with `rounds 3` | the same, until they have the results of three rounds |
//! | a tool with a property that is a choice | its choice that the last text names, as in `[choose good]`, or else its first one, and why |
//! | results of tools | their texts, in order |
//! | a JSON schema | an object with a value for each property |
//! | images | their media types and sizes |
//! | anything else | the last text, and the instructions if there are any |
//!
//! An argument with an `enum` is the value that the last text names, as in `[choose B]`, or else the first one. A model whose
//! name contains `reasoning` thinks first. Tokens are words; a model whose name contains `cached` had the
//! first word of the prompt cached.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Map, Value, json};

/// Values for the arguments of calls, so that two calls differ.
const ARGUMENTS: [&str; 2] = ["Paris", "Oslo"];
/// Text beside a choice, such as the reasons of a judge.
const REASON: &str = "The first choice fits.";
/// Letters of a text in one event of a stream.
const PIECE_CHARS: usize = 4;

/// What a provider understood of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    pub model: String,
    pub instructions: Vec<String>,
    /// Texts of the last user message.
    pub texts: Vec<String>,
    pub images: Vec<PromptImage>,
    pub tools: Vec<PromptTool>,
    /// Name of the tool that the answer must call.
    pub forced_tool: Option<String>,
    pub no_tools: bool,
    /// Texts of results that came after the last user message.
    pub results: Vec<String>,
    pub schema: Option<Value>,
    pub stream: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PromptImage {
    Base64 { media_type: String, data: String },
    Url(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct PromptTool {
    pub name: String,
    pub parameters: Value,
}

/// What the script answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedAnswer {
    pub reasoning: Option<String>,
    pub text: Option<String>,
    pub calls: Vec<ScriptedCall>,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// Signature of every thought.
pub const SIGNATURE: &str = "c2lnbmVk";

/// Answers a prompt. An error is the status of a refusal.
pub fn answer(prompt: &Prompt) -> Result<ScriptedAnswer, u16> {
    let last = prompt.texts.last().map_or("", String::as_str);
    if let Some(status) = last.strip_prefix("fail ").and_then(|status| status.parse().ok()) {
        return Err(status);
    }
    let calls = calls(prompt, last);
    let text = calls.is_empty().then(|| text(prompt, last));
    let reasoning = prompt.model.contains("reasoning").then(|| format!("thinking about {last}"));
    let words = |text: &str| text.split_whitespace().count() as u64;
    let read = prompt.instructions.iter().chain(&prompt.texts).chain(&prompt.results);
    let arguments: u64 = calls.iter().map(|call| words(&call.arguments.to_string())).sum();
    Ok(ScriptedAnswer {
        input_tokens: read.map(|text| words(text)).sum(),
        cached_tokens: prompt.model.contains("cached").into(),
        output_tokens: text.as_deref().map_or(0, words) + arguments + reasoning.as_deref().map_or(0, words),
        reasoning,
        text,
        calls,
    })
}

fn calls(prompt: &Prompt, last: &str) -> Vec<ScriptedCall> {
    if prompt.no_tools {
        return Vec::new();
    }
    let wanted = prompt.tools.iter().filter(|tool| prompt.forced_tool.as_ref().is_none_or(|name| *name == tool.name));
    let called: Vec<_> = wanted.take(ARGUMENTS.len()).zip(ARGUMENTS).collect();
    let is_over = match rounds(last) {
        None => !prompt.results.is_empty(),
        Some(rounds) => prompt.results.len() >= rounds * called.len(),
    };
    if is_over {
        return Vec::new();
    }
    let first = prompt.results.len() + 1;
    let call = |(place, (tool, value)): (usize, (&PromptTool, &str))| ScriptedCall {
        id: format!("call_{}", first + place),
        name: tool.name.clone(),
        arguments: sample_object(&tool.parameters, value, last),
    };
    called.into_iter().enumerate().map(call).collect()
}

/// Returns the number of rounds of calls that a prompt asks for.
fn rounds(last: &str) -> Option<usize> {
    last.strip_prefix("rounds ")?.split_whitespace().next()?.parse().ok()
}

fn text(prompt: &Prompt, last: &str) -> String {
    if !prompt.results.is_empty() {
        return format!("results: {}", prompt.results.join("; "));
    }
    if let Some(schema) = &prompt.schema {
        return sample_object(schema, "text", last).to_string();
    }
    if !prompt.images.is_empty() {
        let images: Vec<_> = prompt.images.iter().map(described).collect();
        return format!("images: {}", images.join(", "));
    }
    match prompt.instructions.is_empty() {
        true => format!("echo: {last}"),
        false => format!("echo: {last} (told: {})", prompt.instructions.join(" / ")),
    }
}

fn described(image: &PromptImage) -> String {
    match image {
        PromptImage::Base64 { media_type, data } => {
            // Clients of Gemini write the alphabet for URLs.
            match STANDARD.decode(data).or_else(|_| URL_SAFE.decode(data)) {
                Ok(bytes) => format!("{media_type} of {} bytes", bytes.len()),
                Err(_) => format!("{media_type} that is not base64"),
            }
        }
        PromptImage::Url(url) => format!("at {url}"),
    }
}

/// Returns an object with a value for each property of a schema. `last` names the choices of texts that have some.
fn sample_object(schema: &Value, text: &str, last: &str) -> Value {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let choices =
        |schema: &Value| schema["enum"].as_array().filter(|choices| choices.iter().all(Value::is_string)).cloned();
    let text = if properties.values().any(|schema| choices(schema).is_some()) { REASON } else { text };
    let value = |schema: &Value| match schema.get("type").and_then(Value::as_str).map(str::to_lowercase).as_deref() {
        Some("integer") => json!(1),
        Some("number") => json!(1.5),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => choices(schema).map_or(json!(text), |choices| chosen(&choices, last)),
    };
    properties.iter().map(|(name, schema)| (name.clone(), value(schema))).collect::<Map<_, _>>().into()
}

/// Returns the choice that a prompt names, or else the first one.
fn chosen(choices: &[Value], last: &str) -> Value {
    let is_named = |choice: &&Value| choice.as_str().is_some_and(|name| last.contains(&format!("[choose {name}]")));
    choices.iter().find(is_named).or_else(|| choices.first()).cloned().unwrap_or_default()
}

/// Cuts a text into the pieces of a stream.
pub fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect()
}

/// Vector of an embedding: the shares of the first letters of the alphabet in a text.
pub fn embedding(text: &str) -> Vec<f64> {
    let letters = text.chars().count().max(1) as f64;
    ('a'..='h').map(|wanted| text.chars().filter(|letter| *letter == wanted).count() as f64 / letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> Prompt {
        Prompt { model: "m".into(), texts: vec![text.into()], ..Prompt::default() }
    }

    fn tool(name: &str) -> PromptTool {
        PromptTool { name: name.into(), parameters: json!({"properties": {"city": {"type": "string"}}}) }
    }

    #[test]
    fn the_last_text_comes_back_with_the_instructions() {
        let told = Prompt { instructions: vec!["be brief".into()], ..prompt("hi there") };
        let found = answer(&told).expect("an answer");
        assert_eq!(found.text.as_deref(), Some("echo: hi there (told: be brief)"));
        assert_eq!((found.input_tokens, found.output_tokens), (4, 6));
        assert_eq!(answer(&prompt("fail 429")), Err(429));
    }

    #[test]
    fn tools_are_called_until_their_results_came() {
        let asked = Prompt { tools: vec![tool("a"), tool("b"), tool("c")], ..prompt("weather") };
        let calls = answer(&asked).expect("an answer").calls;
        let named: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.arguments["city"].clone())).collect();
        assert_eq!(named, [("a", json!("Paris")), ("b", json!("Oslo"))]);
        let forced = Prompt { forced_tool: Some("c".into()), ..asked.clone() };
        assert_eq!(answer(&forced).expect("an answer").calls.len(), 1);
        let done = Prompt { results: vec!["rain".into(), "sun".into()], ..asked };
        let found = answer(&done).expect("an answer");
        assert_eq!((found.text.as_deref(), found.calls.len()), (Some("results: rain; sun"), 0));
    }

    #[test]
    fn tools_are_called_for_as_many_rounds_as_a_prompt_asks_for() {
        let asked = |results: usize| {
            let results = vec!["rain".to_owned(); results];
            let prompt = Prompt { tools: vec![tool("a"), tool("b")], results, ..prompt("rounds 3 of weather") };
            let calls = answer(&prompt).expect("an answer").calls;
            calls.into_iter().map(|call| call.id).collect::<Vec<_>>()
        };
        assert_eq!(asked(0), ["call_1", "call_2"]);
        assert_eq!(asked(4), ["call_5", "call_6"]);
        assert!(asked(6).is_empty());
    }

    #[test]
    fn a_choice_is_the_one_that_is_named() {
        let parameters = json!({"properties": {"choice": {"type": "string", "enum": ["A", "B"]}}});
        let select = PromptTool { name: "select".into(), parameters };
        for (text, wanted) in [("x [choose B]", "B"), ("x [choose C]", "A"), ("x", "A")] {
            let calls = answer(&Prompt { tools: vec![select.clone()], ..prompt(text) }).expect("an answer").calls;
            assert_eq!(calls[0].arguments, json!({"choice": wanted}), "{text}");
        }
    }

    #[test]
    fn a_schema_has_a_value_for_each_property() {
        let schema =
            json!({"properties": {"name": {"type": "string"}, "age": {"type": "INTEGER"}, "ok": {"type": "boolean"}}});
        let found = answer(&Prompt { schema: Some(schema), ..prompt("x") }).expect("an answer");
        assert_eq!(found.text.as_deref(), Some(r#"{"name":"text","age":1,"ok":true}"#));
    }

    #[test]
    fn a_choice_is_the_first_one_and_has_a_reason() {
        let verdict = json!({"type": "integer", "enum": [0, 1]});
        let choice = json!({"type": "string", "enum": ["good", "bad"]});
        let parameters = json!({"properties": {"reasons": {"type": "string"}, "choice": choice, "verdict": verdict}});
        let judge = PromptTool { name: "judge".into(), parameters };
        let calls = answer(&Prompt { tools: vec![judge], ..prompt("x") }).expect("an answer").calls;
        assert_eq!(calls[0].arguments, json!({"reasons": REASON, "choice": "good", "verdict": 1}));
    }

    #[test]
    fn pieces_are_the_text() {
        let text = "grüße, 世界 and more";
        assert_eq!(pieces(text).concat(), text);
        assert!(pieces("").is_empty());
    }
}
