//! A page of rows on its way to its reader. What it takes it holds of the budget for answers until it is gone, and a reader
//! that takes it too slowly is left: nothing else would ever end that, and pages are large.
//!
//! Whoever reads nothing at all is not noticed here, since nobody asks for more of the page. The system closes such a
//! connection, see `farewell`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;

use crate::budget::Held;
use crate::config::HttpConfig;
use crate::edge::Edge;
use crate::pace::Pace;
use crate::refusal::{Kind, Refusal};

/// What is handed on at a time; until it is gone the connection has a copy of it.
const PIECE_BYTES: usize = 64 << 10;
/// No page is that large; its rate is what counts.
const WHOLE: Duration = Duration::from_secs(24 * 60 * 60);

/// A body that is handed on in pieces.
#[derive(Debug)]
pub struct Sending {
    left: Bytes,
    handed_on: u64,
    began: Instant,
    pace: Pace,
    _held: Held,
}

/// Room for an answer of this many bytes. One that is larger than all there is takes all of it.
pub fn room(edge: &Edge, bytes: usize) -> Result<Held, Refusal> {
    let mut held = edge.answers.hold();
    if held.grow(bytes.min(edge.config.answers_bytes_max)) {
        return Ok(held);
    }
    Err(Refusal::new(Kind::Unavailable, "too many pages are on their way to slow readers; try again in a moment"))
}

impl Sending {
    pub fn new(config: &HttpConfig, body: Bytes, held: Held) -> Sending {
        let pace = Pace { whole: WHOLE, ..Pace::of(config) };
        Sending { left: body, handed_on: 0, began: Instant::now(), pace, _held: held }
    }
}

impl MessageBody for Sending {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.left.len() as u64)
    }

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        if self.began.elapsed() > self.pace.due(self.handed_on) {
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, "the page is read too slowly"))));
        }
        let bytes = self.left.len().min(PIECE_BYTES);
        self.handed_on += bytes as u64;
        Poll::Ready(Some(Ok(self.left.split_to(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::budget::Budget;

    fn next(sending: &mut Sending) -> Option<io::Result<Bytes>> {
        match Pin::new(sending).poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(piece) => piece,
            Poll::Pending => panic!("it never waits"),
        }
    }

    #[test]
    fn a_page_is_handed_on_in_pieces_and_gives_its_room_back_at_the_end() {
        let (budget, body) = (Budget::new(1 << 20), Bytes::from(vec![7; 2 * PIECE_BYTES + 1]));
        let mut held = budget.hold();
        assert!(held.grow(body.len()));
        let mut sending = Sending::new(&HttpConfig::default(), body.clone(), held);
        assert_eq!(sending.size(), BodySize::Sized(body.len() as u64));
        let mut whole = Vec::new();
        while let Some(piece) = next(&mut sending) {
            whole.extend_from_slice(&piece.expect("a piece"));
        }
        assert_eq!((whole.len(), budget.taken()), (body.len(), body.len()));
        drop(sending);
        assert_eq!((whole, budget.taken()), (body.to_vec(), 0));
    }

    #[test]
    fn a_reader_that_is_too_slow_is_left() {
        let config = HttpConfig { body_grace_seconds: 0, body_bytes_per_second_min: 1, ..HttpConfig::default() };
        let mut sending = Sending::new(&config, Bytes::from_static(b"page"), Budget::new(0).hold());
        std::thread::sleep(Duration::from_millis(2));
        assert!(next(&mut sending).is_some_and(|piece| piece.is_err()));
        let mut sending = Sending::new(&HttpConfig::default(), Bytes::from_static(b"page"), Budget::new(0).hold());
        assert!(next(&mut sending).is_some_and(|piece| piece.is_ok()));
    }
}
