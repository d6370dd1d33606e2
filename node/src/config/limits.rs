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
    /// Threads that order writes. One orders about ten thousand a second.
    pub threads: usize,
    /// Accepted and unanswered writes of one object.
    pub object_writes_max: usize,
    /// Bytes of those writes. A higher value makes one busy object faster, and the other objects of its shard slower.
    /// An object holds at most a quarter of its shard's 8 MiB while others wait.
    pub object_bytes_max: usize,
    /// Accepted and unanswered writes of all objects of this node.
    pub node_writes_max: usize,
    /// Bytes of those writes, which take about twice as much memory. The default is a 64th of the machine's memory or of
    /// the limit of its control group, at least 32 MiB and at most 256 MiB.
    pub node_bytes_max: usize,
    /// Objects with recent writes.
    pub active_max: usize,
    /// Time without a write after which the actor of an object is stopped.
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
    /// Queries that run at a time. A query whose client is reading the response does not count. While others wait, an
    /// organization has at most half of them, and a credential a quarter.
    pub running_max: usize,
    /// Queries that wait for their turn, at most half of them of one organization. More are answered with 429 at once.
    pub waiting_max: usize,
    /// Time limit of a query, which is answered with 504.
    pub seconds_max: u64,
    /// Memory of one query, and of all together.
    pub query_bytes_max: usize,
    pub memory_bytes_max: usize,
    /// Columns kept in memory for the next query.
    pub cache_bytes_max: usize,
    /// Threads that work on rows; 0 for one a core.
    pub threads: usize,
    /// Async queries (`/btql/async`): upper bounds of those that run at a time, that wait in one organization, and that
    /// are kept with their results for a day. At most half of the kept ones are of one organization.
    pub later_running_max: usize,
    pub later_waiting_max: usize,
    pub later_kept_max: usize,
    /// Time limit of an async query, without its wait.
    pub later_seconds_max: u64,
    /// Bytes of the results of one async query, and of all on this node's disk, at most half of them of one
    /// organization.
    pub later_job_bytes_max: u64,
    pub later_bytes_max: u64,
    /// File of prices instead of the built-in ones; empty for none.
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
        }
    }

    pub fn prices(&self) -> Result<Prices, PriceError> {
        if self.prices.as_os_str().is_empty() { Ok(Prices::standard().clone()) } else { Prices::read(&self.prices) }
    }
}
