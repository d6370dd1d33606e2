//! Calls of other nodes that run here, and the output that they send.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use assay_node_runner::CodeEvent;
use assay_storage_model::NodeId;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use crate::messages::{self, EventBatch, OutputAnswer, OutputKind, ToExecutor, ToOrigin};
use crate::peers::PeerService;
use crate::{
    ALIVE_EVERY, CodeForwarding, ExecutionRequest, ForwardingShared, OUTCOME_BYTES_MAX, Outcome, SILENCE_MAX, count,
};

/// Upper bound of the calls of other nodes that run or wait here.
pub const EXECUTED_MAX: usize = 1_024;
/// Upper bound of the bytes of their requests.
const REQUESTS_BYTES_MAX: usize = 256 << 20;
/// Upper bound of the events that wait to be sent.
const EVENTS_WAITING_MAX: usize = 64;
/// Upper bound of the time of one message.
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// Pause before a message is sent again.
const SEND_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Time beyond that of a call in which its output has to reach the origin.
const OUTPUT_TIME: Duration = Duration::from_secs(60);
/// Time in which the origins of calls are told that this node stops.
const FAREWELL_TIME: Duration = Duration::from_secs(2);
/// Interval at which a stopping node looks whether its calls have ended.
const STOP_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Calls of other nodes on this node.
#[derive(Debug, Default)]
pub(crate) struct ExecutedCalls(Mutex<ExecutedTable>);

#[derive(Debug, Default)]
struct ExecutedTable {
    calls: HashMap<(NodeId, Uuid), ExecutedCall>,
    request_bytes: usize,
    is_closed: bool,
}

#[derive(Debug)]
struct ExecutedCall {
    task: AbortHandle,
    request_bytes: usize,
    /// Tells the call that this node stops.
    stop: mpsc::Sender<()>,
}

impl ExecutedCalls {
    fn end(&self, key: (NodeId, Uuid)) -> Option<AbortHandle> {
        let mut table = self.0.lock();
        let call = table.calls.remove(&key)?;
        table.request_bytes -= call.request_bytes;
        Some(call.task)
    }

    /// Waits until no call runs.
    async fn idle(&self) {
        while !self.0.lock().calls.is_empty() {
            sleep(STOP_LOOK_EVERY).await;
        }
    }
}

/// Answers what this node can run.
pub(crate) async fn offer(shared: Arc<ForwardingShared>) -> Result<Bytes, String> {
    let executor = Arc::clone(shared.executor.get().ok_or("this node is starting")?);
    // The first answer may try a sandbox and interpreters, which must not hold up consensus.
    let offer = shared.runtime.spawn(async move { executor.offer().await });
    let offer = offer.await.map_err(|why| format!("this node could not tell what it can run: {why}"))?;
    serde_json::to_vec(&offer).map(Bytes::from).map_err(|why| why.to_string())
}

/// Takes a message of an origin.
pub(crate) fn take(shared: &Arc<ForwardingShared>, from: NodeId, body: Bytes) -> Result<Bytes, String> {
    let (message, request) = messages::decode::<ToExecutor>(body)?;
    match message {
        ToExecutor::Cancel { id } => {
            if let Some(task) = shared.executed.end((from, id)) {
                task.abort();
            }
        }
        ToExecutor::Start { id, time_ms, has_events } => {
            let start = StartedCall { origin: from, id, time_max: Duration::from_millis(time_ms), has_events, request };
            begin(shared, start)?;
        }
    }
    Ok(Bytes::new())
}

/// Call that an origin started here.
struct StartedCall {
    origin: NodeId,
    id: Uuid,
    time_max: Duration,
    has_events: bool,
    request: Bytes,
}

fn begin(shared: &Arc<ForwardingShared>, start: StartedCall) -> Result<(), String> {
    let key = (start.origin, start.id);
    let request_bytes = start.request.len();
    let mut table = shared.executed.0.lock();
    if table.is_closed {
        return Err("this node is stopping".to_owned());
    }
    if table.calls.contains_key(&key) {
        return Err("this call has been started already".to_owned());
    }
    let bytes = table.request_bytes.saturating_add(request_bytes);
    if table.calls.len() >= EXECUTED_MAX || bytes > REQUESTS_BYTES_MAX {
        return Err("too many calls of other nodes run on this node".to_owned());
    }
    let (stop, stopping) = mpsc::channel(1);
    let running = Arc::clone(shared);
    let task = shared.runtime.spawn(async move {
        let limit = start.time_max + OUTPUT_TIME;
        if timeout(limit, run(&running, start, stopping)).await.is_err() {
            tracing::warn!(origin = %key.0, "the output of a call of another node was not taken in time");
        }
        running.executed.end(key);
    });
    table.request_bytes = bytes;
    table.calls.insert(key, ExecutedCall { task: task.abort_handle(), request_bytes, stop });
    count(&shared.counts.executed);
    Ok(())
}

/// Runs a call of another node, and sends its output there.
async fn run(shared: &Arc<ForwardingShared>, start: StartedCall, mut stopping: mpsc::Receiver<()>) {
    let Some(executor) = shared.executor.get().map(Arc::clone) else { return };
    let StartedCall { origin, id, time_max, has_events, request } = start;
    let mut output = Output { shared, origin, id, number: 0 };
    let (sender, mut events) = mpsc::channel(EVENTS_WAITING_MAX);
    let request = ExecutionRequest { request, time_max, events: has_events.then_some(sender) };
    // A task of its own, so that limits are checked while output waits for its reader. It ends with the set.
    let mut running = JoinSet::new();
    running.spawn_on(async move { executor.execute(request).await }, &shared.runtime);
    let ended = loop {
        let sent = tokio::select! {
            biased;
            _ = stopping.recv() => {
                // The origin ends the call also without this message, but later.
                let _ = timeout(FAREWELL_TIME, output.send(OutputKind::Stopping, &[])).await;
                return;
            }
            Some(event) = events.recv() => output.send_events(event, &mut events).await,
            ended = running.join_next() => break ended,
            () = sleep(ALIVE_EVERY) => output.send(OutputKind::Alive, &[]).await,
        };
        if sent.is_err() {
            return;
        }
    };
    let outcome = match ended {
        Some(Ok(outcome)) => outcome,
        // A panic is logged where it happens. Without an outcome the origin ends the call.
        Some(Err(_)) | None => {
            let _ = output.send(OutputKind::Stopping, &[]).await;
            return;
        }
    };
    // An origin that has gone needs no outcome.
    let _ = output.send_outcome(outcome, &mut events).await;
}

/// The origin has ended the call, or does not respond.
#[derive(Debug)]
struct OriginGone;

/// Output of one call to its origin.
struct Output<'s> {
    shared: &'s ForwardingShared,
    origin: NodeId,
    id: Uuid,
    /// Number of the next message.
    number: u64,
}

impl Output<'_> {
    /// Sends an event, with those that wait behind it.
    async fn send_events(
        &mut self,
        first: CodeEvent,
        events: &mut mpsc::Receiver<CodeEvent>,
    ) -> Result<(), OriginGone> {
        let mut batch = EventBatch::default();
        batch.push(first);
        while !batch.is_full() {
            let Ok(event) = events.try_recv() else { break };
            batch.push(event);
        }
        self.send_batch(batch).await
    }

    async fn send_batch(&mut self, batch: EventBatch) -> Result<(), OriginGone> {
        match batch.encode() {
            Ok(content) => self.send(OutputKind::Events, &content).await,
            Err(why) => {
                tracing::error!(%why, "the output of a function is left out");
                Ok(())
            }
        }
    }

    /// Sends the events that are left, and then the outcome.
    async fn send_outcome(
        &mut self,
        outcome: Outcome,
        events: &mut mpsc::Receiver<CodeEvent>,
    ) -> Result<(), OriginGone> {
        while let Ok(event) = events.try_recv() {
            self.send_events(event, events).await?;
        }
        if outcome.content.len() > OUTCOME_BYTES_MAX {
            tracing::error!(bytes = outcome.content.len(), "the outcome of a function is too large for another node");
            return self.send(OutputKind::Stopping, &[]).await;
        }
        let mut parts = messages::parts(outcome.content);
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            self.send(OutputKind::Part, &part).await?;
        }
        self.send(OutputKind::End { is_refused: outcome.is_refused }, &last).await
    }

    /// Sends a message until the origin has taken it.
    async fn send(&mut self, kind: OutputKind, content: &[u8]) -> Result<(), OriginGone> {
        let header = ToOrigin { id: self.id, number: self.number, kind };
        let message = messages::encode(&header, content).map_err(|why| {
            tracing::error!(%why, "the output of a function cannot be sent");
            OriginGone
        })?;
        let mut heard = Instant::now();
        loop {
            let answer = self.shared.peers.ask(self.origin, PeerService::Output, message.clone(), SEND_WITHIN).await;
            match answer.map(|answer| serde_json::from_slice(&answer)) {
                Ok(Ok(OutputAnswer::Taken)) => {
                    self.number += 1;
                    return Ok(());
                }
                Ok(Ok(OutputAnswer::Full)) => heard = Instant::now(),
                Ok(Ok(OutputAnswer::Gone)) => return Err(OriginGone),
                Ok(Err(why)) => {
                    tracing::error!(origin = %self.origin, %why, "the answer of another node cannot be read");
                    return Err(OriginGone);
                }
                Err(why) if heard.elapsed() >= SILENCE_MAX => {
                    tracing::warn!(origin = %self.origin, %why, "a call was ended, because its origin does not respond");
                    return Err(OriginGone);
                }
                Err(_) => {}
            }
            sleep(SEND_AGAIN_AFTER).await;
        }
    }
}

impl CodeForwarding {
    /// Stops to take calls of other nodes, and waits until those that run have ended. Ends what still runs afterwards.
    pub async fn close(&self, within: Duration) {
        let executed = &self.0.executed;
        executed.0.lock().is_closed = true;
        if timeout(within, executed.idle()).await.is_ok() {
            return;
        }
        for call in executed.0.lock().calls.values() {
            // A full channel holds the same message already.
            let _ = call.stop.try_send(());
        }
        // What does not end by itself ends with the process.
        let _ = timeout(FAREWELL_TIME, executed.idle()).await;
    }
}
