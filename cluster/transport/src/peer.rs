//! Peer at one address: its two lanes, and the calls and streams over them.

use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};
use tonic::Streaming;

use crate::call::{ByteStream, Call, CallError, Lane};
use crate::call_headers::Form;
use crate::connection::{Connection, ExchangePermit, NoAnswer, next_frame, only_frame};
use crate::frame::{Frame, check_size};
use crate::lane::{Dialer, LaneConnection};
use crate::peer_counters::{PeerCounts, Traffic};
use crate::reachability::Path;
use crate::refusal::{Refusal, RefusalCode};

/// Number of attempts. A connection can turn out to be closed before the request is written, so a second one is tried.
const ATTEMPTS: usize = 2;

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: String,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) path: Path,
    control: Arc<LaneConnection>,
    bulk: Arc<LaneConnection>,
}

impl Peer {
    pub(crate) fn new(dialer: &Arc<Dialer>, node: NodeId, address: String, traffic: Arc<Traffic>) -> Arc<Peer> {
        let lane = || LaneConnection::new(Arc::clone(dialer), node, address.clone(), Arc::clone(&traffic));
        Arc::new(Peer { control: lane(), bulk: lane(), address, traffic, path: Path::default() })
    }

    pub(crate) fn counts(&self) -> PeerCounts {
        self.traffic.read(self.control.is_up() || self.bulk.is_up())
    }

    fn lane(&self, lane: Lane) -> &Arc<LaneConnection> {
        match lane {
            Lane::Control => &self.control,
            Lane::Bulk => &self.bulk,
        }
    }

    /// Returns when the peer has answered a greeting. A silent connection stays open for longer than a ping may take.
    pub(crate) async fn ping(&self, ends: Instant) -> Result<(), CallError> {
        let connection = timeout_at(ends, self.control.connection()).await;
        let connection = connection.map_err(|_| CallError::NotReached("no connection in time".into()))??;
        let greeted = timeout_at(ends, connection.greet(ends)).await;
        Ok(greeted.map_err(|_| CallError::NotReached("no response to a greeting in time".into()))??)
    }

    pub(crate) async fn call(&self, call: &Call, ends: Instant) -> Result<Bytes, CallError> {
        let begun = OpenExchange::new(self, call, ends, Form::Call).await?;
        match only_frame(begun.frames, ends).await.map_err(lost)? {
            Frame::Body(body) => Ok(body),
            frame => Err(not_a_body(frame)),
        }
    }

    /// Opens a stream and returns with the first chunk, so that a refusal is an error of the opening.
    pub(crate) async fn stream(&self, call: &Call, ends: Instant) -> Result<ByteStream, CallError> {
        let mut begun = OpenExchange::new(self, call, ends, Form::Stream).await?;
        let within = call.within();
        let Some(first) = next_chunk(&mut begun.frames, within).await? else {
            return Ok(stream::empty().boxed());
        };
        let traffic = Arc::clone(&self.traffic);
        let rest = stream::unfold(Some(begun), move |begun| {
            let traffic = Arc::clone(&traffic);
            async move {
                let mut begun = begun?;
                match next_chunk(&mut begun.frames, within).await {
                    Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(begun))),
                    Err(error) => {
                        traffic.failed();
                        Some((Err(error), None))
                    }
                }
            }
        });
        Ok(stream::iter([Ok(first)]).chain(rest).boxed())
    }
}

/// Request that was sent and whose response has begun.
struct OpenExchange {
    frames: Streaming<Frame>,
    // Both are held until the response is complete. The permit bounds the calls in flight, and the handle keeps the
    // connection open.
    _place: ExchangePermit,
    _connection: Connection,
}

impl OpenExchange {
    async fn new(peer: &Peer, call: &Call, ends: Instant, form: Form) -> Result<OpenExchange, CallError> {
        check_size(&call.body).map_err(|why| CallError::Refused(Refusal::new(RefusalCode::BadRequest, why)))?;
        let too_late = |what: &str| CallError::NotReached(format!("{what} in {} ms", call.within().as_millis()));
        let mut gone = String::new();
        for _ in 0..ATTEMPTS {
            let connection = timeout_at(ends, peer.lane(call.lane).connection()).await;
            let connection = connection.map_err(|_| too_late("no connection"))??;
            let place = timeout_at(ends, connection.place(form, call.body.len()))
                .await
                .map_err(|_| too_late("no free place"))?;
            let left = ends.duration_since(Instant::now());
            if left.is_zero() {
                return Err(too_late("not sent"));
            }
            // The time limit of a stream applies to each chunk, so the time for the connection does not shorten later
            // ones.
            let within = if form == Form::Stream { call.within() } else { left };
            let frame = Frame::Body(call.body.clone());
            let request = connection.request(form, call.service, (call.address, call.processes), within, frame);
            let request = request.map_err(CallError::Refused)?;
            match timeout_at(ends, connection.send(request)).await {
                Ok(Ok(frames)) => return Ok(OpenExchange { frames, _place: place, _connection: connection }),
                Ok(Err(NoAnswer::NotSent(why))) => gone = why,
                Ok(Err(NoAnswer::Lost(why))) => return Err(CallError::Lost(why)),
                Err(_) => return Err(no_answer(call.within())),
            }
        }
        Err(CallError::NotReached(gone))
    }
}

/// Returns the next chunk, or `None` at the end that the other side declared.
async fn next_chunk(frames: &mut Streaming<Frame>, within: Duration) -> Result<Option<Bytes>, CallError> {
    let next = timeout_at(Instant::now() + within, next_frame(frames)).await;
    match next.map_err(|_| no_answer(within))?.map_err(lost)? {
        Frame::Body(chunk) => Ok(Some(chunk)),
        Frame::End => Ok(None),
        frame => Err(not_a_body(frame)),
    }
}

fn no_answer(within: Duration) -> CallError {
    CallError::Lost(format!("no response in {} ms", within.as_millis()))
}

fn lost(why: NoAnswer) -> CallError {
    match why {
        NoAnswer::NotSent(why) | NoAnswer::Lost(why) => CallError::Lost(why),
    }
}

/// Error of an unexpected kind of response, which leaves the outcome unknown.
fn not_a_body(frame: Frame) -> CallError {
    CallError::Refused(match frame {
        Frame::Refused(refusal) => refusal,
        frame => Refusal::new(RefusalCode::Unknown, format!("answered with {frame:?}")),
    })
}
