//! Percentiles: exact for up to [`EXACT_MAX`] numbers a group, then by a sketch (D-75).

use crate::Type;
use assay_node_btql::values::Value;

use super::rows::GroupedBatch;
use super::sketch::{Sketch, mixed};
use super::{Damaged, Grouped, RowPosition};
use crate::codec::{Reader, put_count, put_f64};

pub(super) const EXACT_MAX: usize = 100_000;
/// Numbers that wait to be sampled.
const WAITING_MAX: usize = 4096;
const ROOM_MIN: usize = 4;

#[derive(Debug)]
pub(super) struct Ranks {
    share: f64,
    seed: u64,
    of: Vec<Ranked>,
    /// Memory of the groups beside their entries.
    heap: usize,
}

#[derive(Debug, Default)]
struct Ranked {
    /// All numbers, or those that are not in the sample yet.
    numbers: Vec<f64>,
    sketch: Option<Box<Sketch>>,
}

impl Ranks {
    pub fn new(share: f64, seed: u64) -> Ranks {
        Ranks { share, seed, of: Vec::new(), heap: 0 }
    }

    #[inline(always)]
    fn add(&mut self, group: u32, number: f64) {
        let ranked = &mut self.of[group as usize];
        if ranked.numbers.len() == ranked.numbers.capacity() {
            self.make_room(group);
            self.of[group as usize].numbers.push(number);
        } else {
            ranked.numbers.push(number);
        }
    }

    fn extend(&mut self, group: u32, mut numbers: &[f64]) {
        while !numbers.is_empty() {
            let ranked = &mut self.of[group as usize];
            let room = ranked.numbers.capacity() - ranked.numbers.len();
            let (now, later) = numbers.split_at(room.min(numbers.len()));
            ranked.numbers.extend_from_slice(now);
            numbers = later;
            if !numbers.is_empty() {
                self.make_room(group);
            }
        }
    }

    /// Makes space for numbers of a group that is full.
    #[cold]
    fn make_room(&mut self, group: u32) {
        let seed = mixed(self.seed ^ u64::from(group));
        let ranked = &mut self.of[group as usize];
        let before = ranked.bytes();
        if ranked.sketch.is_none() && ranked.numbers.len() < EXACT_MAX {
            let room = (ranked.numbers.len() * 2).clamp(ROOM_MIN, EXACT_MAX) - ranked.numbers.len();
            ranked.numbers.reserve_exact(room);
        } else {
            ranked.sample(seed);
        }
        self.heap = self.heap + self.of[group as usize].bytes() - before;
    }
}

impl Ranked {
    /// All that waits goes into the sample.
    fn sample(&mut self, seed: u64) {
        let sketch = self.sketch.get_or_insert_with(|| Box::new(Sketch::new(seed)));
        sketch.extend(&self.numbers);
        self.numbers.clear();
        self.numbers.shrink_to(WAITING_MAX);
        self.numbers.reserve_exact(WAITING_MAX);
    }

    fn bytes(&self) -> usize {
        let sketch = self.sketch.as_ref().map_or(0, |sketch| size_of::<Sketch>() + sketch.bytes());
        self.numbers.capacity() * size_of::<f64>() + sketch
    }

    fn percentile(mut self, share: f64) -> Value<'static> {
        if let Some(mut sketch) = self.sketch {
            sketch.extend(&self.numbers);
            return Value::float(sketch.quantile(share));
        }
        let Some(last) = self.numbers.len().checked_sub(1) else { return Value::Null };
        let rank = share * last as f64;
        let below = (rank.floor() as usize).min(last);
        let (_, low, greater) = self.numbers.select_nth_unstable_by(below, f64::total_cmp);
        let low = *low;
        let high = greater.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
        Value::float(low + (rank - below as f64) * (high - low))
    }
}

impl Grouped for Ranks {
    fn grow(&mut self, groups: usize) {
        if groups > self.of.len() {
            self.of.resize_with(groups, Ranked::default);
        }
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        match batch.only {
            Some(group) if batch.ty == Type::Float && batch.nulls().is_none() => {
                let floats = batch.floats();
                if floats.iter().fold(true, |finite, float| finite & float.is_finite()) {
                    return self.extend(group, floats);
                }
                floats.iter().filter(|float| float.is_finite()).for_each(|float| self.add(group, *float));
            }
            _ => batch.each_number(|row, number| self.add(batch.groups[row], number)),
        }
    }

    fn push_one(&mut self, group: u32, value: &Value<'_>, _: RowPosition) {
        if let Some(number) = value.as_f64() {
            self.add(group, number);
        }
    }

    fn merge(&mut self, other: Ranks, into: &[u32]) {
        for (other, group) in other.of.into_iter().zip(into) {
            if let Some(sketch) = other.sketch {
                let seed = mixed(self.seed ^ u64::from(*group));
                let ranked = &mut self.of[*group as usize];
                let before = ranked.bytes();
                ranked.sample(seed);
                if let Some(to) = &mut ranked.sketch {
                    to.merge(*sketch);
                }
                self.heap = self.heap + ranked.bytes() - before;
            }
            self.extend(*group, &other.numbers);
        }
    }

    fn finish(self) -> Vec<Value<'static>> {
        self.of.into_iter().map(|ranked| ranked.percentile(self.share)).collect()
    }

    fn bytes(&self) -> usize {
        self.of.capacity() * size_of::<Ranked>() + self.heap
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_count(out, self.of.len());
        for ranked in &self.of {
            out.push(ranked.sketch.is_some().into());
            if let Some(sketch) = &ranked.sketch {
                sketch.put(out);
            }
            put_count(out, ranked.numbers.len());
            ranked.numbers.iter().for_each(|number| put_f64(out, *number));
        }
    }

    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        let groups = from.count(1 + size_of::<u64>())?;
        self.of = (0..groups).map(|_| take_one(from)).collect::<Result<_, _>>()?;
        self.heap = self.of.iter().map(Ranked::bytes).sum();
        Ok(())
    }
}

fn take_one(from: &mut Reader<'_>) -> Result<Ranked, Damaged> {
    let sketch = if from.flag()? { Some(Box::new(Sketch::take(from)?)) } else { None };
    let count = from.count(size_of::<f64>())?;
    if count > EXACT_MAX {
        return Err(Damaged);
    }
    // No more room than for them: when it is full tells how many there are.
    let mut numbers = Vec::with_capacity(count);
    for _ in 0..count {
        numbers.push(from.finite()?);
    }
    Ok(Ranked { numbers, sketch })
}
