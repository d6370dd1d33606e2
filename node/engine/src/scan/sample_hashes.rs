//! Hashes of deterministic samples (D-84).
//!
//! A span or trace is in a sample if the hash of its id and the seed is low. Samples of several shards are merged.

use std::collections::BinaryHeap;

/// Number of possible 64-bit hashes.
const ALL: f64 = 18_446_744_073_709_551_616.0;

/// Returns the hash of a span's id, or of a trace's root span id. It is the first eight bytes as a big-endian number.
pub fn hash(seed: i64, id: &str) -> u64 {
    let hash = blake3::Hasher::new().update(&seed.to_le_bytes()).update(id.as_bytes()).finalize();
    let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash has more than eight bytes");
    u64::from_be_bytes(*first)
}

/// Range of the hashes in a sample with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Exclusive upper bound, or `None` for all hashes.
    end: Option<u64>,
}

impl Rate {
    /// Converts a share from 0 to 1.
    pub fn of(rate: f64) -> Rate {
        Rate { end: (rate < 1.0 || rate.is_nan()).then_some((rate * ALL) as u64) }
    }

    pub fn takes(self, hash: u64) -> bool {
        self.end.is_none_or(|end| hash < end)
    }
}

/// Units with the lowest hashes, up to a number.
///
/// Equal hashes occur if two objects have rows with the same id. `T` decides between them, so it must identify the unit
/// and have the same order on all nodes.
#[derive(Clone, Debug)]
pub struct Lowest<T> {
    count: usize,
    kept: BinaryHeap<(u64, T)>,
}

impl<T: Ord> Lowest<T> {
    pub fn new(count: u64) -> Lowest<T> {
        Lowest { count: usize::try_from(count).unwrap_or(usize::MAX), kept: BinaryHeap::new() }
    }

    /// Offers a unit. Each unit must be offered only once.
    pub fn offer(&mut self, hash: u64, unit: T) {
        if self.kept.len() < self.count {
            self.kept.push((hash, unit));
        } else if let Some(mut highest) = self.kept.peek_mut() {
            let offered = (hash, unit);
            if offered < *highest {
                *highest = offered;
            }
        }
    }

    /// Merges the hashes of another part of the data.
    pub fn merge(&mut self, other: Lowest<T>) {
        other.kept.into_iter().for_each(|(hash, unit)| self.offer(hash, unit));
    }

    /// Returns the hashes in ascending order.
    pub fn into_sorted(self) -> Vec<(u64, T)> {
        self.kept.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes must never change, because all pages of a sample must belong to the same sample.
    #[test]
    fn hashes_stay_as_they_are() {
        let by_hand = |seed: i64, id: &str| {
            let bytes = [seed.to_le_bytes().as_slice(), id.as_bytes()].concat();
            blake3::hash(&bytes).as_bytes().iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        for (seed, id) in [(0, "a1"), (0, ""), (-1, "a1"), (i64::MAX, "Größe"), (7, "a1")] {
            assert_eq!(hash(seed, id), by_hand(seed, id), "{seed} {id}");
        }
        assert_ne!(hash(0, "a1"), hash(1, "a1"));
    }

    #[test]
    fn a_rate_takes_its_share() {
        assert!(Rate::of(1.0).takes(u64::MAX) && Rate::of(7.0).takes(u64::MAX));
        assert!(!Rate::of(0.0).takes(0) && !Rate::of(-1.0).takes(0) && !Rate::of(f64::NAN).takes(0));
        assert!(Rate::of(0.5).takes((1 << 63) - 1) && !Rate::of(0.5).takes(1 << 63));
        let taken = (0..10_000).filter(|number| Rate::of(0.3).takes(hash(0, &format!("row-{number}")))).count();
        assert!((2_800..3_200).contains(&taken), "{taken}");
    }

    #[test]
    fn the_lowest_are_the_same_in_one_part_or_in_several() {
        let all: Vec<(u64, u64)> = (0..200).map(|unit| (hash(3, &(unit / 2).to_string()), unit)).collect();
        for count in [0, 1, 7, 199, 200, 1_000] {
            let mut expected = all.clone();
            expected.sort_unstable();
            expected.truncate(count as usize);
            let mut parts = all.chunks(64).map(|part| {
                let mut lowest = Lowest::new(count);
                part.iter().for_each(|(hash, unit)| lowest.offer(*hash, *unit));
                lowest
            });
            let mut lowest = parts.next().expect("a part");
            parts.for_each(|part| lowest.merge(part));
            assert_eq!(lowest.into_sorted(), expected, "{count}");
        }
    }
}
