//! Reader of request bodies, which applies size limits and a minimum rate and parses each body once.
//!
//! The content type that a header claims plays no role.
//!
//! ```text
//! claimed length -> budget -> [ bytes come: limit, pace ] -> depth, values, rows counted -> budget -> parsed once -> handler
//!      413           429                     413    408          400    413     413          429         400
//! ```
//! A body waits in its socket until the budget for bodies has room for it. It then waits as bytes until the budget for
//! parsed bodies has room, because a parsed body takes several times as much memory. Waiting time does not count
//! against the minimum rate.

mod gzip;

use std::marker::PhantomData;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::{Version, header};
use actix_web::web::Payload;
use assay_node_limits::{Budget, Holder, Reservation};
use assay_storage_model::command::ROWS_PER_WRITE_MAX;
use assay_storage_model::event::{self, Counted, counted_within};
use bytes::{Bytes, BytesMut};
use futures::stream::{Stream, StreamExt, TryStreamExt, try_unfold};
use serde::de::DeserializeSeed;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout, timeout_at};

use crate::grpc::GrpcMessage;
use crate::requests::admission::Applicant;
use crate::requests::background::{INLINE_BYTES_MAX, in_background};
use crate::requests::pace::Pace;
use crate::responses::refusal::{ErrorKind, Refusal};
use crate::server::edge::Edge;
use crate::server::metrics::ServerMetrics;

/// Number of levels around a row in a body, at most: `{"experiment": {"<id>": {"events": [row]}}}`.
const LEVELS_AROUND_ROWS: usize = 4;
const DEPTH_MAX: usize = event::DEPTH_MAX + LEVELS_AROUND_ROWS;

/// Upper bound of the values in one body.
///
/// Each parsed value takes about a hundred bytes. A request with the maximum number of rows and all their fields has
/// half as many values.
const VALUES_MAX: usize = 2_000_000;
/// Estimated memory of a value besides its text: its place in a list or map, and the map.
const VALUE_BYTES: usize = 100;
/// Upper bound of the rows in one body, over all its objects.
///
/// A single object accepts fewer rows at a time. The bound only affects bodies with rows of a few bytes.
pub const ROWS_MAX: usize = 50_000;
/// Estimated memory of a row besides its values: its lists, its ids, and those of its writes.
const ROW_BYTES: usize = 1 << 10;

/// Ratio of the memory of decoded spans to the size of their export.
const DECODED_TIMES: usize = 4;

/// Upper bound of the rows of a body that a worker parses on its own thread.
///
/// Parsing may be expensive even for a small body: it converts items of feedback into rows.
const INLINE_ROWS_MAX: usize = 256;

/// Upper bound of the memory allocated before the first bytes arrive. Claiming a large length costs a sender nothing.
const CLAIM_BYTES_MAX: usize = 64 << 10;
/// Upper bound of the buffer that is allocated for a claimed length after the first [`CLAIM_BYTES_MAX`] bytes.
const CLAIM_BELIEVED_BYTES_MAX: usize = 1 << 20;

/// Only supported compression of bodies.
const GZIP: &[u8] = b"gzip";

/// Position of the rows in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsAt {
    /// The body has no rows.
    Nowhere,
    /// A list, as in `{"events": [row]}`.
    List,
    /// Lists by object, as in `{"experiment": {"<id>": {"events": [row]}}}`.
    ListsByObject,
}

impl RowsAt {
    /// Returns the level of a row, where the body is at level 1. Level 0 means that there are no rows.
    fn level(self) -> usize {
        match self {
            RowsAt::Nowhere => 0,
            RowsAt::List => 3,
            RowsAt::ListsByObject => LEVELS_AROUND_ROWS + 1,
        }
    }
}

/// Large body after its values were counted.
enum CountedBody<T, P> {
    /// Parsed immediately, while its bytes were in the processor's caches.
    Parsed(T, Reservation),
    /// Unparsed, because it must wait for `memory` bytes of the budget.
    Waits { bytes: Bytes, parse: P, memory: u64 },
}

async fn count_and_parse<T, P>(
    bytes: Bytes,
    rows: RowsAt,
    parse: P,
    (budget, holder): (Budget, Holder),
) -> Result<CountedBody<T, P>, Refusal>
where
    T: Send + 'static,
    P: FnOnce(&[u8]) -> Result<T, Refusal> + Send + 'static,
{
    in_background(move || {
        let memory = memory_of(&bytes, rows)?.bytes as u64;
        Ok(match budget.try_acquire(holder, memory.min(budget.largest())) {
            Some(tree) => CountedBody::Parsed(parse(&bytes)?, tree),
            None => CountedBody::Waits { bytes, parse, memory },
        })
    })
    .await
}

/// Estimated memory of a parsed body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyMemory {
    pub bytes: usize,
    rows: usize,
}

impl BodyMemory {
    fn is_small(&self, body: &[u8]) -> bool {
        body.len() <= INLINE_BYTES_MAX && self.rows <= INLINE_ROWS_MAX
    }
}

/// Complete body. Dropping it releases its reservation.
#[derive(Debug)]
pub struct Body {
    pub bytes: Bytes,
    held: Reservation,
    who: Applicant,
    parsed: Budget,
}

/// Parsed body, with the reservations that it keeps until the request ends.
#[derive(Debug)]
pub struct Parsed<T> {
    pub value: T,
    held: Reservation,
    who: Applicant,
    parsed: Budget,
    _tree: Reservation,
}

pub async fn read(
    edge: &Edge,
    who: &Applicant,
    request: &HttpRequest,
    payload: Payload,
    bytes_max: usize,
) -> Result<Body, Refusal> {
    refuse_encoded(request)?;
    read_whole(edge, who, request, payload, bytes_max).await
}

/// Reads a body that may be compressed. The limit applies to the received and to the decompressed bytes.
pub async fn read_packed(
    edge: &Edge,
    who: &Applicant,
    request: &HttpRequest,
    payload: Payload,
    bytes_max: usize,
) -> Result<Body, Refusal> {
    let encoding = request.headers().get(header::CONTENT_ENCODING).map(|value| value.as_bytes().trim_ascii());
    if !encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case(GZIP)) {
        return read(edge, who, request, payload, bytes_max).await;
    }
    read_whole(edge, who, request, payload, bytes_max).await?.unpacked(&edge.budgets.bodies, bytes_max).await
}

/// Reads the message of a gRPC call, under the rules of [`read_packed`].
pub async fn read_message(
    edge: &Edge,
    who: &Applicant,
    mut call: GrpcMessage,
    encoding: &[u8],
    bytes_max: usize,
) -> Result<Body, Refusal> {
    let head = timeout(edge.config.body_grace(), call.head()).await.map_err(|_| {
        ServerMetrics::add(&edge.counts.slow_bodies, 1);
        too_slow(0, &Pace::of(&edge.config))
    })?;
    let head = head.map_err(|why| Refusal::bad(why.to_string()))?;
    if head.is_packed && encoding != GZIP {
        let why = "the message is compressed, but `grpc-encoding` is not `gzip`: send it uncompressed, or use gzip";
        return Err(Refusal::new(ErrorKind::UnsupportedEncoding, why));
    }
    let pieces = call.pieces(head).map_err(|why| Refusal::bad(why.to_string()));
    let body = taken_in(edge, who, Some(u64::from(head.bytes)), std::pin::pin!(pieces), bytes_max).await?;
    if head.is_packed { body.unpacked(&edge.budgets.bodies, bytes_max).await } else { Ok(body) }
}

async fn read_whole(
    edge: &Edge,
    who: &Applicant,
    request: &HttpRequest,
    payload: Payload,
    bytes_max: usize,
) -> Result<Body, Refusal> {
    let pieces = payload.map_err(|error| broken(&error));
    taken_in(edge, who, announced_length(request), pieces, bytes_max).await
}

async fn taken_in(
    edge: &Edge,
    who: &Applicant,
    claimed: Option<u64>,
    mut pieces: impl Stream<Item = Result<Bytes, Refusal>> + Unpin,
    bytes_max: usize,
) -> Result<Body, Refusal> {
    let too_large = || Refusal::new(ErrorKind::TooLarge, format!("the body is larger than {bytes_max} bytes"));
    if claimed.is_some_and(|claimed| claimed > bytes_max as u64) {
        return Err(too_large());
    }
    let budget = &edge.budgets.bodies;
    let mut held = who.reserve(budget, claimed.unwrap_or(STEP_BYTES_MIN)).await?;
    let claimed = claimed.map_or(0, |claimed| usize::try_from(claimed).unwrap_or(0).min(CLAIM_BELIEVED_BYTES_MAX));
    let mut bytes = BytesMut::with_capacity(claimed.min(CLAIM_BYTES_MAX));
    let (mut began, pace) = (Instant::now(), Pace::of(&edge.config));
    loop {
        let due = began + pace.due(bytes.len() as u64);
        let Ok(more) = timeout_at(due, pieces.next()).await else {
            ServerMetrics::add(&edge.counts.slow_bodies, 1);
            return Err(too_slow(bytes.len(), &pace));
        };
        let Some(more) = more else { break };
        let more = more?;
        let whole = bytes.len() + more.len();
        if whole > bytes_max {
            return Err(too_large());
        }
        if whole as u64 > held.amount() && held.amount() < budget.largest() {
            let (waiting, has) = (Instant::now(), held.amount());
            let step = has.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX).max(whole as u64 - has);
            who.grow(budget, &mut held, step.min(bytes_max as u64 - has)).await?;
            began += waiting.elapsed();
        }
        if whole > bytes.capacity() {
            bytes.reserve(claimed.saturating_sub(bytes.len()).max(more.len()));
        }
        bytes.extend_from_slice(&more);
    }
    held.shrink(held.amount().saturating_sub(bytes.len() as u64));
    ServerMetrics::add(&edge.counts.body_bytes, bytes.len() as u64);
    Ok(Body::kept(edge, who.clone(), bytes.freeze(), held))
}

/// Smallest step in which a body of unknown length enlarges its reservation.
const STEP_BYTES_MIN: u64 = 64 << 10;
const STEP_BYTES_MAX: u64 = 1 << 20;

/// Upper bound of the reservation of an upload, which covers the pieces that wait for the disk.
const PIECES_HELD_BYTES: u64 = 3 << 20;

/// Returns a body piece by piece.
///
/// The minimum rate of bodies applies, but no time limit for the whole. The stream holds an upload slot, and a part of
/// the budget for bodies for the pieces that wait for the disk. It checks only an announced length against `bytes_max`.
pub async fn pieces<'e>(
    edge: &'e Edge,
    who: Applicant,
    request: &HttpRequest,
    payload: Payload,
    bytes_max: u64,
) -> Result<impl Stream<Item = Result<Bytes, Refusal>> + use<'e>, Refusal> {
    if announced_length(request).is_some_and(|claimed| claimed > bytes_max) {
        return Err(Refusal::new(ErrorKind::TooLarge, format!("the file has more than {bytes_max} bytes")));
    }
    let slot = who.reserve(&edge.budgets.uploads, 1).await?;
    let held = who.reserve(&edge.budgets.bodies, 0).await?;
    let pace = Pace { whole: Duration::MAX, ..Pace::of(&edge.config) };
    let state = (payload, who, slot, held, Instant::now(), 0_u64);
    Ok(try_unfold(state, move |(mut payload, who, slot, mut held, mut began, received)| async move {
        // The sender is not responsible for the time that the disk took for the last piece.
        let left = pace.due(received).saturating_sub(began.elapsed()).max(edge.config.body_grace());
        let Ok(more) = timeout(left, payload.next()).await else {
            ServerMetrics::add(&edge.counts.slow_bodies, 1);
            return Err(too_slow(usize::try_from(received).unwrap_or(usize::MAX), &pace));
        };
        let Some(more) = more else { return Ok(None) };
        let more = more.map_err(|error| broken(&error))?;
        let waiting = Instant::now();
        let by = (more.len() as u64).min(PIECES_HELD_BYTES.saturating_sub(held.amount()));
        who.grow_again(&edge.budgets.bodies, &mut held, by).await?;
        began += waiting.elapsed();
        ServerMetrics::add(&edge.counts.body_bytes, more.len() as u64);
        let received = received + more.len() as u64;
        Ok(Some((more, (payload, who, slot, held, began, received))))
    }))
}

/// Refuses a compressed body, which would otherwise be read as if it were uncompressed.
pub fn refuse_encoded(request: &HttpRequest) -> Result<(), Refusal> {
    let Some(encoding) = request.headers().get(header::CONTENT_ENCODING) else { return Ok(()) };
    let text = encoding.as_bytes().trim_ascii();
    if text.is_empty() || text.eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let why = "compressed bodies are not supported here: leave out `Content-Encoding`, or send `identity`";
    Err(Refusal::new(ErrorKind::UnsupportedEncoding, why))
}

/// Returns the announced length of a body, or `None` if its length is unknown in advance.
pub fn announced_length(request: &HttpRequest) -> Option<u64> {
    let headers = request.headers();
    match headers.get(header::CONTENT_LENGTH) {
        Some(length) => length.to_str().ok()?.trim().parse().ok(),
        None if request.version() <= Version::HTTP_11 && !headers.contains_key(header::TRANSFER_ENCODING) => Some(0),
        None => None,
    }
}

fn too_slow(received: usize, pace: &Pace) -> Refusal {
    let (whole, grace, rate) = (pace.whole.as_secs(), pace.grace.as_secs(), pace.bytes_per_second_min);
    Refusal::new(
        ErrorKind::TooSlow,
        format!(
            "the body arrived too slowly ({received} bytes so far). It must be complete within {whole} s, and after \
             {grace} s arrive with at least {rate} bytes a second"
        ),
    )
}

fn broken(error: &PayloadError) -> Refusal {
    Refusal::bad(format!("the body is incomplete or has invalid HTTP framing: {error}"))
}

impl Body {
    /// Creates a body from bytes in memory.
    pub fn kept(edge: &Edge, who: Applicant, bytes: Bytes, held: Reservation) -> Body {
        Body { bytes, held, who, parsed: edge.budgets.parsed.clone() }
    }

    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    pub async fn json(self) -> Result<Parsed<Value>, Refusal> {
        self.parsed(RowsAt::Nowhere, parse).await
    }

    pub async fn parsed<T, P>(self, rows: RowsAt, parse: P) -> Result<Parsed<T>, Refusal>
    where
        T: Send + 'static,
        P: FnOnce(&[u8]) -> Result<T, Refusal> + Send + 'static,
    {
        let Body { bytes, held, who, parsed } = self;
        let (value, tree) = if bytes.len() <= INLINE_BYTES_MAX {
            let memory = memory_of(&bytes, rows)?;
            let tree = who.reserve(&parsed, memory.bytes as u64).await?;
            let is_small = memory.is_small(&bytes);
            (if is_small { parse(&bytes)? } else { in_background(move || parse(&bytes)).await? }, tree)
        } else {
            match count_and_parse(bytes, rows, parse, (parsed.clone(), who.holder)).await? {
                CountedBody::Parsed(value, tree) => (value, tree),
                CountedBody::Waits { bytes, parse, memory } => {
                    let tree = who.reserve(&parsed, memory).await?;
                    (in_background(move || parse(&bytes)).await?, tree)
                }
            }
        };
        Ok(Parsed { value, held, who, parsed, _tree: tree })
    }

    /// Decodes a body in another format than JSON. The decoder itself must bound the number of values.
    pub async fn decoded<T, P>(self, decode: P) -> Result<Parsed<T>, Refusal>
    where
        T: Send + 'static,
        P: FnOnce(&[u8]) -> Result<T, Refusal> + Send + 'static,
    {
        let Body { bytes, held, who, parsed } = self;
        let tree = who.reserve(&parsed, bytes.len().saturating_mul(DECODED_TIMES) as u64).await?;
        let value = if bytes.len() <= INLINE_BYTES_MAX {
            decode(&bytes)?
        } else {
            in_background(move || decode(&bytes)).await?
        };
        Ok(Parsed { value, held, who, parsed, _tree: tree })
    }

    /// Parses a small body as a JSON object, and releases its reservations.
    pub async fn object(self) -> Result<Map<String, Value>, Refusal> {
        object(self.json().await?.value)
    }
}

impl<T> Parsed<T> {
    /// Returns the reserved memory of the bytes and of the value.
    pub fn reserved_bytes(&self) -> u64 {
        self.held.amount().saturating_add(self._tree.amount())
    }

    /// Decodes the same bytes again, after dropping the earlier value and its reservation.
    pub async fn decoded_again<D, P>(self, bytes: Bytes, decode: P) -> Result<Parsed<D>, Refusal>
    where
        D: Send + 'static,
        P: FnOnce(&[u8]) -> Result<D, Refusal> + Send + 'static,
    {
        let Parsed { value, held, who, parsed, _tree: tree } = self;
        drop((value, tree));
        Body { bytes, held, who, parsed }.decoded(decode).await
    }
}

/// Estimates the memory of a parsed body. It also refuses deep nesting, because the parser recurses.
pub fn memory_of(bytes: &[u8], rows: RowsAt) -> Result<BodyMemory, Refusal> {
    let counted = counted_within(bytes, DEPTH_MAX, rows.level());
    let Counted { values, objects: rows } = counted.map_err(|deep| Refusal::bad(format!("the body is {deep}")))?;
    if values > VALUES_MAX {
        let why = format!("the body has about {values} values; the maximum of one request is {VALUES_MAX}");
        return Err(Refusal::new(ErrorKind::TooLarge, why));
    }
    if rows > ROWS_MAX {
        return Err(too_many_rows(rows));
    }
    Ok(BodyMemory { bytes: bytes.len() + values * VALUE_BYTES + rows * ROW_BYTES, rows })
}

/// Refuses a request with more than [`ROWS_MAX`] rows.
pub fn too_many_rows(rows: usize) -> Refusal {
    let why = format!(
        "the body has about {rows} rows; the maximum of one request is {ROWS_MAX} rows, and {ROWS_PER_WRITE_MAX} of \
         one object. Send the rest in another request"
    );
    Refusal::new(ErrorKind::TooLarge, why)
}

pub fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    parse_as(bytes, PhantomData)
}

/// Parses the whole body with a seed.
pub fn parse_as<'b, S: DeserializeSeed<'b>>(bytes: &'b [u8], seed: S) -> Result<S::Value, Refusal> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::bad("the body is empty; it should be a JSON object"));
    }
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let parsed = seed.deserialize(&mut from).and_then(|parsed| from.end().map(|()| parsed));
    parsed.map_err(|error| Refusal::bad(format!("the body is not valid JSON: {error}")))
}

pub fn no_object(found: &Value) -> Refusal {
    Refusal::bad(format!("the body is {}; it should be a JSON object", crate::requests::error_texts::kind_of(found)))
}

pub fn object(value: Value) -> Result<Map<String, Value>, Refusal> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(no_object(&other)),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use assay_node_limits::Refusals;
    use futures::FutureExt;

    use super::*;
    use crate::requests::wait::{REQUEST_WAIT, Wait};

    #[track_caller]
    fn refused(text: &[u8], part: &str) {
        let refusal = memory_of(text, RowsAt::Nowhere).and_then(|_| parse(text)).expect_err(part);
        assert_eq!(refusal.kind, ErrorKind::BadRequest);
        assert!(refusal.message.contains(part), "{}", refusal.message);
    }

    /// Returns a body that is refused because of its depth.
    fn deep_body(bytes: usize, budget: &Budget) -> Body {
        let bytes = Bytes::from("[".repeat(bytes));
        let held = budget.try_acquire(Holder::ANONYMOUS, 1).expect("memory is free");
        let who = Applicant { holder: Holder::ANONYMOUS, wait: Wait::new(Instant::now() + REQUEST_WAIT) };
        Body { bytes, held, who, parsed: budget.clone() }
    }

    #[actix_web::test]
    async fn a_large_body_is_counted_in_the_background() {
        let budget = Budget::new("test", 1 << 20, &Refusals::default());
        let small = deep_body(INLINE_BYTES_MAX, &budget).json();
        let counted = pin!(small).now_or_never().expect("a small body is counted at once");
        assert!(counted.is_err_and(|refusal| refusal.message.contains("deep")));
        let mut large = pin!(deep_body(INLINE_BYTES_MAX + 1, &budget).json());
        assert!(large.as_mut().now_or_never().is_none(), "the thread of the worker does something else meanwhile");
        assert!(large.await.is_err_and(|refusal| refusal.message.contains("deep")));
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
    fn small_values_take_memory_of_their_own_and_are_bounded() {
        let memory = |text: &str| memory_of(text.as_bytes(), RowsAt::Nowhere);
        assert_eq!(memory("[1,[],{}]").ok(), Some(BodyMemory { bytes: 9 + 6 * VALUE_BYTES, rows: 0 }));
        let refusal = memory(&format!("[{}0]", "0,".repeat(VALUES_MAX))).expect_err("too many");
        assert_eq!(refusal.kind, ErrorKind::TooLarge);
    }

    /// Guards against a low estimate for many tiny rows: ten thousand counted as 2 MB took 28 MB.
    #[test]
    fn small_rows_take_memory_of_their_own_and_are_bounded() {
        let one = |rows: usize| format!("{{\"events\":[{}{{}}]}}", "{},".repeat(rows - 1));
        let by_object = |rows: usize| format!("{{\"dataset\":{{\"x\":{}}}}}", one(rows));
        for (text, at) in [(one(10_000), RowsAt::List), (by_object(10_000), RowsAt::ListsByObject)] {
            let memory = memory_of(text.as_bytes(), at).expect("memory is free");
            assert!(memory.rows == 10_000 && memory.bytes > 10_000 * ROW_BYTES, "{memory:?}");
            assert!(!memory.is_small(text.as_bytes()), "its rows are made on a thread of their own");
        }
        assert!(memory_of(one(ROWS_MAX).as_bytes(), RowsAt::List).is_ok());
        let refusal = memory_of(one(999_000).as_bytes(), RowsAt::List).expect_err("too many");
        assert_eq!(refusal.kind, ErrorKind::TooLarge);
        assert!(
            refusal.message.contains("about 999000 rows; the maximum of one request is 50000"),
            "{}",
            refusal.message
        );
        assert!(memory_of(by_object(ROWS_MAX + 1).as_bytes(), RowsAt::ListsByObject).is_err());
        assert!(memory_of(one(ROWS_MAX + 1).as_bytes(), RowsAt::Nowhere).is_ok(), "what is no row is no row");
    }

    /// Guards against parser features that treat these keys specially and replace their values.
    #[test]
    fn no_key_is_more_than_data() {
        for key in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
            for value in ["\"[[1]]\"", "\"1\"", "1", "{}"] {
                let text = format!("{{\"a\":{{\"{key}\":{value}}}}}");
                assert_eq!(parse(text.as_bytes()).expect("JSON").to_string(), text);
            }
        }
    }

    #[test]
    fn a_body_that_is_no_object_is_named() {
        let refusal = object(parse(b"[1]").expect("JSON")).expect_err("no object");
        assert_eq!(refusal.message, "the body is an array; it should be a JSON object");
    }
}
