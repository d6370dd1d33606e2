//! Counts of distinct values, which are found by hash and compared by value.

use std::hash::{BuildHasher, Hash, Hasher};

use ahash::{AHashMap, RandomState};
use assay_node_btql::ast::{Interval, Unit};
use assay_node_btql::calendar;
use assay_node_btql::values::{Value, canonical, same};

/// Distinct values with their numbers of occurrences.
#[derive(Clone, Debug, Default)]
pub struct ValueCounts {
    /// Values in the order of their first occurrence.
    counted: Vec<Counted>,
    /// Index of the last value with each hash.
    last: AHashMap<u64, usize>,
    state: RandomState,
}

#[derive(Clone, Debug)]
struct Counted {
    value: Value<'static>,
    count: u64,
    /// Index of the previous value with the same hash.
    before: Option<usize>,
}

impl ValueCounts {
    /// Counts a value. The first of equal values is kept.
    pub fn add(&mut self, value: &Value<'_>, count: u64) {
        let mut hasher = self.state.build_hasher();
        feed(value, &mut hasher);
        let hash = hasher.finish();
        let newest = self.last.get(&hash).copied();
        let mut place = newest;
        while let Some(at) = place {
            let known = &mut self.counted[at];
            if same(&known.value, value) {
                known.count += count;
                return;
            }
            place = known.before;
        }
        self.last.insert(hash, self.counted.len());
        self.counted.push(Counted { value: value.clone().into_owned(), count, before: newest });
    }

    /// Returns values with their counts, in the order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (&Value<'static>, u64)> {
        self.counted.iter().map(|counted| (&counted.value, counted.count))
    }

    /// Returns the distinct values, in the order of first occurrence.
    pub fn into_values(self) -> Vec<Value<'static>> {
        self.counted.into_iter().map(|counted| counted.value).collect()
    }
}

/// Feeds a value to a hasher. Equal values have equal hashes.
fn feed(value: &Value<'_>, hasher: &mut impl Hasher) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        hasher.write_u8(tag);
        hasher.write(bytes);
    };
    match value {
        Value::Null => tagged(b'0', &[]),
        Value::Boolean(boolean) => tagged(b'b', &[u8::from(*boolean)]),
        Value::Integer(number) => tagged(b'n', &i128::from(*number).to_le_bytes()),
        Value::Unsigned(number) => tagged(b'n', &i128::from(*number).to_le_bytes()),
        // A large float that equals a whole number is within the range of `i128`.
        Value::Float(number) if number.fract() == 0.0 => tagged(b'n', &(*number as i128).to_le_bytes()),
        Value::Float(number) => tagged(b'f', &number.to_bits().to_le_bytes()),
        Value::Text(text) => tagged(b't', text.as_bytes()),
        Value::Xact(xact) => tagged(b't', xact.to_string().as_bytes()),
        Value::Time(micros) | Value::Stored(micros) => tagged(b'@', &micros.to_le_bytes()),
        Value::Interval(interval) => length(*interval).hash(hasher),
        Value::Array(json) | Value::Object(json) => tagged(b'j', canonical(json).as_bytes()),
        Value::List(_) | Value::Members(_) => tagged(b'j', canonical(&value.to_json()).as_bytes()),
    }
}

/// Returns whether an interval counts months, and the number of its months or microseconds.
fn length(of: Interval) -> (bool, i128) {
    let is_months = matches!(of.unit, Unit::Month | Unit::Year);
    (is_months, i128::from(of.value) * i128::from(calendar::size(of.unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_counted_together_and_the_first_of_it_stays() {
        let texts = [
            "1",
            "\"1\"",
            "1.0",
            "true",
            "null",
            "[1,2]",
            "[1.0,2]",
            "[2,1]",
            "{\"a\":1,\"b\":[]}",
            "{\"b\":[],\"a\":1}",
            "\"\\u0061\"",
            "\"a\"",
            "1e19",
            "10000000000000000000",
            "0.5",
            "null",
            "1e300",
        ];
        let mut distinct = ValueCounts::default();
        texts.iter().for_each(|json| distinct.add(&Value::read(json), 1));
        let found: Vec<(String, u64)> = distinct.iter().map(|(value, count)| (value.to_json(), count)).collect();
        let expected = [
            ("1", 2),
            ("\"1\"", 1),
            ("true", 1),
            ("null", 2),
            ("[1,2]", 2),
            ("[2,1]", 1),
            ("{\"a\":1,\"b\":[]}", 2),
            ("\"a\"", 2),
            ("1e19", 2),
            ("0.5", 1),
            ("1e300", 1),
        ];
        let shown = |json: &str| Value::read(json).to_json();
        assert_eq!(found, expected.map(|(json, count)| (shown(json), count)));
    }

    #[test]
    fn a_hash_finds_whatever_is_the_same() {
        let (day, hours) = (Interval { value: 1, unit: Unit::Day }, Interval { value: 24, unit: Unit::Hour });
        let pairs = [
            (Value::Time(5), Value::Stored(5)),
            (Value::Xact(12), Value::Text("12".into())),
            (Value::Interval(day), Value::Interval(hours)),
            (Value::Unsigned(u64::MAX), Value::Unsigned(u64::MAX)),
            (Value::Float(2f64.powi(63)), Value::Unsigned(1 << 63)),
            (Value::List(vec![Value::Integer(1)]), Value::Array("[1]".into())),
        ];
        for (left, right) in pairs {
            assert!(same(&left, &right), "{left:?} {right:?}");
            let mut distinct = ValueCounts::default();
            distinct.add(&left, 1);
            distinct.add(&right, 2);
            assert_eq!(distinct.iter().collect::<Vec<_>>(), [(&left, 3)]);
        }
    }
}
