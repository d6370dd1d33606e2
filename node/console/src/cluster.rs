//! Handlers of `GET /console/cluster` and `GET /console/usage`: state of the cluster, and storage of an organization.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_cluster::{Cluster, ClusterStatus, NodeReport};
use assay_node_auth::Principal;
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::{ClusterReadings, Console};
use assay_node_limits::{ClusterUsage, ObjectUsages, RateReading, StorageUsage};
use assay_node_records::{ListRequest, kinds};
use assay_storage_model::event::format_micros;
use assay_storage_model::{ObjectKind, OrgId};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

/// Upper bound of the number of projects in a usage response.
const PROJECTS_MAX: usize = 10_000;
const MICROS: i64 = 1_000_000;

/// Time for which a usage measurement is reused.
///
/// A measurement reads much memory on each node, and any member may request one.
const USAGE_HOLDS: Duration = Duration::from_secs(10);
/// Upper bound of the number of organizations whose last measurement is kept.
const MEASURED_MAX: usize = 256;

/// Last measurement of an organization. Concurrent requests wait for a measurement in progress.
type Measured = Arc<Mutex<Option<(Instant, ObjectUsages)>>>;

/// Source of readings from the running cluster.
#[derive(Debug)]
pub struct ClusterReader {
    cluster: Arc<Cluster>,
    measured: Arc<parking_lot::Mutex<HashMap<OrgId, Measured>>>,
}

impl ClusterReader {
    pub fn new(cluster: Arc<Cluster>) -> ClusterReader {
        ClusterReader { cluster, measured: Arc::default() }
    }

    fn measured(&self, org: OrgId) -> Measured {
        let mut all = self.measured.lock();
        if all.len() >= MEASURED_MAX && !all.contains_key(&org) {
            all.clear();
        }
        Arc::clone(all.entry(org).or_default())
    }
}

impl ClusterReadings for ClusterReader {
    fn status(&self) -> BoxFuture<'static, Value> {
        let cluster = Arc::clone(&self.cluster);
        async move { status_json(&cluster.status().await) }.boxed()
    }

    fn usage(&self, org: OrgId) -> BoxFuture<'static, ObjectUsages> {
        let (cluster, measured) = (Arc::clone(&self.cluster), self.measured(org));
        async move {
            let mut last = measured.lock().await;
            if let Some((at, usages)) = &*last
                && at.elapsed() < USAGE_HOLDS
            {
                return usages.clone();
            }
            let usages = ClusterUsage::measure_objects(&cluster, org).await;
            *last = Some((Instant::now(), usages.clone()));
            usages
        }
        .boxed()
    }
}

/// Returns whether the caller is one of the operators that the configuration names.
///
/// An impersonated user is never an operator.
pub fn is_operator(console: &Console, who: &Principal) -> bool {
    let named = console.config.operators.iter().any(|email| email.eq_ignore_ascii_case(&who.user_email));
    named && who.impersonator.is_none() && !who.user_email.is_empty()
}

/// Handles `GET /console/cluster`, which only operators may call.
pub async fn status(call: Call) -> HandlerResult {
    if !is_operator(&call.edge.console, &call.principal) {
        let said = "the state of the cluster is for its operators; the setting `console.operators` has to name the \
                    e-mail address of this user";
        return Err(Refusal::new(ErrorKind::Forbidden, said));
    }
    json(&call.edge.console.readings.status().await)
}

fn time(seconds: u64) -> String {
    format_micros(i64::try_from(seconds).unwrap_or(i64::MAX / MICROS) * MICROS)
}

fn status_json(status: &ClusterStatus) -> Value {
    let node = |node: &NodeReport| {
        let facts = node.facts.clone().unwrap_or_default();
        json!({
            "id": node.id, "address": node.address, "state": node.state, "answers": node.answers, "leads": node.leads,
            "version": (!facts.version.is_empty()).then_some(facts.version),
            "memory_bytes": facts.memory_bytes,
            "disk_total_bytes": facts.disk_total_bytes, "disk_free_bytes": facts.disk_free_bytes,
            "started": facts.started.map(time), "certificate_ends": facts.certificate_ends.map(time),
        })
    };
    json!({
        "cluster": status.cluster, "node": status.node, "replicas": status.replicas, "quorum": status.quorum,
        "settled": status.settled, "unsettled": status.unsettled,
        "nodes": status.nodes.iter().map(node).collect::<Vec<_>>(), "groups": status.groups,
    })
}

/// Handles `GET /console/usage`: the organization's storage, quotas and rate limits.
///
/// The totals cover the whole organization. The list of projects contains only those that the caller may see.
pub async fn usage(call: Call) -> HandlerResult {
    let who = &call.principal;
    let usages = call.edge.console.readings.usage(who.org).await;
    let request = ListRequest::from_query(vec![("limit".to_owned(), PROJECTS_MAX.to_string())])?;
    let projects = call.edge.records.list(who, &kinds::PROJECT, &request).await?;
    let mut total = StorageUsage::default();
    let mut by_project: BTreeMap<Uuid, StorageUsage> = BTreeMap::new();
    for (object, usage) in usages.objects {
        total = total.plus(usage);
        let project = match object.kind {
            ObjectKind::ProjectLogs | ObjectKind::ProjectPrompts => Some(object.id),
            kind => call.edge.records.project_at(who.org, kind.name(), object.id),
        };
        if let Some(project) = project {
            let sum = by_project.entry(project).or_default();
            *sum = sum.plus(usage);
        }
    }
    let project = |project: &Value| {
        let id = project["id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
        let usage = id.and_then(|id| by_project.get(&id).copied()).unwrap_or_default();
        json!({"id": project["id"], "name": project["name"], "rows": usage.rows, "bytes": usage.bytes})
    };
    let (rows_max, bytes_max) = call.edge.quotas.bounds(&who.org_name);
    let rates = call.edge.rates.readings(who).await;
    json(&json!({
        "complete": usages.is_complete,
        "rows": total.rows, "bytes": total.bytes, "quota": {"rows": rows_max, "bytes": bytes_max},
        "projects": projects.iter().map(project).collect::<Vec<_>>(),
        "rates": rates.iter().map(rate_json).collect::<Vec<_>>(),
    }))
}

fn rate_json(RateReading { rule, burst, left }: &RateReading) -> Value {
    json!({
        "endpoint": rule.endpoint, "methods": rule.methods, "per": rule.per, "requests": rule.requests,
        "seconds": rule.seconds, "burst": burst, "left": left,
    })
}
