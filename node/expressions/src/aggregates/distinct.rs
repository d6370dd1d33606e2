//! Counts of distinct values: exact for up to [`EXACT_MAX`] a group, then approximate (D-75).
//!
//! One table has the hashes of the values of all groups, since most groups have few. If all groups together have more
//! than [`MEMBERS_MAX`], the bound of a group is lowered in steps, down to [`EXACT_MIN`] (node/decisions/0052).

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
/// Lowest bound of a group. Registers take as much memory as this many values.
const EXACT_MIN: u32 = 1 << 14;
/// Divisor of the bound of a group if all groups together have too many values.
const EXACT_STEP: u32 = 8;
/// Upper bound of the values of all groups together, which fill a table of two million places.
const MEMBERS_MAX: usize = 1_800_000;
/// The count of a group that is counted by registers.
const BY_REGISTERS: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Distinct {
    seed: u64,
    exact_max: u32,
    members_max: usize,
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
            members_max: MEMBERS_MAX,
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
            } else if self.members.len() > self.members_max {
                self.lower();
            }
        }
    }

    fn add_to_registers(&mut self, member: Member) {
        self.registers.entry(group_of(member)).or_insert_with(Registers::new).add(high_bits(member));
    }

    #[cold]
    fn use_registers(&mut self, group: u32) {
        self.counts[group as usize] = BY_REGISTERS;
        self.registers.entry(group).or_insert_with(Registers::new);
        self.move_to_registers();
    }

    /// Moves the values of groups that are counted by registers.
    fn move_to_registers(&mut self) {
        let (counts, registers) = (&self.counts, &mut self.registers);
        self.members.retain(|member| {
            let group = group_of(*member);
            let is_exact = counts[group as usize] != BY_REGISTERS;
            if !is_exact && let Some(registers) = registers.get_mut(&group) {
                registers.add(high_bits(*member));
            }
            is_exact
        });
        self.members.shrink_to(self.members.len() * 2);
    }

    /// Lowers the bound of a group until all groups together have few enough values.
    #[cold]
    fn lower(&mut self) {
        while self.members.len() > self.members_max && self.exact_max > EXACT_MIN {
            self.set_exact_max((self.exact_max / EXACT_STEP).max(EXACT_MIN));
        }
        if self.exact_max <= EXACT_MIN {
            // Registers would take more memory than the values that are left.
            self.members_max = usize::MAX;
        }
    }

    fn set_exact_max(&mut self, exact_max: u32) {
        self.exact_max = exact_max;
        let exceeds = |count: u32| count > exact_max && count != BY_REGISTERS;
        let many: Vec<u32> =
            (0..).zip(&self.counts).filter(|(_, count)| exceeds(**count)).map(|(group, _)| group).collect();
        for group in &many {
            self.counts[*group as usize] = BY_REGISTERS;
            self.registers.entry(*group).or_insert_with(Registers::new);
        }
        if !many.is_empty() {
            self.move_to_registers();
        }
    }

    /// Counts all groups of many values by registers.
    pub fn approximate(&mut self) {
        if self.exact_max > EXACT_MIN {
            self.set_exact_max(EXACT_MIN);
        }
        self.members_max = usize::MAX;
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
        if other.exact_max < self.exact_max {
            self.set_exact_max(other.exact_max);
        }
        self.members_max = self.members_max.max(other.members_max);
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

    /// Groups of different sizes with distinct values.
    fn of_sizes(members_max: usize, sizes: &[i64]) -> Distinct {
        let mut distinct = Distinct { members_max, ..few(EXACT_MAX, sizes.len()) };
        (0..).zip(sizes).for_each(|(group, size)| add(&mut distinct, group, 0..*size));
        distinct
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
    fn many_values_of_all_groups_together_lower_the_bound_of_each() {
        let sizes = [30_000, 20_000, 10_000, 126_000];
        assert!(of_sizes(190_000, &sizes).registers.is_empty());
        // The first step leaves 125,000 values a group.
        let first = of_sizes(185_500, &sizes);
        assert_eq!((first.registers.len(), first.members.len(), first.exact_max), (1, 60_000, 125_000));
        let second = of_sizes(50_000, &sizes);
        assert_eq!((second.registers.len(), second.members.len(), second.exact_max), (3, 10_000, EXACT_MIN));
        let found = counts(second);
        for (count, size) in found.iter().zip([30_000.0, 20_000.0, 10_000.0, 126_000.0]) {
            assert!((count - size).abs() <= size / 100.0, "{count} of {size}");
        }
        assert_eq!(found[2], 10_000.0);
        // Nothing is left to be lowered.
        let last = of_sizes(5_000, &sizes);
        assert_eq!((last.registers.len(), last.members.len(), last.members_max), (3, 10_000, usize::MAX));
    }

    #[test]
    fn parts_with_different_bounds_come_to_the_same_in_any_order() {
        let sizes = [30_000, 20_000, 10_000];
        let whole = counts(of_sizes(40_000, &sizes));
        let parts =
            || [of_sizes(40_000, &sizes), of_sizes(40_000, &[9_000, 20_000, 10_000]), of_sizes(40_000, &[9_000; 3])];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut all = parts().map(Some);
            let mut merged = all[order[0]].take().expect("a part");
            for part in &order[1..] {
                merged.merge(all[*part].take().expect("a part"), &[0, 1, 2]);
            }
            assert_eq!(counts(merged), whole, "{order:?}");
        }
    }

    #[test]
    fn groups_of_few_values_stay_exact_when_memory_is_short() {
        let mut distinct = of_sizes(MEMBERS_MAX, &[20_000, 10_000]);
        let before = distinct.bytes();
        distinct.approximate();
        distinct.approximate();
        assert_eq!((distinct.registers.len(), distinct.members.len()), (1, 10_000));
        assert!(distinct.bytes() < before, "{} of {before}", distinct.bytes());
        add(&mut distinct, 1, 0..20_000);
        assert_eq!((distinct.registers.len(), distinct.members.len()), (2, 0));
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
