//! Signature Version 4.
//!
//! ```text
//! canonical request  =  method, path, query, headers, names of headers, hash of the body
//! signature          =  HMAC of its hash, with a key derived from secret, day, region and service
//! ```

use std::collections::BTreeMap;

use ring::{digest, hmac};

use super::AwsCredentials;
use crate::CredentialError;
use crate::encoding::{hex, percent_encoded};
use crate::times::amz_date;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// Upper bound of the headers of a request.
const HEADERS_MAX: usize = 256;
/// Headers that proxies change, or that belong to a connection. Sorted.
const NOT_SIGNED: [&str; 15] = [
    "authorization",
    "baggage",
    "connection",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-amzn-trace-id",
];
/// Headers that a signature sets.
const DATE: &str = "x-amz-date";
const TOKEN: &str = "x-amz-security-token";
/// Hash of the body that the caller computed.
const CONTENT_HASH: &str = "x-amz-content-sha256";

/// Request to sign.
#[derive(Clone, Copy)]
pub struct AwsRequest<'a> {
    pub method: &'a str,
    /// Path and query are percent-encoded, as they are sent.
    pub url: &'a str,
    /// All headers that must not change on the way. More may be sent.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

impl std::fmt::Debug for AwsRequest<'_> {
    /// Shows neither values of headers nor the body.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("AwsRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Region and service that a signature is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigningScope<'a> {
    pub region: &'a str,
    pub service: &'a str,
}

/// Returns the headers to add to a request: `x-amz-date`, `x-amz-security-token` for temporary keys, and `authorization`.
/// The header `host` is signed as HTTP clients send it.
pub fn signature_headers(
    request: &AwsRequest<'_>,
    credentials: &AwsCredentials,
    scope: &SigningScope<'_>,
    now_ms: i64,
) -> Result<Vec<(String, String)>, CredentialError> {
    let problem = |problem| CredentialError::Signature { problem };
    let time = amz_date(now_ms).ok_or_else(|| problem("the time has no year of four digits"))?;
    let url = SplitUrl::of(request.url).ok_or_else(|| problem("its URL is no address"))?;
    if request.headers.len() > HEADERS_MAX {
        return Err(problem("it has too many headers"));
    }
    let mut added = vec![(DATE.to_owned(), time.clone())];
    let token = credentials.session_token.as_ref();
    added.extend(token.map(|token| (TOKEN.to_owned(), token.reveal().to_owned())));
    let headers = canonical_headers(request, &url, &added);
    let names = headers.keys().map(String::as_str).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let body_hash = headers.get(CONTENT_HASH).cloned().unwrap_or_else(|| sha256(request.body));
    let (method, path, query) = (request.method.to_ascii_uppercase(), canonical_path(url.path), url.canonical_query());
    let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body_hash}");
    let scoped = format!("{}/{}/{}/aws4_request", &time[..8], scope.region, scope.service);
    let to_sign = format!("{ALGORITHM}\n{time}\n{scoped}\n{}", sha256(canonical.as_bytes()));
    let mut key = hmac_sha256(format!("AWS4{}", credentials.secret_access_key.reveal()).as_bytes(), &time[..8]);
    for part in [scope.region, scope.service, "aws4_request"] {
        key = hmac_sha256(key.as_ref(), part);
    }
    let signature = hex(hmac_sha256(key.as_ref(), &to_sign).as_ref());
    let id = &credentials.access_key_id;
    let authorization = format!("{ALGORITHM} Credential={id}/{scoped}, SignedHeaders={names}, Signature={signature}");
    added.push(("authorization".to_owned(), authorization));
    Ok(added)
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac_sha256(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// Names in lower case with values whose white space is single. Values of one name are joined.
fn canonical_headers(
    request: &AwsRequest<'_>,
    url: &SplitUrl<'_>,
    added: &[(String, String)],
) -> BTreeMap<String, String> {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in request.headers {
        let name = name.trim().to_ascii_lowercase();
        if NOT_SIGNED.binary_search(&name.as_str()).is_ok() || added.iter().any(|(other, _)| *other == name) {
            continue;
        }
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        match headers.get_mut(&name) {
            Some(values) => {
                values.push(',');
                values.push_str(&value);
            }
            None => {
                headers.insert(name, value);
            }
        }
    }
    headers.extend(added.iter().cloned());
    headers.entry("host".to_owned()).or_insert_with(|| url.host());
    headers
}

/// Path without empty and dot segments, percent-encoded once more: all services but S3 want that.
fn canonical_path(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    percent_encoded(&format!("/{}{end}", kept.join("/")), b"/")
}

/// Parts of an address.
struct SplitUrl<'a> {
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    query: &'a str,
}

impl SplitUrl<'_> {
    fn of(url: &str) -> Option<SplitUrl<'_>> {
        let (scheme, rest) = url.split_once("://")?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = address.split_at(address.find('/').unwrap_or(address.len()));
        (!authority.is_empty() && !authority.contains('@')).then_some(SplitUrl { scheme, authority, path, query })
    }

    /// Host in lower case, with the port unless it is the usual one.
    fn host(&self) -> String {
        let host = self.authority.to_ascii_lowercase();
        let usual = if self.scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
        host.strip_suffix(usual).map_or(host.clone(), str::to_owned)
    }

    /// Parameters in the order of their names, then of their values.
    fn canonical_query(&self) -> String {
        if self.query.is_empty() {
            return String::new();
        }
        let mut pairs: Vec<_> = self.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).collect();
        pairs.sort_unstable();
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }
}
