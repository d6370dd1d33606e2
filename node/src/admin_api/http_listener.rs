//! The administrators' HTTP listener of a running node: `POST /cluster/<operation>`.
//!
//! Fields of requests and replies are those of the socket in the data directory ([`ClusterRequest`]).

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use assay_cluster::{Cluster, ClusterStatus};
use assay_node_http::{Admin, AdminAnswer, AdminRefusal, AdminRequest};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Map, Value, json};

use super::handlers::{ClusterRefusal, execute_cluster_request};
use super::requests::{ClusterRequest, PROGRESS_INTERVAL, SETTLE_MAX, STATUS_POLL_INTERVAL, not_settled};
use super::token::token;
use crate::config::Config;

/// Operation without a time limit of its own, which reports progress in lines.
const REBALANCE: &str = "rebalance";

/// Returns the listener for the HTTP server; none where it is not configured.
pub fn open(config: &Config, cluster: Arc<Cluster>) -> anyhow::Result<Option<Admin>> {
    if config.admin.listen.is_none() {
        return Ok(None);
    }
    let token = token(config)?;
    let answers = move |request: AdminRequest| -> futures::future::BoxFuture<'static, _> {
        let cluster = Arc::clone(&cluster);
        Box::pin(async move { answer(cluster, request).await })
    };
    Ok(Some(Admin { config: config.admin.clone(), token, answers: Arc::new(answers) }))
}

/// Prints the addresses of the listener to stdout.
pub fn announce(config: &Config, addresses: &[SocketAddr]) -> anyhow::Result<()> {
    let scheme = if config.admin.tls.is_some() { "https" } else { "http" };
    let mut out = std::io::stdout().lock();
    for address in addresses {
        writeln!(out, "Administrators are served at {scheme}://{address}")?;
    }
    out.flush()?;
    Ok(())
}

async fn answer(cluster: Arc<Cluster>, request: AdminRequest) -> Result<AdminAnswer, AdminRefusal> {
    if request.operation == REBALANCE {
        return match request.fields.keys().next() {
            None => Ok(AdminAnswer::Lines(settle_progress(cluster))),
            Some(field) => Err(AdminRefusal::Bad(format!("`{REBALANCE}` has no field `{field}`; send an empty body"))),
        };
    }
    let request = parse_request(request)?;
    execute_cluster_request(&cluster, request).await.map(AdminAnswer::Done).map_err(|refused| match refused {
        ClusterRefusal::State(why) => AdminRefusal::Refused(why),
        ClusterRefusal::Unavailable(why) => AdminRefusal::Unavailable(why),
    })
}

/// An operation without fields is written as its name alone.
fn parse_request(request: AdminRequest) -> Result<ClusterRequest, AdminRefusal> {
    let AdminRequest { operation, fields } = request;
    let plain = fields.is_empty().then(|| serde_json::from_value(Value::String(operation.clone())).ok()).flatten();
    if let Some(plain) = plain {
        return Ok(plain);
    }
    let whole = Map::from_iter([(operation.clone(), Value::Object(fields))]);
    serde_json::from_value(Value::Object(whole)).map_err(|error| AdminRefusal::Bad(format!("`{operation}`: {error}")))
}

/// Streams what is unsettled, on every change and from time to time; the last line is the status, or a refusal.
fn settle_progress(cluster: Arc<Cluster>) -> BoxStream<'static, Value> {
    let until = Instant::now() + SETTLE_MAX;
    let waiting = SettleProgress { until, said: None };
    stream::unfold(Some((cluster, waiting)), |state| async move {
        let (cluster, mut waiting) = state?;
        loop {
            let status = cluster.status().await;
            match waiting.line(&status, Instant::now()) {
                ProgressLine::Last(last) => return Some((last, None)),
                ProgressLine::Meanwhile(line) => return Some((line, Some((cluster, waiting)))),
                ProgressLine::Nothing => tokio::time::sleep(STATUS_POLL_INTERVAL).await,
            }
        }
    })
    .boxed()
}

#[derive(Debug)]
struct SettleProgress {
    until: Instant,
    said: Option<(String, Instant)>,
}

#[derive(Debug, PartialEq)]
enum ProgressLine {
    Nothing,
    Meanwhile(Value),
    Last(Value),
}

impl SettleProgress {
    fn line(&mut self, status: &ClusterStatus, now: Instant) -> ProgressLine {
        if status.settled {
            return ProgressLine::Last(serde_json::to_value(status).unwrap_or_default());
        }
        let left = status.unsettled.join("; ");
        if now >= self.until {
            return ProgressLine::Last(json!({"refused": not_settled(&left)}));
        }
        let silent = |at: &Instant| now.duration_since(*at) < PROGRESS_INTERVAL;
        if self.said.as_ref().is_some_and(|(_, at)| silent(at)) {
            return ProgressLine::Nothing;
        }
        let line = ProgressLine::Meanwhile(json!({"waiting": left}));
        self.said = Some((left, now));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(operation: &str, fields: Value) -> Result<ClusterRequest, AdminRefusal> {
        let fields = fields.as_object().cloned().unwrap_or_default();
        parse_request(AdminRequest { operation: operation.into(), fields })
    }

    #[track_caller]
    fn refused(operation: &str, fields: Value, part: &str) {
        let Err(AdminRefusal::Bad(why)) = asked(operation, fields) else { panic!("{operation} is taken") };
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn a_request_is_its_operation_and_its_fields() {
        assert_eq!(asked("status", json!({})), Ok(ClusterRequest::Status));
        assert_eq!(asked("drain", json!({"node": 2})), Ok(ClusterRequest::Drain { node: 2 }));
        assert_eq!(asked("replace", json!({"old": 2, "new": 4})), Ok(ClusterRequest::Replace { old: 2, new: 4 }));
        assert_eq!(asked("token", json!({})), Ok(ClusterRequest::Token { minutes: 60 }));
        refused("drian", json!({"node": 2}), "`status`, `drain`");
        refused("drain", json!({}), "missing field `node`");
        refused("drain", json!({"node": "two"}), "expected u64");
        refused("drain", json!({"node": 2, "force": true}), "unknown field `force`");
    }
}
