//! Hashes of values: equal for equal values of any column type, and on every node with the query's seed.

use std::hash::Hasher;

use assay_node_btql::values::Value;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::canonical::canonical_bytes;

/// Tags that keep values hashed by their own bytes apart from other kinds.
const WHOLES: u64 = 0x517c_c1b7_2722_0a95;
const TEXTS: u64 = 0x2545_f491_4f6c_dd1d;
const FRACTIONS: u64 = 0x9fb2_1c65_1e98_df25;
const BOOLEANS: u64 = 0xd6e8_feb8_6659_fd93;
const OTHERS: u64 = 0x6c62_272e_07bb_0142;

/// Bits of a [`Member`] that say whose it is.
const GROUP_BITS: u32 = u32::BITS;

/// A group, and 96 bits of the hash of a value that it has: of a million values two are taken for one once in 10^17 times.
pub(super) type Member = u128;

pub(super) fn member(group: u32, hash: u128) -> Member {
    hash >> GROUP_BITS << GROUP_BITS | u128::from(group)
}

pub(super) fn group_of(member: Member) -> u32 {
    member as u32
}

/// The best bits of it.
pub(super) fn high_bits(member: Member) -> u64 {
    (member >> u64::BITS) as u64
}

#[inline]
pub(super) fn of_whole(number: i64, seed: u64) -> u128 {
    xxh3_128_with_seed(&number.to_le_bytes(), seed ^ WHOLES)
}

#[inline]
pub(super) fn of_text(text: &str, seed: u64) -> u128 {
    xxh3_128_with_seed(text.as_bytes(), seed ^ TEXTS)
}

/// Hash of a finite float: that of the whole number that it equals, if there is one.
#[inline]
pub(super) fn of_float(float: f64, seed: u64) -> u128 {
    const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;
    if float.abs() >= INTEGERS_END {
        return of_any(&Value::float(float), seed, &mut Vec::new());
    }
    let whole = float as i64;
    if whole as f64 == float {
        return of_whole(whole, seed);
    }
    xxh3_128_with_seed(&float.to_bits().to_le_bytes(), seed ^ FRACTIONS)
}

#[inline]
pub(super) fn of_bool(boolean: bool, seed: u64) -> u128 {
    xxh3_128_with_seed(&[boolean.into()], seed ^ BOOLEANS)
}

pub(super) fn of_value(value: &Value<'_>, seed: u64, scratch: &mut Vec<u8>) -> u128 {
    match value {
        Value::Boolean(boolean) => of_bool(*boolean, seed),
        Value::Integer(number) => of_whole(*number, seed),
        Value::Float(float) => of_float(*float, seed),
        Value::Text(text) => of_text(text, seed),
        Value::Xact(xact) => of_text(&xact.to_string(), seed),
        other => of_any(other, seed, scratch),
    }
}

fn of_any(value: &Value<'_>, seed: u64, scratch: &mut Vec<u8>) -> u128 {
    scratch.clear();
    canonical_bytes(value, scratch);
    xxh3_128_with_seed(scratch, seed ^ OTHERS)
}

/// For tables of members: they are hashes already.
#[derive(Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, member: u128) {
        // Groups that have the same values must not meet at the same places.
        self.0 = high_bits(member) ^ u64::from(group_of(member)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
