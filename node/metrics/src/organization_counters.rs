//! Counters by organization with a bounded number of labels.

use std::collections::BTreeMap;
use std::fmt::Write;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::family_head;

/// Upper bound of the organizations with their own label. All further ones are counted as `other`.
pub const ORGANIZATIONS_LABELLED_MAX: usize = 100;
/// Label of all organizations without their own.
const OTHER: &str = "other";

/// Several counters of each organization.
///
/// The first organizations since the start have their own label. They keep it, because a counter must not decrease.
#[derive(Debug)]
pub struct OrganizationCounters<const N: usize> {
    families: [(&'static str, &'static str); N],
    counts: Mutex<OrganizationCounts<N>>,
}

#[derive(Debug)]
struct OrganizationCounts<const N: usize> {
    labelled: BTreeMap<Uuid, [u64; N]>,
    others: Option<[u64; N]>,
}

impl<const N: usize> OrganizationCounters<N> {
    /// Creates counters with the name and the help text of each family.
    pub fn new(families: [(&'static str, &'static str); N]) -> OrganizationCounters<N> {
        OrganizationCounters {
            families,
            counts: Mutex::new(OrganizationCounts { labelled: BTreeMap::new(), others: None }),
        }
    }

    /// Adds to the counters of an organization, in the order of the families.
    pub fn add(&self, organization: Uuid, amounts: [u64; N]) {
        let mut counts = self.counts.lock();
        let is_labelled = counts.labelled.len() < ORGANIZATIONS_LABELLED_MAX;
        let counted = match is_labelled || counts.labelled.contains_key(&organization) {
            true => counts.labelled.entry(organization).or_insert([0; N]),
            false => counts.others.get_or_insert([0; N]),
        };
        for (count, more) in counted.iter_mut().zip(amounts) {
            *count = count.saturating_add(more);
        }
    }

    /// Returns the metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        let counts = self.counts.lock();
        let mut text = String::new();
        for (place, (name, help)) in self.families.iter().enumerate() {
            text.push_str(&family_head(name, help, "counter"));
            // Writing to a String cannot fail.
            for (organization, counted) in &counts.labelled {
                let _ = writeln!(text, "{name}{{organization=\"{organization}\"}} {}", counted[place]);
            }
            if let Some(counted) = &counts.others {
                let _ = writeln!(text, "{name}{{organization=\"{OTHER}\"}} {}", counted[place]);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> OrganizationCounters<2> {
        OrganizationCounters::new([("rows_total", "Rows."), ("bytes_total", "Bytes.")])
    }

    #[test]
    fn each_organization_has_its_own_counts() {
        let counters = counters();
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        counters.add(one, [1, 10]);
        counters.add(two, [2, 20]);
        counters.add(one, [3, 30]);
        let text = counters.text();
        assert!(text.contains(&format!("rows_total{{organization=\"{one}\"}} 4\n")), "{text}");
        assert!(text.contains(&format!("bytes_total{{organization=\"{two}\"}} 20\n")), "{text}");
        assert!(!text.contains("other"), "{text}");
    }

    #[test]
    fn organizations_beyond_the_limit_are_counted_together() {
        let counters = counters();
        for number in 0..ORGANIZATIONS_LABELLED_MAX as u128 + 50 {
            counters.add(Uuid::from_u128(number), [1, 2]);
        }
        counters.add(Uuid::from_u128(0), [1, 0]);
        let text = counters.text();
        assert_eq!(text.matches("rows_total{").count(), ORGANIZATIONS_LABELLED_MAX + 1);
        assert!(text.contains("rows_total{organization=\"other\"} 50\n"), "{text}");
        assert!(text.contains("bytes_total{organization=\"other\"} 100\n"), "{text}");
        assert!(text.contains(&format!("rows_total{{organization=\"{}\"}} 2\n", Uuid::nil())), "{text}");
    }
}
