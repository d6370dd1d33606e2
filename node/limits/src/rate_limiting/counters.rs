//! Counters of admitted and refused requests by rule, in Prometheus text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_node_metrics::OrganizationCounters;
use uuid::Uuid;

use super::rules::CompiledRule;

/// Family of refusals by organization.
const REFUSED: [(&str, &str); 1] =
    [("assay_organization_rate_refused_total", "Requests that a rate limit refused, by organization.")];

#[derive(Debug)]
pub(super) struct RateCounters {
    rules: Vec<RuleCounters>,
    refused_of: OrganizationCounters<{ REFUSED.len() }>,
    /// Requests sent to other nodes, and those of them without a response.
    pub asks: AtomicU64,
    pub unanswered: AtomicU64,
    /// Requests decided by this node's share because the home was silent.
    pub alone: AtomicU64,
}

#[derive(Debug, Default)]
struct RuleCounters {
    admitted: AtomicU64,
    refused: AtomicU64,
}

impl RateCounters {
    pub fn new(rules: usize) -> RateCounters {
        let rules = (0..rules).map(|_| RuleCounters::default()).collect();
        let refused_of = OrganizationCounters::new(REFUSED);
        let (asks, unanswered, alone) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        RateCounters { rules, refused_of, asks, unanswered, alone }
    }

    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub fn admitted(&self, rule: usize) {
        RateCounters::add(&self.rules[rule].admitted);
    }

    pub fn refused(&self, rule: usize, organization: Uuid) {
        RateCounters::add(&self.rules[rule].refused);
        self.refused_of.add(organization, [1]);
    }

    /// Returns the metrics in Prometheus text format.
    ///
    /// Rules count from 1, as in error messages. An endpoint contains no character that needs escaping.
    pub fn text(&self, rules: &[CompiledRule], buckets: usize, leases: usize) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a String cannot fail.
        for (name, of) in [
            ("rate_admitted_total", (|counts| &counts.admitted) as fn(&RuleCounters) -> &AtomicU64),
            ("rate_refused_total", |counts| &counts.refused),
        ] {
            let _ = writeln!(text, "# TYPE assay_{name} counter");
            for (place, (counts, rule)) in self.rules.iter().zip(rules).enumerate() {
                let (number, endpoint, per) = (place + 1, &rule.config.endpoint, rule.config.per);
                let labels = format!("rule=\"{number}\",endpoint=\"{endpoint}\",per=\"{per}\"");
                let _ = writeln!(text, "assay_{name}{{{labels}}} {}", read(of(counts)));
            }
        }
        for (name, kind, value) in [
            ("asks_total", "counter", read(&self.asks)),
            ("asks_unanswered_total", "counter", read(&self.unanswered)),
            ("alone_total", "counter", read(&self.alone)),
            ("buckets", "gauge", buckets as u64),
            ("leases", "gauge", leases as u64),
        ] {
            let _ = writeln!(text, "# TYPE assay_rate_{name} {kind}\nassay_rate_{name} {value}");
        }
        text.push_str(&self.refused_of.text());
        text
    }
}
