//! Probabilities of tokens, which the form has as chat completions do.

use serde_json::{Map, Value, json};

/// Upper bound of tokens with probabilities in one answer.
const TOKENS_MAX: usize = 1_000_000;

/// Reads `logprobsResult`. None if it is not of the known form.
pub(super) fn read_logprobs(result: &Value) -> Option<Value> {
    let chosen = result.get("chosenCandidates")?.as_array()?;
    let top = result.get("topCandidates").and_then(Value::as_array);
    let mut content = Vec::new();
    for (at, token) in chosen.iter().take(TOKENS_MAX).enumerate() {
        let mut token = read_token(token)?;
        let others = top.and_then(|top| top.get(at)?.get("candidates")?.as_array());
        let others: Option<Vec<_>> =
            others.into_iter().flatten().map(|other| Some(Value::Object(read_token(other)?))).collect();
        token.insert("top_logprobs".to_owned(), json!(others?));
        content.push(Value::Object(token));
    }
    Some(json!({ "content": content }))
}

fn read_token(token: &Value) -> Option<Map<String, Value>> {
    let text = token.get("token")?.as_str()?;
    let logprob = token.get("logProbability").filter(|value| value.is_number())?;
    let mut read = Map::new();
    read.insert("token".to_owned(), json!(text));
    read.insert("logprob".to_owned(), logprob.clone());
    read.insert("bytes".to_owned(), json!(text.as_bytes()));
    Some(read)
}

/// Writes `logprobsResult`. None if there are no tokens.
pub(super) fn write_logprobs(logprobs: &Value) -> Option<Value> {
    let content = logprobs.get("content")?.as_array()?;
    let token = |token: &Value| {
        let (text, logprob) = (token.get("token")?.as_str()?, token.get("logprob")?);
        Some(json!({ "token": text, "logProbability": logprob }))
    };
    let chosen: Option<Vec<Value>> = content.iter().take(TOKENS_MAX).map(token).collect();
    let top = content.iter().take(TOKENS_MAX).map(|chosen| {
        let others = chosen.get("top_logprobs").and_then(Value::as_array).into_iter().flatten();
        Some(json!({ "candidates": others.map(token).collect::<Option<Vec<_>>>()? }))
    });
    let top: Option<Vec<Value>> = top.collect();
    Some(json!({ "topCandidates": top?, "chosenCandidates": chosen? }))
}
