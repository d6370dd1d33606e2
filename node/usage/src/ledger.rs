//! Ledger of usage by day, organization and credential, within fixed bounds. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::day::Day;

/// Upper bound of the days that are kept.
pub const DAYS_MAX: usize = 62;
/// Upper bound of the entries of one day. Beyond it, credentials are counted together with their organization.
pub const ENTRIES_PER_DAY_MAX: usize = 5000;
/// Upper bound of the organizations of one day. All further ones are counted together.
pub const ORGANIZATIONS_PER_DAY_MAX: usize = 2000;

/// What a credential used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageAmounts {
    pub rows: u64,
    /// Bytes of the rows as they were sent.
    pub bytes: u64,
    pub queries: u64,
    pub model_calls: u64,
    /// Cost of model calls, in millionths of a US dollar.
    pub cost_micro_usd: u64,
}

impl UsageAmounts {
    #[must_use]
    pub fn plus(self, other: UsageAmounts) -> UsageAmounts {
        UsageAmounts {
            rows: self.rows.saturating_add(other.rows),
            bytes: self.bytes.saturating_add(other.bytes),
            queries: self.queries.saturating_add(other.queries),
            model_calls: self.model_calls.saturating_add(other.model_calls),
            cost_micro_usd: self.cost_micro_usd.saturating_add(other.cost_micro_usd),
        }
    }
}

/// Usage of one credential on one day. The credential is nil for logins, jobs, and credentials beyond the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageEntry {
    pub day: Day,
    pub organization: Uuid,
    pub credential: Uuid,
    pub amounts: UsageAmounts,
}

/// Usage of the recent days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageLedger {
    days: BTreeMap<Day, DayUsage>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DayUsage {
    entries: BTreeMap<(Uuid, Uuid), UsageAmounts>,
    organizations: BTreeSet<Uuid>,
}

impl DayUsage {
    /// Returns the key under which the bounds allow to count.
    fn key(&self, organization: Uuid, credential: Uuid) -> (Uuid, Uuid) {
        let is_known = self.organizations.contains(&organization);
        if !is_known && self.organizations.len() >= ORGANIZATIONS_PER_DAY_MAX {
            return (Uuid::nil(), Uuid::nil());
        }
        let key = (organization, credential);
        if self.entries.len() >= ENTRIES_PER_DAY_MAX && !self.entries.contains_key(&key) {
            return (organization, Uuid::nil());
        }
        key
    }

    fn add(&mut self, organization: Uuid, credential: Uuid, amounts: UsageAmounts) {
        let key = self.key(organization, credential);
        self.organizations.insert(key.0);
        let sum = self.entries.entry(key).or_default();
        *sum = sum.plus(amounts);
    }
}

impl UsageLedger {
    /// Adds amounts to a day. Days before the kept ones are ignored.
    pub fn add(&mut self, entry: UsageEntry) {
        let UsageEntry { day, organization, credential, amounts } = entry;
        let is_full = self.days.len() >= DAYS_MAX && !self.days.contains_key(&day);
        if is_full && self.days.first_key_value().is_some_and(|(oldest, _)| *oldest > day) {
            return;
        }
        self.days.entry(day).or_default().add(organization, credential, amounts);
        while self.days.len() > DAYS_MAX {
            self.days.pop_first();
        }
    }

    /// Returns the entries of one day.
    pub fn of_day(&self, day: Day) -> Vec<UsageEntry> {
        let usage = self.days.get(&day).into_iter().flat_map(|usage| &usage.entries);
        usage
            .map(|((organization, credential), amounts)| UsageEntry {
                day,
                organization: *organization,
                credential: *credential,
                amounts: *amounts,
            })
            .collect()
    }

    /// Returns the entries of an organization from one day to another, both included.
    pub fn of_organization(&self, organization: Uuid, first: Day, last: Day) -> Vec<UsageEntry> {
        let days = self.days.keys().copied().filter(|day| (first..=last).contains(day));
        days.flat_map(|day| self.of_day(day)).filter(|entry| entry.organization == organization).collect()
    }

    pub fn days(&self) -> impl Iterator<Item = Day> {
        self.days.keys().copied()
    }
}

/// Adds up entries of several nodes.
pub fn together(entries: impl IntoIterator<Item = UsageEntry>) -> Vec<UsageEntry> {
    let mut sums: BTreeMap<(Day, Uuid, Uuid), UsageAmounts> = BTreeMap::new();
    for UsageEntry { day, organization, credential, amounts } in entries {
        let sum = sums.entry((day, organization, credential)).or_default();
        *sum = sum.plus(amounts);
    }
    let entry = |((day, organization, credential), amounts)| UsageEntry { day, organization, credential, amounts };
    sums.into_iter().map(entry).collect()
}
