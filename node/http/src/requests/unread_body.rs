//! Disposal of bodies that were not read before the response, such as those of unauthenticated callers.
//!
//! Closing a connection while its client still sends resets it, and the reset may overtake the response. The server
//! therefore sends the response first, and then reads and discards some of the remaining body.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::{Version, header};
use bytes::Bytes;
use futures::Stream;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::server::expect_continue::Continue;

/// Upper bound of the discarded bytes of one body.
const DISCARDED_BYTES_MAX: usize = 8 << 20;
const DISCARD_MAX: Duration = Duration::from_secs(5);
/// Time for which an unfinished body is kept, so that its connection closes meanwhile.
///
/// If it were dropped, the server would read a chunked body to its end, however long it is.
const KEPT_UNTIL_CLOSED: Duration = Duration::from_secs(10);

/// Body of a request, shared with its handler.
#[derive(Clone)]
pub struct Unread {
    body: Rc<RefCell<WatchedPayload>>,
    /// State of `100 Continue`, if the client waits for it before it sends.
    continues: Option<Continue>,
}

struct WatchedPayload {
    payload: Payload,
    has_ended: bool,
}

impl Unread {
    /// Shares the body of an HTTP/1 request with its handler. Returns `None` without a body.
    ///
    /// HTTP/2 can end a stream without closing its connection, so it needs no disposal.
    pub fn watch(request: &mut ServiceRequest) -> Option<Unread> {
        if request.version() > Version::HTTP_11 || matches!(request.parts_mut().1, Payload::None) {
            return None;
        }
        let body = WatchedPayload { payload: request.take_payload(), has_ended: false };
        let expects = request.headers().contains_key(header::EXPECT);
        let continues = request.request().conn_data::<Continue>().filter(|_| expects).cloned();
        continues.iter().for_each(Continue::withhold);
        let unread = Unread { body: Rc::new(RefCell::new(body)), continues };
        request.set_payload(Payload::Stream { payload: Box::pin(unread.clone()) });
        Some(unread)
    }

    /// Returns the body of a response, which discards the rest of the request at its end.
    pub fn discarded_behind(self, answer: BoxBody) -> BoxBody {
        let is_awaited = self.continues.as_ref().is_some_and(Continue::is_withheld);
        let is_empty = matches!(answer.size(), BodySize::None | BodySize::Sized(0));
        // A client that still waits for `100 Continue` sends nothing.
        if is_awaited || is_empty || self.body.borrow().has_ended {
            return answer;
        }
        BoxBody::new(Discarding { answer: Some(answer), unread: Some(self), due: None, discarded: 0 })
    }
}

impl Unread {
    /// Keeps an unfinished body until its connection is closed.
    pub fn keep(self) {
        drop(actix_web::rt::spawn(async move {
            sleep(KEPT_UNTIL_CLOSED).await;
            drop(self);
        }));
    }
}

impl Stream for Unread {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A handler reads the body only after it has admitted the request.
        self.continues.iter().for_each(Continue::release);
        let mut body = self.body.borrow_mut();
        let polled = Pin::new(&mut body.payload).poll_next(task);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            body.has_ended = true;
        }
        polled
    }
}

/// Body of a response, followed by the disposal of the request's body.
struct Discarding {
    answer: Option<BoxBody>,
    unread: Option<Unread>,
    due: Option<Pin<Box<Sleep>>>,
    discarded: usize,
}

impl Discarding {
    /// Discards the request's body until it ends or a limit is reached.
    fn poll_discard(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let Some(unread) = &mut self.unread else { return Poll::Ready(()) };
        let due = self.due.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + DISCARD_MAX)));
        while self.discarded < DISCARDED_BYTES_MAX && due.as_mut().poll(task).is_pending() {
            match Pin::new(&mut *unread).poll_next(task) {
                Poll::Ready(Some(Ok(bytes))) => self.discarded += bytes.len(),
                Poll::Ready(None | Some(Err(_))) => {
                    self.unread = None;
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        self.unread.take().into_iter().for_each(Unread::keep);
        Poll::Ready(())
    }
}

impl MessageBody for Discarding {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.answer.as_ref().map_or(BodySize::None, MessageBody::size)
    }

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if let Some(answer) = &mut self.answer {
            match Pin::new(answer).poll_next(task) {
                Poll::Ready(None) => self.answer = None,
                polled => return polled,
            }
        }
        self.poll_discard(task).map(|()| None)
    }
}

#[cfg(test)]
mod tests {
    use actix_http::BoxedPayloadStream;
    use actix_web::body::to_bytes;
    use futures::stream;

    use super::*;

    /// Returns the response to a request that sends `pieces` pieces and then stalls.
    fn answered(pieces: usize) -> BoxBody {
        let pieces = stream::iter((0..pieces).map(|_| Ok(Bytes::from(vec![0; 1 << 20]))));
        let pieces: BoxedPayloadStream = Box::pin(futures::StreamExt::chain(pieces, stream::pending()));
        let payload = Payload::Stream { payload: pieces };
        let body = WatchedPayload { payload, has_ended: false };
        Unread { body: Rc::new(RefCell::new(body)), continues: None }.discarded_behind(BoxBody::new("refused"))
    }

    #[actix_web::test]
    async fn an_answer_is_followed_by_at_most_eight_mebibytes() {
        tokio::time::pause();
        let began = Instant::now();
        let read = to_bytes(answered(20)).await.expect("the answer");
        assert_eq!((&read[..], began.elapsed()), (&b"refused"[..], Duration::ZERO));
    }

    #[actix_web::test]
    async fn a_body_that_does_not_come_is_waited_for_for_five_seconds() {
        tokio::time::pause();
        let began = Instant::now();
        let read = to_bytes(answered(2)).await.expect("the answer");
        assert_eq!(&read[..], b"refused");
        assert!(began.elapsed() >= DISCARD_MAX && began.elapsed() < 2 * DISCARD_MAX);
    }
}
