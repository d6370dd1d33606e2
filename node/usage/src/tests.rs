//! Tests of the ledger against a model, and of a meter that is closed and opened.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use assay_cluster::ClusterConfig;
use proptest::prelude::*;

use super::*;
use crate::ledger::{ENTRIES_PER_DAY_MAX, ORGANIZATIONS_PER_DAY_MAX};

const DAY_MICROS: i64 = 86_400_000_000;

fn entry(day: u32, organization: u128, credential: u128, rows: u64) -> UsageEntry {
    let amounts = UsageAmounts { rows, ..UsageAmounts::default() };
    let (organization, credential) = (Uuid::from_u128(organization), Uuid::from_u128(credential));
    UsageEntry { day: Day(day), organization, credential, amounts }
}

fn rows(entries: &[UsageEntry]) -> u64 {
    entries.iter().map(|entry| entry.amounts.rows).sum()
}

#[test]
fn credentials_beyond_the_bound_are_counted_with_their_organization() {
    let mut ledger = UsageLedger::default();
    for credential in 1..=ENTRIES_PER_DAY_MAX as u128 + 10 {
        ledger.add(entry(1, 1, credential, 1));
    }
    ledger.add(entry(1, 1, 1, 5));
    let found = ledger.of_organization(Uuid::from_u128(1), Day(1), Day(1));
    assert_eq!((found.len(), rows(&found)), (ENTRIES_PER_DAY_MAX + 1, ENTRIES_PER_DAY_MAX as u64 + 15));
    assert_eq!((found[0].credential, found[0].amounts.rows, found[1].amounts.rows), (Uuid::nil(), 10, 6));
}

#[test]
fn organizations_beyond_the_bound_are_counted_together() {
    let mut ledger = UsageLedger::default();
    for organization in 1..=ORGANIZATIONS_PER_DAY_MAX as u128 + 10 {
        ledger.add(entry(1, organization, 1, 1));
    }
    assert_eq!(rows(&ledger.of_organization(Uuid::nil(), Day(1), Day(1))), 10);
    assert_eq!(rows(&ledger.of_day(Day(1))), ORGANIZATIONS_PER_DAY_MAX as u64 + 10);
}

#[test]
fn only_the_newest_days_are_kept() {
    let mut ledger = UsageLedger::default();
    for day in 0..DAYS_MAX as u32 + 3 {
        ledger.add(entry(day + 100, 1, 1, 1));
    }
    ledger.add(entry(1, 1, 1, 1));
    let days: Vec<u32> = ledger.days().map(|day| day.0).collect();
    assert_eq!((days.len(), days.first(), days.last()), (DAYS_MAX, Some(&103), Some(&(102 + DAYS_MAX as u32))));
}

proptest! {
    /// Within its bounds, a ledger is the sum of its entries, also if they were counted on several nodes.
    #[test]
    fn a_ledger_adds_up_what_was_counted(
        counted in proptest::collection::vec((0_u32..5, 0_u128..3, 0_u128..4, 0_u64..9, any::<bool>()), 0..80)
    ) {
        let (mut here, mut there) = (UsageLedger::default(), UsageLedger::default());
        let mut model: BTreeMap<(u32, u128, u128), u64> = BTreeMap::new();
        for (day, organization, credential, rows, is_here) in counted {
            let ledger = if is_here { &mut here } else { &mut there };
            ledger.add(entry(day, organization, credential, rows));
            *model.entry((day, organization, credential)).or_default() += rows;
        }
        for organization in 0..3_u128 {
            let of = |ledger: &UsageLedger| ledger.of_organization(Uuid::from_u128(organization), Day(1), Day(3));
            let found = together(of(&here).into_iter().chain(of(&there)));
            let expected: Vec<UsageEntry> = model
                .iter()
                .filter(|((day, of, _), _)| (1..=3).contains(day) && *of == organization)
                .map(|((day, of, credential), rows)| entry(*day, *of, *credential, *rows))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}

#[tokio::test]
async fn a_meter_goes_on_with_what_was_saved() {
    let dir = tempfile::tempdir().expect("a directory");
    let config = ClusterConfig { data_dir: dir.path().join("data"), shards: 4, ..ClusterConfig::default() };
    let cluster = Arc::new(Cluster::open(config).await.expect("a cluster"));
    let now = Arc::new(AtomicI64::new(200 * DAY_MICROS));
    let open = || {
        let now = Arc::clone(&now);
        UsageMeter::open(&cluster, Arc::new(move || now.load(Ordering::Relaxed))).expect("a directory")
    };
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let amounts = UsageAmounts { rows: 1, bytes: 2, queries: 3, model_calls: 4, cost_micro_usd: 5 };
    let meter = open();
    meter.count(one, two, amounts);
    meter.count(one, two, amounts);
    meter.save();
    now.store(201 * DAY_MICROS, Ordering::Relaxed);
    meter.count(one, two, amounts);
    meter.save();
    let broken = dir.path().join("data/usage/1970-01-05.json");
    std::fs::write(&broken, "{").expect("a file");

    let again = open();
    let report = again.of_organization(one, Day(0), Day(500)).await;
    let amounts_of = |place: usize| report.entries[place].amounts;
    assert_eq!((report.entries.len(), report.silent.len()), (2, 0));
    assert_eq!((amounts_of(0), amounts_of(1)), (amounts.plus(amounts), amounts));
    assert!(again.of_organization(two, Day(0), Day(500)).await.entries.is_empty());

    now.store((201 + i64::try_from(DAYS_MAX).expect("few")) * DAY_MICROS, Ordering::Relaxed);
    for _ in 0..2 {
        again.count(one, two, amounts);
        again.save();
    }
    assert!(!broken.exists(), "days that are not kept have no files");
}
