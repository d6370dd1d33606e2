//! Fault injection: loss, delay and duplication of calls, for tests. Without an injector calls take the plain path.

use std::fmt;
use std::time::Duration;

use assay_storage_model::NodeId;
use futures::FutureExt;
use tokio::time::{Instant, sleep, timeout_at};

use crate::call::CallError;

/// Chooses the faults of each call and of each opening of a stream, at the caller.
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
    /// The receiver gets it twice, at about the same time. A stream is pulled by its reader and cannot be duplicated.
    pub duplicate: bool,
}

/// Sends with these faults: what is lost is silent until the caller's time is over, as on a real network.
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
        // What failed fails as it did: faults take answers away and give none.
        if faults.lose_answer && answer.is_ok() { std::future::pending().await } else { answer }
    };
    timeout_at(ends, on_the_way.boxed()).await.unwrap_or_else(|_| Err(CallError::Lost("no response in time".into())))
}
