//! Pure conversion of data URLs in span rows to attachments, so that rows stay small (1.9).

use std::collections::{BTreeSet, HashMap};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Upper bound of the media of one row that become attachments. Further media remain in the row.
pub const ROW_MEDIA_MAX: usize = 64;
/// Upper bound of the bytes of a media type.
const TYPE_BYTES_MAX: usize = 128;
/// Members of a row that may contain media.
const MEMBERS: [&str; 2] = ["input", "output"];

/// Content of a data URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMedia {
    pub filename: String,
    pub content_type: String,
    pub bytes: Bytes,
}

impl LoggedMedia {
    /// Parses a text that consists of a data URL. Returns `None` for other texts.
    pub fn of_data_url(text: &str) -> Option<LoggedMedia> {
        let (content_type, data) = text.strip_prefix("data:")?.split_once(";base64,")?;
        let (_, subtype) = content_type.split_once('/')?;
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte));
        if content_type.len() > TYPE_BYTES_MAX || subtype.is_empty() || !content_type.split('/').all(is_name) {
            return None;
        }
        let bytes = STANDARD.decode(data).ok().filter(|bytes| !bytes.is_empty())?;
        let (filename, content_type) = (format!("file.{subtype}"), content_type.to_owned());
        Some(LoggedMedia { filename, content_type, bytes: bytes.into() })
    }

    /// Returns the attachment reference that replaces the data URL in a row.
    pub fn reference(&self, key: &str) -> Value {
        json!({
            "type": "braintrust_attachment",
            "filename": self.filename,
            "content_type": self.content_type,
            "key": key,
        })
    }
}

/// Returns the distinct texts of a row that begin like data URLs, up to [`ROW_MEDIA_MAX`].
pub fn data_urls(row: &Map<String, Value>) -> Vec<&str> {
    let mut found = BTreeSet::new();
    for member in MEMBERS.iter().filter_map(|name| row.get(*name)) {
        collect(member, &mut found);
    }
    found.into_iter().take(ROW_MEDIA_MAX).collect()
}

fn collect<'r>(value: &'r Value, found: &mut BTreeSet<&'r str>) {
    match value {
        Value::String(text) if text.starts_with("data:") => drop(found.insert(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => members.values().for_each(|member| collect(member, found)),
        _ => {}
    }
}

/// Replaces data URLs of a row by references.
pub fn replace_data_urls(row: &mut Map<String, Value>, references: &HashMap<String, Value>) {
    if references.is_empty() {
        return;
    }
    for name in MEMBERS {
        row.get_mut(name).into_iter().for_each(|member| replace(member, references));
    }
}

fn replace(value: &mut Value, references: &HashMap<String, Value>) {
    match value {
        Value::String(text) => {
            if let Some(reference) = references.get(text) {
                *value = reference.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, references)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, references)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_text_is_a_data_url() {
        let media = LoggedMedia::of_data_url("data:image/png;base64,aGk=").expect("media");
        assert_eq!((media.filename.as_str(), media.content_type.as_str()), ("file.png", "image/png"));
        assert_eq!(media.bytes, "hi");
        let others = [
            "data:image/png;base64,",
            "data:image/png;base64,%",
            "data:,hi",
            "data:image;base64,aGk=",
            "see data:a/b;base64,aGk=",
            "data:a/;base64,aGk=",
            "data:a/b c;base64,aGk=",
            "data:a/b;charset=x;base64,aGk=",
        ];
        for text in others {
            assert_eq!(LoggedMedia::of_data_url(text), None, "{text}");
        }
    }

    #[test]
    fn references_take_the_place_of_media_in_input_and_output() {
        let url = "data:image/png;base64,aGk=";
        let row = json!({"input": [{"content": [{"image_url": {"url": url}}, {"text": "data: none"}]}], "output": url, "metadata": url});
        let Value::Object(mut row) = row else { panic!("an object") };
        assert_eq!(data_urls(&row), ["data: none", url]);
        let reference = LoggedMedia::of_data_url(url).expect("media").reference("k");
        replace_data_urls(&mut row, &HashMap::from([(url.to_owned(), reference.clone())]));
        assert_eq!(row["input"][0]["content"][0]["image_url"]["url"], reference);
        assert_eq!((&row["output"], &row["metadata"]), (&reference, &json!(url)));
        assert_eq!(row["input"][0]["content"][1]["text"], "data: none");
    }

    #[test]
    fn a_row_has_a_bounded_number_of_attachments() {
        let urls: Vec<String> = (0..100).map(|number| format!("data:a/b;base64,{number}")).collect();
        let row = Map::from_iter([("input".to_owned(), json!(urls))]);
        assert_eq!(data_urls(&row).len(), ROW_MEDIA_MAX);
    }
}
