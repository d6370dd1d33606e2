//! Quotas: upper bounds of the rows and bytes that an organization stores on all nodes.
//!
//! [`UsageSource`] measures the usage every few seconds. A measurement takes time, and may miss writes that come
//! meanwhile. So writes that this node admitted since the measurement began are added. Several nodes together can exceed
//! a quota by the writes that they admit between two measurements.

mod cluster_usage;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::Principal;
use assay_storage_model::OrgId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use cluster_usage::{ClusterUsage, ObjectUsages};

const RULES_MAX: usize = 64;
const ORGANIZATIONS_MAX: usize = 1000;
/// Upper bound of the organizations whose writes since the last measurement are counted.
const COUNTED_MAX: usize = 100_000;

/// Upper bounds of the rows and bytes that each organization stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaRule {
    /// Names of the organizations to which the rule applies. An empty list means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organizations: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Number of rows and bytes of an organization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageUsage {
    pub rows: u64,
    pub bytes: u64,
}

/// Usage of an organization as last measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredUsage {
    /// Number of the measurement.
    pub number: u64,
    /// Number of the measurement that began last. It exceeds `number` by one while a measurement is in progress.
    pub begun: u64,
    pub usage: StorageUsage,
}

/// Source of the last measurement of usage.
pub trait UsageSource: Send + Sync + fmt::Debug + 'static {
    /// Returns the usage of an organization, or `None` before the first measurement.
    fn of(&self, org: OrgId) -> Option<MeasuredUsage>;
}

/// Admission of writes by the configured quotas. Clones share all state.
#[derive(Clone, Debug, Default)]
pub struct Quotas(Option<Arc<Ledger>>);

#[derive(Debug)]
struct Ledger {
    rules: Vec<QuotaRule>,
    usage: Arc<dyn UsageSource>,
    /// Usage that measurements may not contain yet.
    admitted: Mutex<HashMap<OrgId, AdmittedUsage>>,
}

/// Usage that was admitted since the start of a measurement.
#[derive(Clone, Copy, Debug, Default)]
struct AdmittedUsage {
    /// Number of the measurement.
    begun: u64,
    since: StorageUsage,
    /// Usage admitted between the starts of the measurement before and of this one.
    before: StorageUsage,
}

impl AdmittedUsage {
    /// Moves to the measurement that began last.
    fn advance(&mut self, begun: u64) {
        if begun > self.begun {
            self.before = if begun == self.begun + 1 { self.since } else { StorageUsage::default() };
            (self.begun, self.since) = (begun, StorageUsage::default());
        }
    }

    /// Returns the usage that a measurement may have missed, because its write came after the start.
    fn missed_by(&self, number: u64) -> StorageUsage {
        if number < self.begun { self.since.plus(self.before) } else { self.since }
    }
}

/// Checks the rules. The error names the rule and the problem.
pub fn check_quotas(rules: &[QuotaRule]) -> Result<(), String> {
    if rules.len() > RULES_MAX {
        return Err(format!("limits.quotas has {} rules; the maximum is {RULES_MAX}", rules.len()));
    }
    for (place, rule) in rules.iter().enumerate() {
        let wrong = |why: &str| Err(format!("limits.quotas, rule {}: {why}", place + 1));
        if rule.rows.is_none() && rule.bytes.is_none() {
            return wrong("it has neither rows nor bytes; set one of them");
        }
        if rule.organizations.len() > ORGANIZATIONS_MAX || rule.organizations.iter().any(String::is_empty) {
            return wrong("organizations has more than 1000 names, or an empty one");
        }
    }
    Ok(())
}

impl Quotas {
    pub fn new(rules: Vec<QuotaRule>, usage: Arc<dyn UsageSource>) -> Quotas {
        if rules.is_empty() {
            return Quotas::default();
        }
        Quotas(Some(Arc::new(Ledger { rules, usage, admitted: Mutex::default() })))
    }

    /// Returns the upper bounds of the rows and bytes of an organization. `None` means unbounded.
    pub fn bounds(&self, organization: &str) -> (Option<u64>, Option<u64>) {
        let rules = self.0.iter().flat_map(|ledger| &ledger.rules);
        let applies = |rule: &&QuotaRule| {
            rule.organizations.is_empty() || rule.organizations.iter().any(|one| one == organization)
        };
        let rules: Vec<&QuotaRule> = rules.filter(applies).collect();
        (rules.iter().filter_map(|rule| rule.rows).min(), rules.iter().filter_map(|rule| rule.bytes).min())
    }

    /// Admits all writes of a request or refuses them all.
    ///
    /// `added` returns the upper bound of their usage. It is called only if a rule applies.
    pub fn admit(&self, who: &Principal, added: impl FnOnce() -> StorageUsage) -> Result<(), QuotaExceeded> {
        self.admit_for((who.org, &who.org_name), added)
    }

    /// Admits writes to an organization like [`Quotas::admit`].
    pub fn admit_for(
        &self,
        (org, org_name): (OrgId, &str),
        added: impl FnOnce() -> StorageUsage,
    ) -> Result<(), QuotaExceeded> {
        let Some(ledger) = &self.0 else { return Ok(()) };
        let names = |rule: &QuotaRule| rule.organizations.iter().any(|name| name == org_name);
        let applies = |rule: &&QuotaRule| rule.organizations.is_empty() || names(rule);
        let rules: Vec<&QuotaRule> = ledger.rules.iter().filter(applies).collect();
        if rules.is_empty() {
            return Ok(());
        }
        let added = added();
        if added == StorageUsage::default() {
            return Ok(());
        }
        let Some(MeasuredUsage { number, begun, usage: stored }) = ledger.usage.of(org) else { return Ok(()) };
        let mut admitted = ledger.admitted.lock();
        let mut own = admitted.get(&org).copied().unwrap_or_default();
        own.advance(begun);
        let held = stored.plus(own.missed_by(number));
        let then = held.plus(added);
        for rule in rules {
            let over = |wanted: Option<u64>, then: u64| wanted.filter(|most| then > *most);
            if let Some(most) = over(rule.rows, then.rows) {
                return Err(QuotaExceeded::new(org_name, "rows", held.rows, most));
            }
            if let Some(most) = over(rule.bytes, then.bytes) {
                return Err(QuotaExceeded::new(org_name, "bytes", held.bytes, most));
            }
        }
        own.since = own.since.plus(added);
        if admitted.len() >= COUNTED_MAX && !admitted.contains_key(&org) {
            // The last measurement contains the others.
            admitted.retain(|_, usage| usage.begun >= number);
        }
        if admitted.len() < COUNTED_MAX || admitted.contains_key(&org) {
            admitted.insert(org, own);
        }
        Ok(())
    }
}

impl StorageUsage {
    /// Returns the sum of two usages.
    pub fn plus(self, other: StorageUsage) -> StorageUsage {
        StorageUsage { rows: self.rows.saturating_add(other.rows), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// Error for a write that would exceed a quota.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the organization `{org}` stores {held} {what} of at most {most} (limits.quotas), and this request would exceed \
     the limit. Delete data, or ask the operator for more"
)]
pub struct QuotaExceeded {
    org: String,
    what: &'static str,
    held: u64,
    most: u64,
}

impl QuotaExceeded {
    /// Time after which a client may retry, because data may have been deleted meanwhile.
    pub const RETRY_AFTER: Duration = Duration::from_secs(60);

    fn new(org: &str, what: &'static str, held: u64, most: u64) -> QuotaExceeded {
        QuotaExceeded { org: org.to_owned(), what, held, most }
    }
}

#[cfg(test)]
mod tests {
    use assay_node_auth::{Credential, Rights};
    use uuid::Uuid;

    use super::*;

    #[derive(Debug)]
    struct Looked(Mutex<Option<MeasuredUsage>>);

    impl UsageSource for Looked {
        fn of(&self, _: OrgId) -> Option<MeasuredUsage> {
            *self.0.lock()
        }
    }

    /// Returns a measurement that is complete, so that none is in progress.
    fn measured(number: u64, usage: StorageUsage) -> Option<MeasuredUsage> {
        Some(MeasuredUsage { number, begun: number, usage })
    }

    fn who(name: &str) -> Principal {
        Principal {
            org: OrgId(Uuid::from_u128(1)),
            org_name: name.into(),
            user: Uuid::nil(),
            user_email: String::new(),
            impersonator: None,
            credential: Credential::ApiKey(Uuid::nil()),
            rights: Arc::new(Rights::default()),
        }
    }

    fn usage(rows: u64, bytes: u64) -> StorageUsage {
        StorageUsage { rows, bytes }
    }

    #[test]
    fn writes_since_the_last_measurement_count() {
        let looked = Arc::new(Looked(Mutex::new(None)));
        let rule = QuotaRule { organizations: vec!["acme".into()], rows: Some(10), bytes: None };
        let quotas = Quotas::new(vec![rule], Arc::clone(&looked) as Arc<dyn UsageSource>);
        let admit = |name: &str, rows: u64| quotas.admit(&who(name), || usage(rows, 20 * rows)).is_ok();
        assert!(admit("acme", 100), "nothing is known before the first measurement");
        *looked.0.lock() = measured(1, usage(4, 0));
        assert!(!admit("acme", 7) && admit("acme", 6) && !admit("acme", 1) && admit("others", 1000));
        assert!(admit("acme", 0), "what adds nothing is admitted");
        *looked.0.lock() = measured(2, usage(9, 0));
        assert!(admit("acme", 1) && !admit("acme", 1));
    }

    #[test]
    fn writes_during_a_measurement_count_until_the_next_one() {
        let looked = Arc::new(Looked(Mutex::new(measured(1, usage(0, 0)))));
        let rule = QuotaRule { organizations: vec![], rows: Some(10), bytes: None };
        let quotas = Quotas::new(vec![rule], Arc::clone(&looked) as Arc<dyn UsageSource>);
        let admit = |rows: u64| quotas.admit(&who("x"), || usage(rows, 0)).is_ok();
        let begin = || {
            if let Some(measured) = &mut *looked.0.lock() {
                measured.begun += 1;
            }
        };
        assert!(admit(3));
        begin();
        assert!(admit(4) && !admit(4), "7 of 10");
        // It counted before the second write came.
        *looked.0.lock() = measured(2, usage(3, 0));
        assert!(!admit(4) && admit(1), "8 of 10");
        begin();
        *looked.0.lock() = measured(3, usage(8, 0));
        assert!(admit(2) && !admit(1), "nothing is counted twice");
        *looked.0.lock() = measured(9, usage(0, 0));
        assert!(admit(10), "writes before an earlier measurement are in this one");
    }

    #[test]
    fn bytes_are_bounded_apart_from_rows() {
        let looked = Arc::new(Looked(Mutex::new(measured(1, usage(0, 1000)))));
        let rule = QuotaRule { organizations: vec![], rows: None, bytes: Some(5000) };
        let quotas = Quotas::new(vec![rule], looked);
        let why = quotas.admit(&who("x"), || usage(1, 4001)).expect_err("too many");
        assert!(why.to_string().contains("stores 1000 bytes of at most 5000"), "{why}");
        quotas.admit(&who("x"), || usage(1000, 4000)).expect("few");
    }

    #[test]
    fn a_rule_says_something() {
        let none = QuotaRule { organizations: vec![], rows: None, bytes: None };
        assert!(check_quotas(&[none]).expect_err("nothing").contains("rule 1"));
    }
}
