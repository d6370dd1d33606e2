//! Ends of exactness, rounding errors, and the reported memory of states.

use std::sync::Arc;

use crate::Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StringArray, UInt64Array};
use assay_node_btql::bound::Aggregation;
use assay_node_btql::values::Value;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::{SEED, States, aggregate, through_bytes};
use crate::aggregates::RowPositions;
use crate::aggregates::ranks::EXACT_MAX;

const NOWHERE: RowPositions<'static> = RowPositions { keys: &[], object: 0 };

fn floats(of: Vec<f64>) -> ArrayRef {
    Arc::new(Float64Array::from(of))
}

fn of_one_group(function: Aggregation, array: &ArrayRef, ty: Type) -> Value<'static> {
    let mut states = States::new(&aggregate(function, false), SEED);
    states.update(1, &vec![0; array.len()], Some((array, ty)), &NOWHERE);
    states.finish().remove(0)
}

#[test]
fn what_rounding_takes_is_not_lost() {
    let mut rng = StdRng::seed_from_u64(3);
    // The quarters are all below what the sum can tell while the large ones are in it.
    let mut numbers = vec![0.25; 4000];
    numbers.extend([9e15; 400]);
    numbers.extend([-9e15; 400]);
    numbers.push(0.125);
    numbers.shuffle(&mut rng);
    assert_ne!(numbers.iter().sum::<f64>(), 1000.125, "it would show");
    let array = floats(numbers.clone());
    assert_eq!(of_one_group(Aggregation::Sum, &array, Type::Float), Value::Float(1000.125));
    let mut states = States::new(&aggregate(Aggregation::Sum, false), SEED);
    let groups: Vec<u32> = (0..array.len()).map(|row| row as u32 % 3).collect();
    states.update(3, &groups, Some((&array, Type::Float)), &NOWHERE);
    let mut whole = States::new(&aggregate(Aggregation::Sum, false), SEED);
    whole.merge(1, states, &[0, 0, 0]);
    assert_eq!(whole.finish(), [Value::Float(1000.125)]);
}

#[test]
fn whole_numbers_in_a_column_of_floats_add_up_to_one() {
    let large = floats(vec![9_007_199_254_740_991.0; 2049]);
    assert_eq!(of_one_group(Aggregation::Sum, &large, Type::Float), Value::whole(9_007_199_254_740_991 * 2049));
    let ints: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX; 3]));
    assert_eq!(of_one_group(Aggregation::Sum, &ints, Type::Int), Value::whole(i128::from(i64::MAX) * 3));
    let ints: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX, i64::MIN, i64::MIN]));
    assert_eq!(of_one_group(Aggregation::Sum, &ints, Type::Int), Value::Integer(-2));
}

#[test]
fn a_float_makes_a_float_of_the_sum_whichever_part_it_came_to() {
    let of = aggregate(Aggregation::Sum, false);
    let part = |json: &str| {
        let mut part = States::new(&of, SEED);
        let array: ArrayRef = Arc::new(StringArray::from(vec![json]));
        part.update(1, &[0], Some((&array, Type::Json)), &NOWHERE);
        through_bytes(&part, &of)
    };
    for [left, right] in [["1e18", "5"], ["5", "1e18"]] {
        let mut sum = part(left);
        sum.merge(1, part(right), &[0]);
        assert_eq!(sum.finish(), [Value::Float(1e18 + 5.0)]);
    }
}

#[test]
fn values_of_several_types_are_counted_once_where_they_are_the_same() {
    let of = aggregate(Aggregation::Count, true);
    let columns: [(ArrayRef, Type); 6] = [
        (Arc::new(UInt64Array::from(vec![7, 12])), Type::Xact),
        (Arc::new(StringArray::from(vec!["12", "p00000000000000000012", "7"])), Type::Text),
        (Arc::new(UInt64Array::from(vec![12])), Type::Key),
        (Arc::new(Int64Array::from(vec![12, 1 << 60])), Type::Int),
        (floats(vec![12.0, (1_u64 << 60) as f64, 0.5]), Type::Float),
        (Arc::new(StringArray::from(vec!["\"7\"", "12", "0.5", "[12]", "[12.0]"])), Type::Json),
    ];
    let mut all = States::new(&of, SEED);
    for (array, ty) in &columns {
        let mut part = States::new(&of, SEED);
        part.update(1, &vec![0; array.len()], Some((array, *ty)), &NOWHERE);
        all.merge(1, through_bytes(&part, &of), &[0]);
    }
    // "7", "12", the key; 12, 2^60, 0.5; [12]
    assert_eq!(all.finish(), [Value::Integer(7)]);
}

#[test]
fn what_is_no_number_in_a_column_of_floats_is_left_out() {
    let array = floats(vec![f64::NAN, 3.5, f64::INFINITY, 1.5, f64::NEG_INFINITY]);
    for (function, expected) in [
        (Aggregation::Count, Value::Integer(2)),
        (Aggregation::Sum, Value::Integer(5)),
        (Aggregation::Avg, Value::Float(2.5)),
        (Aggregation::Min, Value::Float(1.5)),
        (Aggregation::Max, Value::Float(3.5)),
        (Aggregation::Percentile(1.0), Value::Float(3.5)),
        (Aggregation::Stddev, Value::float(2_f64.sqrt())),
    ] {
        assert_eq!(of_one_group(function.clone(), &array, Type::Float), expected, "{function:?}");
    }
}

#[test]
fn percentiles_are_exact_up_to_so_many_and_then_nearly() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut numbers: Vec<f64> = (0..=EXACT_MAX).map(|number| (number as f64).powi(2)).collect();
    numbers.shuffle(&mut rng);
    let last = numbers.pop().expect("one more");
    let mut states = States::new(&aggregate(Aggregation::Percentile(0.3), false), SEED);
    let mut push = |states: &mut States, of: &[f64]| {
        let array = floats(of.to_vec());
        // By either loop.
        let groups =
            if rng.random() { vec![1; of.len()] } else { (0..of.len()).map(|row| u32::from(row > 0)).collect() };
        states.update(2, &groups, Some((&array, Type::Float)), &NOWHERE);
        groups.iter().filter(|group| **group == 0).count()
    };
    let mut astray = 0;
    for some in numbers.chunks(7919) {
        astray += push(&mut states, some);
    }
    assert!(astray > 0 && astray < 14);
    let mut sorted = numbers.clone();
    let mut all = States::new(&aggregate(Aggregation::Percentile(0.3), false), SEED);
    all.merge(1, through_bytes(&states, &aggregate(Aggregation::Percentile(0.3), false)), &[0, 0]);
    assert!(all.bytes() >= EXACT_MAX * size_of::<f64>(), "{}", all.bytes());
    sorted.sort_by(f64::total_cmp);
    let rank = 0.3 * (EXACT_MAX - 1) as f64;
    let below = rank.floor() as usize;
    let expected = sorted[below] + rank.fract() * (sorted[below + 1] - sorted[below]);
    let mut more = through_bytes(&all, &aggregate(Aggregation::Percentile(0.3), false));
    assert_eq!(all.finish(), [Value::float(expected)]);
    // One more, and it is a sample.
    more.update_one(1, 0, Some(&Value::float(last)), 0, 0);
    assert!(more.bytes() < EXACT_MAX * size_of::<f64>() / 2, "{}", more.bytes());
    let found = more.finish()[0].as_f64().expect("a number").sqrt();
    assert!((found - 30_000.0).abs() <= 500.0, "{found}");
}

#[test]
fn what_states_take_is_known() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["0123456789".repeat(10); 1000]));
    let keys: Vec<u64> = (0..1000).collect();
    let places = RowPositions { keys: &keys, object: 0 };
    let taken = |function, distinct, groups: u32| {
        let mut states = States::new(&aggregate(function, distinct), SEED);
        let numbers: Vec<u32> = (0..1000).map(|row| row % groups).collect();
        states.update(groups as usize, &numbers, Some((&texts, Type::Text)), &places);
        states.bytes()
    };
    assert!((100_000..300_000).contains(&taken(Aggregation::ArrayAgg, false, 1)));
    assert!((100..10_000).contains(&taken(Aggregation::ArrayAgg, true, 1)));
    assert!((100..1000).contains(&taken(Aggregation::Max, false, 1)));
    assert!((100_000..300_000).contains(&taken(Aggregation::Max, false, 1000)));
    assert!((100_000..300_000).contains(&taken(Aggregation::Last, false, 1000)));
    assert!((8000..50_000).contains(&taken(Aggregation::Count, false, 1000)));
    assert!((20_000..100_000).contains(&taken(Aggregation::Count, true, 1000)));
}
