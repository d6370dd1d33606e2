//! Counts and durations of queries for the metrics of a node.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use assay_node_metrics::{DurationHistogram, OrganizationCounters, family_head};
use uuid::Uuid;

use crate::registry::QueryKind;

/// Families by organization.
const BY_ORGANIZATION: [(&str, &str); 2] = [
    ("assay_organization_queries_total", "Queries that ended on this node, by organization."),
    ("assay_organization_queries_refused_total", "Queries that waited for a permit in vain, by organization."),
];
const SECONDS: &str = "assay_query_seconds";
const ENDED: &str = "assay_query_ended_total";

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryEnding {
    /// All of its rows were returned.
    Completed,
    Failed,
    /// It got no permit.
    Refused,
    /// A user ended it.
    Cancelled,
    /// Its client left before the end.
    Abandoned,
}

impl QueryEnding {
    pub const ALL: [QueryEnding; 5] = [
        QueryEnding::Completed,
        QueryEnding::Failed,
        QueryEnding::Refused,
        QueryEnding::Cancelled,
        QueryEnding::Abandoned,
    ];

    /// Returns the name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            QueryEnding::Completed => "completed",
            QueryEnding::Failed => "failed",
            QueryEnding::Refused => "refused",
            QueryEnding::Cancelled => "cancelled",
            QueryEnding::Abandoned => "abandoned",
        }
    }
}

/// Meters of the queries of a node.
#[derive(Debug)]
pub struct QueryMeters {
    kinds: [KindMeters; QueryKind::ALL.len()],
    organizations: OrganizationCounters<{ BY_ORGANIZATION.len() }>,
}

#[derive(Debug, Default)]
struct KindMeters {
    seconds: DurationHistogram,
    ended: [AtomicU64; QueryEnding::ALL.len()],
}

impl Default for QueryMeters {
    fn default() -> QueryMeters {
        QueryMeters { kinds: Default::default(), organizations: OrganizationCounters::new(BY_ORGANIZATION) }
    }
}

impl QueryMeters {
    /// Counts a query that ended. `took` is the time that it waited and ran, without that of its client.
    pub fn ended(&self, kind: QueryKind, organization: Uuid, ending: QueryEnding, took: Duration) {
        let meters = &self.kinds[kind as usize];
        meters.seconds.observe(took);
        meters.ended[ending as usize].fetch_add(1, Ordering::Relaxed);
        self.organizations.add(organization, [1, u64::from(ending == QueryEnding::Refused)]);
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = family_head(SECONDS, "Time that queries waited and ran, without that of clients.", "histogram");
        for kind in QueryKind::ALL {
            let labels = format!("kind=\"{}\",", kind.name());
            self.kinds[kind as usize].seconds.write(&mut text, SECONDS, &labels);
        }
        text.push_str(&family_head(ENDED, "Queries that ended.", "counter"));
        for kind in QueryKind::ALL {
            for ending in QueryEnding::ALL {
                let count = self.kinds[kind as usize].ended[ending as usize].load(Ordering::Relaxed);
                let (kind, outcome) = (kind.name(), ending.name());
                text.push_str(&format!("{ENDED}{{kind=\"{kind}\",outcome=\"{outcome}\"}} {count}\n"));
            }
        }
        text.push_str(&self.organizations.text());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_counted_by_kind_ending_and_organization() {
        let meters = QueryMeters::default();
        let organization = Uuid::from_u128(7);
        meters.ended(QueryKind::Direct, organization, QueryEnding::Completed, Duration::from_millis(3));
        meters.ended(QueryKind::Direct, organization, QueryEnding::Cancelled, Duration::from_secs(3));
        meters.ended(QueryKind::Job, organization, QueryEnding::Refused, Duration::from_secs(30));
        let text = meters.text();
        for line in [
            "assay_query_seconds_bucket{kind=\"direct\",le=\"0.005\"} 1".to_owned(),
            "assay_query_seconds_count{kind=\"direct\"} 2".to_owned(),
            "assay_query_seconds_count{kind=\"internal\"} 0".to_owned(),
            "assay_query_ended_total{kind=\"direct\",outcome=\"cancelled\"} 1".to_owned(),
            "assay_query_ended_total{kind=\"job\",outcome=\"completed\"} 0".to_owned(),
            format!("assay_organization_queries_total{{organization=\"{organization}\"}} 3"),
            format!("assay_organization_queries_refused_total{{organization=\"{organization}\"}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
