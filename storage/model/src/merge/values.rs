//! Equality and sets of JSON values, for tags and for values removed from lists.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Number, Value};

use super::MergeError;

pub(super) fn read(text: &[u8]) -> Result<Value, MergeError> {
    serde_json::from_slice(text).map_err(|e| MergeError::Text { what: "a value cannot be decoded", at: e.column() })
}

/// A set with a cost that does not grow with the product of its sizes. Used for lookups only, so its order is
/// irrelevant.
#[derive(Debug, Default)]
pub(super) struct ValueSet {
    by_hash: HashMap<u64, Vec<Value>>,
}

impl ValueSet {
    /// Inserts a value; returns whether it is new.
    pub fn insert(&mut self, value: Value) -> bool {
        let alike = self.by_hash.entry(hash(&value)).or_default();
        let new = !alike.iter().any(|known| equal(known, &value));
        if new {
            alike.push(value);
        }
        new
    }

    pub fn contains(&self, value: &Value) -> bool {
        self.by_hash.get(&hash(value)).is_some_and(|alike| alike.iter().any(|known| equal(known, value)))
    }
}

/// Compares like serde_json, except that 1 equals 1.0.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => canonical(a) == canonical(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

#[derive(PartialEq)]
enum Canonical {
    Whole(i128),
    Fraction(f64),
}

fn canonical(number: &Number) -> Canonical {
    /// Above every integer that JSON numbers are read into.
    const WHOLE_MAX: f64 = 1e30;
    let as_float = number.as_f64().unwrap_or(f64::NAN);
    match number.as_i128() {
        Some(whole) => Canonical::Whole(whole),
        None if as_float.fract() == 0.0 && as_float.abs() < WHOLE_MAX => Canonical::Whole(as_float as i128),
        None => Canonical::Fraction(as_float),
    }
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(truth) => truth.hash(&mut hasher),
        Value::Number(number) => match canonical(number) {
            Canonical::Whole(whole) => whole.hash(&mut hasher),
            Canonical::Fraction(fraction) => fraction.to_bits().hash(&mut hasher),
        },
        Value::String(text) => text.hash(&mut hasher),
        Value::Array(items) => items.iter().for_each(|item| hash(item).hash(&mut hasher)),
        Value::Object(fields) => {
            let sum = fields.iter().fold(0_u64, |sum, (key, value)| sum.wrapping_add(hash_of_field(key, value)));
            sum.hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn hash_of_field(key: &str, value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hash(value).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_equal_as_json_is() {
        let pairs = [
            (json!(1), json!(1.0), true),
            (json!(-0.0), json!(0), true),
            (json!(0.5), json!(0.5), true),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1}), true),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992.0), false),
            (json!("1"), json!(1), false),
            (json!(null), json!(false), false),
            (json!([1, 2]), json!([2, 1]), false),
            (json!({"a": null}), json!({}), false),
        ];
        for (a, b, same) in pairs {
            assert_eq!(equal(&a, &b), same, "{a} {b}");
            let mut set = ValueSet::default();
            assert!(set.insert(a.clone()));
            assert_eq!(set.contains(&b), same, "{a} {b}");
        }
    }
}
