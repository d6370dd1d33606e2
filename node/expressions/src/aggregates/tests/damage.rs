//! Decoding of damaged bytes.

use crate::Type;
use assay_node_btql::bound::Aggregation;
use assay_node_btql::values::Value;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::columns::{array, sample};
use super::{SEED, States, TYPES, aggregate, functions};
use crate::aggregates::{Damaged, RowPositions};

/// The bytes of states of a few groups.
fn bytes(of: &super::Aggregate, ty: Type, rows: usize, rng: &mut StdRng) -> Vec<u8> {
    let mut states = States::new(of, SEED);
    let values: Vec<Value<'static>> = (0..rows).map(|_| sample(ty, rng)).collect();
    let groups: Vec<u32> = (0..rows).map(|row| row as u32 % 3).collect();
    let keys: Vec<u64> = (0..rows as u64).collect();
    states.update(3, &groups, Some((&array(ty, &values), ty)), &RowPositions { keys: &keys, object: 0 });
    let mut bytes = Vec::new();
    states.encode(&mut bytes);
    bytes
}

fn read(of: &super::Aggregate, bytes: &[u8]) -> Result<States, Damaged> {
    States::decode(of, SEED, &mut &*bytes)
}

#[test]
fn what_is_cut_off_is_damaged() {
    let mut rng = StdRng::seed_from_u64(6);
    for of in functions() {
        for ty in TYPES {
            let bytes = bytes(&of, ty, 12, &mut rng);
            assert!(read(&of, &bytes).is_ok());
            for end in 0..bytes.len() {
                assert_eq!(read(&of, &bytes[..end]).err(), Some(Damaged), "{of:?} of {ty:?} cut at {end}");
            }
        }
    }
}

/// It may be read as something else, which then can be worked with.
#[test]
fn what_is_changed_does_no_harm() {
    let mut rng = StdRng::seed_from_u64(7);
    let mut noticed = 0;
    for of in functions() {
        for ty in TYPES {
            let bytes = bytes(&of, ty, 12, &mut rng);
            for _ in 0..60 {
                let mut changed = bytes.clone();
                for _ in 0..rng.random_range(1..3) {
                    let at = rng.random_range(0..changed.len());
                    changed[at] = [0, 1, 127, 128, 255, rng.random()][rng.random_range(0..6)];
                }
                match read(&of, &changed) {
                    Err(Damaged) => noticed += 1,
                    Ok(states) => {
                        let mut whole = read(&of, &bytes).expect("it reads");
                        assert!(states.bytes() < 1 << 20);
                        whole.merge(3, states, &[1, 2, 0]);
                        assert_eq!(whole.finish().len(), 3);
                    }
                }
            }
        }
    }
    assert!(noticed > 1000, "{noticed}");
}

#[test]
fn samples_and_registers_that_are_changed_do_no_harm() {
    let mut rng = StdRng::seed_from_u64(8);
    let of = aggregate(Aggregation::Percentile(0.5), false);
    let bytes = bytes(&of, Type::Float, 330_000, &mut rng);
    assert!(bytes.len() < 500_000, "they are samples");
    assert!(read(&of, &bytes).is_ok());
    for _ in 0..300 {
        let mut changed = bytes.clone();
        let within = if rng.random() { 200 } else { bytes.len() };
        let at = rng.random_range(0..within);
        changed[at] ^= 1 << rng.random_range(0..8);
        let end = if rng.random() { bytes.len() } else { rng.random_range(0..bytes.len()) };
        if let Ok(states) = read(&of, &changed[..end]) {
            let mut whole = read(&of, &bytes).expect("it reads");
            whole.merge(3, states, &[1, 2, 0]);
            assert_eq!(whole.finish().len(), 3);
        }
    }
}

#[test]
fn lengths_are_not_believed() {
    for of in functions() {
        for first in 0..=u8::MAX {
            let mut bytes = vec![u8::MAX; 64];
            bytes[0] = first;
            assert_eq!(read(&of, &bytes).err(), Some(Damaged), "{of:?}");
        }
    }
}
