//! Values that a client reads through the gateway otherwise than from a provider of its own wire format, each with the
//! reason.

use serde_json::{Value, json};

/// A result of Gemini's functions is an object. Servers of other formats take a text, which is this object's JSON.
const RESULTS_ARE_OBJECTS: &str = "the object that a function of Gemini returned is a text in other formats";
/// A 503 of a server is an `overloaded_error` in Anthropic's format, which LiteLLM takes for a 500.
const OVERLOADED: &str = "LiteLLM reads Anthropic's `overloaded_error` as a 500";

/// Returns the value that a client may read of a model instead of the wanted one, and why.
pub fn allowed(model: &str, client: &str, scenario: &str) -> Option<(Value, &'static str)> {
    match (client, scenario) {
        ("gemini", "results") if model != "gemini-cached" => {
            let text = r#"results: {"result":"rain"}; {"result":"noon"}"#;
            Some((json!({ "text": text, "calls": [], "finish": "STOP", "usage": [5, 3, 1] }), RESULTS_ARE_OBJECTS))
        }
        ("litellm_anthropic", "errors" | "streamed_errors") if model != "anthropic-cached" => {
            let errors = json!([
                ["BadRequestError", 400],
                ["NotFoundError", 404],
                ["RateLimitError", 429],
                ["InternalServerError", 500],
                ["InternalServerError", 500]
            ]);
            Some((errors, OVERLOADED))
        }
        _ => None,
    }
}

/// Returns the reasons for which nothing differed.
pub fn unused(differed: &[&'static str]) -> Vec<&'static str> {
    [RESULTS_ARE_OBJECTS, OVERLOADED].into_iter().filter(|why| !differed.contains(why)).collect()
}
