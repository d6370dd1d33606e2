//! Parts of the content of a chat message: texts, images, sounds, files.

use serde_json::{Map, Value, json};

use super::fields::{ChatFields, put_extra, put_signature, put_some, take_signature};
use super::reasoning;
use assay_node_dialects::form::{CacheControl, ContentPart, FilePart, ImageDetail, MediaSource, TextPart};
use assay_node_dialects::{Dialect, DialectError, bare_media_type, data_url, parse_data_url};

/// Spelling of a refusal that was a part of the content, and not a member of the message.
const REFUSAL_PART: &str = "refusal part";
/// Spelling of a file whose data had no media type.
const BARE_DATA: &str = "bare data";
/// Spelling of a file that came as one, and whose name is left as it was.
const FILE_PART: &str = "file";
/// Spelling of a file whose data was a URL, as OpenRouter takes it.
const FILE_URL: &str = "file URL";
/// Spelling of a document that came as the URL of an image.
const DOCUMENT_AS_IMAGE: &str = "document as image";
/// Spelling of an image that was in the list `images` of the message.
pub(super) const LISTED_IMAGE: &str = "images";

const MEDIA_TYPE_UNKNOWN: &str = "application/octet-stream";

/// Reads the content of a message: a text or a list of parts.
pub(super) fn read_content(value: Value, path: &str) -> Result<Vec<ContentPart>, DialectError> {
    match value {
        Value::String(text) => Ok(vec![ContentPart::Text(TextPart { text, ..TextPart::default() })]),
        Value::Array(parts) => {
            let read = |(at, part)| read_part(part, format!("{path}[{at}]"));
            parts.into_iter().enumerate().map(read).collect()
        }
        _ => Err(DialectError::malformed(path, "a text or a list of parts")),
    }
}

fn read_part(value: Value, path: String) -> Result<ContentPart, DialectError> {
    if let Value::String(text) = value {
        return Ok(ContentPart::Text(TextPart { text, ..TextPart::default() }));
    }
    let mut fields = ChatFields::of(path, value)?;
    let kind = fields.required_text("type")?;
    match kind.as_str() {
        "text" => {
            let text = fields.required_text("text")?;
            let (cache, signature) = (take_cache(&mut fields), take_signature(&mut fields));
            Ok(ContentPart::Text(TextPart { text, cache, signature, extra: fields.into_extra() }))
        }
        "refusal" => {
            let text = fields.required_text("refusal")?;
            let extra = fields.into_extra().spelled(REFUSAL_PART);
            Ok(ContentPart::Refusal(TextPart { text, extra, ..TextPart::default() }))
        }
        "image_url" => read_image(fields),
        "input_audio" => read_audio(fields),
        "audio_url" if fields.get("audio_url").is_some_and(|url| url["url"].is_string()) => read_audio_url(fields),
        "file" if fields.get("file").is_some_and(is_known_file) => read_file(fields),
        "thinking" if reasoning::is_thinking(&fields) => Ok(reasoning::read_thinking(fields)),
        _ => {
            fields.put("type", Value::String(kind));
            Ok(ContentPart::Foreign { from: Dialect::Chat, part: Value::Object(fields.into_map()) })
        }
    }
}

pub(super) fn take_cache(fields: &mut ChatFields) -> Option<CacheControl> {
    fields.take("cache_control").map(|value| CacheControl { value })
}

pub(super) fn put_cache(map: &mut Map<String, Value>, cache: Option<&CacheControl>) {
    put_some(map, "cache_control", cache.map(|cache| cache.value.clone()));
}

/// Reads an image. A data URI of another media type is a file, and so is the URL of a PDF.
pub(super) fn read_image(mut fields: ChatFields) -> Result<ContentPart, DialectError> {
    let cache = take_cache(&mut fields);
    let mut image = match fields.take("image_url") {
        Some(Value::String(url)) => ChatFields::of(fields.path_of("image_url"), json!({ "url": url }))?,
        Some(image) => ChatFields::of(fields.path_of("image_url"), image)?,
        None => return Err(DialectError::malformed(fields.path_of("image_url"), "an object")),
    };
    let url = image.required_text("url")?;
    let detail = image.text("detail")?.map(|detail| match detail.as_str() {
        "auto" => ImageDetail::Auto,
        "low" => ImageDetail::Low,
        "high" => ImageDetail::High,
        _ => ImageDetail::Other(detail),
    });
    fields.put_rest("image_url", image);
    let extra = fields.into_extra();
    match source_of(url) {
        MediaSource::Base64 { media_type, data } if !media_type.starts_with("image/") => {
            let source = MediaSource::Base64 { media_type, data };
            Ok(ContentPart::File(FilePart { source, name: None, cache, extra }))
        }
        MediaSource::Url(url) if is_document(&url) => {
            let (source, extra) = (MediaSource::Url(url), extra.spelled(DOCUMENT_AS_IMAGE));
            Ok(ContentPart::File(FilePart { source, name: None, cache, extra }))
        }
        source => Ok(ContentPart::Image { source, detail, cache, extra }),
    }
}

/// Returns whether a URL leads to a PDF, by the end of its path.
pub(super) fn is_document(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_remote = path.starts_with("https://") || path.starts_with("http://");
    is_remote && path.len() >= 4 && path.as_bytes()[path.len() - 4..].eq_ignore_ascii_case(b".pdf")
}

/// Splits a data URI in base64. Parameters of the media type are left out.
pub(super) fn source_of(url: String) -> MediaSource {
    match parse_data_url(&url) {
        Some((media_type, data)) => MediaSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() },
        None => MediaSource::Url(url),
    }
}

fn read_audio(mut fields: ChatFields) -> Result<ContentPart, DialectError> {
    let cache = take_cache(&mut fields);
    let path = fields.path_of("input_audio");
    let mut audio = fields.object("input_audio")?.ok_or_else(|| DialectError::malformed(path, "an object"))?;
    let data = audio.required_text("data")?;
    let media_type = match audio.required_text("format")?.as_str() {
        "mp3" => "audio/mpeg".to_owned(),
        format => format!("audio/{format}"),
    };
    fields.put_rest("input_audio", audio);
    let source = MediaSource::Base64 { media_type, data };
    Ok(ContentPart::Audio { source, cache, extra: fields.into_extra() })
}

fn read_audio_url(mut fields: ChatFields) -> Result<ContentPart, DialectError> {
    let cache = take_cache(&mut fields);
    let path = fields.path_of("audio_url");
    let mut audio = fields.object("audio_url")?.ok_or_else(|| DialectError::malformed(path, "an object"))?;
    let source = source_of(audio.required_text("url")?);
    fields.put_rest("audio_url", audio);
    Ok(ContentPart::Audio { source, cache, extra: fields.into_extra().spelled("audio_url") })
}

fn is_known_file(file: &Value) -> bool {
    file["file_id"].is_string() != file["file_data"].is_string()
}

fn read_file(mut fields: ChatFields) -> Result<ContentPart, DialectError> {
    let cache = take_cache(&mut fields);
    let path = fields.path_of("file");
    let mut file = fields.object("file")?.ok_or_else(|| DialectError::malformed(path, "an object"))?;
    let name = file.text("filename")?;
    let (source, spelling) = match file.text("file_id")? {
        Some(id) => (MediaSource::FileId(id), FILE_PART),
        None => match source_of(file.required_text("file_data")?) {
            MediaSource::Url(url) if url.contains("://") || url.starts_with("data:") => {
                (MediaSource::Url(url), FILE_URL)
            }
            MediaSource::Url(data) => {
                let media_type = media_type_of(name.as_deref().unwrap_or_default()).to_owned();
                (MediaSource::Base64 { media_type, data }, BARE_DATA)
            }
            source => (source, FILE_PART),
        },
    };
    fields.put_rest("file", file);
    let extra = fields.into_extra().spelled(spelling);
    Ok(ContentPart::File(FilePart { source, name, cache, extra }))
}

fn media_type_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
        Some("pdf") => "application/pdf",
        Some("txt") => "text/plain",
        Some("md") => "text/markdown",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        _ => MEDIA_TYPE_UNKNOWN,
    }
}

/// Makes the name of a file without one, since OpenAI requires it.
pub(super) fn file_name(media_type: &str) -> String {
    let subtype = bare_media_type(media_type).rsplit('/').next().unwrap_or_default();
    format!("file.{}", if subtype == "plain" { "txt" } else { subtype })
}

/// Writes the content of a message: no parts as null, a lone plain text as a text, others as a list.
pub(super) fn write_content(parts: &[&ContentPart], path: &str) -> Result<Value, DialectError> {
    match parts {
        [] => Ok(Value::Null),
        [ContentPart::Text(text)] if is_plain(text) => Ok(Value::String(text.text.clone())),
        _ => {
            let write = |(at, part): (usize, &&ContentPart)| write_part(part, &format!("{path}[{at}]"));
            parts.iter().enumerate().map(write).collect::<Result<_, _>>().map(Value::Array)
        }
    }
}

fn is_plain(text: &TextPart) -> bool {
    text.cache.is_none() && text.signature.is_none() && text.extra.for_dialect(Dialect::Chat).is_none()
}

/// Returns whether a refusal is written into the content. Others are a member of the message.
pub(super) fn is_content_refusal(refusal: &TextPart) -> bool {
    refusal.extra.spelling() == Some(REFUSAL_PART)
}

fn write_part(part: &ContentPart, path: &str) -> Result<Value, DialectError> {
    match part {
        ContentPart::Text(text) => {
            let mut map = object("text", "text", Value::String(text.text.clone()));
            put_signature(&mut map, text.signature.as_ref());
            Ok(finished(map, text.cache.as_ref(), &text.extra))
        }
        ContentPart::Refusal(refusal) => {
            let map = object("refusal", "refusal", Value::String(refusal.text.clone()));
            Ok(finished(map, refusal.cache.as_ref(), &refusal.extra))
        }
        ContentPart::Image { source, detail, cache, extra } => {
            let url = url_of(source)
                .ok_or_else(|| DialectError::unsupported(path, "an image that is neither a URL nor base64"))?;
            let mut image = Map::new();
            image.insert("url".to_owned(), Value::String(url));
            put_some(&mut image, "detail", detail.as_ref().map(detail_name));
            Ok(finished(object("image_url", "image_url", Value::Object(image)), cache.as_ref(), extra))
        }
        ContentPart::Audio { source, cache, extra } => {
            Ok(finished(write_audio(source, extra.spelling(), path)?, cache.as_ref(), extra))
        }
        ContentPart::File(file) => write_file(file, path),
        ContentPart::Foreign { from: Dialect::Chat, part } => Ok(part.clone()),
        ContentPart::Reasoning(part) if reasoning::is_spelled_thinking(part) => Ok(reasoning::write_thinking(part)),
        ContentPart::Foreign { part, .. } => {
            let kind = part["type"].as_str().unwrap_or("unknown");
            Err(DialectError::unsupported(path, format!("a part of the type {kind:?}")))
        }
        ContentPart::ToolCall(_) => Err(DialectError::unsupported(path, "a tool call outside of an answer")),
        ContentPart::ToolResult(_) => Err(DialectError::unsupported(path, "a tool result within content")),
        ContentPart::Reasoning(_) => Err(DialectError::unsupported(path, "reasoning outside of an answer")),
    }
}

fn object(kind: &str, name: &str, value: Value) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("type".to_owned(), Value::String(kind.to_owned()));
    map.insert(name.to_owned(), value);
    map
}

fn finished(
    mut map: Map<String, Value>,
    cache: Option<&CacheControl>,
    extra: &assay_node_dialects::form::Extra,
) -> Value {
    put_cache(&mut map, cache);
    put_extra(&mut map, extra);
    Value::Object(map)
}

fn detail_name(detail: &ImageDetail) -> &str {
    match detail {
        ImageDetail::Auto => "auto",
        ImageDetail::Low => "low",
        ImageDetail::High => "high",
        ImageDetail::Other(other) => other,
    }
}

/// Returns the URL or data URI of a source that is either.
pub(super) fn url_of(source: &MediaSource) -> Option<String> {
    match source {
        MediaSource::Url(url) => Some(url.clone()),
        MediaSource::Base64 { media_type, data } => Some(data_url(media_type, data)),
        MediaSource::FileId(_) | MediaSource::Text(_) => None,
    }
}

fn write_audio(source: &MediaSource, spelling: Option<&str>, path: &str) -> Result<Map<String, Value>, DialectError> {
    if spelling == Some("audio_url")
        && let Some(url) = url_of(source)
    {
        return Ok(object("audio_url", "audio_url", json!({ "url": url })));
    }
    let MediaSource::Base64 { media_type, data } = source else {
        return Err(DialectError::unsupported(path, "a sound that is not base64"));
    };
    let format = match bare_media_type(media_type) {
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        "audio/x-wav" | "audio/wave" => Some("wav"),
        other => other.strip_prefix("audio/"),
    };
    let format =
        format.ok_or_else(|| DialectError::unsupported(path, format!("a sound of the type {media_type:?}")))?;
    Ok(object("input_audio", "input_audio", json!({ "data": data, "format": format })))
}

fn write_file(part: &FilePart, path: &str) -> Result<Value, DialectError> {
    let mut file = Map::new();
    put_some(&mut file, "filename", part.name.clone());
    let spelling = part.extra.spelling();
    match &part.source {
        MediaSource::FileId(id) => file.insert("file_id".to_owned(), Value::String(id.clone())),
        MediaSource::Base64 { data, .. } if spelling == Some(BARE_DATA) => {
            file.insert("file_data".to_owned(), Value::String(data.clone()))
        }
        MediaSource::Base64 { media_type, data } => {
            let uri = data_url(media_type, data);
            if spelling != Some(FILE_PART) {
                file.entry("filename").or_insert_with(|| Value::String(file_name(media_type)));
            }
            file.insert("file_data".to_owned(), Value::String(uri))
        }
        MediaSource::Url(url) if spelling == Some(FILE_URL) => {
            file.insert("file_data".to_owned(), Value::String(url.clone()))
        }
        MediaSource::Url(url) if spelling == Some(DOCUMENT_AS_IMAGE) => {
            let map = object("image_url", "image_url", json!({ "url": url }));
            return Ok(finished(map, part.cache.as_ref(), &part.extra));
        }
        MediaSource::Url(_) => return Err(DialectError::unsupported(path, "the URL of a file")),
        MediaSource::Text(text) => {
            let map = object("text", "text", Value::String(text.clone()));
            return Ok(finished(map, part.cache.as_ref(), &part.extra));
        }
    };
    Ok(finished(object("file", "file", Value::Object(file)), part.cache.as_ref(), &part.extra))
}

/// Writes an image of the list `images`; nothing if it has no URL.
pub(super) fn write_listed_image(part: &ContentPart) -> Option<Value> {
    write_part(part, "images").ok()
}
