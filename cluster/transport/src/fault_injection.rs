//! Fault injection for tests: loss, delay and duplication of calls. Without an injector, calls take the plain path.

use std::fmt;
use std::time::Duration;

use assay_storage_model::NodeId;
use futures::FutureExt;
use tokio::time::{Instant, sleep, timeout_at};

use crate::call::CallError;

/// Chooses the faults of each call and of each opened stream, at the caller.
pub trait FaultInjector: Send + Sync + fmt::Debug {
    fn faults(&self, from: NodeId, to: NodeId, service: &str) -> CallFaults;
}

/// Faults of one call. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFaults {
    /// The request does not reach the receiver.
    pub lose_request: bool,
    /// The receiver executes the call, but its response is lost.
    pub lose_answer: bool,
    pub delay_before: Duration,
    pub delay_after: Duration,
    /// The receiver gets the call twice, at about the same time. Streams cannot be duplicated, because their readers
    /// pull.
    pub duplicate: bool,
}

/// Sends with these faults. As on a real network, a lost message is silent until the caller's time limit.
pub(crate) async fn send_with_faults<Answer: Send>(
    faults: CallFaults,
    ends: Instant,
    send: impl Future<Output = Result<Answer, CallError>> + Send,
) -> Result<Answer, CallError> {
    let on_the_way = async {
        sleep(faults.delay_before).await;
        if faults.lose_request {
            return std::future::pending().await;
        }
        let answer = send.await;
        sleep(faults.delay_after).await;
        // Injected faults remove responses but never produce one.
        if faults.lose_answer && answer.is_ok() { std::future::pending().await } else { answer }
    };
    timeout_at(ends, on_the_way.boxed()).await.unwrap_or_else(|_| Err(CallError::Lost("no response in time".into())))
}
