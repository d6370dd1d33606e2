//! Stream of the events of an evaluation for the client that started it.

use std::time::Duration;

use assay_node_evaluations::{EvalStreamEvent, EvalTaskProgress};
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::response_body::{Part, Sending};
use assay_node_http::web::{Bytes, HttpResponse, header};
use assay_node_invocations::PING;
use futures::{StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::answers;
use crate::handlers::EvalFollower;
use crate::jobs::EvalJobRecord;

/// Time without events after which a client receives a ping, which also shows that it is gone.
const PING_AFTER: Duration = Duration::from_secs(5);

/// Events of one evaluation. Dropping the stream before its end cancels the evaluation.
pub struct EvalStream {
    follower: EvalFollower,
    outputs: mpsc::Receiver<EvalTaskProgress>,
    state: StreamState,
    last: Instant,
}

/// State of a stream.
enum StreamState {
    Started(EvalStreamEvent),
    Running,
    /// These events come next, the last one first.
    Ending(Vec<EvalStreamEvent>),
}

impl EvalStream {
    /// Returns the response with the events.
    pub async fn respond(
        call: &Call,
        follower: EvalFollower,
        job: &EvalJobRecord,
        outputs: mpsc::Receiver<EvalTaskProgress>,
    ) -> HandlerResult {
        let start = EvalStreamEvent::Start(answers::stream_start(call, job).await?);
        let stream = EvalStream { follower, outputs, state: StreamState::Started(start), last: Instant::now() };
        let mut response = HttpResponse::Ok();
        response.insert_header((header::CONTENT_TYPE, "text/event-stream"));
        response.insert_header((header::CACHE_CONTROL, "no-cache"));
        response.insert_header(("x-accel-buffering", "no"));
        response.insert_header(("x-assay-eval-id", job.id.to_string()));
        let parts = stream::unfold(stream, async |mut stream| {
            let bytes = Bytes::from(stream.next().await?);
            Some((Ok(Part { bytes, reservation: None }), stream))
        });
        Ok(response.body(Sending::streamed(call, parts.boxed_local())))
    }

    /// Returns the next bytes, or `None` after the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            let next = match std::mem::replace(&mut self.state, StreamState::Running) {
                StreamState::Started(start) => Some(start.encode()),
                StreamState::Running => self.event().await,
                StreamState::Ending(mut events) => {
                    let event = events.pop()?;
                    self.state = StreamState::Ending(events);
                    Some(event.encode())
                }
            };
            if next.is_some() {
                self.last = Instant::now();
                return next;
            }
        }
    }

    /// Waits for an output, the end, or the time of a ping. Returns `None` when the end was found.
    async fn event(&mut self) -> Option<String> {
        loop {
            tokio::select! {
                biased;
                Some(output) = self.outputs.recv() => return Some(EvalStreamEvent::Progress(output).encode()),
                () = self.follower.wait() => {}
            }
            if let Some(last) = self.ended().await {
                self.state = StreamState::Ending(vec![EvalStreamEvent::Done, last]);
                return None;
            }
            if self.last.elapsed() >= PING_AFTER {
                return Some(PING.to_owned());
            }
        }
    }

    /// Returns the last event before the end, or `None` while the evaluation runs.
    async fn ended(&mut self) -> Option<EvalStreamEvent> {
        let ended = match self.follower.look() {
            Ok(None) => return None,
            Ok(Some(job)) => self.follower.final_answer(&job).await,
            Err(refusal) => Err(refusal),
        };
        Some(match ended {
            Ok(summary) => EvalStreamEvent::Summary(summary),
            Err(refusal) => EvalStreamEvent::Error(refusal.message),
        })
    }
}
