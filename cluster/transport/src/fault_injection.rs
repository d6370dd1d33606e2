//! What happens to a call on its way, as a test or a storm wishes. Without weather nothing of this is on the path.

use std::fmt;
use std::time::Duration;

use assay_storage_model::NodeId;
use futures::FutureExt;
use tokio::time::{Instant, sleep, timeout_at};

use crate::call::CallError;

/// Decides over each call and each opening of a stream, at the caller.
pub trait Weather: Send + Sync + fmt::Debug {
    fn fate(&self, from: NodeId, to: NodeId, service: &str) -> Fate;
}

/// The default is fair weather.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// The receiver never hears of it.
    pub lose_request: bool,
    /// The receiver does it, the caller never hears of it.
    pub lose_answer: bool,
    pub delay_before: Duration,
    pub delay_after: Duration,
    /// The receiver hears it twice, at about the same time. A stream is pulled by its reader and has no double.
    pub duplicate: bool,
}

/// Sends under this fate: what is lost is silent until the caller's time is over, as on a real network.
pub(crate) async fn send_under<Answer: Send>(
    fate: Fate,
    ends: Instant,
    send: impl Future<Output = Result<Answer, CallError>> + Send,
) -> Result<Answer, CallError> {
    let on_the_way = async {
        sleep(fate.delay_before).await;
        if fate.lose_request {
            return std::future::pending().await;
        }
        let answer = send.await;
        sleep(fate.delay_after).await;
        // What failed fails as it did: the weather takes answers away and gives none.
        if fate.lose_answer && answer.is_ok() { std::future::pending().await } else { answer }
    };
    timeout_at(ends, on_the_way.boxed()).await.unwrap_or_else(|_| Err(CallError::Lost("no answer in time".into())))
}
