//! Sums and means. Whole numbers are added exactly. For fractions the rounding error of each addition is kept beside the sum,
//! so that their order hardly matters.

use std::array::from_fn;

use crate::Type;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use assay_node_btql::values::{SAFE, Value};

use super::rows::{GroupedBatch, each_block, each_valid};
use super::{Damaged, Grouped, RowPosition};
use crate::codec::{Reader, put_count, put_f64, put_u64, put_u128};

/// Sums that are made beside each other: an addition need not wait for the one before.
const LANES: usize = 4;
/// Bytes of one as it is written.
const PUT_BYTES: usize = 41;

#[derive(Debug)]
pub(super) struct Totals {
    is_mean: bool,
    of: Vec<Total>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    /// Sums of whole numbers.
    whole: i128,
    /// Sums of floats, and of their rounding errors.
    sum: f64,
    rest: f64,
    /// Number of added numbers.
    count: u64,
    /// Whether one of them was certain to be no whole number of 53 bits.
    has_float: bool,
}

/// A sum as a float, and exactly what rounding took from it.
#[inline(always)]
fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let of_right = sum - left;
    (sum, (left - (sum - of_right)) + (right - of_right))
}

/// Whether all are numbers, and none is beyond the whole numbers that a float tells apart.
fn are_small(floats: &[f64]) -> bool {
    floats.iter().fold(true, |small, float| small & (float.abs() <= SAFE as f64))
}

impl Total {
    #[inline(always)]
    fn add_float(&mut self, float: f64) {
        let (sum, rest) = two_sum(self.sum, float);
        self.sum = sum;
        self.rest += rest;
    }

    #[inline(always)]
    fn add_whole(&mut self, whole: i128) {
        self.whole = self.whole.wrapping_add(whole);
    }

    fn add(&mut self, value: &Value<'_>) {
        if let Value::Float(float) = value {
            self.add_float(*float);
            self.has_float = true;
        } else if let Some(whole) = value.as_whole() {
            self.add_whole(whole);
        } else {
            return;
        }
        self.count += 1;
    }

    fn absorb(&mut self, other: &Total) {
        self.add_whole(other.whole);
        self.add_float(other.sum);
        self.rest += other.rest;
        self.count = self.count.saturating_add(other.count);
        self.has_float |= other.has_float;
    }

    /// All of it as a float: whole numbers may be too long for one and be nearly undone by fractions.
    fn as_f64(&self) -> f64 {
        let high = self.whole as f64;
        let low = self.whole.saturating_sub(high as i128) as f64;
        let (sum, rest) = two_sum(self.sum, high);
        sum + (rest + low + self.rest)
    }

    /// The sum, where it is whole: floats that were all small and whole add up to one that is, and without loss.
    fn as_whole(&self) -> Option<i128> {
        let is_whole = !self.has_float && self.sum.fract() == 0.0 && self.rest.fract() == 0.0;
        is_whole.then(|| self.whole.saturating_add(self.sum as i128).saturating_add(self.rest as i128))
    }

    fn sum(&self) -> Value<'static> {
        match self.as_whole() {
            _ if self.count == 0 => Value::Null,
            Some(whole) => Value::whole(whole),
            None => Value::float(self.as_f64()),
        }
    }

    fn mean(&self) -> Value<'static> {
        let count = self.count as f64;
        match self.as_whole() {
            _ if self.count == 0 => Value::Null,
            // Divided before it is rounded: the mean of one number said three times is that number.
            Some(whole) => {
                let (mean, rest) = (whole / i128::from(self.count), whole % i128::from(self.count));
                Value::float(mean as f64 + rest as f64 / count)
            }
            None => Value::float(self.as_f64() / count),
        }
    }
}

impl Totals {
    pub fn new(is_mean: bool) -> Totals {
        Totals { is_mean, of: Vec::new() }
    }

    /// Adds rows that are all of one group.
    fn push_only(&mut self, batch: &GroupedBatch<'_>, group: u32) {
        let total = &mut self.of[group as usize];
        let nulls = batch.nulls();
        match batch.ty {
            Type::Bool => {
                let bools = batch.array.as_boolean();
                total.add_whole(bools.true_count() as i128);
            }
            Type::Int => {
                let ints = batch.array.as_primitive::<Int64Type>().values();
                each_block(ints, nulls, 0, |ints| total.add_whole(ints.iter().map(|int| i128::from(*int)).sum()));
            }
            _ => add_lanes(total, batch.floats(), batch),
        }
        total.count += (batch.rows() - nulls.map_or(0, |nulls| nulls.null_count())) as u64;
    }

    fn push_each(&mut self, batch: &GroupedBatch<'_>) {
        let (rows, nulls) = (batch.rows(), batch.nulls());
        let (groups, of) = (batch.groups, &mut self.of);
        match batch.ty {
            Type::Bool => {
                let bools = batch.array.as_boolean().values();
                each_valid(nulls, rows, |row| {
                    let total = &mut of[groups[row] as usize];
                    total.add_whole(bools.value(row).into());
                    total.count += 1;
                });
            }
            Type::Int => {
                let ints = batch.array.as_primitive::<Int64Type>().values();
                each_valid(nulls, rows, |row| {
                    let total = &mut of[groups[row] as usize];
                    total.add_whole(ints[row].into());
                    total.count += 1;
                });
            }
            _ => {
                let floats = batch.floats();
                each_valid(nulls, rows, |row| {
                    let total = &mut of[groups[row] as usize];
                    total.add_float(floats[row]);
                    total.count += 1;
                });
            }
        }
    }
}

fn add_lanes(total: &mut Total, floats: &[f64], batch: &GroupedBatch<'_>) {
    let (mut sums, mut rests) = ([0.0; LANES], [0.0; LANES]);
    each_block(floats, batch.nulls(), 0.0, |block| {
        let (chunks, left) = block.as_chunks::<LANES>();
        // On copies, which are kept where they are computed.
        (sums, rests) = chunks.iter().fold((sums, rests), |(sums, rests), chunk| add_chunk(sums, rests, chunk));
        left.iter().for_each(|float| total.add_float(*float));
    });
    sums.into_iter().for_each(|sum| total.add_float(sum));
    total.rest += rests.into_iter().sum::<f64>();
}

/// Step by step for all lanes at once: so a processor adds several of them by one instruction.
#[inline(always)]
fn add_chunk(sums: [f64; LANES], rests: [f64; LANES], chunk: &[f64; LANES]) -> ([f64; LANES], [f64; LANES]) {
    let added: [f64; LANES] = from_fn(|lane| sums[lane] + chunk[lane]);
    let of_chunk: [f64; LANES] = from_fn(|lane| added[lane] - sums[lane]);
    let of_sums: [f64; LANES] = from_fn(|lane| added[lane] - of_chunk[lane]);
    let rest: [f64; LANES] = from_fn(|lane| (sums[lane] - of_sums[lane]) + (chunk[lane] - of_chunk[lane]));
    (added, from_fn(|lane| rests[lane] + rest[lane]))
}

impl Grouped for Totals {
    fn grow(&mut self, groups: usize) {
        if groups > self.of.len() {
            self.of.resize(groups, Total::default());
        }
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        let has_loop = match batch.ty {
            Type::Bool | Type::Int => true,
            // Under a null there may be anything, and then they are taken one by one for nothing.
            Type::Float => are_small(batch.floats()),
            _ => false,
        };
        match (batch.ty, batch.only) {
            (Type::Text | Type::Time | Type::Created | Type::Xact | Type::Key | Type::Interval, _) => {}
            (_, Some(group)) if has_loop => self.push_only(batch, group),
            (_, None) if has_loop => self.push_each(batch),
            (Type::Wide, _) => {
                let wides = batch.array.as_primitive::<Decimal128Type>();
                each_valid(batch.nulls(), batch.rows(), |row| {
                    self.of[batch.groups[row] as usize].add(&Value::whole(wides.value(row)));
                });
            }
            _ => batch.each_value(|row, value| self.of[batch.groups[row] as usize].add(&value)),
        }
    }

    fn push_one(&mut self, group: u32, value: &Value<'_>, _: RowPosition) {
        self.of[group as usize].add(value);
    }

    fn merge(&mut self, other: Totals, into: &[u32]) {
        for (total, group) in other.of.iter().zip(into) {
            self.of[*group as usize].absorb(total);
        }
    }

    fn finish(self) -> Vec<Value<'static>> {
        self.of.iter().map(|total| if self.is_mean { total.mean() } else { total.sum() }).collect()
    }

    fn bytes(&self) -> usize {
        self.of.capacity() * size_of::<Total>()
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.of.len());
        for total in &self.of {
            put_u128(out, total.whole.cast_unsigned());
            put_f64(out, total.sum);
            put_f64(out, total.rest);
            put_u64(out, total.count);
            out.push(total.has_float.into());
        }
    }

    /// A sum may have become none; that it stays.
    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        let groups = from.count(PUT_BYTES)?;
        let mut total = || {
            Ok(Total {
                whole: from.u128()?.cast_signed(),
                sum: from.f64()?,
                rest: from.f64()?,
                count: from.u64()?,
                has_float: from.flag()?,
            })
        };
        self.of = (0..groups).map(|_| total()).collect::<Result<_, _>>()?;
        Ok(())
    }
}
