//! States compared with a simple model: random columns of every type, random groups, and random parts that are merged in any
//! order, some of them encoded and decoded in between.

mod columns;
mod damage;
mod limits;
mod model;
mod positions;

use crate::Type;
use arrow_array::ArrayRef;
use assay_node_btql::bound::{Aggregate, Aggregation, BoundExpr, Datum};
use assay_node_btql::values::Value;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::*;
use columns::{array, sample};
use model::Row;

const SEED: u64 = 20_260_101;
const TYPES: [Type; 12] = [
    Type::Null,
    Type::Bool,
    Type::Int,
    Type::Float,
    Type::Wide,
    Type::Text,
    Type::Time,
    Type::Created,
    Type::Xact,
    Type::Key,
    Type::Interval,
    Type::Json,
];
/// Types whose values have one order among each other: a text may be less than a time that is less than another text.
const MIXED: [Type; 8] =
    [Type::Null, Type::Bool, Type::Int, Type::Float, Type::Wide, Type::Text, Type::Key, Type::Json];

fn aggregate(function: Aggregation, distinct: bool) -> Aggregate {
    // Which expression it is of is not looked at.
    Aggregate { function, of: Some(BoundExpr::Const(Datum::Null)), distinct }
}

fn functions() -> Vec<Aggregate> {
    let functions = [
        Aggregation::Count,
        Aggregation::Sum,
        Aggregation::Avg,
        Aggregation::Min,
        Aggregation::Max,
        Aggregation::AnyValue,
        Aggregation::First,
        Aggregation::Last,
        Aggregation::Percentile(0.0),
        Aggregation::Percentile(0.37),
        Aggregation::Percentile(1.0),
        Aggregation::Stddev,
        Aggregation::ArrayAgg,
        Aggregation::StringAgg("-".into()),
    ];
    let both = |function: Aggregation| [aggregate(function.clone(), false), aggregate(function, true)];
    functions.into_iter().flat_map(both).collect()
}

struct TestBatch {
    ty: Type,
    array: ArrayRef,
    values: Vec<Value<'static>>,
    groups: Vec<u32>,
    keys: Vec<u64>,
    object: u32,
}

/// Rows of one batch alone may stand at one place.
fn batch(ty: Type, number: u64, groups: u32, rng: &mut StdRng) -> TestBatch {
    let rows = [0, 1, 3, 64, 65, 200][rng.random_range(0..6)];
    let nulls = [0.0, 0.0, 0.1, 0.9][rng.random_range(0..4)];
    let value = |rng: &mut StdRng| if rng.random_bool(nulls) { Value::Null } else { sample(ty, rng) };
    let values: Vec<Value<'static>> = (0..rows).map(|_| value(rng)).collect();
    // Also all of one group, in the midst of others.
    let only = rng.random_bool(0.3).then(|| rng.random_range(0..groups));
    TestBatch {
        ty,
        array: array(ty, &values),
        values,
        groups: (0..rows).map(|_| only.unwrap_or_else(|| rng.random_range(0..groups))).collect(),
        keys: (0..rows).map(|_| rng.random_range(0..60) * 100 + number).collect(),
        object: rng.random_range(0..3),
    }
}

/// States with the groups of all that are numbered as they were met here.
struct Part {
    states: States,
    groups: Vec<u32>,
}

impl Part {
    fn push(&mut self, batch: &TestBatch, rng: &mut StdRng) {
        for group in &batch.groups {
            if !self.groups.contains(group) {
                self.groups.push(*group);
            }
        }
        let number = |group: &u32| self.groups.iter().position(|other| other == group).expect("it is met") as u32;
        let groups: Vec<u32> = batch.groups.iter().map(number).collect();
        let count = self.groups.len();
        if rng.random_bool(0.2) {
            for (row, value) in batch.values.iter().enumerate() {
                self.states.update_one(count, groups[row], Some(value), batch.keys[row], batch.object);
            }
        } else {
            let places = RowPositions { keys: &batch.keys, object: batch.object };
            self.states.update(count, &groups, Some((&batch.array, batch.ty)), &places);
        }
    }

    fn merge(&mut self, other: Part) {
        let mut into = Vec::new();
        for group in &other.groups {
            let known = self.groups.iter().position(|known| known == group).unwrap_or_else(|| {
                self.groups.push(*group);
                self.groups.len() - 1
            });
            into.push(known as u32);
        }
        self.states.merge(self.groups.len(), other.states, &into);
    }
}

fn through_bytes(states: &States, aggregate: &Aggregate) -> States {
    let mut bytes = Vec::new();
    states.encode(&mut bytes);
    bytes.extend(b"rest");
    let mut from = bytes.as_slice();
    let read = States::decode(aggregate, SEED, &mut from).expect("it reads");
    assert_eq!(from, b"rest");
    read
}

/// Compares states with the model over batches of some types.
fn check(aggregate: &Aggregate, types: &[Type], rng: &mut StdRng) {
    let group_count = [1, 1, 3, 40][rng.random_range(0..4)];
    let batches: Vec<TestBatch> = (0..rng.random_range(1..8))
        .map(|number| batch(types[rng.random_range(0..types.len())], number, group_count, rng))
        .collect();
    let mut parts: Vec<Part> = (0..rng.random_range(1..4))
        .map(|_| Part { states: States::new(aggregate, SEED), groups: Vec::new() })
        .collect();
    let mut order: Vec<&TestBatch> = batches.iter().collect();
    order.shuffle(rng);
    for batch in order {
        let part = rng.random_range(0..parts.len());
        parts[part].push(batch, rng);
    }
    while parts.len() > 1 {
        let mut other = parts.swap_remove(rng.random_range(0..parts.len()));
        if rng.random_bool(0.5) {
            other.states = through_bytes(&other.states, aggregate);
        }
        let into = rng.random_range(0..parts.len());
        parts[into].merge(other);
    }
    let part = parts.pop().expect("one is left");
    let found = if rng.random_bool(0.5) { through_bytes(&part.states, aggregate) } else { part.states }.finish();
    for (value, group) in found.iter().zip(&part.groups) {
        let rows = batches.iter().flat_map(|batch| {
            let row = |row: usize| Row { place: (batch.keys[row], batch.object), value: batch.values[row].clone() };
            (0..batch.values.len()).filter(|row| batch.groups[*row] == *group).map(row).collect::<Vec<_>>()
        });
        model::expect(aggregate, rows.collect(), value, &format!("{aggregate:?} of {types:?}"));
    }
    assert_eq!(found.len(), part.groups.len(), "a value for each group");
}

#[test]
fn each_type_by_each_aggregate_is_what_is_meant() {
    let mut rng = StdRng::seed_from_u64(1);
    for aggregate in functions() {
        for ty in TYPES {
            (0..25).for_each(|_| check(&aggregate, &[ty], &mut rng));
        }
    }
}

#[test]
fn types_may_change_from_batch_to_batch() {
    let mut rng = StdRng::seed_from_u64(2);
    for aggregate in functions() {
        (0..200).for_each(|_| check(&aggregate, &MIXED, &mut rng));
    }
}
