//! Standard deviation: number by number (Welford), and merged over parts (Chan).

use assay_node_btql::values::Value;

use super::rows::GroupedBatch;
use super::{Damaged, Grouped, RowPosition};
use crate::codec::{Reader, put_count, put_f64, put_u64};

const LANES: usize = 8;
/// Bytes of one as it is written.
const PUT_BYTES: usize = 24;

#[derive(Debug, Default)]
pub(super) struct Spreads {
    of: Vec<Spread>,
    /// The numbers of the batch at hand.
    numbers: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

impl Spread {
    #[inline(always)]
    fn add(&mut self, number: f64) {
        self.count += 1;
        let distance = number - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (number - self.mean);
    }

    fn absorb(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        let count = self.count.saturating_add(other.count);
        let distance = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.squares += other.squares + distance * distance * share * self.count as f64;
        self.mean += distance * share;
        self.count = count;
    }

    /// Adds many numbers at once, without a division for each.
    fn of(numbers: &[f64]) -> Spread {
        if numbers.is_empty() {
            return Spread::default();
        }
        let mean = sum(numbers, |number| number) / numbers.len() as f64;
        let squares = sum(numbers, |number| (number - mean) * (number - mean));
        Spread { count: numbers.len() as u64, mean, squares }
    }

    /// Standard deviation of a sample; none for one number.
    fn deviation(&self) -> Value<'static> {
        if self.count < 2 { Value::Null } else { Value::float((self.squares / (self.count - 1) as f64).sqrt()) }
    }
}

fn sum(numbers: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    let (eights, left) = numbers.as_chunks::<LANES>();
    for eight in eights {
        for lane in 0..LANES {
            sums[lane] += of(eight[lane]);
        }
    }
    sums.into_iter().chain(left.iter().map(|number| of(*number))).sum()
}

impl Grouped for Spreads {
    fn grow(&mut self, groups: usize) {
        if groups > self.of.len() {
            self.of.resize(groups, Spread::default());
        }
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        let Some(group) = batch.only else {
            batch.each_number(|row, number| self.of[batch.groups[row] as usize].add(number));
            return;
        };
        self.numbers.clear();
        batch.each_number(|_, number| self.numbers.push(number));
        self.of[group as usize].absorb(&Spread::of(&self.numbers));
    }

    fn push_one(&mut self, group: u32, value: &Value<'_>, _: RowPosition) {
        if let Some(number) = value.as_f64() {
            self.of[group as usize].add(number);
        }
    }

    fn merge(&mut self, other: Spreads, into: &[u32]) {
        for (spread, group) in other.of.iter().zip(into) {
            self.of[*group as usize].absorb(spread);
        }
    }

    fn finish(self) -> Vec<Value<'static>> {
        self.of.iter().map(Spread::deviation).collect()
    }

    fn bytes(&self) -> usize {
        self.of.capacity() * size_of::<Spread>() + self.numbers.capacity() * size_of::<f64>()
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.of.len());
        for spread in &self.of {
            put_u64(out, spread.count);
            put_f64(out, spread.mean);
            put_f64(out, spread.squares);
        }
    }

    /// A spread may have become none; that it stays.
    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        let groups = from.count(PUT_BYTES)?;
        let mut spread = || Ok(Spread { count: from.u64()?, mean: from.f64()?, squares: from.f64()? });
        self.of = (0..groups).map(|_| spread()).collect::<Result<_, _>>()?;
        Ok(())
    }
}
