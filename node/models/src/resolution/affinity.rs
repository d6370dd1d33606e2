//! Sessions of calls, whose prompts are in the cache of one upstream (G-72).

use serde_json::Value;

/// Headers that name a session, in order of precedence.
const SESSION_HEADERS: [&str; 3] = ["x-session-id", "x-session-affinity", "x-claude-code-session-id"];
const PROMPT_CACHE_KEY: &str = "prompt_cache_key";
/// Members that contain the system prompt in the different dialects.
const SYSTEM_MEMBERS: [&str; 4] = ["system", "instructions", "systemInstruction", "system_instruction"];
/// Members that contain the messages in the different dialects.
const MESSAGE_MEMBERS: [&str; 3] = ["messages", "input", "contents"];
/// Upper bound of the messages that are searched for the first user message.
const MESSAGES_MAX: usize = 64;
/// Upper bound of a session's name, in bytes.
const SESSION_BYTES_MAX: usize = 512;

/// Returns the session of a call, or `None` if the body has no messages.
///
/// The name comes from a header or the body. Otherwise, it is a hash of the system prompt and the first user message.
/// `header` returns the value of a header by its lower-case name.
pub fn session_key<'a>(header: impl Fn(&str) -> Option<&'a str>, body: &Value) -> Option<String> {
    let named = SESSION_HEADERS.iter().find_map(|name| header(name).filter(|value| !value.is_empty()));
    let named = named.or_else(|| body.get(PROMPT_CACHE_KEY).and_then(Value::as_str).filter(|key| !key.is_empty()));
    if let Some(named) = named {
        return Some(match named.len() <= SESSION_BYTES_MAX {
            true => named.to_owned(),
            false => blake3::hash(named.as_bytes()).to_hex().to_string(),
        });
    }
    let mut hasher = blake3::Hasher::new();
    for name in SYSTEM_MEMBERS {
        add(&mut hasher, body.get(name));
    }
    let messages = MESSAGE_MEMBERS.iter().find_map(|name| body.get(name))?;
    match messages {
        Value::Array(messages) => {
            for message in messages.iter().take(MESSAGES_MAX) {
                let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
                if matches!(role, "system" | "developer") {
                    add(&mut hasher, Some(message));
                } else if role == "user" {
                    add(&mut hasher, Some(message));
                    break;
                }
            }
        }
        other => add(&mut hasher, Some(other)),
    }
    Some(hasher.finalize().to_hex().to_string())
}

fn add(hasher: &mut blake3::Hasher, value: Option<&Value>) {
    let Some(value) = value else { return };
    let text = value.to_string();
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(headers: &[(&'static str, &'static str)], body: &Value) -> Option<String> {
        session_key(|name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value), body)
    }

    #[test]
    fn headers_name_the_session_before_the_body() {
        let body = json!({"prompt_cache_key": "b", "messages": []});
        assert_eq!(key(&[("x-session-affinity", "a"), ("x-session-id", "i")], &body).as_deref(), Some("i"));
        assert_eq!(key(&[("x-claude-code-session-id", "c")], &body).as_deref(), Some("c"));
        assert_eq!(key(&[("x-session-id", "")], &body).as_deref(), Some("b"));
    }

    #[test]
    fn a_conversation_keeps_its_session_while_it_grows() {
        let first = json!({"role": "user", "content": "hi"});
        let system = json!({"role": "system", "content": "be kind"});
        let short = key(&[], &json!({"messages": [system, first]}));
        let more = json!({"role": "assistant", "content": "hello"});
        let long =
            key(&[], &json!({"model": "x", "messages": [system, first, more, {"role": "user", "content": "2"}]}));
        assert!(short.is_some() && short == long);
        assert_ne!(short, key(&[], &json!({"messages": [first]})));
        assert_ne!(short, key(&[], &json!({"messages": [system, {"role": "user", "content": "ho"}]})));
    }

    #[test]
    fn each_dialect_has_a_session() {
        for body in [
            json!({"system": "s", "messages": [{"role": "user", "content": "a"}]}),
            json!({"instructions": "s", "input": "a"}),
            json!({"systemInstruction": {"parts": []}, "contents": [{"parts": [{"text": "a"}]}]}),
        ] {
            assert!(key(&[], &body).is_some(), "{body}");
        }
        assert_eq!(key(&[], &json!({"prompt": "a"})), None);
        assert_eq!(key(&[], &Value::Null), None);
    }
}
