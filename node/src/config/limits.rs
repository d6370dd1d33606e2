//! Settings of the resources that writes and queries may take.

use std::path::PathBuf;
use std::time::Duration;

use assay_node_objects::ObjectLimits;
use assay_node_query::{JobLimits, PriceError, Prices, QueryLimits};
use serde::{Deserialize, Serialize};

/// Limits of writes on their way to the disk. Writes beyond them wait, and are refused with 429 and `Retry-After` only
/// at their deadline: 30 s for JSON, 5 s for OpenTelemetry exporters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectsConfig {
    /// Threads that order writes. One thread orders about ten thousand writes per second.
    pub threads: usize,
    /// Upper bound of the unanswered writes of one object.
    pub object_writes_max: usize,
    /// Upper bound of the bytes of those writes. A larger bound makes one busy object faster and the others of its
    /// shard slower.
    pub object_bytes_max: usize,
    /// Upper bound of the unanswered writes of all objects of this node.
    pub node_writes_max: usize,
    /// Upper bound of the bytes of those writes, which take about twice as much memory. The default is a 64th of the
    /// memory of the machine or control group, from 32 MiB to 256 MiB.
    pub node_bytes_max: usize,
    /// Upper bound of the objects with recent writes.
    pub active_max: usize,
    /// Time after which an object without writes is removed from memory.
    pub idle_seconds: u64,
}

impl Default for ObjectsConfig {
    fn default() -> Self {
        let limits = ObjectLimits::default();
        ObjectsConfig {
            threads: limits.threads,
            object_writes_max: limits.object_writes,
            object_bytes_max: limits.object_bytes,
            node_writes_max: limits.node_writes,
            node_bytes_max: limits.node_bytes,
            active_max: limits.objects,
            idle_seconds: limits.idle.as_secs(),
        }
    }
}

impl ObjectsConfig {
    pub fn limits(&self) -> ObjectLimits {
        ObjectLimits {
            threads: self.threads.max(1),
            object_writes: self.object_writes_max,
            object_bytes: self.object_bytes_max,
            node_writes: self.node_writes_max,
            node_bytes: self.node_bytes_max,
            objects: self.active_max,
            idle: Duration::from_secs(self.idle_seconds),
            ..ObjectLimits::default()
        }
    }
}

/// Limits of queries. A query waits for its turn up to 30 s, or 1 s less than the timeout of its client
/// (`x-stainless-timeout`); then the answer is 429 with `Retry-After`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueriesConfig {
    /// Queries that run at the same time. A query that waits for its client does not count. While others wait, an
    /// organization has at most half of them, and a credential a quarter.
    pub running_max: usize,
    /// Queries that wait, half of them of one organization. Beyond it a query gets a 429 at once.
    pub waiting_max: usize,
    /// Time after which a query ends with a 504.
    pub seconds_max: u64,
    /// Upper bound of the memory of one query.
    pub query_bytes_max: usize,
    /// Upper bound of the memory of all queries.
    pub memory_bytes_max: usize,
    /// Memory for columns that later queries may use.
    pub cache_bytes_max: usize,
    /// Threads that process rows; 0 means one for each processor.
    pub threads: usize,
    /// Async queries (`/btql/async`) that run at the same time.
    pub later_running_max: usize,
    /// Async queries of one organization that may wait.
    pub later_waiting_max: usize,
    /// Async queries whose results are stored for a day, half of them of one organization.
    pub later_kept_max: usize,
    /// Time that an async query may run, without its wait.
    pub later_seconds_max: u64,
    /// Upper bound of the results of one async query.
    pub later_job_bytes_max: u64,
    /// Upper bound of all results on the disk of this node, half of them of one organization.
    pub later_bytes_max: u64,
    /// Time after which a query is logged with its organization, user and text without literals; 0 means never.
    pub slow_seconds: u64,
    /// File with prices of models, which take precedence over the built-in table; empty for none.
    pub prices: PathBuf,
}

impl Default for QueriesConfig {
    fn default() -> Self {
        let limits = QueryLimits::default();
        QueriesConfig {
            running_max: limits.running_max,
            waiting_max: limits.waiting_max,
            seconds_max: limits.seconds_max,
            query_bytes_max: limits.query_bytes_max,
            memory_bytes_max: limits.memory_bytes_max,
            cache_bytes_max: limits.cache_bytes_max,
            threads: limits.threads,
            later_running_max: limits.jobs.running_max,
            later_waiting_max: limits.jobs.waiting_max,
            later_kept_max: limits.jobs.kept_max,
            later_seconds_max: limits.jobs.seconds_max,
            later_job_bytes_max: limits.jobs.job_bytes_max,
            later_bytes_max: limits.jobs.bytes_max,
            slow_seconds: limits.slow_seconds,
            prices: PathBuf::new(),
        }
    }
}

impl QueriesConfig {
    pub fn limits(&self) -> QueryLimits {
        QueryLimits {
            running_max: self.running_max,
            waiting_max: self.waiting_max,
            seconds_max: self.seconds_max,
            query_bytes_max: self.query_bytes_max,
            memory_bytes_max: self.memory_bytes_max,
            cache_bytes_max: self.cache_bytes_max,
            threads: self.threads,
            jobs: JobLimits {
                running_max: self.later_running_max,
                waiting_max: self.later_waiting_max,
                kept_max: self.later_kept_max,
                seconds_max: self.later_seconds_max,
                job_bytes_max: self.later_job_bytes_max,
                bytes_max: self.later_bytes_max,
            },
            slow_seconds: self.slow_seconds,
        }
    }

    pub fn prices(&self) -> Result<Prices, PriceError> {
        let standard = Prices::standard();
        if self.prices.as_os_str().is_empty() {
            Ok(standard.clone())
        } else {
            Ok(Prices::read(&self.prices)?.over(standard))
        }
    }
}
