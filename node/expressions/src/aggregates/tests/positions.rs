//! Rows without values, rows at one position, and groups without rows.

use std::sync::Arc;

use crate::Type;
use arrow_array::{ArrayRef, Int64Array, StringArray};
use assay_node_btql::bound::{Aggregate, Aggregation};
use assay_node_btql::values::Value;

use super::{SEED, States, aggregate, functions, through_bytes};
use crate::aggregates::RowPositions;

fn ints(of: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(of.into_iter().collect::<Int64Array>())
}

#[test]
fn rows_are_counted_whatever_they_have() {
    let of_rows = Aggregate { function: Aggregation::Count, of: None, distinct: false };
    let mut states = States::new(&of_rows, SEED);
    let places = RowPositions { keys: &[], object: 0 };
    assert!(!states.needs_positions());
    states.update(3, &[0, 2, 2, 0, 0], None, &places);
    states.update(3, &[2, 2], None, &places);
    states.update_one(4, 3, None, 0, 0);
    assert_eq!(states.finish(), [3, 0, 4, 1].map(Value::Integer));
}

#[test]
fn of_rows_at_one_place_the_order_is_that_of_their_coming() {
    let array = ints([10, 11, 12, 13, 14, 15]);
    let places = RowPositions { keys: &[5, 5, 4, 4, 5, 5], object: 1 };
    for (function, expected) in [
        (Aggregation::First, Value::Integer(12)),
        (Aggregation::AnyValue, Value::Integer(12)),
        (Aggregation::Last, Value::Integer(15)),
        (Aggregation::StringAgg(" ".into()), Value::Text("12 13 10 11 14 15".into())),
    ] {
        let of = aggregate(function, false);
        for split in 0..=6 {
            let mut states = States::new(&of, SEED);
            assert!(states.needs_positions());
            for rows in [0..split, split..6] {
                let part = array.slice(rows.start, rows.len());
                let places = RowPositions { keys: &places.keys[rows.clone()], ..places };
                states.update(1, &vec![0; rows.len()], Some((&part, Type::Int)), &places);
            }
            assert_eq!(states.finish()[0], expected, "{of:?} split at {split}");
        }
    }
}

#[test]
fn of_two_objects_at_one_key_the_one_that_was_named_first_is_first() {
    for (function, expected) in [(Aggregation::First, 7), (Aggregation::Last, 8)] {
        let of = aggregate(function, false);
        for order in [[(0, 7), (1, 8)], [(1, 8), (0, 7)]] {
            let mut states = States::new(&of, SEED);
            for (object, value) in order {
                states.update(1, &[0], Some((&ints([value]), Type::Int)), &RowPositions { keys: &[3], object });
            }
            assert_eq!(states.finish(), [Value::Integer(expected)]);
        }
    }
}

#[test]
fn groups_without_values_have_none() {
    for of in functions() {
        let nothing = if of.function == Aggregation::Count { Value::Integer(0) } else { Value::Null };
        let mut states = States::new(&of, SEED);
        states.update(2, &[], None, &RowPositions { keys: &[], object: 0 });
        assert_eq!(states.finish(), [nothing.clone(), nothing.clone()], "{of:?}");
        // Of a part that knows fewer groups than there are.
        let mut part = States::new(&of, SEED);
        part.update_one(1, 0, Some(&Value::Integer(1)), 0, 0);
        part.update(3, &[], None, &RowPositions { keys: &[], object: 0 });
        let mut whole = States::new(&of, SEED);
        whole.merge(4, through_bytes(&part, &of), &[2, 0, 3]);
        let found = whole.finish();
        assert!(found.len() == 4 && found[0] == nothing && found[1] == nothing && found[3] == nothing, "{of:?}");
    }
}

#[test]
fn what_json_says_is_null_is_null() {
    let texts = vec![Some("null"), None, Some("1e999"), Some(""), Some("\"x\""), Some("0"), Some("[null]")];
    let array: ArrayRef = Arc::new(StringArray::from(texts));
    let places = RowPositions { keys: &[0, 1, 2, 3, 4, 5, 6], object: 0 };
    for (function, expected) in [
        (Aggregation::Count, Value::Integer(3)),
        (Aggregation::First, Value::Text("x".into())),
        (Aggregation::Last, Value::Array("[null]".into())),
    ] {
        for groups in [[0; 7], [0, 0, 0, 1, 0, 0, 0]] {
            let mut states = States::new(&aggregate(function.clone(), false), SEED);
            states.update(2, &groups, Some((&array, Type::Json)), &places);
            assert_eq!(states.finish()[0], expected, "{function:?}");
        }
    }
}
