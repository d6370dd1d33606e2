//! Order of rows (btql.md, sections 7, 12.1 and 12.5), and selection of the first rows among many.

use std::cmp::Ordering;

use ahash::AHashSet;
use assay_node_btql::bound::{Key, Order, SortKey};
use assay_node_btql::values::{Value, in_order};
use assay_node_expressions::codec::{self, Reader};

use crate::EngineError;

/// Position of a row among all rows of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rank {
    /// Sort keys.
    pub sort: Vec<Value<'static>>,
    /// Pagination key of the row or of its trace.
    pub place: u64,
    /// Transaction of the row, or the last transaction of its trace.
    pub xact: u64,
    pub object: u32,
    /// Pagination key of the row. For a write, it is a substitute (see `audit`).
    pub key: u64,
    /// Index among the rows that an unpivot created from one row.
    pub nth: u32,
}

/// Position where a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub place: u64,
    pub xact: u64,
    /// Number of the object in the query, or `None` if the key is unique.
    pub object: Option<u32>,
    /// Number of the write, for rows that are writes (D-90).
    pub write: Option<u64>,
}

impl Rank {
    pub fn compare(&self, other: &Rank, order: &Order) -> Ordering {
        match order {
            Order::Key { by, descending } => {
                let by_xact = if *by == Key::Xact { self.xact.cmp(&other.xact) } else { Ordering::Equal };
                directed(by_xact.then(self.place.cmp(&other.place)), *descending)
                    .then(self.object.cmp(&other.object))
                    .then(self.key.cmp(&other.key))
            }
            Order::Sorted(keys) => by_keys(&self.sort, &other.sort, keys)
                .then(other.key.cmp(&self.key))
                .then(self.object.cmp(&other.object))
                .then(other.place.cmp(&self.place)),
        }
        .then(self.nth.cmp(&other.nth))
    }

    /// Returns whether the row comes after the end of a page.
    pub fn is_behind(&self, end: &Position, order: &Order) -> bool {
        let Order::Key { by, descending } = order else { return true };
        let by_xact = if *by == Key::Xact { self.xact.cmp(&end.xact) } else { Ordering::Equal };
        let of_object = end.object.map_or(Ordering::Equal, |object| self.object.cmp(&object));
        let of_write = end.write.map_or(Ordering::Equal, |write| self.key.cmp(&write));
        directed(by_xact.then(self.place.cmp(&end.place)), *descending).then(of_object).then(of_write).is_gt()
    }

    pub fn position(&self) -> Position {
        Position { place: self.place, xact: self.xact, object: Some(self.object), write: None }
    }

    /// Returns the position of a row that is a write.
    pub fn position_of_write(&self) -> Position {
        Position { write: Some(self.key), ..self.position() }
    }

    /// Returns the identity of the row's trace.
    pub fn trace(&self) -> (u32, u64) {
        (self.object, self.place)
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        self.sort.iter().for_each(|value| codec::put_value(out, value));
        let numbers = [self.place, self.xact, self.object.into(), self.key, self.nth.into()];
        numbers.into_iter().for_each(|number| codec::put_u64(out, number));
    }

    pub fn take(from: &mut Reader<'_>, keys: usize) -> Result<Rank, EngineError> {
        let sort = (0..keys).map(|_| from.value()).collect::<Result<_, _>>()?;
        let mut number = || from.u64();
        let small = |number: u64| u32::try_from(number).map_err(|_| EngineError::Damaged);
        let (place, xact, object, key, nth) = (number()?, number()?, small(number()?)?, number()?, small(number()?)?);
        Ok(Rank { sort, place, xact, object, key, nth })
    }

    pub fn bytes(&self) -> usize {
        size_of::<Rank>() + self.sort.iter().map(value_bytes).sum::<usize>()
    }
}

/// Returns the approximate memory of a value.
pub fn value_bytes(value: &Value<'_>) -> usize {
    size_of::<Value<'_>>() + value.heap_bytes()
}

fn directed(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

/// Compares rows by their sort keys (D-81).
pub(crate) fn by_keys(left: &[Value<'_>], right: &[Value<'_>], keys: &[SortKey]) -> Ordering {
    let pairs = keys.iter().zip(left.iter().zip(right));
    pairs.map(|(key, (left, right))| by_key(left, right, key)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

pub(crate) fn by_key(left: &Value<'_>, right: &Value<'_>, key: &SortKey) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (false, false) => directed(in_order(left, right), key.descending),
        (left, right) if key.nulls_first => right.cmp(&left),
        (left, right) => left.cmp(&right),
    }
}

/// Compares dimensions in ascending order, with nulls last (D-79).
pub(crate) fn by_dimensions(left: &[Value<'_>], right: &[Value<'_>]) -> Ordering {
    let nulls_last = |(left, right): (&Value<'_>, &Value<'_>)| {
        left.is_null().cmp(&right.is_null()).then_with(|| in_order(left, right))
    };
    left.iter().zip(right).map(nulls_last).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Item that is kept with a rank and has a known size in memory.
pub(crate) trait Weigh {
    fn bytes(&self) -> usize;
}

impl Weigh for Vec<Value<'static>> {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.iter().map(value_bytes).sum::<usize>()
    }
}

/// Best rows so far, up to a number.
#[derive(Debug)]
pub(crate) struct Top<T> {
    limit: usize,
    held: Vec<(Rank, T)>,
    bytes: usize,
    /// Rank of the worst row that is among the best, if there are enough rows.
    worst: Option<Rank>,
}

impl<T: Weigh> Top<T> {
    pub fn new(limit: usize) -> Top<T> {
        Top { limit, held: Vec::new(), bytes: 0, worst: None }
    }

    /// Creates a list of all rows before `worst`.
    pub fn before(worst: Option<Rank>) -> Top<T> {
        Top { worst, ..Top::new(usize::MAX) }
    }

    /// Returns the approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the worst rank so far. No row after it is among the best.
    pub fn worst(&self) -> Option<&Rank> {
        self.worst.as_ref()
    }

    /// Returns whether a row of this rank may be among the best.
    pub fn takes(&self, rank: &Rank, order: &Order) -> bool {
        self.limit > 0 && self.worst.as_ref().is_none_or(|worst| rank.compare(worst, order).is_lt())
    }

    pub fn offer(&mut self, rank: Rank, what: T, order: &Order) {
        if !self.takes(&rank, order) {
            return;
        }
        self.bytes += rank.bytes() + what.bytes();
        self.held.push((rank, what));
        if self.held.len() >= self.limit.saturating_mul(2).max(self.limit.saturating_add(1024)) {
            self.cut(order);
        }
    }

    /// Removes all rows that are not among the best.
    pub fn cut(&mut self, order: &Order) {
        if self.held.len() < self.limit || self.limit == 0 {
            return;
        }
        if self.held.len() > self.limit {
            self.held.select_nth_unstable_by(self.limit - 1, |(left, _), (right, _)| left.compare(right, order));
            self.held.truncate(self.limit);
            self.bytes = self.held.iter().map(|(rank, what)| rank.bytes() + what.bytes()).sum();
            self.worst = self.held.last().map(|(rank, _)| rank.clone());
        } else {
            let worst = self.held.iter().max_by(|(left, _), (right, _)| left.compare(right, order));
            self.worst = worst.map(|(rank, _)| rank.clone());
        }
    }

    pub fn merge(&mut self, other: Top<T>, order: &Order) {
        other.held.into_iter().for_each(|(rank, what)| self.offer(rank, what, order));
    }

    /// Returns the rows, best first.
    pub fn finish(mut self, order: &Order) -> Vec<(Rank, T)> {
        self.held.sort_by(|(left, _), (right, _)| left.compare(right, order));
        self.held.truncate(self.limit);
        self.held
    }
}

/// Keeps all rows of the first `traces` traces (D-36).
pub(crate) fn cut_traces<T>(rows: &mut Vec<T>, trace: impl Fn(&T) -> (u32, u64), traces: usize) {
    let mut kept: AHashSet<(u32, u64)> = AHashSet::new();
    rows.retain(|row| kept.contains(&trace(row)) || kept.len() < traces && kept.insert(trace(row)));
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weigh for u64 {
        fn bytes(&self) -> usize {
            size_of::<u64>()
        }
    }

    fn rank(place: u64) -> Rank {
        Rank { place, key: place, ..Rank::default() }
    }

    #[test]
    fn the_best_are_kept_whatever_order_they_come_in() {
        let order = Order::Key { by: Key::Pagination, descending: true };
        for limit in [0, 1, 7, 5000] {
            let (mut one, mut other) = (Top::new(limit), Top::new(limit));
            for number in 0..4000_u64 {
                let place = number.wrapping_mul(2_654_435_761) % 4001;
                let top = if number % 3 == 0 { &mut one } else { &mut other };
                top.offer(rank(place), place, &order);
            }
            one.merge(other, &order);
            let mut expected: Vec<u64> =
                (0..4000_u64).map(|number| number.wrapping_mul(2_654_435_761) % 4001).collect();
            expected.sort_unstable_by(|left, right| right.cmp(left));
            expected.truncate(limit);
            assert_eq!(one.finish(&order).into_iter().map(|(_, place)| place).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_page_goes_on_where_the_one_before_ended() {
        let newest_first = Order::Key { by: Key::Pagination, descending: true };
        let of = |place, object| Rank { object, ..rank(place) };
        let end = of(7, 1).position();
        assert!(of(6, 0).is_behind(&end, &newest_first) && of(7, 2).is_behind(&end, &newest_first));
        assert!(!of(7, 1).is_behind(&end, &newest_first) && !of(8, 2).is_behind(&end, &newest_first));
        let short = Position { object: None, ..end };
        assert!(!of(7, 2).is_behind(&short, &newest_first));
        let by_xact = Order::Key { by: Key::Xact, descending: false };
        let with_xact = |place, xact| Rank { xact, ..rank(place) };
        let end = with_xact(5, 9).position();
        assert!(with_xact(1, 10).is_behind(&end, &by_xact) && with_xact(6, 9).is_behind(&end, &by_xact));
        assert!(!with_xact(100, 8).is_behind(&end, &by_xact));
    }

    #[test]
    fn ranks_read_back() {
        let rank = Rank { sort: vec![Value::Null, Value::Integer(3)], place: 1, xact: 2, object: 3, key: 4, nth: 5 };
        let mut bytes = Vec::new();
        rank.put(&mut bytes);
        assert_eq!(Rank::take(&mut Reader::new(&bytes), 2).expect("it reads"), rank);
        assert!(Rank::take(&mut Reader::new(&bytes[1..]), 2).is_err());
    }
}
