//! Fetching of media by URL, for model servers that do not fetch media themselves (1.12).

use std::collections::BTreeMap;
use std::time::Duration;

use assay_node_dialects::Dialect;
use assay_node_dialects::form::{ContentPart, MediaSource, ModelRequest};
use assay_node_egress::{EgressClient, EgressOptions, EgressPurpose, EgressUrl, HeaderMap, MediaResponse};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tokio::time::timeout;
use uuid::Uuid;

use super::conversation::UnwrittenConversation;
use crate::error::GatewayError;
use crate::translation::UpstreamFormat;

/// Upper bound of the bytes of one image, sound or file.
const MEDIA_BYTES_MAX: usize = 20 << 20;
/// Upper bound of the bytes of one image for Anthropic's models, which have this limit themselves.
const ANTHROPIC_IMAGE_BYTES_MAX: usize = 5 << 20;
/// Upper bound of the bytes of all fetched media of a request.
const ALL_MEDIA_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the distinct URLs in one request.
const MEDIA_MAX: usize = 64;
/// Upper bound of the concurrent fetches for one request.
const FETCHES_MAX: usize = 4;
/// Time limit for all media of a request.
const ALL_MEDIA_TIME_MAX: Duration = Duration::from_secs(60);
/// Levels of nested parts. Tool results have parts, which have no parts themselves.
const DEPTH_MAX: usize = 2;

/// Prefixes of URLs that Gemini servers read themselves: stored files and videos.
const GEMINI_URLS: [&str; 4] = [
    "https://generativelanguage.googleapis.com/",
    "https://www.youtube.com/",
    "https://youtube.com/",
    "https://youtu.be/",
];

/// Media types by the first bytes of a file, which are more reliable than the server's header.
const SIGNATURES: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
];

/// Media fetched for a call, by URL. Later attempts reuse them.
#[derive(Debug, Default)]
pub(crate) struct RemoteMedia(BTreeMap<String, FetchedMedia>);

#[derive(Debug)]
struct FetchedMedia {
    media_type: String,
    bytes: usize,
    /// Content in base64.
    data: String,
}

/// Requirements of a part for its media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MediaWish {
    /// Prefix of the accepted types, or empty for any type.
    kind: &'static str,
    bytes_max: usize,
}

impl RemoteMedia {
    /// Replaces URLs in a request by their content, unless the server fetches them itself.
    pub async fn fill(
        &mut self,
        egress: &EgressClient,
        organization: Uuid,
        conversation: &mut UnwrittenConversation,
    ) -> Result<(), GatewayError> {
        let (client, server) = (conversation.client, conversation.server);
        if !needs_bytes(client, server) {
            return Ok(());
        }
        let mut wanted: BTreeMap<String, MediaWish> = BTreeMap::new();
        let mut uses: BTreeMap<String, usize> = BTreeMap::new();
        visit(&mut conversation.request, &mut |part| {
            if let Some((source, wish)) = remote(part, server) {
                *uses.entry(source.clone()).or_default() += 1;
                // The first part with a URL determines its requirements.
                wanted.entry(source.clone()).or_insert(wish);
            }
        });
        if wanted.len() > MEDIA_MAX {
            return Err(GatewayError::invalid(format!("a request may have at most {MEDIA_MAX} URLs of media")));
        }
        timeout(ALL_MEDIA_TIME_MAX, self.fetch_missing(egress, organization, &wanted))
            .await
            .unwrap_or_else(|_| Err(refused("the media of the request cannot be fetched in time".to_owned())))?;
        wanted.iter().try_for_each(|(url, wish)| check(url, &self.0[url], *wish))?;
        // Each part gets a copy of the content of its URL.
        let copied = uses.iter().map(|(url, count)| self.0[url].bytes.saturating_mul(*count));
        if copied.fold(0, usize::saturating_add) > ALL_MEDIA_BYTES_MAX {
            return Err(too_large("the media of the request together have", ALL_MEDIA_BYTES_MAX));
        }
        visit(&mut conversation.request, &mut |part| {
            if let Some((source, _)) = remote(part, server)
                && let Some(media) = self.0.get(source)
            {
                let (media_type, data) = (media.media_type.clone(), media.data.clone());
                set_source(part, MediaSource::Base64 { media_type, data });
            }
        });
        Ok(())
    }
}

impl RemoteMedia {
    /// Fetches the missing media, as long as the total size is within its bound.
    async fn fetch_missing(
        &mut self,
        egress: &EgressClient,
        organization: Uuid,
        wanted: &BTreeMap<String, MediaWish>,
    ) -> Result<(), GatewayError> {
        let mut all: usize = wanted.keys().filter_map(|url| Some(self.0.get(url)?.bytes)).sum();
        let missing: Vec<_> = wanted.iter().filter(|(url, _)| !self.0.contains_key(*url)).collect();
        // The futures are boxed, so that the whole call is `Send`.
        let mut fetches: Vec<BoxFuture<'_, Result<(&String, FetchedMedia), GatewayError>>> = Vec::new();
        for (url, wish) in missing {
            fetches.push(async move { Ok((url, fetch(egress, organization, url, *wish).await?)) }.boxed());
        }
        let mut fetches = futures::stream::iter(fetches).buffer_unordered(FETCHES_MAX);
        while let Some(fetched) = fetches.next().await {
            let (url, media) = fetched?;
            all += media.bytes;
            if all > ALL_MEDIA_BYTES_MAX {
                return Err(too_large("the media of the request together have", ALL_MEDIA_BYTES_MAX));
            }
            self.0.insert(url.clone(), media);
        }
        Ok(())
    }
}

/// Returns whether requests to a server must contain the media instead of URLs.
///
/// The servers of Anthropic and Google receive the URLs of clients in their own format unmodified.
fn needs_bytes(client: Dialect, server: UpstreamFormat) -> bool {
    match server {
        UpstreamFormat::Client(Dialect::Chat | Dialect::Responses) => false,
        UpstreamFormat::Client(own) => own != client,
        UpstreamFormat::Converse | UpstreamFormat::BedrockAnthropic | UpstreamFormat::VertexAnthropic => true,
    }
}

/// Calls a function for all parts, including those in tool results.
fn visit(request: &mut ModelRequest, with: &mut dyn FnMut(&mut ContentPart)) {
    for message in &mut request.messages {
        visit_parts(&mut message.parts, DEPTH_MAX, with);
    }
}

fn visit_parts(parts: &mut [ContentPart], depth: usize, with: &mut dyn FnMut(&mut ContentPart)) {
    for part in parts {
        match part {
            ContentPart::ToolResult(result) if depth > 1 => visit_parts(&mut result.content, depth - 1, with),
            part => with(part),
        }
    }
}

/// Returns the URL of a part that must be fetched, with its requirements.
fn remote(part: &ContentPart, server: UpstreamFormat) -> Option<(&String, MediaWish)> {
    let (source, kind) = match part {
        ContentPart::Image { source, .. } => (source, "image/"),
        ContentPart::Audio { source, .. } => (source, "audio/"),
        ContentPart::File(file) => (&file.source, ""),
        _ => return None,
    };
    let MediaSource::Url(url) = source else { return None };
    let is_remote = url.starts_with("https://") || url.starts_with("http://");
    let is_gemini = server == UpstreamFormat::Client(Dialect::Gemini);
    if !is_remote || is_gemini && GEMINI_URLS.iter().any(|begin| url.starts_with(begin)) {
        return None;
    }
    let is_anthropic = server.dialect() == Some(Dialect::Anthropic);
    let bytes_max = if is_anthropic && kind == "image/" { ANTHROPIC_IMAGE_BYTES_MAX } else { MEDIA_BYTES_MAX };
    Some((url, MediaWish { kind, bytes_max }))
}

fn set_source(part: &mut ContentPart, new: MediaSource) {
    match part {
        ContentPart::Image { source, .. } | ContentPart::Audio { source, .. } => *source = new,
        ContentPart::File(file) => file.source = new,
        _ => {}
    }
}

async fn fetch(
    egress: &EgressClient,
    organization: Uuid,
    url: &str,
    wish: MediaWish,
) -> Result<FetchedMedia, GatewayError> {
    let shown = shown(url);
    let parsed: EgressUrl = url.parse().map_err(|error| refused(format!("the URL `{shown}`: {error}")))?;
    let mut options = EgressOptions::new(EgressPurpose::Media, organization);
    options.response_bytes_max = wish.bytes_max as u64;
    let response = egress.fetch_media(parsed, HeaderMap::new(), &options).await.map_err(|error| {
        tracing::warn!(reason = error.operator_reason(), "media of a request cannot be fetched");
        refused(format!("the media at `{shown}` cannot be fetched: {error}"))
    })?;
    if !response.status.is_success() {
        let status = response.status.as_u16();
        return Err(refused(format!("the media at `{shown}` cannot be fetched: the server answered with {status}")));
    }
    let media_type = media_type(&response);
    let media_type = media_type.ok_or_else(|| refused(format!("the type of the media at `{shown}` is not known")))?;
    Ok(FetchedMedia { media_type, bytes: response.body.len(), data: BASE64.encode(&response.body) })
}

fn check(url: &str, media: &FetchedMedia, wish: MediaWish) -> Result<(), GatewayError> {
    let shown = shown(url);
    if !media.media_type.starts_with(wish.kind) {
        let (found, kind) = (&media.media_type, wish.kind.trim_end_matches('/'));
        return Err(refused(format!("the media at `{shown}` are of the type {found}, and the request says {kind}")));
    }
    if media.bytes > wish.bytes_max {
        return Err(too_large(&format!("the media at `{shown}` have"), wish.bytes_max));
    }
    Ok(())
}

fn too_large(what: &str, bytes_max: usize) -> GatewayError {
    GatewayError::new(400, "invalid_request", format!("{what} more than {} MiB", bytes_max >> 20))
}

fn refused(why: String) -> GatewayError {
    GatewayError::invalid(why)
}

/// Returns the start of a URL without its query, which may contain a signature.
fn shown(url: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 200;
    url.split(['?', '#']).next().unwrap_or_default().chars().take(SHOWN_CHARS_MAX).collect()
}

fn media_type(response: &MediaResponse) -> Option<String> {
    let body = &response.body;
    let known = SIGNATURES.iter().find(|(begin, _)| body.starts_with(begin)).map(|(_, media_type)| *media_type);
    let webp = || (body.starts_with(b"RIFF") && body.get(8..12) == Some(b"WEBP")).then_some("image/webp");
    if let Some(known) = known.or_else(webp) {
        return Some(known.to_owned());
    }
    let said = response.headers.get("content-type")?.to_str().ok()?;
    let said = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    (said.contains('/') && said != "application/octet-stream").then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(url: &str) -> ContentPart {
        ContentPart::Image {
            source: MediaSource::Url(url.to_owned()),
            detail: None,
            cache: None,
            extra: Default::default(),
        }
    }

    #[test]
    fn urls_are_fetched_for_servers_that_do_not_fetch() {
        let gemini = UpstreamFormat::Client(Dialect::Gemini);
        let anthropic = UpstreamFormat::Client(Dialect::Anthropic);
        for (client, server, expected) in [
            (Dialect::Chat, UpstreamFormat::Client(Dialect::Responses), false),
            (Dialect::Anthropic, UpstreamFormat::Client(Dialect::Chat), false),
            (Dialect::Chat, anthropic, true),
            (Dialect::Anthropic, anthropic, false),
            (Dialect::Anthropic, UpstreamFormat::BedrockAnthropic, true),
            (Dialect::Chat, gemini, true),
            (Dialect::Gemini, gemini, false),
            (Dialect::Chat, UpstreamFormat::Converse, true),
        ] {
            assert_eq!(needs_bytes(client, server), expected, "{client:?} to {server:?}");
        }
        let wish = |url: &str, server| remote(&image(url), server).map(|(_, wish)| wish.bytes_max);
        assert_eq!(wish("https://a/b.png", anthropic), Some(ANTHROPIC_IMAGE_BYTES_MAX));
        assert_eq!(wish("https://a/b.png", gemini), Some(MEDIA_BYTES_MAX));
        assert_eq!(wish("https://youtu.be/x", gemini), None);
        assert_eq!(wish("data:image/png;base64,AA==", anthropic), None);
        assert_eq!(wish("s3://bucket/a.png", UpstreamFormat::Converse), None);
    }

    #[test]
    fn queries_of_urls_are_not_shown() {
        assert_eq!(shown("https://a/b?X-Signature=secret"), "https://a/b");
    }
}
