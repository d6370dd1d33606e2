//! Log lines about refused requests, at most one per cause in ten seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

/// Minimum time between two lines about one cause.
pub const LINE_EVERY: Duration = Duration::from_secs(10);
/// Number of organizations that a line names. The others are only counted.
const NAMED_MAX: usize = 5;
/// Number of organizations with their own counts. Later ones count only in the total.
const COUNTED_MAX: usize = 1000;

/// Refusals by cause. Clones share the counts.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use assay_node_limits::Refusals;
/// use uuid::Uuid;
///
/// let refusals = Refusals::default();
/// refusals.note("http.bodies_bytes_max", Uuid::from_u128(7));
/// assert_eq!(refusals.total("http.bodies_bytes_max"), 1);
/// # });
/// ```
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    causes: Arc<Mutex<BTreeMap<&'static str, Cause>>>,
}

#[derive(Debug, Default)]
struct Cause {
    total: u64,
    /// Number of refusals that are not logged yet.
    count: u64,
    organizations: BTreeMap<Uuid, u64>,
    /// Whether a line was written less than `LINE_EVERY` ago.
    is_quiet: bool,
}

impl Refusals {
    /// Counts one refusal. The first is logged at once, and later ones are logged together.
    ///
    /// Requires a tokio runtime.
    pub fn note(&self, cause: &'static str, organization: Uuid) {
        let mut causes = self.causes.lock();
        let entry = causes.entry(cause).or_default();
        entry.total += 1;
        entry.count += 1;
        if entry.organizations.len() < COUNTED_MAX || entry.organizations.contains_key(&organization) {
            *entry.organizations.entry(organization).or_default() += 1;
        }
        if !entry.is_quiet {
            entry.is_quiet = true;
            entry.log(cause);
            drop(tokio::spawn(log_later(Arc::downgrade(&self.causes), cause)));
        }
    }

    /// Returns the number of refusals for a cause since the start.
    pub fn total(&self, cause: &str) -> u64 {
        self.causes.lock().get(cause).map_or(0, |entry| entry.total)
    }

    /// Returns all causes of refusals with their counts.
    pub fn totals(&self) -> Vec<(&'static str, u64)> {
        self.causes.lock().iter().map(|(cause, entry)| (*cause, entry.total)).collect()
    }
}

impl Cause {
    fn log(&mut self, cause: &str) {
        let text = named(&std::mem::take(&mut self.organizations));
        let count = std::mem::take(&mut self.count);
        tracing::warn!(cause, count, organizations = %text, "requests were refused because a budget stayed full");
    }
}

async fn log_later(causes: Weak<Mutex<BTreeMap<&'static str, Cause>>>, cause: &'static str) {
    let mut due = Instant::now() + LINE_EVERY;
    loop {
        sleep_until(due).await;
        let Some(causes) = causes.upgrade() else { return };
        let mut causes = causes.lock();
        let Some(entry) = causes.get_mut(cause) else { return };
        if entry.count == 0 {
            entry.is_quiet = false;
            return;
        }
        entry.log(cause);
        due += LINE_EVERY;
    }
}

/// Lists organizations with their counts, in descending order.
fn named(organizations: &BTreeMap<Uuid, u64>) -> String {
    let mut all = Vec::from_iter(organizations);
    all.sort_by_key(|(id, count)| (std::cmp::Reverse(**count), **id));
    let mut parts: Vec<String> = all.iter().take(NAMED_MAX).map(|(id, count)| format!("{id}: {count}")).collect();
    if all.len() > NAMED_MAX {
        parts.push(format!("{} more", all.len() - NAMED_MAX));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_those_that_were_refused_most() {
        let counts = |list: &[(u128, u64)]| list.iter().map(|(id, count)| (Uuid::from_u128(*id), *count)).collect();
        let id = |id: u128| Uuid::from_u128(id);
        assert_eq!(named(&counts(&[(1, 3), (2, 9)])), format!("{}: 9, {}: 3", id(2), id(1)));
        let many: Vec<_> = (1..=8).map(|id| (id, 1)).collect();
        assert!(named(&counts(&many)).ends_with(&format!("{}: 1, 3 more", id(5))));
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_counted_and_logged_at_most_once_in_ten_seconds() {
        let refusals = Refusals::default();
        let unlogged = || refusals.causes.lock()["a"].count;
        for _ in 0..5 {
            refusals.note("a", Uuid::from_u128(1));
        }
        refusals.note("b", Uuid::from_u128(1));
        assert_eq!((unlogged(), refusals.totals()), (4, vec![("a", 5), ("b", 1)]), "the first was logged at once");
        tokio::time::sleep(LINE_EVERY + Duration::from_secs(1)).await;
        assert_eq!(unlogged(), 0);
        refusals.note("a", Uuid::from_u128(1));
        assert_eq!(unlogged(), 1, "the line before it is less than ten seconds old");
        tokio::time::sleep(3 * LINE_EVERY).await;
        refusals.note("a", Uuid::from_u128(1));
        assert_eq!(unlogged(), 0);
    }
}
