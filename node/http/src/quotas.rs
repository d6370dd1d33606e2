//! How much may be stored: rows and bytes of an organization, over all nodes.
//!
//! What is stored is looked at every few seconds (`Holdings`); what this node let in since the last look is added to it. So one
//! node alone keeps to a quota, and several let in at most what comes to the others between two looks. Deletes are let in always.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_node_auth::Principal;
use assay_node_objects::{ObjectWrite, WriteError};
use assay_storage_model::event::Sent;
use assay_storage_model::{NotWritten, OrgId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const RULES_MAX: usize = 64;
const ORGANIZATIONS_MAX: usize = 1000;
/// Organizations that something was let in of since the last look; of more than these the look alone counts.
const COUNTED_MAX: usize = 100_000;
/// When it is worth asking again: something may have been deleted.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Each organization by itself may store so much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaRule {
    /// Names of those that it holds for. None: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organizations: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub rows: u64,
    pub bytes: u64,
}

/// What is stored, as of the last look.
pub trait Holdings: Send + Sync + fmt::Debug + 'static {
    /// The number of the look, and what it found; zero where the organization has nothing. None before the first look.
    fn of(&self, org: OrgId) -> Option<(u64, Stored)>;
}

/// A handle; clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Quotas(Option<Arc<Ledger>>);

#[derive(Debug)]
struct Ledger {
    rules: Vec<QuotaRule>,
    holdings: Arc<dyn Holdings>,
    /// What was let in since a look.
    since: Mutex<HashMap<OrgId, (u64, Stored)>>,
}

/// What is wrong with the rules.
pub(crate) fn check(rules: &[QuotaRule]) -> Result<(), String> {
    if rules.len() > RULES_MAX {
        return Err(format!("limits.quotas has {} rules; at most {RULES_MAX} are taken", rules.len()));
    }
    for (place, rule) in rules.iter().enumerate() {
        let wrong = |why: &str| Err(format!("limits.quotas, rule {}: {why}", place + 1));
        if rule.rows.is_none() && rule.bytes.is_none() {
            return wrong("it says neither rows nor bytes");
        }
        if rule.organizations.len() > ORGANIZATIONS_MAX || rule.organizations.iter().any(String::is_empty) {
            return wrong("organizations has more than 1000 names, or an empty one");
        }
    }
    Ok(())
}

impl Quotas {
    pub fn new(rules: Vec<QuotaRule>, holdings: Arc<dyn Holdings>) -> Quotas {
        if rules.is_empty() {
            return Quotas::default();
        }
        Quotas(Some(Arc::new(Ledger { rules, holdings, since: Mutex::default() })))
    }

    /// Lets all of the writes in, or none.
    pub(crate) fn admit(&self, who: &Principal, writes: &[ObjectWrite]) -> Result<(), WriteError> {
        let Some(ledger) = &self.0 else { return Ok(()) };
        let applies = |rule: &&QuotaRule| rule.organizations.is_empty() || rule.organizations.contains(&who.org_name);
        let rules: Vec<&QuotaRule> = ledger.rules.iter().filter(applies).collect();
        let coming = coming(writes);
        if rules.is_empty() || coming == Stored::default() {
            return Ok(());
        }
        let Some((look, stored)) = ledger.holdings.of(who.org) else { return Ok(()) };
        let mut since = ledger.since.lock();
        let before = since.get(&who.org).filter(|(of, _)| *of == look).map(|(_, let_in)| *let_in).unwrap_or_default();
        let held = stored.and(before);
        let then = held.and(coming);
        for rule in rules {
            let over = |wanted: Option<u64>, then: u64| wanted.filter(|most| then > *most);
            if let Some(most) = over(rule.rows, then.rows) {
                return Err(refusal(&who.org_name, "rows", held.rows, most));
            }
            if let Some(most) = over(rule.bytes, then.bytes) {
                return Err(refusal(&who.org_name, "bytes", held.bytes, most));
            }
        }
        if since.len() < COUNTED_MAX || since.contains_key(&who.org) {
            since.insert(who.org, (look, before.and(coming)));
        }
        Ok(())
    }
}

impl Stored {
    fn and(self, other: Stored) -> Stored {
        Stored { rows: self.rows.saturating_add(other.rows), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// Every row but deletes counts as a new one until the next look.
fn coming(writes: &[ObjectWrite]) -> Stored {
    let rows = writes.iter().flat_map(|write| &write.rows).filter_map(|row| match row {
        Sent::Row(row) => Some(row),
        Sent::Other(_) => None,
    });
    let kept = rows.filter(|row| row.get("_object_delete") != Some(&Value::Bool(true)));
    kept.fold(Stored::default(), |sum, row| sum.and(Stored { rows: 1, bytes: row.bytes_about() as u64 }))
}

fn refusal(org: &str, what: &str, held: u64, most: u64) -> WriteError {
    let why = format!(
        "the organization `{org}` stores {held} {what} and may store {most} (limits.quotas), which this would exceed: delete \
         something, or ask who runs this for more"
    );
    WriteError::NotWritten { why: NotWritten::Busy(why.into()), retry_after: RETRY_AFTER }
}

#[cfg(test)]
mod tests {
    use assay_node_auth::{Credential, Rights};
    use assay_storage_model::{ObjectKey, ObjectKind};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[derive(Debug)]
    struct Looked(Mutex<Option<(u64, Stored)>>);

    impl Holdings for Looked {
        fn of(&self, _: OrgId) -> Option<(u64, Stored)> {
            *self.0.lock()
        }
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

    fn rows(count: usize, row: &Value) -> Vec<ObjectWrite> {
        let object = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::Dataset, Uuid::nil());
        vec![ObjectWrite { object, rows: vec![Sent::from(row.clone()); count], request: None }]
    }

    #[test]
    fn what_was_let_in_since_the_last_look_counts_and_deletes_do_not() {
        let looked = Arc::new(Looked(Mutex::new(None)));
        let rule = QuotaRule { organizations: vec!["acme".into()], rows: Some(10), bytes: None };
        let quotas = Quotas::new(vec![rule], Arc::clone(&looked) as Arc<dyn Holdings>);
        let admit = |name: &str, count: usize| quotas.admit(&who(name), &rows(count, &json!({"input": 1}))).is_ok();
        assert!(admit("acme", 100), "nothing is known before the first look");
        *looked.0.lock() = Some((1, Stored { rows: 4, bytes: 0 }));
        assert!(!admit("acme", 7) && admit("acme", 6) && !admit("acme", 1) && admit("others", 1000));
        quotas.admit(&who("acme"), &rows(50, &json!({"id": "a", "_object_delete": true}))).expect("deletes are let in");
        *looked.0.lock() = Some((2, Stored { rows: 9, bytes: 0 }));
        assert!(admit("acme", 1) && !admit("acme", 1));
    }

    #[test]
    fn bytes_are_those_of_the_rows() {
        let looked = Arc::new(Looked(Mutex::new(Some((1, Stored { rows: 0, bytes: 1000 })))));
        let rule = QuotaRule { organizations: vec![], rows: None, bytes: Some(5000) };
        let quotas = Quotas::new(vec![rule], looked);
        let why = quotas.admit(&who("x"), &rows(1000, &json!({"input": "y"}))).expect_err("too many");
        assert!(why.to_string().contains("stores 1000 bytes and may store 5000"), "{why}");
        quotas.admit(&who("x"), &rows(10, &json!({"input": "y"}))).expect("few");
    }

    #[test]
    fn a_rule_says_something() {
        let none = QuotaRule { organizations: vec![], rows: None, bytes: None };
        assert!(check(&[none]).expect_err("nothing").contains("rule 1"));
    }
}
