//! Images, sounds and files.

use serde_json::{Map, Value, json};

use crate::fields::{GeminiFields, put_back};
use assay_node_dialects::form::{ContentPart, Extra, FilePart, MediaSource};
use assay_node_dialects::{Dialect, DialectError, parse_data_url};

/// Spelling of a type of media that the form has no field for.
const MEDIA_TYPE: &str = "mimeType";
/// Spelling of a name of inline media, which only some routes of Gemini take.
const DISPLAY_NAME: &str = "displayName";

/// Reads a part with `inlineData` or `fileData`.
pub(super) fn read_media(mut part: GeminiFields) -> Result<ContentPart, DialectError> {
    if let Some(mut inline) = part.object("inlineData")? {
        let media_type = inline.text("mimeType")?.unwrap_or_default();
        let data = inline
            .text("data")?
            .ok_or_else(|| DialectError::malformed(inline.path_of("data"), "a string in base64"))?;
        let name = inline.text("displayName")?;
        inline.rest_into(&mut part, "inlineData");
        let mut extra = part.extra();
        if name.is_some() {
            extra = extra.with_field_spelling(Dialect::Gemini, DISPLAY_NAME, json!(true));
        }
        let kind = media_type.clone();
        let data = standard_base64(data);
        return Ok(media_part(&kind, MediaSource::Base64 { media_type, data }, name, extra));
    }
    let mut file =
        part.object("fileData")?.ok_or_else(|| DialectError::malformed(part.path_of("fileData"), "an object"))?;
    let media_type = file.text("mimeType")?;
    let uri =
        file.text("fileUri")?.ok_or_else(|| DialectError::malformed(file.path_of("fileUri"), "the URI of a file"))?;
    let name = file.text("displayName")?;
    file.rest_into(&mut part, "fileData");
    let mut extra = part.extra().with_field_spelling(Dialect::Gemini, MEDIA_TYPE, json!(media_type));
    if name.is_some() {
        extra = extra.with_field_spelling(Dialect::Gemini, DISPLAY_NAME, json!(true));
    }
    let source = if is_stored(&uri) { MediaSource::FileId(uri) } else { MediaSource::Url(uri) };
    Ok(media_part(media_type.as_deref().unwrap_or_default(), source, name, extra))
}

/// Returns base64 in the standard alphabet, with its padding. Google's clients write the alphabet for URLs, which other APIs
/// refuse.
fn standard_base64(mut data: String) -> String {
    if data.contains(['-', '_']) {
        data = data.replace('-', "+").replace('_', "/");
    }
    while !data.len().is_multiple_of(4) {
        data.push('=');
    }
    data
}

fn media_part(media_type: &str, source: MediaSource, name: Option<String>, extra: Extra) -> ContentPart {
    match media_type.split('/').next().unwrap_or_default() {
        // an image or a sound has no name in the form
        "image" if name.is_none() => ContentPart::Image { source, detail: None, cache: None, extra },
        "audio" if name.is_none() => ContentPart::Audio { source, cache: None, extra },
        _ => ContentPart::File(FilePart { source, name, cache: None, extra }),
    }
}

/// Whether a file is stored by Google, where other providers cannot read it.
fn is_stored(uri: &str) -> bool {
    let is_of_api = uri.strip_prefix("https://generativelanguage.googleapis.com/");
    uri.starts_with("gs://") || uri.starts_with("files/") || is_of_api.is_some_and(|path| path.contains("/files/"))
}

/// Writes media, or a text that is a document, as a part.
pub(crate) fn write_media_or_text(
    source: &MediaSource,
    name: Option<&str>,
    extra: &Extra,
    path: &str,
) -> Result<Map<String, Value>, DialectError> {
    match source {
        MediaSource::Text(text) => Ok(Map::from_iter([("text".to_owned(), json!(text))])),
        _ => write_media(source, name, extra, path),
    }
}

/// Writes media as a part with `inlineData` or `fileData`.
pub(crate) fn write_media(
    source: &MediaSource,
    name: Option<&str>,
    extra: &Extra,
    path: &str,
) -> Result<Map<String, Value>, DialectError> {
    let (field, mut media) = match source {
        MediaSource::Base64 { media_type, data } => ("inlineData", inline(media_type, data)),
        MediaSource::Url(url) if url.starts_with("data:") => {
            let (media_type, data) = parse_data_url(url)
                .ok_or_else(|| DialectError::unsupported(path, "a data URL that is not in base64"))?;
            ("inlineData", inline(media_type, &standard_base64(data.to_owned())))
        }
        MediaSource::Url(url) => ("fileData", file(url, extra)),
        MediaSource::FileId(id) if is_stored(id) => ("fileData", file(id, extra)),
        MediaSource::FileId(_) => {
            return Err(DialectError::unsupported(path, "a file that another provider stores"));
        }
        MediaSource::Text(_) => return Err(DialectError::unsupported(path, "a text as an image or a sound")),
    };
    if let Some(name) = name.filter(|_| extra.field_spelling(Dialect::Gemini, DISPLAY_NAME).is_some()) {
        media.insert("displayName".to_owned(), json!(name));
    }
    let mut part = Map::from_iter([(field.to_owned(), Value::Object(media))]);
    put_back(&mut part, extra);
    Ok(part)
}

fn inline(media_type: &str, data: &str) -> Map<String, Value> {
    let mut inline = Map::new();
    if !media_type.is_empty() {
        inline.insert("mimeType".to_owned(), json!(media_type));
    }
    inline.insert("data".to_owned(), json!(data));
    inline
}

fn file(uri: &str, extra: &Extra) -> Map<String, Value> {
    let mut file = Map::new();
    let media_type = match extra.field_spelling(Dialect::Gemini, MEDIA_TYPE) {
        // null where it was read without one
        Some(known) => known.as_str(),
        None => media_type_of(uri),
    };
    if let Some(media_type) = media_type {
        file.insert("mimeType".to_owned(), json!(media_type));
    }
    file.insert("fileUri".to_owned(), json!(uri));
    file
}

/// Media type that the end of a URL's path stands for.
fn media_type_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let (_, ending) = path.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "pdf" => "application/pdf",
        "txt" => "text/plain",
        "csv" => "text/csv",
        "html" => "text/html",
        "mp3" => "audio/mp3",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_for_urls_becomes_standard_base64() {
        for (sent, wanted) in [("-_-_", "+/+/"), ("YQ", "YQ=="), ("YQ==", "YQ=="), ("", ""), ("+/8=", "+/8=")] {
            assert_eq!(standard_base64(sent.into()), wanted, "{sent}");
        }
    }
}
