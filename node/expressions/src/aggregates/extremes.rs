//! Minimum and maximum, in the order of all values (D-75).
//!
//! Numbers are kept while all batches have one type that is numeric underneath, otherwise values.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::Type;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMicrosecondType, UInt64Type};
use assay_node_btql::values::{Value, in_order};

use super::rows::{GroupedBatch, each_block, each_valid};
use super::value_at::key_text;
use super::{Damaged, Grouped, RowPosition};
use crate::codec::{Reader, put_count, put_f64, put_u64, put_value};

const LANES: usize = 8;
const TYPES: [Type; 6] = [Type::Bool, Type::Int, Type::Time, Type::Created, Type::Xact, Type::Key];
const FLOATS: u8 = 0;
const VALUES: u8 = 1;
/// From here on what is kept as whole numbers.
const WHOLES: u8 = 2;

#[derive(Debug)]
pub(super) struct Extremes {
    greatest: bool,
    groups: usize,
    best: Best,
    /// Bytes that the values refer to.
    heap: usize,
}

#[derive(Debug)]
enum Best {
    Nothing,
    /// Turned by [`Turn`] so that the least is wanted; and whether there is one.
    Wholes(Type, Vec<(i64, bool)>),
    /// Numbers, negated for the maximum; infinity for groups without one.
    Floats(Vec<f64>),
    /// Null where there is none.
    Values(Vec<Value<'static>>),
}

/// Mapping that turns a maximum into a minimum, and unsigned numbers into signed ones of the same order.
#[derive(Clone, Copy, Debug)]
struct Turn(i64);

impl Turn {
    fn of(ty: Type, greatest: bool) -> Turn {
        let unsigned = if matches!(ty, Type::Xact | Type::Key) { i64::MIN } else { 0 };
        Turn(if greatest { !unsigned } else { unsigned })
    }

    #[inline(always)]
    fn turned(self, number: i64) -> i64 {
        number ^ self.0
    }
}

fn value_of(ty: Type, number: i64) -> Value<'static> {
    match ty {
        Type::Bool => Value::Boolean(number != 0),
        Type::Time => Value::Time(number),
        Type::Created => Value::Stored(number),
        Type::Xact => Value::Xact(number.cast_unsigned()),
        Type::Key => Value::Text(Cow::Owned(key_text(number.cast_unsigned()))),
        _ => Value::Integer(number),
    }
}

impl Extremes {
    pub fn new(greatest: bool) -> Extremes {
        Extremes { greatest, groups: 0, best: Best::Nothing, heap: 0 }
    }

    fn sign(&self) -> f64 {
        if self.greatest { -1.0 } else { 1.0 }
    }

    /// Ready for a batch of a type.
    fn expect(&mut self, ty: Type) {
        let kept = match &self.best {
            Best::Nothing if ty == Type::Float => Best::Floats(vec![f64::INFINITY; self.groups]),
            Best::Nothing if TYPES.contains(&ty) => Best::Wholes(ty, vec![(i64::MAX, false); self.groups]),
            Best::Wholes(of, _) if *of == ty => return,
            Best::Floats(_) if ty == Type::Float => return,
            Best::Values(_) => return,
            _ => Best::Values(self.values()),
        };
        if let Best::Values(values) = &kept {
            self.heap = values.iter().map(Value::heap_bytes).sum();
        }
        self.best = kept;
    }

    /// Values found so far.
    fn values(&self) -> Vec<Value<'static>> {
        let sign = self.sign();
        match &self.best {
            Best::Nothing => vec![Value::Null; self.groups],
            Best::Wholes(ty, of) => {
                let turn = Turn::of(*ty, self.greatest);
                let value = |(number, has): &(i64, bool)| {
                    if *has { value_of(*ty, turn.turned(*number)) } else { Value::Null }
                };
                of.iter().map(value).collect()
            }
            Best::Floats(of) => of.iter().map(|float| Value::float(sign * float)).collect(),
            Best::Values(of) => of.clone(),
        }
    }

    fn consider(&mut self, group: u32, value: &Value<'_>) {
        let Best::Values(values) = &mut self.best else { return };
        let best = &mut values[group as usize];
        let wanted = if self.greatest { Ordering::Greater } else { Ordering::Less };
        let is_better = match in_order(value, best) {
            // A week is as long as seven days. Which of them is shown must not depend on which part met which.
            Ordering::Equal => *value != *best && value.to_json() < best.to_json(),
            order => order == wanted,
        };
        if !best.is_null() && !is_better {
            return;
        }
        self.heap = self.heap + value.heap_bytes() - best.heap_bytes();
        match (&mut *best, value) {
            // Its place is taken: in a column that ascends each row would want another.
            (Value::Text(Cow::Owned(old)), Value::Text(new)) => new.as_ref().clone_into(old),
            _ => *best = value.clone().into_owned(),
        }
    }

    fn push_wholes(&mut self, batch: &GroupedBatch<'_>) {
        let Best::Wholes(ty, of) = &mut self.best else { return };
        let turn = Turn::of(*ty, self.greatest);
        match *ty {
            Type::Bool => {
                let bools = batch.array.as_boolean().values();
                each_valid(batch.nulls(), batch.rows(), |row| {
                    let best = &mut of[batch.groups[row] as usize];
                    *best = (best.0.min(turn.turned(bools.value(row).into())), true);
                });
            }
            Type::Int => push_turned(of, batch, batch.array.as_primitive::<Int64Type>().values(), |of| turn.turned(of)),
            Type::Time | Type::Created => {
                let times = batch.array.as_primitive::<TimestampMicrosecondType>().values();
                push_turned(of, batch, times, |of| turn.turned(of));
            }
            _ => {
                let numbers = batch.array.as_primitive::<UInt64Type>().values();
                push_turned(of, batch, numbers, |of: u64| turn.turned(of.cast_signed()));
            }
        }
    }

    fn push_texts(&mut self, batch: &GroupedBatch<'_>) {
        let texts = batch.array.as_string::<i32>();
        each_valid(batch.nulls(), batch.rows(), |row| {
            let (group, text) = (batch.groups[row], texts.value(row));
            let Best::Values(values) = &self.best else { return };
            // Most are no better, and that is told here.
            let is_worse = match &values[group as usize] {
                Value::Text(best) if self.greatest => text <= best.as_ref(),
                Value::Text(best) => text >= best.as_ref(),
                _ => false,
            };
            if !is_worse {
                self.consider(group, &Value::Text(Cow::Borrowed(text)));
            }
        });
    }

    fn push_floats(&mut self, batch: &GroupedBatch<'_>) {
        let sign = self.sign();
        let Best::Floats(of) = &mut self.best else { return };
        // What is no number compares as less with nothing, and what is infinite is left out.
        let turned = |float: f64| if float.is_finite() { sign * float } else { f64::INFINITY };
        let Some(group) = batch.only else {
            let floats = batch.floats();
            each_valid(batch.nulls(), batch.rows(), |row| {
                let best = &mut of[batch.groups[row] as usize];
                let float = turned(floats[row]);
                *best = if float < *best { float } else { *best };
            });
            return;
        };
        let mut least = [f64::INFINITY; LANES];
        each_block(batch.floats(), batch.nulls(), f64::INFINITY, |block| {
            let (eights, left) = block.as_chunks::<LANES>();
            let lesser = |least: f64, float: f64| if turned(float) < least { turned(float) } else { least };
            for eight in eights {
                for lane in 0..LANES {
                    least[lane] = lesser(least[lane], eight[lane]);
                }
            }
            left.iter().for_each(|float| least[0] = lesser(least[0], *float));
        });
        let best = &mut of[group as usize];
        *best = least.into_iter().fold(*best, f64::min);
    }
}

fn push_turned<T: Copy>(of: &mut [(i64, bool)], batch: &GroupedBatch<'_>, numbers: &[T], turned: impl Fn(T) -> i64) {
    let nulls = batch.nulls();
    let Some(group) = batch.only else {
        each_valid(nulls, batch.rows(), |row| {
            let best = &mut of[batch.groups[row] as usize];
            *best = (best.0.min(turned(numbers[row])), true);
        });
        return;
    };
    // Any that is there, in the place of those that are not.
    let is_valid = |row: &usize| nulls.is_none_or(|nulls| nulls.is_valid(*row));
    let Some(first) = (0..batch.rows()).find(is_valid).map(|row| numbers[row]) else { return };
    let mut least = [turned(first); LANES];
    each_block(numbers, nulls, first, |block| {
        let (eights, left) = block.as_chunks::<LANES>();
        for eight in eights {
            for lane in 0..LANES {
                least[lane] = least[lane].min(turned(eight[lane]));
            }
        }
        left.iter().for_each(|number| least[0] = least[0].min(turned(*number)));
    });
    let best = &mut of[group as usize];
    *best = (least.into_iter().fold(best.0, i64::min), true);
}

impl Grouped for Extremes {
    fn grow(&mut self, groups: usize) {
        self.groups = groups.max(self.groups);
        match &mut self.best {
            Best::Nothing => {}
            Best::Wholes(_, of) => of.resize(self.groups, (i64::MAX, false)),
            Best::Floats(of) => of.resize(self.groups, f64::INFINITY),
            Best::Values(of) => of.resize(self.groups, Value::Null),
        }
    }

    fn push(&mut self, batch: &GroupedBatch<'_>) {
        self.expect(batch.ty);
        match &self.best {
            Best::Wholes(..) => self.push_wholes(batch),
            Best::Floats(_) => self.push_floats(batch),
            _ if batch.ty == Type::Text => self.push_texts(batch),
            _ => batch.each_value(|row, value| self.consider(batch.groups[row], &value)),
        }
    }

    fn push_one(&mut self, group: u32, value: &Value<'_>, _: RowPosition) {
        self.expect(Type::Json);
        self.consider(group, value);
    }

    fn merge(&mut self, other: Extremes, into: &[u32]) {
        match &other.best {
            Best::Nothing => return,
            Best::Wholes(ty, _) => self.expect(*ty),
            Best::Floats(_) => self.expect(Type::Float),
            Best::Values(_) => self.expect(Type::Json),
        }
        match (&mut self.best, &other.best) {
            (Best::Wholes(_, of), Best::Wholes(_, other)) => {
                for ((number, has), group) in other.iter().zip(into).filter(|((_, has), _)| *has) {
                    let best = &mut of[*group as usize];
                    *best = (best.0.min(*number), *has);
                }
            }
            (Best::Floats(of), Best::Floats(other)) => {
                for (float, group) in other.iter().zip(into) {
                    let best = &mut of[*group as usize];
                    *best = best.min(*float);
                }
            }
            _ => {
                for (value, group) in other.values().iter().zip(into).filter(|(value, _)| !value.is_null()) {
                    self.consider(*group, value);
                }
            }
        }
    }

    fn finish(self) -> Vec<Value<'static>> {
        match self.best {
            Best::Values(values) => values,
            _ => self.values(),
        }
    }

    fn bytes(&self) -> usize {
        self.heap
            + match &self.best {
                Best::Nothing => 0,
                Best::Wholes(_, of) => of.capacity() * size_of::<(i64, bool)>(),
                Best::Floats(of) => of.capacity() * size_of::<f64>(),
                Best::Values(of) => of.capacity() * size_of::<Value<'_>>(),
            }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match &self.best {
            Best::Nothing => {
                out.push(VALUES);
                put_count(out, self.groups);
                (0..self.groups).for_each(|_| put_value(out, &Value::Null));
            }
            Best::Floats(of) => {
                out.push(FLOATS);
                put_count(out, of.len());
                of.iter().for_each(|float| put_f64(out, *float));
            }
            Best::Values(of) => {
                out.push(VALUES);
                put_count(out, of.len());
                of.iter().for_each(|value| put_value(out, value));
            }
            Best::Wholes(ty, of) => {
                let kind = TYPES.iter().position(|other| other == ty).unwrap_or_default();
                out.push(WHOLES + kind as u8);
                put_count(out, of.len());
                for (number, has) in of {
                    put_u64(out, number.cast_unsigned());
                    out.push((*has).into());
                }
            }
        }
    }

    fn take(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        match from.byte()? {
            FLOATS => {
                self.groups = from.count(size_of::<f64>())?;
                self.best = Best::Floats((0..self.groups).map(|_| float(from)).collect::<Result<_, _>>()?);
            }
            VALUES => {
                self.groups = from.count(1)?;
                let values = (0..self.groups).map(|_| from.value()).collect::<Result<Vec<_>, _>>()?;
                // Of nothing but nulls no type is known yet.
                if !values.iter().all(Value::is_null) {
                    self.heap = values.iter().map(Value::heap_bytes).sum();
                    self.best = Best::Values(values);
                }
            }
            kind => {
                let ty = *TYPES.get(usize::from(kind - WHOLES)).ok_or(Damaged)?;
                self.groups = from.count(size_of::<u64>() + 1)?;
                let mut whole = || Ok((from.u64()?.cast_signed(), from.flag()?));
                self.best = Best::Wholes(ty, (0..self.groups).map(|_| whole()).collect::<Result<_, _>>()?);
            }
        }
        Ok(())
    }
}

/// Reads a float; infinity stands for a group without one.
fn float(from: &mut Reader<'_>) -> Result<f64, Damaged> {
    let float = from.f64()?;
    if float.is_finite() || float == f64::INFINITY { Ok(float) } else { Err(Damaged) }
}
