//! Rules applied to the texts of a JSON value, such as the body of a request.

use serde_json::{Map, Value};

use crate::error::GuardrailRefusal;
use crate::json_text::{NESTED_TEXTS_MAX, is_json, with_texts};
use crate::policy::{GuardrailPolicy, GuardrailStage};
use crate::report::GuardrailReport;

/// Levels of nesting of a value.
pub const JSON_DEPTH_MAX: usize = 128;
/// Bytes of all texts of a value.
pub const TEXT_BYTES_MAX: usize = 32 << 20;
/// Bytes in which the beginning of a data URI is looked for.
const DATA_URI_HEAD_BYTES_MAX: usize = 256;
const DATA_URI_MARK: &[u8] = b";base64,";
/// Members beside `data` that say it is an image, a sound or a file.
const MEDIA_MEMBERS: [&str; 4] = ["media_type", "mimeType", "mime_type", "format"];

impl GuardrailPolicy {
    /// Applies the rules of a stage to all texts of a value. Names of members, numbers, and media in base64 are not
    /// looked at. A text that is JSON itself is changed within its own texts, so that it stays valid.
    ///
    /// After a refusal the value may have been changed in part.
    pub fn apply_to_json(&self, stage: GuardrailStage, value: &mut Value) -> Result<GuardrailReport, GuardrailRefusal> {
        let mut walk = JsonWalk { policy: self, stage, report: GuardrailReport::default(), bytes: 0 };
        if self.has_rules(stage) {
            walk.value(value, 0)?;
        }
        Ok(walk.report)
    }
}

/// A pass over one value.
struct JsonWalk<'p> {
    policy: &'p GuardrailPolicy,
    stage: GuardrailStage,
    report: GuardrailReport,
    /// Bytes of the texts so far.
    bytes: usize,
}

impl JsonWalk<'_> {
    fn value(&mut self, value: &mut Value, depth: usize) -> Result<(), GuardrailRefusal> {
        if depth > JSON_DEPTH_MAX {
            return Err(GuardrailRefusal::Depth { max: JSON_DEPTH_MAX });
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
            Value::String(text) => {
                if is_data_uri(text) {
                    return Ok(());
                }
                self.bytes = self.bytes.saturating_add(text.len());
                if self.bytes > TEXT_BYTES_MAX {
                    return Err(GuardrailRefusal::Size { max: TEXT_BYTES_MAX });
                }
                if let Some(changed) = self.text(text, 0)? {
                    *text = changed;
                }
                Ok(())
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.value(item, depth + 1)),
            Value::Object(members) => {
                let has_media = has_media(members);
                for (name, member) in members.iter_mut() {
                    if !(has_media && name == "data" && member.as_str().is_some_and(is_base64)) {
                        self.value(member, depth + 1)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns the text with what was masked; none if nothing was.
    fn text(&mut self, text: &str, level: usize) -> Result<Option<String>, GuardrailRefusal> {
        if level < NESTED_TEXTS_MAX && is_json(text) {
            return with_texts(text, |inner| self.text(inner, level + 1));
        }
        self.policy.masked(self.stage, text, &mut self.report)
    }
}

fn is_data_uri(text: &str) -> bool {
    text.strip_prefix("data:").is_some_and(|rest| {
        let head = &rest.as_bytes()[..rest.len().min(DATA_URI_HEAD_BYTES_MAX)];
        let mark = head.windows(DATA_URI_MARK.len()).position(|window| window == DATA_URI_MARK);
        mark.is_some_and(|mark| is_base64(&rest[mark + DATA_URI_MARK.len()..]))
    })
}

fn is_base64(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n'))
}

/// Whether the member `data` is media in base64.
fn has_media(members: &Map<String, Value>) -> bool {
    members.contains_key("data")
        && (members.get("type").is_some_and(|kind| kind == "base64")
            || MEDIA_MEMBERS.iter().any(|name| members.get(*name).is_some_and(Value::is_string)))
}
