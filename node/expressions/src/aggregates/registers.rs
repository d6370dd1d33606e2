//! Approximate count of distinct hashes (HyperLogLog, with the estimator of Ertl, "New cardinality estimation algorithms for
//! HyperLogLog sketches", which works for any number). Some bits of a hash choose its register, which keeps the largest
//! number of zeros that the other bits began with.
//!
//! Counts are off by 0.2 % as a rule, and the promise is 1 %.

use super::Damaged;
use crate::codec::Reader;

const INDEX_BITS: u32 = 18;
const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash that are left.
const REST_BITS: u32 = u64::BITS - INDEX_BITS;

#[derive(Clone, Debug)]
pub(super) struct Registers(Box<[u8]>);

impl Registers {
    pub const BYTES: usize = REGISTERS;

    pub fn new() -> Registers {
        Registers(vec![0; REGISTERS].into())
    }

    pub fn add(&mut self, hash: u64) {
        let zeros = (hash << INDEX_BITS).leading_zeros().min(REST_BITS);
        let register = &mut self.0[(hash >> REST_BITS) as usize];
        *register = (*register).max(zeros as u8 + 1);
    }

    pub fn merge(&mut self, other: &Registers) {
        for (register, other) in self.0.iter_mut().zip(&other.0) {
            *register = (*register).max(*other);
        }
    }

    pub fn estimate(&self) -> f64 {
        let mut with = [0_u32; REST_BITS as usize + 2];
        self.0.iter().for_each(|register| with[usize::from(*register)] += 1);
        let all = REGISTERS as f64;
        let share = |count: u32| f64::from(count) / all;
        let mut sum = all * tau(1.0 - share(with[REST_BITS as usize + 1]));
        for count in with[1..=REST_BITS as usize].iter().rev() {
            sum = (sum + f64::from(*count)) / 2.0;
        }
        sum += all * sigma(share(with[0]));
        all * all / (2.0 * std::f64::consts::LN_2 * sum)
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    pub fn take(from: &mut Reader<'_>) -> Result<Registers, Damaged> {
        let registers = from.bytes(REGISTERS)?;
        let is_possible = |register: &u8| u32::from(*register) <= REST_BITS + 1;
        if registers.iter().all(is_possible) { Ok(Registers(registers.into())) } else { Err(Damaged) }
    }
}

/// Estimator's term for empty registers.
fn sigma(share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

/// Estimator's term for full registers.
fn tau(share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        let before = sum;
        weight /= 2.0;
        sum -= (1.0 - root) * (1.0 - root) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash;
    use super::*;

    #[test]
    fn counts_are_nearly_right() {
        for seed in 0..3 {
            let mut registers = Registers::new();
            let mut count = 0;
            for wanted in [0, 1, 100, 10_000, 300_000, 1_000_000, 1_500_000, 3_000_000] {
                while count < wanted {
                    registers.add(hash::high_bits(hash::of_whole(count, seed)));
                    count += 1;
                }
                let found = registers.estimate();
                let error = (found - count as f64).abs() / (count as f64).max(1.0);
                assert!(error <= 0.01, "{count} are {found} by seed {seed}");
            }
        }
    }
}
