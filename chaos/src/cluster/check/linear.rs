//! Linearizability checker: finds an order of overlapping operations that a simple machine explains (Wing, Gong; Lowe).
//!
//! Operations are added as they begin. At the end of an operation, every possible set of operations applied so far is
//! kept as a configuration, once, and configurations without the ended operation are dropped.
//!
//! An operation without an end may happen at any time, or never. They pile up as a history grows, so three things are
//! not looked through twice: one that would change nothing need not happen; of several that are alike the first comes
//! first; and of two configurations that differ only in the endless operations spent, one with fewer can do all that
//! the other can.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Maximum number of configurations; beyond it the result is unknown.
const CONFIGURATIONS_MAX: usize = 200_000;

/// A machine with one state.
pub trait SequentialMachine {
    type State: Clone + Eq + Hash;
    type Op: PartialEq;

    fn start(&self) -> Self::State;

    /// The states in which this operation, with what it was answered, can leave the machine; none if it cannot be.
    fn step(&self, state: &Self::State, op: &Self::Op) -> Vec<Self::State>;
}

/// One operation and the places of its begin and end.
#[derive(Clone, Debug)]
pub struct Call<O> {
    pub begin: usize,
    pub end: Option<usize>,
    pub op: O,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Exists,
    /// None explains the operation at this place among the calls, and all before it.
    None {
        at: usize,
    },
    /// The search was stopped there.
    Unknown {
        at: usize,
    },
}

#[derive(Clone)]
struct Configuration<S> {
    state: S,
    /// Operations under way that have happened already and end later.
    happened: BTreeSet<usize>,
    /// Operations without an end that have happened.
    spent: BTreeSet<usize>,
}

/// Configurations of which none can do all that another can.
struct Configurations<S> {
    spent: HashMap<(S, BTreeSet<usize>), Vec<BTreeSet<usize>>>,
    count: usize,
}

impl<S: Clone + Eq + Hash> Configurations<S> {
    fn new() -> Configurations<S> {
        Configurations { spent: HashMap::new(), count: 0 }
    }

    /// Returns whether it allows something that no configuration here does.
    fn add(&mut self, one: &Configuration<S>) -> bool {
        let known = self.spent.entry((one.state.clone(), one.happened.clone())).or_default();
        if known.iter().any(|spent| spent.is_subset(&one.spent)) {
            return false;
        }
        let before = known.len();
        known.retain(|spent| !one.spent.is_subset(spent));
        known.push(one.spent.clone());
        self.count = self.count + known.len() - before;
        true
    }

    fn all(&self) -> Vec<Configuration<S>> {
        let all = self.spent.iter().flat_map(|(key, known)| known.iter().map(move |spent| (key, spent)));
        all.map(|((state, happened), spent)| Configuration {
            state: state.clone(),
            happened: happened.clone(),
            spent: spent.clone(),
        })
        .collect()
    }
}

pub fn order<M: SequentialMachine>(machine: &M, calls: &[Call<M::Op>]) -> Order {
    order_within(machine, calls, CONFIGURATIONS_MAX)
}

fn order_within<M: SequentialMachine>(machine: &M, calls: &[Call<M::Op>], most: usize) -> Order {
    // (place, is an end, call): places are those of one history, so no two are alike.
    let mut events: Vec<(usize, bool, usize)> = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        events.push((call.begin, false, number));
        events.extend(call.end.map(|end| (end, true, number)));
    }
    events.sort_unstable();
    let mut under_way: BTreeSet<usize> = BTreeSet::new();
    let mut configurations = Configurations::new();
    configurations.add(&Configuration { state: machine.start(), happened: BTreeSet::new(), spent: BTreeSet::new() });
    for (_, is_end, number) in events {
        if !is_end {
            under_way.insert(number);
            continue;
        }
        match until_happened(machine, calls, &under_way, number, configurations, most) {
            Some(next) if next.count == 0 => return Order::None { at: number },
            Some(next) => configurations = next,
            None => return Order::Unknown { at: number },
        }
        under_way.remove(&number);
    }
    Order::Exists
}

/// All configurations in which `ended` has happened; nothing if they are too many.
fn until_happened<M: SequentialMachine>(
    machine: &M,
    calls: &[Call<M::Op>],
    under_way: &BTreeSet<usize>,
    ended: usize,
    configurations: Configurations<M::State>,
    most: usize,
) -> Option<Configurations<M::State>> {
    let mut open = configurations.all();
    let mut seen = configurations;
    let mut done = Configurations::new();
    while let Some(mut one) = open.pop() {
        if one.happened.remove(&ended) {
            done.add(&one);
            continue;
        }
        for next in ways_on(calls, under_way, &one) {
            let endless = calls[next].end.is_none();
            for state in machine.step(&one.state, &calls[next].op) {
                if endless && state == one.state {
                    continue;
                }
                let mut after = Configuration { state, ..one.clone() };
                if endless { &mut after.spent } else { &mut after.happened }.insert(next);
                if seen.add(&after) {
                    open.push(after);
                }
            }
        }
        if seen.count + done.count > most {
            return None;
        }
    }
    Some(done)
}

/// Operations under way that may happen next: of endless ones that are alike, the first that is left.
fn ways_on<O: PartialEq, S>(calls: &[Call<O>], under_way: &BTreeSet<usize>, one: &Configuration<S>) -> Vec<usize> {
    let mut ways: Vec<usize> = Vec::new();
    for next in under_way.iter().filter(|next| !one.happened.contains(next) && !one.spent.contains(next)) {
        let call = &calls[*next];
        let alike = |way: &usize| calls[*way].end.is_none() && calls[*way].op == call.op;
        if call.end.is_some() || !ways.iter().any(alike) {
            ways.push(*next);
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register; an operation writes or reads.
    struct TestRegister;

    #[derive(Clone, Copy, PartialEq)]
    enum Op {
        Write(u8),
        Read(u8),
    }

    impl SequentialMachine for TestRegister {
        type State = u8;
        type Op = Op;

        fn start(&self) -> u8 {
            0
        }

        fn step(&self, state: &u8, op: &Op) -> Vec<u8> {
            match op {
                Op::Write(value) => vec![*value],
                Op::Read(value) if value == state => vec![*state],
                Op::Read(_) => Vec::new(),
            }
        }
    }

    /// `(begin, end, operation)`; an end of 0 is none.
    fn check(calls: &[(usize, usize, Op)], expected: Order) {
        let calls: Vec<Call<Op>> = calls
            .iter()
            .map(|(begin, end, op)| Call { begin: *begin, end: (*end > 0).then_some(*end), op: *op })
            .collect();
        assert_eq!(order(&TestRegister, &calls), expected);
    }

    #[test]
    fn what_overlaps_may_come_in_either_order() {
        check(&[(1, 4, Op::Write(1)), (2, 3, Op::Read(0))], Order::Exists);
        check(&[(1, 4, Op::Write(1)), (2, 3, Op::Read(1))], Order::Exists);
        check(&[(1, 6, Op::Write(1)), (2, 3, Op::Read(1)), (4, 5, Op::Read(0))], Order::None { at: 2 });
    }

    #[test]
    fn a_stale_read_has_no_order() {
        check(&[(1, 2, Op::Write(1)), (3, 4, Op::Write(2)), (5, 6, Op::Read(1))], Order::None { at: 2 });
    }

    #[test]
    fn what_has_no_end_happens_late_or_never_but_not_twice() {
        check(&[(1, 0, Op::Write(1)), (2, 3, Op::Read(0)), (4, 5, Op::Read(1))], Order::Exists);
        check(&[(1, 0, Op::Write(1)), (2, 3, Op::Read(0))], Order::Exists);
        let again = [(1, 0, Op::Write(1)), (2, 3, Op::Read(1)), (4, 5, Op::Write(2)), (6, 7, Op::Read(1))];
        check(&again, Order::None { at: 3 });
    }

    #[test]
    fn alike_ones_without_an_end_happen_as_often_as_they_began() {
        let twice = |last: usize| {
            let mut calls = vec![(1, 0, Op::Write(1)), (2, 0, Op::Write(1))];
            for round in 0..last {
                let at = 10 + 4 * round;
                calls.push((at, at + 1, Op::Read(1)));
                calls.push((at + 2, at + 3, Op::Write(2)));
            }
            calls
        };
        check(&twice(2), Order::Exists);
        check(&twice(3), Order::None { at: 6 });
    }

    #[test]
    fn many_without_an_end_are_looked_through() {
        let mut calls: Vec<Call<Op>> = (1..=40).map(|n| Call { begin: n, end: None, op: Op::Write(n as u8) }).collect();
        calls.push(Call { begin: 50, end: Some(51), op: Op::Read(99) });
        assert_eq!(order_within(&TestRegister, &calls, 1000), Order::None { at: 40 });
    }

    #[test]
    fn too_many_ways_are_unknown() {
        let calls: Vec<Call<Op>> =
            (1..=40).map(|n| Call { begin: n, end: Some(50 + n), op: Op::Write(n as u8) }).collect();
        assert_eq!(order_within(&TestRegister, &calls, 1000), Order::Unknown { at: 0 });
    }
}
