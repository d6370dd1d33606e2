//! Reading a body: by content and never by what a header calls it, within limits, at a pace, and parsed once.
//!
//! ```text
//! claimed length -> [ bytes come: limit, budget, pace ] -> depth counted -> parsed once -> handler
//!      413               413      429     408                 400             400
//! ```

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::web::{self, Payload};
use assay_storage_model::event::{self, depth_within};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout_at};

use crate::budget::Held;
use crate::counts::Counts;
use crate::edge::Edge;
use crate::pace::Pace;
use crate::refusal::{Kind, Refusal};

/// A row stands at most this deep in a body: `{"experiment": {"<id>": {"events": [row]}}}`.
const LEVELS_AROUND_ROWS: usize = 4;
const DEPTH_MAX: usize = event::DEPTH_MAX + LEVELS_AROUND_ROWS;

/// Larger bodies are parsed on a thread of their own: others on this worker would wait for over a millisecond.
const PARSE_INLINE_BYTES_MAX: usize = 128 << 10;

/// Room made before the first bytes came, whatever length was claimed: a claim costs its sender nothing.
const CLAIM_BYTES_MAX: usize = 64 << 10;

/// A body that came whole. What it takes of the budget it gives back when it is dropped.
#[derive(Debug)]
pub struct Body {
    pub bytes: Bytes,
    held: Held,
}

/// A body as JSON, holding its part of the budget until the request ends.
#[derive(Debug)]
pub struct Json {
    pub value: Value,
    _held: Held,
}

pub async fn read(edge: &Edge, request: &HttpRequest, mut payload: Payload, bytes_max: usize) -> Result<Body, Refusal> {
    refuse_encoded(request)?;
    let too_large = || Refusal::new(Kind::TooLarge, format!("the body is larger than {bytes_max} bytes"));
    let claimed = claimed_length(request);
    if claimed.is_some_and(|claimed| claimed > bytes_max as u64) {
        return Err(too_large());
    }
    let room = claimed.map_or(0, |claimed| usize::try_from(claimed).unwrap_or(0).min(CLAIM_BYTES_MAX));
    let (mut bytes, mut held) = (BytesMut::with_capacity(room), edge.bodies.hold());
    let (began, pace) = (Instant::now(), Pace::of(&edge.config));
    loop {
        let due = began + pace.due(bytes.len() as u64);
        let Ok(more) = timeout_at(due, payload.next()).await else {
            Counts::add(&edge.counts.slow_bodies, 1);
            return Err(too_slow(bytes.len(), &pace));
        };
        let Some(more) = more else { break };
        let more = more.map_err(|error| broken(&error))?;
        if bytes.len() + more.len() > bytes_max {
            return Err(too_large());
        }
        if !held.grow(more.len()) {
            return Err(Refusal::new(Kind::Busy, "too many request bodies are being worked on; try again in a moment"));
        }
        bytes.extend_from_slice(&more);
    }
    Counts::add(&edge.counts.body_bytes, bytes.len() as u64);
    Ok(Body { bytes: bytes.freeze(), held })
}

/// No client that is served compresses what it sends; a body that says so must not be read as if it had not.
fn refuse_encoded(request: &HttpRequest) -> Result<(), Refusal> {
    let Some(encoding) = request.headers().get(header::CONTENT_ENCODING) else { return Ok(()) };
    let text = encoding.to_str().unwrap_or_default().trim();
    if text.is_empty() || text.eq_ignore_ascii_case("identity") {
        return Ok(());
    }
    let why = "bodies are taken as they are: leave out `Content-Encoding`, or send `identity`";
    Err(Refusal::new(Kind::UnsupportedEncoding, why))
}

fn claimed_length(request: &HttpRequest) -> Option<u64> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn too_slow(received: usize, pace: &Pace) -> Refusal {
    let (whole, grace, rate) = (pace.whole.as_secs(), pace.grace.as_secs(), pace.bytes_per_second_min);
    Refusal::new(
        Kind::TooSlow,
        format!(
            "the body came too slowly ({received} bytes so far): it must be whole within {whole} s, and after {grace} s \
             come with at least {rate} bytes a second"
        ),
    )
}

fn broken(error: &PayloadError) -> Refusal {
    Refusal::bad(format!("the body broke off or is not framed as HTTP: {error}"))
}

impl Body {
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    pub async fn json(self) -> Result<Json, Refusal> {
        let Body { bytes, held } = self;
        let value = if bytes.len() <= PARSE_INLINE_BYTES_MAX {
            parse(&bytes)?
        } else {
            web::block(move || parse(&bytes)).await.map_err(Refusal::internal)??
        };
        Ok(Json { value, _held: held })
    }

    /// For small bodies whose request holds nothing else.
    pub async fn object(self) -> Result<Map<String, Value>, Refusal> {
        object(self.json().await?.value)
    }
}

/// Depth first: the parser recurses.
fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::bad("the body is empty; it should be a JSON object"));
    }
    depth_within(bytes, DEPTH_MAX).map_err(|deep| Refusal::bad(format!("the body is {deep}")))?;
    serde_json::from_slice(bytes).map_err(|error| Refusal::bad(format!("the body is not valid JSON: {error}")))
}

pub fn object(value: Value) -> Result<Map<String, Value>, Refusal> {
    match value {
        Value::Object(object) => Ok(object),
        other => {
            Err(Refusal::bad(format!("the body is {}; it should be a JSON object", crate::shapes::kind_of(&other))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &[u8], part: &str) {
        let refusal = parse(text).expect_err(part);
        assert_eq!(refusal.kind, Kind::BadRequest);
        assert!(refusal.message.contains(part), "{}", refusal.message);
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        refused(b"", "is empty");
        refused(b" \n", "is empty");
        refused(b"{\"a\": }", "line 1 column 7");
        refused(b"{\"a\": 1} x", "trailing characters");
        refused(b"{\"a\": 1e400}", "number out of range");
        refused(b"{\"a\": \"\xff\"}", "invalid unicode");
        refused(b"{\"a\": \"\\ud800\"}", "not valid JSON");
        refused(b"{\"a\": NaN}", "not valid JSON");
        refused(b"{\"a", "EOF");
    }

    #[test]
    fn depth_is_counted_before_anything_is_parsed() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert!(parse(&nested(DEPTH_MAX)).is_ok());
        refused(&nested(DEPTH_MAX + 1), "nested deeper than 68 levels");
        refused(&vec![b'['; 10_000], "nested deeper");
        refused(&"{\"a\":".repeat(10_000).into_bytes(), "nested deeper");
    }

    #[test]
    fn a_body_that_is_no_object_is_named() {
        let refusal = object(parse(b"[1]").expect("JSON")).expect_err("no object");
        assert_eq!(refusal.message, "the body is an array; it should be a JSON object");
    }
}
