//! Meters of writes for the metrics of a node.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assay_node_metrics::{DurationHistogram, OrganizationCounters, family_head};
use assay_node_usage::{UsageAmounts, UsageMeter};
use uuid::Uuid;

const SECONDS: &str = "assay_write_seconds";
const BY_ORGANIZATION: [(&str, &str); 3] = [
    ("assay_organization_rows_total", "Rows written to the shards that this node leads, by organization."),
    ("assay_organization_bytes_total", "Bytes of those rows before compression, by organization."),
    ("assay_organization_writes_refused_total", "Writes that waited for a reservation in vain, by organization."),
];

/// Meters of writes.
#[derive(Debug)]
pub(crate) struct WriteMeters {
    seconds: DurationHistogram,
    organizations: OrganizationCounters<{ BY_ORGANIZATION.len() }>,
    /// Usage by credential, once the program has opened it.
    pub usage: OnceLock<Arc<UsageMeter>>,
}

impl Default for WriteMeters {
    fn default() -> WriteMeters {
        let organizations = OrganizationCounters::new(BY_ORGANIZATION);
        WriteMeters { seconds: DurationHistogram::default(), organizations, usage: OnceLock::new() }
    }
}

impl WriteMeters {
    /// Notes a request whose writes were acknowledged, with its rows and their bytes.
    pub fn acknowledged(&self, took: Duration, (organization, credential): (Uuid, Uuid), (rows, bytes): (u64, u64)) {
        self.seconds.observe(took);
        if let Some(usage) = self.usage.get() {
            usage.count(organization, credential, UsageAmounts { rows, bytes, ..UsageAmounts::default() });
        }
    }

    /// Counts rows that were written on this node.
    pub fn written(&self, organization: Uuid, rows: usize, bytes: usize) {
        self.organizations.add(organization, [rows as u64, bytes as u64, 0]);
    }

    pub fn refused(&self, organization: Uuid) {
        self.organizations.add(organization, [0, 0, 1]);
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = family_head(SECONDS, "Time from the request to the acknowledgement of its writes.", "histogram");
        self.seconds.write(&mut text, SECONDS, "");
        text.push_str(&self.organizations.text());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_counted_by_organization_and_timed() {
        let (meters, organization) = (WriteMeters::default(), Uuid::from_u128(7));
        meters.acknowledged(Duration::from_millis(4), (organization, Uuid::nil()), (5, 150));
        meters.written(organization, 3, 100);
        meters.written(organization, 2, 50);
        meters.refused(organization);
        let text = meters.text();
        for line in [
            "assay_write_seconds_bucket{le=\"0.005\"} 1".to_owned(),
            "assay_write_seconds_count 1".to_owned(),
            format!("assay_organization_rows_total{{organization=\"{organization}\"}} 5"),
            format!("assay_organization_bytes_total{{organization=\"{organization}\"}} 150"),
            format!("assay_organization_writes_refused_total{{organization=\"{organization}\"}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
