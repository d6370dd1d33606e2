//! Images, files, sounds and videos to blocks with their bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use assay_node_dialects::form::MediaSource;
use assay_node_dialects::{DialectError, bare_media_type, parse_data_url};

/// Upper bound of the letters of a document's name.
const NAME_CHARS_MAX: usize = 200;
/// Name of a document without one.
const NAME_DEFAULT: &str = "document";

/// Formats of images, by their media types.
const IMAGES: [(&str, &str); 5] =
    [("image/png", "png"), ("image/jpeg", "jpeg"), ("image/jpg", "jpeg"), ("image/gif", "gif"), ("image/webp", "webp")];
const SOUNDS: [(&str, &str); 12] = [
    ("audio/aac", "aac"),
    ("audio/flac", "flac"),
    ("audio/mp3", "mp3"),
    ("audio/mp4", "mp4"),
    ("audio/mpeg", "mp3"),
    ("audio/m4a", "m4a"),
    ("audio/ogg", "ogg"),
    ("audio/opus", "opus"),
    ("audio/pcm", "pcm"),
    ("audio/wav", "wav"),
    ("audio/webm", "webm"),
    ("audio/x-wav", "wav"),
];
const VIDEOS: [(&str, &str); 8] = [
    ("video/3gpp", "three_gp"),
    ("video/mp4", "mp4"),
    ("video/mpeg", "mpeg"),
    ("video/quicktime", "mov"),
    ("video/webm", "webm"),
    ("video/x-flv", "flv"),
    ("video/x-matroska", "mkv"),
    ("video/x-ms-wmv", "wmv"),
];
const DOCUMENTS: [(&str, &str); 8] = [
    ("application/msword", "doc"),
    ("application/pdf", "pdf"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/markdown", "md"),
];
/// Format of all other texts.
const PLAIN_TEXT: &str = "txt";

/// Returns the block of an image.
pub(super) fn image(source: &MediaSource, path: &str) -> Result<Value, DialectError> {
    let wanted = |media_type: &str| known(&IMAGES, media_type);
    let (format, source) = located(source, path, "an image", wanted)?;
    Ok(json!({"image": {"format": format, "source": source}}))
}

/// Returns the block of a sound.
pub(super) fn audio(source: &MediaSource, path: &str) -> Result<Value, DialectError> {
    let wanted = |media_type: &str| known(&SOUNDS, media_type);
    let (format, source) = located(source, path, "a sound", wanted)?;
    Ok(json!({"audio": {"format": format, "source": source}}))
}

/// Returns the block of a file, which depends on its media type. The name has been checked.
pub(super) fn file(source: &MediaSource, name: &str, path: &str) -> Result<Value, DialectError> {
    let media_type = media_type_of(source, path)?;
    if known(&IMAGES, &media_type).is_some() {
        return image(source, path);
    }
    if known(&SOUNDS, &media_type).is_some() {
        return audio(source, path);
    }
    if known(&VIDEOS, &media_type).is_some() {
        let (format, source) = located(source, path, "a video", |media_type| known(&VIDEOS, media_type))?;
        return Ok(json!({"video": {"format": format, "source": source}}));
    }
    let text = |media_type: &str| media_type.starts_with("text/") || media_type == "application/json";
    let wanted = |media_type: &str| known(&DOCUMENTS, media_type).or(text(media_type).then_some(PLAIN_TEXT));
    let (format, source) = located(source, path, "a file", wanted)?;
    Ok(json!({"document": {"format": format, "name": name, "source": source}}))
}

fn known(formats: &[(&str, &'static str)], media_type: &str) -> Option<&'static str> {
    formats.iter().find(|(known, _)| *known == media_type).map(|(_, format)| *format)
}

/// Returns the format and the source, if the API takes both.
fn located(
    source: &MediaSource,
    path: &str,
    what: &str,
    wanted: impl Fn(&str) -> Option<&'static str>,
) -> Result<(&'static str, Value), DialectError> {
    let media_type = media_type_of(source, path)?;
    let unknown = || DialectError::unsupported(path, format!("{what} of the type {media_type}"));
    let format = wanted(&media_type).ok_or_else(unknown)?;
    let source = match source {
        MediaSource::Base64 { data, .. } => json!({"bytes": data}),
        MediaSource::Text(text) => json!({"bytes": STANDARD.encode(text)}),
        MediaSource::Url(url) => match parse_data_url(url) {
            Some((_, data)) => json!({"bytes": data}),
            None => json!({"s3Location": {"uri": url}}),
        },
        MediaSource::FileId(_) => return Err(stored(path)),
    };
    Ok((format, source))
}

/// Returns the media type without its parameters. That of a file in S3 is known by its ending.
fn media_type_of(source: &MediaSource, path: &str) -> Result<String, DialectError> {
    let media_type = match source {
        MediaSource::Base64 { media_type, .. } => media_type.as_str(),
        MediaSource::Text(_) => "text/plain",
        MediaSource::FileId(_) => return Err(stored(path)),
        MediaSource::Url(url) if url.starts_with("s3://") => type_of_ending(url).ok_or_else(|| {
            DialectError::unsupported(path, "a file in S3 whose name does not end in a known format, such as `.png`,")
        })?,
        MediaSource::Url(url) if url.starts_with("data:") => match parse_data_url(url) {
            Some((media_type, _)) => media_type,
            None => return Err(DialectError::malformed(path, "a URL like data:image/png;base64,aGk=")),
        },
        MediaSource::Url(_) => return Err(DialectError::unsupported(path, "a URL other than `data:` and `s3:`")),
    };
    Ok(bare_media_type(media_type).to_ascii_lowercase())
}

fn stored(path: &str) -> DialectError {
    DialectError::unsupported(path, "a file stored by another provider")
}

fn type_of_ending(url: &str) -> Option<&'static str> {
    let (_, ending) = url.rsplit('/').next()?.rsplit_once('.')?;
    let ending = ending.to_ascii_lowercase();
    let ending = match ending.as_str() {
        "jpg" => "jpeg",
        "txt" => return Some("text/plain"),
        "3gp" => "three_gp",
        other => other,
    };
    // before sounds, as `.mp4` and `.webm` are mostly videos
    let formats = IMAGES.iter().chain(&DOCUMENTS).chain(&VIDEOS).chain(&SOUNDS);
    formats.into_iter().find(|(_, format)| *format == ending).map(|(media_type, _)| *media_type)
}

/// Returns a name with the characters that the API allows. The ending of a file is not part of it.
pub(super) fn document_name(name: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let mut allowed = String::with_capacity(stem.len());
    for letter in stem.chars().take(NAME_CHARS_MAX) {
        let letter = match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '(' | ')' | '[' | ']' => letter,
            letter if letter.is_whitespace() => ' ',
            _ => '-',
        };
        if letter != ' ' || !allowed.ends_with(' ') {
            allowed.push(letter);
        }
    }
    let allowed = allowed.trim();
    if allowed.is_empty() { NAME_DEFAULT.to_owned() } else { allowed.to_owned() }
}

/// Returns the media type of a format that an answer names.
pub(super) fn image_type(format: &str) -> String {
    format!("image/{format}")
}

pub(super) fn audio_type(format: &str) -> String {
    let known = SOUNDS.iter().find(|(_, known)| *known == format);
    known.map_or_else(|| format!("audio/{format}"), |(media_type, _)| (*media_type).to_owned())
}
