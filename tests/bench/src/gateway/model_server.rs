//! The scripted model server: answers conversations of OpenAI's and of Anthropic's format at once, or as a stream at an
//! even pace. A process of its own, whose processor time counts for nobody.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Task, Poll};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::listener::{serve, server_runtime};
use super::scripts::ScriptForm;

/// Path that says how many conversations there were.
pub const COUNT_PATH: &str = "/count";
/// Bytes of a request that are read.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Events of a stream.
const EVENTS_MAX: u32 = 100_000;

/// Serves until it is killed.
pub fn run() -> anyhow::Result<()> {
    let count = Arc::new(AtomicU64::new(0));
    server_runtime()?.block_on(serve("The model server", move |request| {
        let count = Arc::clone(&count);
        async move { answered(request, &count).await }
    }))
}

async fn answered(request: Request<Incoming>, count: &AtomicU64) -> Response<ScriptBody> {
    if request.uri().path() == COUNT_PATH {
        return whole(Bytes::from(count.load(Ordering::Relaxed).to_string()));
    }
    count.fetch_add(1, Ordering::Relaxed);
    match conversation(request).await {
        Ok(response) => response,
        Err(why) => {
            let mut response = whole(Bytes::from(format!("{why:#}")));
            *response.status_mut() = StatusCode::BAD_REQUEST;
            response
        }
    }
}

/// What a script depends on.
#[derive(Deserialize)]
struct AskedScript {
    model: String,
    #[serde(default)]
    stream: bool,
}

async fn conversation(request: Request<Incoming>) -> anyhow::Result<Response<ScriptBody>> {
    let is_messages = request.uri().path().ends_with("/messages");
    let form = if is_messages { ScriptForm::Messages } else { ScriptForm::Chat };
    let body = collected(request.into_body()).await?;
    let asked: AskedScript = serde_json::from_slice(&body).context("the body of a request")?;
    if !asked.stream {
        return Ok(whole(form.answer()));
    }
    let (every, events) = pace(&asked.model)?;
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let body = ScriptBody::Paced(Box::new(PacedBody { form, ticks, is_begun: false, left: events, is_over: false }));
    let response = Response::builder().header("content-type", "text/event-stream").body(body);
    response.context("a response")
}

/// Returns the pause between two events, and their number: a model is named `...-paced-<milliseconds>-<events>`.
fn pace(model: &str) -> anyhow::Result<(Duration, u32)> {
    let pace = model.split_once("paced-").and_then(|(_, rest)| rest.split_once('-'));
    let (every, events) = pace.with_context(|| format!("`{model}` has no pace"))?;
    let (every, events): (u64, u32) = (every.parse()?, events.parse()?);
    ensure!(every > 0 && events <= EVENTS_MAX, "`{model}`: a pause of 1 ms or more, at most {EVENTS_MAX} events");
    Ok((Duration::from_millis(every), events))
}

async fn collected(mut body: Incoming) -> anyhow::Result<BytesMut> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|task| Pin::new(&mut body).poll_frame(task)).await {
        bytes.extend_from_slice(&frame?.into_data().unwrap_or_default());
        ensure!(bytes.len() <= REQUEST_BYTES_MAX, "a request of more than {REQUEST_BYTES_MAX} bytes");
    }
    Ok(bytes)
}

fn whole(bytes: Bytes) -> Response<ScriptBody> {
    let mut response = Response::new(ScriptBody::Whole(Some(bytes)));
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    response
}

/// Body of an answer.
#[derive(Debug)]
enum ScriptBody {
    Whole(Option<Bytes>),
    Paced(Box<PacedBody>),
}

/// Stream with an event at each tick.
#[derive(Debug)]
struct PacedBody {
    form: ScriptForm,
    ticks: Interval,
    is_begun: bool,
    /// Events to come.
    left: u32,
    is_over: bool,
}

impl PacedBody {
    fn poll_next(&mut self, task: &mut Task<'_>) -> Poll<Option<Bytes>> {
        if !self.is_begun {
            self.is_begun = true;
            return Poll::Ready(Some(self.form.begin()));
        }
        if self.left > 0 {
            return self.ticks.poll_tick(task).map(|_| {
                self.left -= 1;
                Some(self.form.timed())
            });
        }
        let is_over = std::mem::replace(&mut self.is_over, true);
        Poll::Ready((!is_over).then(|| self.form.end()))
    }
}

impl Body for ScriptBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            ScriptBody::Whole(bytes) => Poll::Ready(bytes.take()),
            ScriptBody::Paced(paced) => paced.poll_next(task),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ScriptBody::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ScriptBody::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            ScriptBody::Paced(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use std::net::SocketAddr;

    use super::super::listener::tests::started;
    use super::super::scripts::{MESSAGES, OPEN, PACED, WHOLE};
    use super::*;

    /// Serves within the test.
    pub async fn scripted() -> SocketAddr {
        let count = Arc::new(AtomicU64::new(0));
        started(move |request| {
            let count = Arc::clone(&count);
            async move { answered(request, &count).await }
        })
        .await
    }

    #[test]
    fn models_name_their_pace() {
        assert_eq!(pace(PACED).expect("a pace"), (Duration::from_millis(20), 100));
        assert_eq!(pace(&format!("{MESSAGES}{OPEN}")).expect("a pace"), (Duration::from_secs(1), 300));
        assert!(pace(WHOLE).is_err() && pace("paced-0-1").is_err() && pace("paced-1-200000").is_err());
    }
}
