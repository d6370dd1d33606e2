//! Attachments in messages: references in variables that become `data:` URLs. Their bytes are read by the caller.

use serde_json::{Map, Value, json};

use crate::error::PromptError;
use crate::template::TextRenderer;

/// Attachments of one request.
pub const ATTACHMENTS_MAX: usize = 1000;

/// A reference to a stored attachment, as rows have it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttachmentReference {
    pub source: AttachmentSource,
    pub filename: String,
    pub content_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachmentSource {
    /// Key of an attachment in our store.
    Stored { key: String },
    /// URL of an object in a bucket of the customer.
    External { url: String },
}

impl AttachmentReference {
    /// Reads a reference; none if the value is something else.
    pub fn read(value: &Value) -> Option<AttachmentReference> {
        let text =
            |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let source = match value.get("type").and_then(Value::as_str)? {
            "braintrust_attachment" => AttachmentSource::Stored { key: text("key")? },
            "external_attachment" => AttachmentSource::External { url: text("url")? },
            _ => return None,
        };
        Some(AttachmentReference { source, filename: text("filename")?, content_type: text("content_type")? })
    }

    fn is_image(&self) -> bool {
        self.content_type.to_ascii_lowercase().starts_with("image/")
    }
}

/// An attachment, and the JSON pointer to the value in the messages that its `data:` URL becomes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttachmentSlot {
    pub reference: AttachmentReference,
    pub pointer: String,
}

/// A rendered part, with the attachment that it waits for: the pointer begins at the part.
pub(crate) struct RenderedPart {
    pub part: Value,
    pub slot: Option<AttachmentSlot>,
}

impl RenderedPart {
    pub fn plain(part: Value) -> RenderedPart {
        RenderedPart { part, slot: None }
    }
}

/// Returns the parts that an `image_url` part becomes: one for each item, if its URL is a tag whose value is a list.
pub(crate) fn image_parts(
    part: &Map<String, Value>,
    path: &str,
    renderer: &mut TextRenderer<'_>,
) -> Result<Vec<RenderedPart>, PromptError> {
    let path = format!("{path}.image_url");
    let image = match part.get("image_url") {
        Some(Value::Object(image)) => image,
        other => return Err(PromptError::wrong_type(&path, "an object with `url`", other.unwrap_or(&Value::Null))),
    };
    let path = format!("{path}.url");
    let url = match image.get("url") {
        Some(Value::String(url)) => url,
        other => return Err(PromptError::wrong_type(&path, "a string", other.unwrap_or(&Value::Null))),
    };
    let value = renderer.sole_value(url);
    if let Some(Value::Array(items)) = &value
        && items.iter().all(|item| AttachmentReference::read(item).is_some() || is_url(item))
    {
        return Ok(items.iter().map(|item| image_part(part, image, item)).collect());
    }
    match value.filter(|value| AttachmentReference::read(value).is_some()) {
        Some(reference) => Ok(vec![image_part(part, image, &reference)]),
        None => {
            let url = Value::String(renderer.render(&path, url)?);
            Ok(vec![image_part(part, image, &url)])
        }
    }
}

/// Returns the part of one image. An attachment that is no image is a file (F-29).
fn image_part(part: &Map<String, Value>, image: &Map<String, Value>, item: &Value) -> RenderedPart {
    let reference = AttachmentReference::read(item);
    if let Some(reference) = reference.as_ref().filter(|reference| !reference.is_image()) {
        let part = json!({"type": "file", "file": {"filename": reference.filename, "file_data": null}});
        let slot = AttachmentSlot { reference: reference.clone(), pointer: "/file/file_data".to_owned() };
        return RenderedPart { part, slot: Some(slot) };
    }
    let (mut part, mut image) = (part.clone(), image.clone());
    let url = if reference.is_some() { Value::Null } else { item.clone() };
    image.insert("url".to_owned(), url);
    part.insert("image_url".to_owned(), Value::Object(image));
    let slot = reference.map(|reference| AttachmentSlot { reference, pointer: "/image_url/url".to_owned() });
    RenderedPart { part: Value::Object(part), slot }
}

/// Returns a `file` part with its texts rendered.
pub(crate) fn file_part(
    part: &Map<String, Value>,
    path: &str,
    renderer: &mut TextRenderer<'_>,
) -> Result<RenderedPart, PromptError> {
    let path = format!("{path}.file");
    let mut file = match part.get("file") {
        Some(Value::Object(file)) => file.clone(),
        other => return Err(PromptError::wrong_type(&path, "an object", other.unwrap_or(&Value::Null))),
    };
    let mut slot = None;
    for name in ["file_data", "filename", "file_id"] {
        let Some(Value::String(template)) = file.get(name) else { continue };
        let reference = renderer.sole_value(template).and_then(|value| AttachmentReference::read(&value));
        let value = match reference.filter(|_| name == "file_data") {
            Some(reference) => {
                slot = Some(AttachmentSlot { reference, pointer: "/file/file_data".to_owned() });
                Value::Null
            }
            None => Value::String(renderer.render(&format!("{path}.{name}"), template)?),
        };
        file.insert(name.to_owned(), value);
    }
    if let Some(slot) = &slot
        && !file.contains_key("filename")
    {
        file.insert("filename".to_owned(), slot.reference.filename.clone().into());
    }
    let mut part = part.clone();
    part.insert("file".to_owned(), Value::Object(file));
    Ok(RenderedPart { part: Value::Object(part), slot })
}

fn is_url(item: &Value) -> bool {
    item.as_str().is_some_and(|url| url.starts_with("https://") || url.starts_with("http://"))
}
