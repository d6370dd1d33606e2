//! Parts of the content of messages and of results of calls.

use serde_json::Value;

use super::super::fields::{
    Fields, kept, object, put, put_rest, put_some, rest, take, take_needed_text, take_text, typed, within,
};
use assay_node_dialects::form::{ContentPart, Extra, FilePart, ImageDetail, MediaSource, TextPart};
use assay_node_dialects::{Dialect, DialectError, bare_media_type, data_url, parse_data_url};

/// Name of the extra field that says where a message begins, with the fields of the message. The text parts behind one
/// are of the same message up to the next.
pub(crate) const MESSAGE_MARK: &str = "message";

/// Reads a part. An unknown one is foreign.
pub(crate) fn read_part(value: Value, path: &str) -> Result<ContentPart, DialectError> {
    let mut fields = object(value, path)?;
    match take(&mut fields, "type").as_ref().and_then(Value::as_str) {
        Some("input_text" | "output_text" | "text") => Ok(ContentPart::Text(read_text(fields, path, "text")?)),
        Some("refusal") => Ok(ContentPart::Refusal(read_text(fields, path, "refusal")?)),
        Some("input_image") => read_image(fields, path),
        Some("input_file") => read_file(fields, path),
        Some("input_audio") if is_known_sound(&fields) => read_audio(fields, path),
        // the type of an item: written again, the part would be one
        Some("message") => Err(DialectError::malformed(within(path, "type"), "the type of a content part")),
        Some(other) => {
            put(&mut fields, "type", other);
            Ok(ContentPart::Foreign { from: Dialect::Responses, part: Value::Object(fields) })
        }
        None => Err(DialectError::malformed(within(path, "type"), "the type of a content part")),
    }
}

fn read_text(mut fields: Fields, path: &str, name: &str) -> Result<TextPart, DialectError> {
    let text = take_needed_text(&mut fields, path, name)?;
    Ok(TextPart { text, signature: signature_of(&fields), extra: rest(fields), cache: None })
}

fn read_image(mut fields: Fields, path: &str) -> Result<ContentPart, DialectError> {
    let source = match take_text(&mut fields, path, "image_url")? {
        Some(url) => {
            drop_null(&mut fields, "file_id");
            url_source(url)
        }
        None => {
            MediaSource::FileId(needed(take_text(&mut fields, path, "file_id")?, path, "`image_url` or `file_id`")?)
        }
    };
    let detail = take_text(&mut fields, path, "detail")?.map(|detail| match detail.as_str() {
        "auto" => ImageDetail::Auto,
        "low" => ImageDetail::Low,
        "high" => ImageDetail::High,
        _ => ImageDetail::Other(detail),
    });
    Ok(ContentPart::Image { source, detail, cache: None, extra: rest(fields) })
}

fn read_file(mut fields: Fields, path: &str) -> Result<ContentPart, DialectError> {
    let name = take_text(&mut fields, path, "filename")?;
    let source = if let Some(id) = take_text(&mut fields, path, "file_id")? {
        MediaSource::FileId(id)
    } else if let Some(url) = take_text(&mut fields, path, "file_url")? {
        url_source(url)
    } else {
        let data = take_text(&mut fields, path, "file_data")?;
        let data = needed(data, path, "`file_id`, `file_url` or `file_data`")?;
        match url_source(data) {
            MediaSource::Url(data) => MediaSource::Base64 { media_type: media_type(name.as_deref()).to_owned(), data },
            source => source,
        }
    };
    for other in ["file_id", "file_url", "file_data"] {
        drop_null(&mut fields, other);
    }
    Ok(ContentPart::File(FilePart { source, name, cache: None, extra: rest(fields) }))
}

fn is_known_sound(fields: &Fields) -> bool {
    let format = fields.get("input_audio").and_then(|audio| audio.get("format"));
    matches!(format.and_then(Value::as_str), Some("mp3" | "wav"))
}

fn read_audio(mut fields: Fields, path: &str) -> Result<ContentPart, DialectError> {
    let path = within(path, "input_audio");
    let mut audio = object(take(&mut fields, "input_audio").unwrap_or_default(), &path)?;
    let data = take_needed_text(&mut audio, &path, "data")?;
    let media_type = match take_needed_text(&mut audio, &path, "format")?.as_str() {
        "mp3" => "audio/mpeg".to_owned(),
        format => format!("audio/{format}"),
    };
    if !audio.is_empty() {
        put(&mut fields, "input_audio", audio);
    }
    Ok(ContentPart::Audio { source: MediaSource::Base64 { media_type, data }, cache: None, extra: rest(fields) })
}

fn needed(value: Option<String>, path: &str, expected: &'static str) -> Result<String, DialectError> {
    value.ok_or_else(|| DialectError::malformed(path, expected))
}

fn drop_null(fields: &mut Fields, name: &str) {
    if fields.get(name).is_some_and(Value::is_null) {
        fields.shift_remove(name);
    }
}

/// Bytes of a data URL, else the URL.
fn url_source(url: String) -> MediaSource {
    match parse_data_url(&url).filter(|(media_type, _)| !media_type.is_empty()) {
        Some((media_type, data)) => MediaSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() },
        None => MediaSource::Url(url),
    }
}

/// Media type of a file whose bytes came without one.
fn media_type(name: Option<&str>) -> &'static str {
    match name.and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension) {
        Some("pdf") => "application/pdf",
        Some("txt" | "md") => "text/plain",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

/// Name of a file whose bytes came without one.
fn file_name(media_type: &str) -> &'static str {
    match bare_media_type(media_type) {
        "application/pdf" => "file.pdf",
        "text/csv" => "file.csv",
        "application/json" => "file.json",
        media_type if media_type.starts_with("text/") => "file.txt",
        _ => "file",
    }
}

/// Signature of Gemini's reasoning, where its own OpenAI form has it (G-30). The member stays, for a server that gave it.
pub(crate) fn signature_of(fields: &Fields) -> Option<String> {
    let google = fields.get("extra_content")?.get("google")?;
    google.get("thought_signature")?.as_str().map(str::to_owned)
}

pub(crate) fn put_signature(fields: &mut Fields, signature: Option<&String>) {
    if let Some(signature) = signature {
        fields
            .entry("extra_content")
            .or_insert_with(|| serde_json::json!({"google": {"thought_signature": signature}}));
    }
}

/// Writes a part that is sent to the model. `text_type` is the type of texts, which depends on the role.
pub(crate) fn write_input_part(part: &ContentPart, text_type: &str, path: &str) -> Result<Value, DialectError> {
    let unsupported = |what: &str| DialectError::unsupported(path, what);
    let (mut fields, extra) = match part {
        ContentPart::Text(text) => (write_text(text_type, &text.text), &text.extra),
        ContentPart::Refusal(text) if text_type == "output_text" => {
            let mut fields = typed("refusal");
            put(&mut fields, "refusal", text.text.as_str());
            (fields, &text.extra)
        }
        ContentPart::Refusal(text) => (write_text(text_type, &text.text), &text.extra),
        ContentPart::Foreign { from: Dialect::Responses, part } => return Ok(part.clone()),
        _ if text_type == "output_text" => return Err(unsupported("a part of an answer other than text")),
        ContentPart::Image { source, detail, extra, .. } => {
            (write_image(source, detail.as_ref()).ok_or_else(|| unsupported("an image of text"))?, extra)
        }
        ContentPart::File(file) => (write_file(file), &file.extra),
        ContentPart::Audio { source, extra, .. } => {
            (write_audio(source, extra).ok_or_else(|| unsupported("sound other than WAV and MP3 data"))?, extra)
        }
        _ => return Err(unsupported("this kind of content")),
    };
    put_rest(&mut fields, extra);
    fields.shift_remove(MESSAGE_MARK);
    Ok(Value::Object(fields))
}

fn write_text(text_type: &str, text: &str) -> Fields {
    let mut fields = typed(text_type);
    put(&mut fields, "text", text);
    fields
}

fn write_image(source: &MediaSource, detail: Option<&ImageDetail>) -> Option<Fields> {
    let mut fields = typed("input_image");
    match source {
        MediaSource::Url(url) => put(&mut fields, "image_url", url.as_str()),
        MediaSource::Base64 { media_type, data } => put(&mut fields, "image_url", data_url(media_type, data)),
        MediaSource::FileId(id) => put(&mut fields, "file_id", id.as_str()),
        MediaSource::Text(_) => return None,
    }
    put_some(
        &mut fields,
        "detail",
        detail.map(|detail| match detail {
            ImageDetail::Auto => "auto",
            ImageDetail::Low => "low",
            ImageDetail::High => "high",
            ImageDetail::Other(other) => other.as_str(),
        }),
    );
    Some(fields)
}

fn write_file(file: &FilePart) -> Fields {
    let mut fields = typed("input_file");
    match &file.source {
        // there is no document of text, so that the model gets the text itself
        MediaSource::Text(text) => return write_text("input_text", text),
        MediaSource::Url(url) => put(&mut fields, "file_url", url.as_str()),
        MediaSource::FileId(id) => put(&mut fields, "file_id", id.as_str()),
        MediaSource::Base64 { media_type, data } => put(&mut fields, "file_data", data_url(media_type, data)),
    }
    let name = match (&file.name, &file.source) {
        (Some(name), _) => Some(name.as_str()),
        // bytes need a name, by whose extension the server knows what they are
        (None, MediaSource::Base64 { media_type, .. }) => Some(file_name(media_type)),
        _ => None,
    };
    put_some(&mut fields, "filename", name);
    fields
}

fn write_audio(source: &MediaSource, extra: &Extra) -> Option<Fields> {
    let MediaSource::Base64 { media_type, data } = source else { return None };
    let format = match bare_media_type(media_type) {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        _ => return None,
    };
    let mut audio = kept(extra, "input_audio").and_then(Value::as_object).cloned().unwrap_or_default();
    put(&mut audio, "data", data.as_str());
    put(&mut audio, "format", format);
    let mut fields = typed("input_audio");
    put(&mut fields, "input_audio", audio);
    Some(fields)
}
