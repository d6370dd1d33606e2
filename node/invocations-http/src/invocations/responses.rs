//! Responses of invocations: a value, a stream of events, or an error.

use std::time::Duration;

use assay_node_http::requests::caller::Call;
use assay_node_http::responses::json_builder;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::response_body::{Part, Sending};
use assay_node_http::web::{Bytes, HttpResponse, header};
use assay_node_invocations::{CodeFailure, InvokeError, InvokeErrorKind, InvokeEvent, InvokeOutcome, PING};
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Time without events after which a client receives a ping.
const PING_AFTER: Duration = Duration::from_secs(15);

/// Returns the refusal for an invocation error (functions.md 2.5).
pub fn refusal_of(error: InvokeError) -> Refusal {
    let kind = match error.kind {
        InvokeErrorKind::Invalid => ErrorKind::BadRequest,
        InvokeErrorKind::Forbidden => ErrorKind::Forbidden,
        InvokeErrorKind::NotFound => ErrorKind::NotFound,
        InvokeErrorKind::TooLarge => ErrorKind::TooLarge,
        InvokeErrorKind::Failed | InvokeErrorKind::Lost => ErrorKind::Internal,
        InvokeErrorKind::NotServed => ErrorKind::NotImplemented,
        InvokeErrorKind::Upstream => ErrorKind::BadGateway,
        InvokeErrorKind::RateLimited => ErrorKind::Busy,
        InvokeErrorKind::Unavailable => ErrorKind::Unavailable,
        InvokeErrorKind::TooLate => ErrorKind::TooLate,
    };
    // Generated clients retry these statuses, which would run the function again (F-17).
    let is_final = matches!(kind, ErrorKind::Internal | ErrorKind::TooLate | ErrorKind::NotImplemented);
    let details = error.failure.map(|failure| {
        let CodeFailure { name, message, stack } = *failure;
        Box::new(json!({"FunctionError": {"name": name, "message": message, "stack": stack}}))
    });
    Refusal { retry_after_seconds: error.retry_after_s, is_final, details, ..Refusal::new(kind, error.message) }
}

/// Returns the response with a value.
pub(super) fn whole(value: &Value, headers: impl IntoIterator<Item = (String, String)>) -> HttpResponse {
    let mut response = json_builder();
    for (name, text) in headers {
        response.insert_header((name, text));
    }
    response.body(Bytes::from(value.to_string()))
}

/// Returns the response with a stream.
pub(super) fn streamed(
    call: &Call,
    stream: InvokeStream,
    headers: impl IntoIterator<Item = (String, String)>,
) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "text/event-stream"));
    response.insert_header((header::CACHE_CONTROL, "no-cache"));
    response.insert_header(("x-accel-buffering", "no"));
    for (name, text) in headers {
        response.insert_header((name, text));
    }
    let parts = stream::unfold(stream, async |mut stream| {
        let bytes = Bytes::from(stream.next().await?);
        Some((Ok(Part { bytes, reservation: None }), stream))
    });
    response.body(Sending::streamed(call, parts.boxed_local()))
}

/// Events of a running invocation. Dropping the stream cancels the invocation.
pub(super) struct InvokeStream {
    state: StreamState,
    events: mpsc::Receiver<InvokeEvent>,
    /// First event, if it is not sent yet.
    first: Option<InvokeEvent>,
}

/// State of a stream.
enum StreamState {
    Running(BoxFuture<'static, Result<InvokeOutcome, InvokeError>>),
    /// The invocation ended, and its last events are not sent yet.
    Over(Option<InvokeError>),
    /// The event `done` comes next.
    Ending,
    Ended,
}

/// Event or end of an invocation.
enum Happening {
    Event(InvokeEvent),
    Over(Result<InvokeOutcome, InvokeError>),
}

impl InvokeStream {
    /// Waits for the first event, so that the response status reports an earlier failure.
    pub async fn begin(
        running: BoxFuture<'static, Result<InvokeOutcome, InvokeError>>,
        events: mpsc::Receiver<InvokeEvent>,
    ) -> Result<InvokeStream, InvokeError> {
        let mut stream = InvokeStream { state: StreamState::Running(running), events, first: None };
        match stream.happening().await {
            Happening::Event(event) => stream.first = Some(event),
            Happening::Over(result) => {
                stream.first = stream.events.try_recv().ok();
                match result {
                    Err(error) if stream.first.is_none() => return Err(error),
                    result => stream.state = StreamState::Over(result.err()),
                }
            }
        }
        Ok(stream)
    }

    /// Waits for an event, or for the end of the invocation.
    async fn happening(&mut self) -> Happening {
        let StreamState::Running(running) = &mut self.state else {
            // The sender is gone, so this does not wait.
            return match self.events.recv().await {
                Some(event) => Happening::Event(event),
                None => std::future::pending().await,
            };
        };
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => Happening::Event(event),
            result = running => Happening::Over(result),
        }
    }

    /// Returns the next bytes, or `None` after the end.
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(format!("{}{}", InvokeEvent::Start.encode(), first.encode()));
        }
        loop {
            match &mut self.state {
                StreamState::Running(_) => match timeout(PING_AFTER, self.happening()).await {
                    Err(_) => return Some(PING.to_owned()),
                    Ok(Happening::Event(event)) => return Some(event.encode()),
                    Ok(Happening::Over(result)) => self.state = StreamState::Over(result.err()),
                },
                StreamState::Over(error) => {
                    if let Ok(event) = self.events.try_recv() {
                        return Some(event.encode());
                    }
                    let error = error.take();
                    self.state = StreamState::Ending;
                    if let Some(error) = error {
                        return Some(InvokeEvent::Error(error.message).encode());
                    }
                }
                StreamState::Ending => {
                    self.state = StreamState::Ended;
                    return Some(InvokeEvent::Done.encode());
                }
                StreamState::Ended => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_node_invocations::{EVENTS_WAITING_MAX, EventOutput, InvokeUsage};
    use futures::FutureExt;

    use super::*;

    async fn texts(mut stream: InvokeStream) -> String {
        let mut all = String::new();
        while let Some(text) = stream.next().await {
            all.push_str(&text);
        }
        all
    }

    /// Runs an invocation that sends these texts and then ends.
    async fn streamed_texts(sent: &'static [&'static str], error: Option<&str>) -> Result<InvokeStream, InvokeError> {
        let (sender, receiver) = mpsc::channel(EVENTS_WAITING_MAX);
        let output = EventOutput::new(sender);
        let error = error.map(|why| InvokeError::new(InvokeErrorKind::Failed, why));
        let running = async move {
            for text in sent {
                output.send(InvokeEvent::TextDelta((*text).to_owned())).await;
            }
            match error {
                Some(error) => Err(error),
                None => Ok(InvokeOutcome { value: Value::Null, usage: InvokeUsage::default(), notes: None }),
            }
        };
        InvokeStream::begin(running.boxed(), receiver).await
    }

    #[tokio::test]
    async fn a_stream_has_its_events_and_an_end() {
        let stream = streamed_texts(&["a", "b"], None).await.expect("a stream");
        let expected = "event: start\ndata: \n\nevent: text_delta\ndata: \"a\"\n\nevent: text_delta\ndata: \"b\"\n\n\
            event: done\ndata: \n\n";
        assert_eq!(texts(stream).await, expected);
    }

    #[tokio::test]
    async fn a_failure_is_a_status_before_the_first_event_and_an_event_behind_it() {
        let error = streamed_texts(&[], Some("no")).await.err().expect("an error");
        assert_eq!(error.message, "no");
        let stream = streamed_texts(&["a"], Some("no")).await.expect("a stream");
        let all = texts(stream).await;
        assert!(all.ends_with("event: error\ndata: \"no\"\n\nevent: done\ndata: \n\n"), "{all}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_bridged() {
        let (sender, receiver) = mpsc::channel(EVENTS_WAITING_MAX);
        let output = EventOutput::new(sender);
        let running = async move {
            output.send(InvokeEvent::TextDelta("a".into())).await;
            tokio::time::sleep(Duration::from_secs(40)).await;
            Ok(InvokeOutcome { value: Value::Null, usage: InvokeUsage::default(), notes: None })
        };
        let stream = InvokeStream::begin(running.boxed(), receiver).await.expect("a stream");
        let all = texts(stream).await;
        assert_eq!(all.matches(PING).count(), 2, "{all}");
    }

    #[test]
    fn failures_that_would_repeat_say_so() {
        for (kind, status, is_final) in [
            (InvokeErrorKind::Failed, 500, true),
            (InvokeErrorKind::Lost, 500, true),
            (InvokeErrorKind::TooLate, 504, true),
            (InvokeErrorKind::Upstream, 502, false),
            (InvokeErrorKind::RateLimited, 429, false),
            (InvokeErrorKind::Invalid, 400, false),
        ] {
            let refusal = refusal_of(InvokeError::new(kind, "m"));
            assert_eq!((refusal.kind.status().as_u16(), refusal.is_final), (status, is_final));
        }
    }
}
