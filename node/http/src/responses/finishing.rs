//! Completion of changing requests whose clients disconnect, so that no change remains half done.
//!
//! A read-only request ends with its client, and so does a request that still waits for its admission.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::dev::ServiceRequest;
use actix_web::http::Method;
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span};

use crate::requests::wait::Wait;

/// Paths of read-only requests that use `POST`.
const QUERY: &str = "/btql";
const FETCH: &str = "/fetch";
const MCP: &str = "/mcp";

/// Handler of a request, which continues in the background if it is dropped during a change.
pub struct Finishing<F: Future + 'static> {
    handler: Option<Pin<Box<F>>>,
    changes: bool,
    wait: Wait,
    began: Instant,
    limit: Duration,
}

/// Returns whether a request may change something.
pub fn changes(request: &ServiceRequest) -> bool {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    !reads && ![QUERY, MCP].contains(&request.path()) && !request.path().ends_with(FETCH)
}

impl<F: Future + 'static> Finishing<F> {
    /// Wraps a handler with a time limit, not counting the waiting time of its request.
    pub fn new(handler: F, changes: bool, wait: Wait, limit: Duration) -> Finishing<F> {
        Finishing { handler: Some(Box::pin(handler)), changes, wait, began: Instant::now(), limit }
    }
}

impl<F: Future + 'static> Future for Finishing<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        let Some(handler) = &mut self.handler else { return Poll::Pending };
        let polled = handler.as_mut().poll(task);
        if polled.is_ready() {
            self.handler = None;
        }
        polled
    }
}

impl<F: Future + 'static> Drop for Finishing<F> {
    fn drop(&mut self) {
        let left = (self.began + self.limit + self.wait.spent()).saturating_duration_since(Instant::now());
        if let Some(handler) = self.handler.take()
            && self.changes
            && !self.wait.is_waiting()
            && !left.is_zero()
        {
            let finish = async move { drop(timeout(left, handler).await) };
            drop(actix_web::rt::spawn(finish.instrument(Span::current())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tokio::time::sleep;

    use super::*;

    /// Returns whether a handler that was dropped early completes in the background.
    async fn goes_on(changes: bool, waits: bool) -> bool {
        let (done, wait) = (Rc::new(Cell::new(false)), Wait::new(Instant::now()));
        let handler = {
            let (done, wait) = (Rc::clone(&done), wait.clone());
            async move {
                match waits {
                    true => wait.spend(sleep(Duration::from_secs(1))).await,
                    false => sleep(Duration::from_secs(1)).await,
                }
                done.set(true);
            }
        };
        let handler = Finishing::new(handler, changes, wait, Duration::from_secs(5));
        assert!(timeout(Duration::from_millis(10), handler).await.is_err());
        sleep(Duration::from_secs(2)).await;
        done.get()
    }

    #[actix_web::test]
    async fn a_change_that_was_begun_is_finished() {
        tokio::time::pause();
        assert!(goes_on(true, false).await);
        assert!(!goes_on(false, false).await, "nobody wants an answer that nobody reads");
        assert!(!goes_on(true, true).await, "who leaves gives up the place");
    }

    #[actix_web::test]
    async fn a_handler_that_took_too_long_is_not_begun_again() {
        tokio::time::pause();
        let limit = Duration::from_secs(5);
        let (done, wait) = (Rc::new(Cell::new(false)), Wait::new(Instant::now()));
        let handler = {
            let done = Rc::clone(&done);
            async move {
                sleep(Duration::from_secs(6)).await;
                done.set(true);
            }
        };
        let handler = Finishing::new(handler, true, wait.clone(), limit);
        assert!(wait.limit(limit, handler).await.is_none());
        sleep(Duration::from_secs(10)).await;
        assert!(!done.get());
    }
}
