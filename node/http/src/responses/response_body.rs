//! Response bodies that hold a part of the response budget, and disconnect slow readers.
//!
//! A body keeps its reservation until it is sent. A timer closes the connection of a reader that takes it too slowly,
//! even if the reader takes nothing at all.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use assay_node_connections::Connection;
use assay_node_limits::{Holder, Refusals, Reservation};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::LocalBoxStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::requests::caller::Call;
use crate::requests::pace::ReaderPace;

/// Number of bytes handed to the connection at a time. The connection keeps a copy until they are sent.
const PIECE_BYTES: usize = 64 << 10;
/// Cause of refusals for slow readers in metrics and logs, named after the setting of their minimum rate.
pub const SLOW_READERS: &str = "http.answer_bytes_per_second_min";
/// Interval of the timer while the reader waits for the next part.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Part of a body, with its reservation.
#[derive(Debug)]
pub struct Part {
    pub bytes: Bytes,
    /// `None` if the source itself bounds the bytes, such as events of a model.
    pub reservation: Option<Reservation>,
}

pub type Parts = LocalBoxStream<'static, io::Result<Part>>;

/// Body that is sent in pieces.
pub struct Sending {
    state: Rc<RefCell<SendingState>>,
    size: BodySize,
    timer: Option<JoinHandle<()>>,
}

struct SendingState {
    left: Bytes,
    /// Total size of the part whose rest is `left`.
    part_bytes: usize,
    reservation: Option<Reservation>,
    /// Next part, if it is ready.
    next: Option<Part>,
    /// Source of further parts.
    parts: Option<Parts>,
    handed_on: usize,
    is_left: bool,
    reader: Reader,
}

/// Reader of a body, with its pace.
struct Reader {
    pace: ReaderPace,
    holder: Holder,
    refusals: Refusals,
    /// `None` in tests without connections.
    connection: Option<Arc<Connection>>,
}

impl Reader {
    fn of(call: &Call) -> Reader {
        Reader {
            pace: ReaderPace::new(&call.edge.config),
            holder: call.applicant().holder,
            refusals: call.edge.budgets.refusals.clone(),
            connection: call.request.conn_data::<Arc<Connection>>().cloned(),
        }
    }
}

impl Sending {
    /// Creates the body of a complete response.
    pub fn new(call: &Call, bytes: Bytes, reservation: Reservation) -> Sending {
        let size = BodySize::Sized(bytes.len() as u64);
        Sending::of(Reader::of(call), size, Some(Part { bytes, reservation: Some(reservation) }), None)
    }

    /// Creates the body of a streamed response. The next part is requested when half of the previous part is taken.
    pub fn streamed(call: &Call, parts: Parts) -> Sending {
        Sending::of(Reader::of(call), BodySize::Stream, None, Some(parts))
    }

    fn of(reader: Reader, size: BodySize, next: Option<Part>, parts: Option<Parts>) -> Sending {
        let state = SendingState {
            left: Bytes::new(),
            part_bytes: 0,
            reservation: None,
            next,
            parts,
            handed_on: 0,
            is_left: false,
            reader,
        };
        Sending { state: Rc::new(RefCell::new(state)), size, timer: None }
    }
}

impl SendingState {
    /// Polls for the next piece.
    fn poll(&mut self, context: &mut Context<'_>, now: Instant) -> Poll<Option<io::Result<Bytes>>> {
        if self.is_left {
            return Poll::Ready(Some(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client reads the response too slowly",
            ))));
        }
        // A poll shows that the reader has taken the previous piece.
        self.reader.pace.pause(now, std::mem::take(&mut self.handed_on));
        if self.left.len() <= self.part_bytes / 2
            && let Err(error) = self.poll_next_part(context)
        {
            return Poll::Ready(Some(Err(error)));
        }
        if self.left.is_empty() {
            self.reservation = None;
            let Some(Part { bytes, reservation }) = self.next.take() else {
                return if self.parts.is_some() { Poll::Pending } else { Poll::Ready(None) };
            };
            (self.part_bytes, self.left, self.reservation) = (bytes.len(), bytes, reservation);
        }
        let bytes = self.left.len().min(PIECE_BYTES);
        self.handed_on = bytes;
        self.reader.pace.go_on(now);
        Poll::Ready(Some(Ok(self.left.split_to(bytes))))
    }

    fn poll_next_part(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.next.is_none()
            && let Some(parts) = &mut self.parts
        {
            match parts.poll_next_unpin(context) {
                Poll::Pending => break,
                Poll::Ready(None) => self.parts = None,
                // An empty part is skipped, because it would end the body.
                Poll::Ready(Some(part)) => self.next = Some(part?).filter(|part| !part.bytes.is_empty()),
            }
        }
        Ok(())
    }

    /// Disconnects the reader and releases everything held for it.
    fn leave(&mut self) {
        (self.left, self.reservation, self.next, self.parts) = (Bytes::new(), None, None, None);
        self.is_left = true;
        self.reader.refusals.note(SLOW_READERS, self.reader.holder.organization);
        self.reader.connection.iter().for_each(|connection| connection.close());
    }

    fn is_last(&self) -> bool {
        self.left.is_empty() && self.next.is_none() && self.parts.is_none()
    }
}

/// Disconnects the reader when it is too slow.
async fn watch(state: Weak<RefCell<SendingState>>) {
    loop {
        let next = {
            let Some(state) = state.upgrade() else { return };
            let mut state = state.borrow_mut();
            let now = Instant::now();
            match state.reader.pace.due() {
                Some(due) if due <= now => return state.leave(),
                Some(due) => due,
                None => now + LOOK_EVERY,
            }
        };
        sleep_until(next).await;
    }
}

impl MessageBody for Sending {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let (polled, is_last) = {
            let mut state = self.state.borrow_mut();
            (state.poll(context, Instant::now()), state.is_last())
        };
        // A body of one piece is already with the connection.
        if self.timer.is_none() && !is_last {
            self.timer = Some(tokio::task::spawn_local(watch(Rc::downgrade(&self.state))));
        }
        polled
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

impl fmt::Debug for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use assay_node_limits::Budget;
    use futures::stream;

    use super::*;
    use crate::config::HttpConfig;

    fn budget() -> Budget {
        Budget::new("answers", 1 << 30, &Refusals::default())
    }

    fn part(budget: &Budget, bytes: usize) -> Part {
        let reservation = budget.try_acquire(Holder::ANONYMOUS, bytes as u64);
        assert!(reservation.is_some(), "memory");
        Part { bytes: Bytes::from(vec![7; bytes]), reservation }
    }

    fn reader(config: &HttpConfig, refusals: &Refusals) -> Reader {
        let (pace, refusals) = (ReaderPace::new(config), refusals.clone());
        Reader { pace, holder: Holder::ANONYMOUS, refusals, connection: None }
    }

    fn streamed(config: &HttpConfig, refusals: &Refusals, parts: Parts) -> Sending {
        Sending::of(reader(config, refusals), BodySize::Stream, None, Some(parts))
    }

    fn whole(part: Part) -> Sending {
        let size = BodySize::Sized(part.bytes.len() as u64);
        Sending::of(reader(&HttpConfig::default(), &Refusals::default()), size, Some(part), None)
    }

    fn next(sending: &mut Sending) -> Poll<Option<io::Result<Bytes>>> {
        Pin::new(sending).poll_next(&mut Context::from_waker(Waker::noop()))
    }

    fn bytes(sending: &mut Sending) -> usize {
        match next(sending) {
            Poll::Ready(Some(Ok(piece))) => piece.len(),
            other => panic!("no piece: {other:?}"),
        }
    }

    #[actix_web::test]
    async fn a_page_is_handed_on_in_pieces_and_gives_its_room_back() {
        let budget = budget();
        let mut sending = whole(part(&budget, 2 * PIECE_BYTES + 1));
        assert!(matches!(sending.size(), BodySize::Sized(131_073)));
        assert_eq!((bytes(&mut sending), bytes(&mut sending), bytes(&mut sending)), (PIECE_BYTES, PIECE_BYTES, 1));
        assert_eq!(budget.reading().held, 131_073);
        assert!(matches!(next(&mut sending), Poll::Ready(None)));
        assert_eq!(budget.reading().held, 0);
    }

    #[actix_web::test]
    async fn the_next_part_is_asked_for_when_half_of_the_last_is_taken() {
        let budget = budget();
        let made = Rc::new(RefCell::new(0));
        let counts = (Rc::clone(&made), budget.clone());
        let parts = stream::iter(0..2).map(move |_| {
            *counts.0.borrow_mut() += 1;
            Ok(part(&counts.1, 4 * PIECE_BYTES))
        });
        let (config, refusals) = (HttpConfig::default(), Refusals::default());
        let mut sending = streamed(&config, &refusals, parts.boxed_local());
        let mut seen = Vec::new();
        while let Poll::Ready(Some(piece)) = next(&mut sending) {
            assert_eq!(piece.expect("a piece").len(), PIECE_BYTES);
            seen.push(*made.borrow());
        }
        assert_eq!(seen, [1, 1, 2, 2, 2, 2, 2, 2], "one part ahead, and not before it is needed");
        assert_eq!(budget.reading().held, 0);
    }

    /// Covers a full socket, where nobody polls the body.
    #[actix_web::test]
    async fn a_reader_that_takes_nothing_is_left_by_the_timer() {
        let (budget, refusals) = (budget(), Refusals::default());
        let config = HttpConfig { answer_grace_seconds: 1, ..HttpConfig::default() };
        let ahead = stream::iter([Ok(part(&budget, 1 << 20)), Ok(part(&budget, 1 << 20))]);
        let mut sending = streamed(&config, &refusals, ahead.boxed_local());
        assert_eq!(bytes(&mut sending), PIECE_BYTES);
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(budget.reading().held, 2 << 20);
        let until = Instant::now() + Duration::from_secs(20);
        while budget.reading().held > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!((budget.reading().held, refusals.total(SLOW_READERS)), (0, 1));
        assert!(matches!(next(&mut sending), Poll::Ready(Some(Err(_)))), "its connection is closed when it takes more");
    }

    #[actix_web::test]
    async fn a_reader_that_waits_for_us_is_not_slow() {
        let (budget, refusals) = (budget(), Refusals::default());
        let config = HttpConfig { answer_grace_seconds: 1, ..HttpConfig::default() };
        let made = part(&budget, 10);
        let parts = stream::once(async move {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            Ok(made)
        });
        let mut sending = streamed(&config, &refusals, parts.boxed_local());
        let first = std::future::poll_fn(|context| Pin::new(&mut sending).poll_next(context)).await;
        assert_eq!(first.expect("a piece").expect("no error").len(), 10);
        assert_eq!(refusals.total(SLOW_READERS), 0);
    }
}
