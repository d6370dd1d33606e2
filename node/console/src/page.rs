//! Responses with the page and its assets, and their security headers.

use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_headers::OwnCaching;
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Bytes, Data, HttpRequest, HttpResponse, HttpResponseBuilder, StatusCode, header};

use crate::assets::{INDEX, PackedFile, content_type, read_from};

/// Content security policy of the page, which only permits its own origin.
pub const POLICY: &str = concat!(
    "default-src 'none'; ",
    "script-src 'self'; ",
    "style-src 'self'; ",
    "img-src 'self' blob:; ",
    "media-src 'self' blob:; ",
    "font-src 'self'; ",
    "connect-src 'self'; ",
    "worker-src 'self'; ",
    "frame-src blob:; ",
    "base-uri 'none'; ",
    "form-action 'none'; ",
    "frame-ancestors 'none'; ",
    "require-trusted-types-for 'script'; ",
    "trusted-types assay-worker; ",
    "report-uri /console/csp",
);
/// Permissions policy that disables the browser features that the console does not use.
const PERMISSIONS: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(), \
    fullscreen=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), \
    picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), \
    xr-spatial-tracking=()";
/// Caching of assets, whose names contain their hashes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Caching of the page, which browsers revalidate with its entity tag.
const ASK_AGAIN: &str = "no-cache";
const YEAR: &str = "max-age=31536000";

/// Handles `GET /app` and every path below it that is not an asset.
///
/// All these paths serve the same page, which selects its screen by the address.
pub async fn page(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    answer(&edge, &request, INDEX, ASK_AGAIN)
}

/// Handles `GET /app/assets/{name}`.
pub async fn asset(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let name = request.match_info().get("path").unwrap_or_default();
    answer(&edge, &request, &format!("assets/{name}"), FOR_EVER)
}

fn answer(edge: &Edge, request: &HttpRequest, path: &str, caching: &str) -> HandlerResult {
    let config = &edge.console.config;
    if !config.enabled {
        return Err(Refusal::new(
            ErrorKind::NotFound,
            "this server does not serve the console: `console.enabled` is false",
        ));
    }
    let missing = || Refusal::new(ErrorKind::NotFound, format!("the console has no file {path}"));
    if let Some(folder) = &config.dir {
        let content = read_from(folder, path).ok_or_else(missing)?;
        return Ok(finished(dressed(edge, path, ASK_AGAIN), content.into()));
    }
    let file = PackedFile::find(path).ok_or_else(missing)?;
    let text = |name: header::HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let mut response = dressed(edge, path, caching);
    response.insert_header((header::ETAG, file.tag)).insert_header((header::VARY, "Accept-Encoding"));
    if text(header::IF_NONE_MATCH).is_some_and(|known| knows(known, file.tag)) {
        response.status(StatusCode::NOT_MODIFIED);
        return Ok(finished(response, Bytes::new()));
    }
    if text(header::ACCEPT_ENCODING).is_some_and(takes_gzip) {
        response.insert_header((header::CONTENT_ENCODING, "gzip"));
        return Ok(finished(response, Bytes::from_static(file.gzip)));
    }
    let content = file.unpacked().map_err(|error| Refusal::internal(format!("{path} does not unpack: {error}")))?;
    Ok(finished(response, content.into()))
}

/// Starts a response with the headers that all files of the console have.
fn dressed(edge: &Edge, path: &str, caching: &str) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::CONTENT_TYPE, content_type(path)))
        .insert_header((header::CACHE_CONTROL, caching))
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::REFERRER_POLICY, "same-origin"))
        .insert_header(("cross-origin-opener-policy", "same-origin"))
        .insert_header(("cross-origin-resource-policy", "same-origin"))
        .insert_header(("permissions-policy", PERMISSIONS));
    if edge.config.tls.is_some() {
        response.insert_header((header::STRICT_TRANSPORT_SECURITY, YEAR));
    }
    response
}

fn finished(mut response: HttpResponseBuilder, content: Bytes) -> HttpResponse {
    let mut response = response.body(content);
    response.extensions_mut().insert(OwnCaching);
    response
}

/// Returns whether `If-None-Match` contains the tag, also as a weak tag, which compressing proxies produce.
fn knows(known: &str, tag: &str) -> bool {
    known.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == tag || one == "*")
}

fn takes_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| matches!(part.strip_prefix("q="), Some("0" | "0.0" | "0.00" | "0.000")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for accepted in ["gzip", "br, gzip;q=0.5", "deflate, GZIP"] {
            assert!(takes_gzip(accepted), "{accepted}");
        }
        for other in ["", "br", "gzip;q=0", "x-gzip", "br, gzip; q=0.0"] {
            assert!(!takes_gzip(other), "{other}");
        }
    }

    #[test]
    fn a_known_tag_is_found_in_a_list() {
        assert!(
            knows("\"a\"", "\"a\"")
                && knows("W/\"a\"", "\"a\"")
                && knows("\"b\", \"a\"", "\"a\"")
                && knows("*", "\"a\"")
        );
        assert!(!knows("\"b\"", "\"a\"") && !knows("a", "\"a\""));
    }
}
