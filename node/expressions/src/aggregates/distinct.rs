//! Counts of distinct values: exact for up to [`EXACT_MAX`] a group, then approximate (D-75).
//!
//! One table has the hashes of the values of all groups, since most groups have few.

use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasherDefault;

use crate::Type;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use assay_node_btql::values::Value;

use super::hash::{self, Hashed, Member, group_of, high_bits, member};
use super::registers::Registers;
use super::rows::{GroupedBatch, each_valid};
use super::{Damaged, Grouped, RowPosition};
use crate::codec::{Reader, put_count, put_u32, put_u128};

pub(super) const EXACT_MAX: u32 = 1_000_000;
/// The count of a group that is counted by registers.
const BY_REGISTERS: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Distinct {
    seed: u64,
    exact_max: u32,
    counts: Vec<u32>,
    members: HashSet<Member, BuildHasherDefault<Hashed>>,
    /// Registers of groups with too many values to keep.
    registers: BTreeMap<u32, Registers>,
    scratch: Vec<u8>,
}

impl Distinct {
    pub fn new(seed: u64) -> Distinct {
        Distinct {
            seed,
            exact_max: EXACT_MAX,
            counts: Vec::new(),
            members: HashSet::default(),
            registers: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    #[inline(always)]
    fn add(&mut self, member: Member) {
        let count = &mut self.counts[group_of(member) as usize];
        if *count == BY_REGISTERS {
            self.add_to_registers(member);
        } else if self.members.insert(member) {
            *count += 1;
            if *count > self.exact_max {
                self.use_registers(group_of(member));
            }
        }
    }

    fn add_to_registers(&mut self, member: Member) {
        self.registers.entry(group_of(member)).or_insert_with(Registers::new).add(high_bits(member));
    }

    #[cold]
    fn use_registers(&mut self, group: u32) {
        let registers = self.registers.entry(group).or_insert_with(Registers::new);
        self.counts[group as usize] = BY_REGISTERS;
        self.members.retain(|member| {
            let is_other = group_of(*member) != group;
            if !is_other {
                registers.add(high_bits(*member));
            }
            is_other
        });
        self.members.shrink_to(self.members.len() * 2);
    }
}

impl Grouped for Distinct {
    fn grow(&mut self, groups: usize) {
        if groups > self.counts.len() {
            self.counts.resize(groups, 0);
        }
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        let (groups, rows, nulls, seed) = (batch.groups, batch.rows(), batch.nulls(), self.seed);
        match batch.ty {
            Type::Bool => {
                let hashes = [false, true].map(|boolean| hash::of_bool(boolean, seed));
                let bools = batch.array.as_boolean().values();
                each_valid(nulls, rows, |row| self.add(member(groups[row], hashes[usize::from(bools.value(row))])));
            }
            Type::Int => {
                let ints = batch.array.as_primitive::<Int64Type>().values();
                each_valid(nulls, rows, |row| self.add(member(groups[row], hash::of_whole(ints[row], seed))));
            }
            Type::Float => {
                let floats = batch.floats();
                batch.each_present(|row| self.add(member(groups[row], hash::of_float(floats[row], seed))));
            }
            Type::Text => {
                let texts = batch.array.as_string::<i32>();
                each_valid(nulls, rows, |row| self.add(member(groups[row], hash::of_text(texts.value(row), seed))));
            }
            _ => {
                let mut scratch = std::mem::take(&mut self.scratch);
                batch.each_value(|row, value| {
                    self.add(member(groups[row], hash::of_value(&value, seed, &mut scratch)));
                });
                self.scratch = scratch;
            }
        }
    }

    fn push_one(&mut self, group: u32, value: &Value<'_>, _: RowPosition) {
        let hash = hash::of_value(value, self.seed, &mut self.scratch);
        self.add(member(group, hash));
    }

    fn merge(&mut self, other: Distinct, into: &[u32]) {
        for (group, registers) in &other.registers {
            let Some(group) = into.get(*group as usize).copied() else { continue };
            if self.counts[group as usize] != BY_REGISTERS {
                self.use_registers(group);
            }
            self.registers.entry(group).or_insert_with(Registers::new).merge(registers);
        }
        for of in other.members {
            if let Some(group) = into.get(group_of(of) as usize) {
                self.add(member(*group, of));
            }
        }
    }

    fn finish(self) -> Vec<Value<'static>> {
        let count = |(group, count): (usize, &u32)| match self.registers.get(&(group as u32)) {
            Some(registers) => Value::float(registers.estimate().round()),
            None => Value::Integer((*count).into()),
        };
        self.counts.iter().enumerate().map(count).collect()
    }

    fn bytes(&self) -> usize {
        // A byte beside each member, and an eighth of the places empty.
        let members = self.members.capacity() * (size_of::<Member>() + 1) * 8 / 7;
        self.counts.capacity() * size_of::<u32>() + members + self.registers.len() * Registers::BYTES
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.counts.len());
        self.counts.iter().for_each(|count| put_u32(out, *count));
        self.registers.values().for_each(|registers| registers.put(out));
        put_count(out, self.members.len());
        self.members.iter().for_each(|member| put_u128(out, *member));
    }

    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        let groups = from.count(size_of::<u32>())?;
        let counts = (0..groups).map(|_| from.u32()).collect::<Result<Vec<_>, _>>()?;
        self.counts = vec![0; groups];
        for (group, count) in counts.iter().enumerate().filter(|(_, count)| **count == BY_REGISTERS) {
            self.registers.insert(group as u32, Registers::take(from)?);
            self.counts[group] = *count;
        }
        let members = from.count(size_of::<Member>())?;
        self.members.reserve(members);
        for _ in 0..members {
            let member = from.u128()?;
            // One of a group that has registers was never kept.
            if self.counts.get(group_of(member) as usize).is_none_or(|count| *count == BY_REGISTERS) {
                return Err(Damaged);
            }
            self.members.insert(member);
            self.counts[group_of(member) as usize] += 1;
        }
        if self.counts == counts { Ok(()) } else { Err(Damaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As all do, but for fewer values.
    fn few(exact_max: u32, groups: usize) -> Distinct {
        Distinct { exact_max, counts: vec![0; groups], ..Distinct::new(3) }
    }

    fn add(to: &mut Distinct, group: u32, of: std::ops::Range<i64>) {
        let place = RowPosition { key: 0, object: 0 };
        of.for_each(|number| to.push_one(group, &Value::Integer(number), place));
    }

    fn counts(of: Distinct) -> Vec<f64> {
        of.finish().iter().filter_map(Value::as_f64).collect()
    }

    #[test]
    fn exact_up_to_so_many_and_then_nearly() {
        let mut distinct = few(1000, 2);
        add(&mut distinct, 0, 0..1000);
        add(&mut distinct, 0, 0..1000);
        add(&mut distinct, 1, 0..50);
        assert!(distinct.registers.is_empty());
        add(&mut distinct, 0, 0..20_000);
        assert_eq!((distinct.registers.len(), distinct.members.len()), (1, 50));
        let found = counts(distinct);
        assert!((found[0] - 20_000.0).abs() <= 200.0 && found[1] == 50.0, "{found:?}");
    }

    #[test]
    fn parts_of_both_kinds_come_to_the_same_in_any_order() {
        let part = |of: std::ops::Range<i64>| {
            let mut part = few(1000, 1);
            add(&mut part, 0, of);
            part
        };
        let whole = counts(part(0..9000));
        for (left, right) in [(0..8600, 8500..9000), (8500..9000, 0..8600), (0..5000, 4000..9000), (0..9000, 0..0)] {
            let (mut left, right) = (part(left), part(right));
            let mut bytes = Vec::new();
            right.put(&mut bytes);
            let mut read = few(1000, 0);
            read.take(&mut Reader::new(&bytes)).expect("it reads");
            left.merge(read, &[0]);
            assert_eq!(counts(left), whole);
        }
        // Neither of them is too many by itself.
        let (mut left, right) = (part(0..1000), part(500..1200));
        left.merge(right, &[0]);
        assert!(left.registers.len() == 1 && left.members.is_empty());
        assert_eq!(counts(left), counts(part(0..1200)));
    }

    #[test]
    fn counts_that_do_not_fit_the_values_are_damaged() {
        let read = |bytes: &[u8]| few(1000, 0).take(&mut Reader::new(bytes));
        let mut distinct = few(1000, 2);
        add(&mut distinct, 0, 0..5);
        let mut bytes = Vec::new();
        distinct.put(&mut bytes);
        let first = size_of::<u64>();
        assert_eq!((bytes[first], read(&bytes)), (5, Ok(())));
        bytes[first] = 6;
        assert_eq!(read(&bytes), Err(Damaged));
        // Registers, and a value beside them.
        add(&mut distinct, 0, 0..2000);
        bytes.clear();
        distinct.put(&mut bytes);
        assert_eq!(read(&bytes), Ok(()));
        bytes.truncate(bytes.len() - size_of::<u64>());
        put_count(&mut bytes, 1);
        put_u128(&mut bytes, member(0, u128::MAX));
        assert_eq!(read(&bytes), Err(Damaged));
    }

    #[test]
    fn a_million_is_exact() {
        let mut distinct = Distinct::new(9);
        distinct.grow(1);
        add(&mut distinct, 0, 0..1_000_000);
        assert_eq!(distinct.members.len(), 1_000_000);
        assert!(distinct.bytes() < 50 << 20, "{}", distinct.bytes());
        add(&mut distinct, 0, 1_000_000..1_300_000);
        assert!(distinct.bytes() < 1 << 20);
        let found = counts(distinct)[0];
        assert!((found - 1.3e6).abs() <= 1.3e4, "{found}");
    }
}
