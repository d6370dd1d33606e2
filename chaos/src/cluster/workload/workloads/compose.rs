//! Content of one write of each workload. Every write has a row of its own, which shows when it was applied.

use std::collections::BTreeMap;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cluster::recording::events::{Act, Row, Workload};
use crate::cluster::workload::rows::{MOVED, merge, own, own_id};

const BATCH_MAX: usize = 50;
const PAD_MAX: u32 = 300;
/// More than goes into the log itself.
const LARGE_PAD: std::ops::Range<u32> = 530_000..700_000;
const LARGE_SHARE: f64 = 0.1;
const SHARED_ROWS: usize = 3;
const AMOUNT_MAX: i64 = 1000;

pub fn rows(workload: Workload, write: u64, rng: &mut ChaCha8Rng) -> Vec<Row> {
    match workload {
        Workload::Append => append(write, rng),
        Workload::Large if rng.random_bool(LARGE_SHARE) => {
            vec![Row { pad: rng.random_range(LARGE_PAD), ..own(write, 0) }]
        }
        Workload::Large => append(write, rng),
        Workload::Set => vec![own(write, 0), merge(&shared("set", rng), &format!("k{write}"), 1)],
        Workload::Register => register(write, rng),
        Workload::Transfer => transfer(write, rng),
        Workload::Retries => victim(write),
    }
}

fn shared(name: &str, rng: &mut ChaCha8Rng) -> String {
    // The first is hit most often.
    let place = rng.random_range(0..SHARED_ROWS).min(rng.random_range(0..SHARED_ROWS));
    format!("{name}-{place}")
}

/// Returns a batch, mostly a small one: the lowest of three random numbers.
fn append(write: u64, rng: &mut ChaCha8Rng) -> Vec<Row> {
    let count = (0..3).map(|_| rng.random_range(1..=BATCH_MAX)).min().unwrap_or(1);
    let one = |place: usize| {
        let set = BTreeMap::from([("v".to_owned(), i64::from(rng.random::<u32>()))]);
        Row { set, pad: rng.random_range(0..PAD_MAX), ..own(write, place) }
    };
    (0..count).map(one).collect()
}

/// Mostly a field is overwritten; sometimes the row is, and sometimes it goes.
fn register(write: u64, rng: &mut ChaCha8Rng) -> Vec<Row> {
    let row = merge(&shared("register", rng), "x", i64::try_from(write).unwrap_or(i64::MAX));
    let act = match rng.random_range(0..20) {
        0 => Act::Delete,
        1 => Act::Put,
        _ => Act::Merge,
    };
    let set = if act == Act::Delete { BTreeMap::new() } else { row.set.clone() };
    vec![own(write, 0), Row { act, set, ..row }]
}

/// One account loses, and a new row has what it lost: together nothing.
fn transfer(write: u64, rng: &mut ChaCha8Rng) -> Vec<Row> {
    let amount = rng.random_range(1..=AMOUNT_MAX);
    let field = format!("{MOVED}{write}");
    let gain = Row { id: own_id(write, 1), ..merge("", &field, amount) };
    vec![own(write, 0), merge(&shared("account", rng), &field, -amount), Row { act: Act::Put, ..gain }]
}

/// A row that later writes change: applied again, this write would undo them.
fn victim(write: u64) -> Vec<Row> {
    let row = merge(&victim_id(write), "v", i64::try_from(write).unwrap_or(i64::MAX));
    vec![own(write, 0), Row { act: Act::Put, ..row }]
}

pub fn victim_id(write: u64) -> String {
    format!("victim-{write}")
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::cluster::check::expected_rows::Model;
    use crate::cluster::workload::rows::{total, write_of};

    #[test]
    fn every_write_has_a_row_of_its_own_and_no_id_twice() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        use Workload::*;
        for workload in [Append, Large, Retries, Set, Register, Transfer] {
            for write in 1..200 {
                let rows = rows(workload, write, &mut rng);
                assert!(rows.iter().any(|row| write_of(&row.id) == Some(write)), "{workload:?}");
                let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), rows.len(), "{workload:?}");
            }
        }
    }

    #[test]
    fn transfers_add_up_to_nothing() {
        let (mut rng, mut model) = (ChaCha8Rng::seed_from_u64(1), Model::default());
        for write in 1..100 {
            model.write(write, &rows(Workload::Transfer, write, &mut rng));
            assert_eq!(total(&model.rows), 0);
        }
        model.write(100, &rows(Workload::Transfer, 100, &mut rng)[..2]);
        assert_ne!(total(&model.rows), 0, "half of one");
    }
}
