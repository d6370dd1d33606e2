//! Tests of the queue's rules, against a model and in single situations.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn holder(organization: u128, credential: u128) -> Holder {
    Holder::new(Uuid::from_u128(organization), Uuid::from_u128(organization * 1000 + credential))
}

/// Queue with the state that its rules imply.
struct Model {
    queue: Queue,
    /// Requests and reservations, each with its holder, held amount and awaited amount.
    all: BTreeMap<Id, (Holder, u64, u64)>,
}

impl Model {
    fn new(division: Division) -> Model {
        Model { queue: Queue::new(division), all: BTreeMap::new() }
    }

    fn ask(&mut self, holder: Holder, amount: u64) -> Id {
        let (id, asked, mut admitted) = self.queue.ask(holder, amount);
        self.all.insert(id, (holder, 0, amount));
        if asked == RequestState::Admitted {
            admitted.push(id);
        }
        self.admitted(admitted);
        id
    }

    fn grow(&mut self, id: Id, by: u64) {
        let (asked, mut admitted) = self.queue.grow(id, by);
        self.all.get_mut(&id).expect("known").2 = by;
        if asked == RequestState::Admitted {
            admitted.push(id);
        }
        self.admitted(admitted);
    }

    fn shrink(&mut self, id: Id, by: u64) {
        let one = self.all.get_mut(&id).expect("known");
        one.1 -= by.min(one.1);
        let admitted = self.queue.shrink(id, by);
        self.admitted(admitted);
    }

    fn leave(&mut self, id: Id) {
        self.all.remove(&id);
        let admitted = self.queue.leave(id);
        self.admitted(admitted);
    }

    fn cancel(&mut self, id: Id) {
        let one = self.all.get_mut(&id).expect("known");
        one.2 = 0;
        let admitted = self.queue.cancel_growth(id);
        self.admitted(admitted);
    }

    fn admitted(&mut self, admitted: Vec<Id>) {
        for id in admitted {
            let one = self.all.get_mut(&id).expect("only what is known is admitted");
            (one.1, one.2) = (one.1 + one.2, 0);
        }
        self.check();
    }

    fn is_waiting(&self, id: Id) -> bool {
        self.all.get(&id).is_some_and(|one| one.2 > 0)
    }

    fn active(&self) -> Vec<Id> {
        self.all.iter().filter(|(_, (_, held, waits))| *held > 0 && *waits == 0).map(|(id, _)| *id).collect()
    }

    /// Checks the invariants after an event.
    fn check(&self) {
        let (queue, division) = (&self.queue, self.queue.division);
        let held: u64 = self.all.values().map(|one| one.1).sum();
        let waiting = self.all.values().filter(|one| one.2 > 0);
        assert_eq!((queue.held(), queue.waiting()), (held, waiting.clone().count()));
        assert_eq!(queue.waiting_amount(), waiting.map(|one| one.2).sum::<u64>());
        for (id, (_, amount, waits)) in &self.all {
            assert_eq!((queue.amount(*id), queue.is_waiting(*id)), (*amount, *waits > 0), "{id}");
        }
        assert_eq!(queue.active, self.active().len());
        assert!(queue.waiting() == 0 || queue.active > 0, "somebody waits and nobody can end that");
        assert!(queue.usage.reserve <= division.reserve);
        let by_organization = queue.organizations.values().map(|one| one.usage.held).sum::<u64>();
        assert_eq!(queue.usage.held, by_organization);
        for organization in queue.organizations.values() {
            let credentials = organization.credentials.values();
            assert_eq!(organization.usage.held, credentials.map(|one| one.usage.held).sum::<u64>());
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask(u128, u128, u64),
    Grow(usize, u64),
    Shrink(usize, u64),
    Cancel(usize),
    Leave(usize),
}

const TOTAL: u64 = 1000;

fn step() -> impl Strategy<Value = Step> {
    let amount = prop_oneof![3 => 1..20_u64, 2 => 20..200_u64, 1 => 200..860_u64];
    prop_oneof![
        5 => (0..4_u128, 0..3_u128, amount.clone()).prop_map(|(org, key, amount)| Step::Ask(org, key, amount)),
        2 => (any::<usize>(), 1..100_u64).prop_map(|(place, by)| Step::Grow(place, by)),
        1 => (any::<usize>(), 1..100_u64).prop_map(|(place, by)| Step::Shrink(place, by)),
        1 => any::<usize>().prop_map(Step::Cancel),
        3 => any::<usize>().prop_map(Step::Leave),
    ]
}

fn chosen(ids: &[Id], place: usize) -> Option<Id> {
    (!ids.is_empty()).then(|| ids[place % ids.len()])
}

fn take(model: &mut Model, step: Step) {
    let all: Vec<Id> = model.all.keys().copied().collect();
    match step {
        Step::Ask(organization, credential, amount) => {
            model.ask(holder(organization, credential), amount);
        }
        Step::Grow(place, by) => {
            let may_grow: Vec<Id> = model.active().into_iter().filter(|id| model.all[id].1 + by <= 860).collect();
            if let Some(id) = chosen(&may_grow, place) {
                model.grow(id, by);
            }
        }
        Step::Shrink(place, by) => {
            if let Some(id) = chosen(&model.active(), place) {
                model.shrink(id, by);
            }
        }
        Step::Cancel(place) => {
            let growing: Vec<Id> = model.queue.growing.iter().copied().collect();
            if let Some(id) = chosen(&growing, place) {
                model.cancel(id);
            }
        }
        Step::Leave(place) => {
            if let Some(id) = chosen(&all, place) {
                model.leave(id);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Tests that sums agree, that progress is always possible, and that all requests are served in the end.
    #[test]
    fn everybody_is_served_in_the_end(steps in prop::collection::vec(step(), 1..120), order in any::<usize>()) {
        let mut model = Model::new(Division::with_reserve(TOTAL, 10));
        for step in steps {
            take(&mut model, step);
            let largest = model.all.values().map(|one| one.1).max().unwrap_or_default();
            prop_assert!(model.queue.usage.held <= model.queue.division.main() + largest);
        }
        while let Some(id) = chosen(&model.active(), order) {
            model.leave(id);
        }
        prop_assert_eq!(model.queue.waiting(), 0);
        model.all.retain(|_, one| one.1 > 0);
        prop_assert!(model.all.is_empty());
        prop_assert!(model.queue.organizations.is_empty(), "whoever holds and wants nothing is forgotten");
    }

    /// Tests that the budget is never exceeded without growth. A grant to a large holder leaves an eighth free.
    #[test]
    fn shares_hold(asks in prop::collection::vec((0..4_u128, 0..3_u128, 1..400_u64, any::<usize>()), 1..150)) {
        let mut model = Model::new(Division::plain(TOTAL));
        for (organization, credential, amount, place) in asks {
            let before = model.all.clone();
            if place % 3 == 0 && let Some(id) = chosen(&model.active(), place) {
                model.leave(id);
            } else {
                model.ask(holder(organization, credential), amount);
            }
            prop_assert!(model.queue.usage.held <= TOTAL);
            let was = |id: &Id| before.get(id).map_or(0, |one| one.1);
            let granted: Vec<_> = model.all.iter().filter(|(id, one)| one.1 != was(id)).collect();
            for (_, (holder, held, _)) in &granted {
                let of = |by: &dyn Fn(&Holder) -> bool| {
                    model.all.values().filter(|one| by(&one.0)).map(|one| one.1).sum::<u64>()
                };
                let organization = of(&|other| other.organization == holder.organization);
                let credential = of(&|other| other == holder);
                // After several grants, a later one to a small holder may use the eighth.
                if granted.len() == 1 && (organization > TOTAL / 2 || credential > TOTAL / 4) {
                    prop_assert!(model.queue.usage.held <= TOTAL - TOTAL / 8, "the last eighth is kept free");
                }
                let waits = |by: &dyn Fn(&Holder) -> bool| model.all.values().any(|one| one.2 > 0 && by(&one.0));
                if waits(&|other| other.organization != holder.organization) {
                    prop_assert!(organization <= TOTAL / 2 || organization == *held, "half, or one request");
                }
                if waits(&|other| other != holder) {
                    prop_assert!(credential <= TOTAL / 4 || credential == *held, "a quarter, or one request");
                }
            }
        }
    }

    /// Tests that requests of one credential and size are served in order.
    #[test]
    fn one_credential_is_served_in_order(amounts in prop::collection::vec(20..400_u64, 2..40), order in any::<usize>()) {
        let mut model = Model::new(Division::with_reserve(TOTAL, 10));
        let ids: Vec<Id> = amounts.iter().map(|amount| model.ask(holder(1, 1), *amount)).collect();
        loop {
            let waits: Vec<bool> = ids.iter().map(|id| model.is_waiting(*id)).collect();
            prop_assert!(waits.is_sorted(), "{waits:?}");
            let Some(id) = chosen(&model.active(), order) else { break };
            model.leave(id);
        }
    }
}

#[test]
fn one_credential_alone_reaches_85_percent() {
    for division in [Division::plain(64 << 20), Division::with_reserve(64 << 20, 64 << 10), Division::plain(16)] {
        let mut model = Model::new(division);
        let unit = (division.total / 1024).max(1);
        while model.queue.waiting() == 0 {
            model.ask(holder(1, 1), unit);
        }
        let reached = model.queue.held() as f64 / division.total as f64;
        assert!(reached >= 0.85, "{reached} of {division:?}");
        // Others can use the remaining part at once.
        let other = model.ask(holder(2, 1), unit);
        assert!(!model.is_waiting(other));
    }
}

#[test]
fn a_large_request_is_served_although_small_ones_never_cease() {
    let mut model = Model::new(Division::plain(TOTAL));
    let mut small: VecDeque<Id> = (0..90).map(|number| model.ask(holder(number % 9, 1), 10)).collect();
    let large = model.ask(holder(20, 1), 400);
    let mut turns = 0;
    while model.is_waiting(large) {
        turns += 1;
        assert!(turns < 300, "{:?}", model.queue.usage);
        small.push_back(model.ask(holder(turns % 9, 1), 10));
        // Holders leave in order of arrival.
        let place = small.iter().position(|id| !model.is_waiting(*id)).expect("somebody holds something");
        let gone = small.remove(place).expect("it is there");
        model.leave(gone);
    }
}

#[test]
fn small_requests_are_served_while_a_large_one_waits() {
    let mut model = Model::new(Division::with_reserve(TOTAL, 10));
    // A tenant holds and keeps the largest possible amount.
    for _ in 0..8 {
        model.ask(holder(1, 1), 100);
    }
    let large = model.ask(holder(2, 1), 400);
    assert!(model.is_waiting(large));
    for _ in 0..100 {
        let small = model.ask(holder(3, 1), 50);
        assert!(!model.is_waiting(small), "{:?}", model.queue.usage);
        model.leave(small);
        let tiny = model.ask(holder(2, 2), 5);
        assert!(!model.is_waiting(tiny));
        model.leave(tiny);
    }
    assert!(model.is_waiting(large));
}

/// Tests a first tenant that takes its largest amount and keeps asking.
#[test]
fn another_organization_is_served_beside_one_that_asks_for_everything() {
    let mut model = Model::new(Division::plain(TOTAL));
    let greedy: Vec<Id> = (0..500).map(|number| model.ask(holder(1, number % 5), 10)).collect();
    let other: Vec<Id> = (0..50).map(|_| model.ask(holder(2, 1), 10)).collect();
    let served = other.iter().filter(|id| !model.is_waiting(**id)).count();
    assert!(served >= 10, "{served} at once");
    // The other tenant gets everything that the first one releases, up to its quarter.
    for id in greedy.iter().take(12) {
        model.leave(*id);
    }
    let served = other.iter().filter(|id| !model.is_waiting(**id)).count();
    assert!(served >= 22, "{served} after twelve left");
}

#[test]
fn reservations_that_all_wait_to_grow_finish_one_after_the_other() {
    let mut model = Model::new(Division::plain(TOTAL));
    let ids: Vec<Id> = (0..10).map(|number| model.ask(holder(number, 1), 100)).collect();
    assert!(ids.iter().all(|id| !model.is_waiting(*id)));
    for id in ids.iter().rev() {
        model.grow(*id, 100);
    }
    assert!(!model.is_waiting(ids[0]), "the oldest goes on");
    for pair in ids.windows(2) {
        assert!(!model.is_waiting(pair[0]));
        model.leave(pair[0]);
        assert!(!model.is_waiting(pair[1]), "then the next");
    }
}

#[test]
fn a_request_of_an_idle_credential_goes_before_those_that_hold_something() {
    let mut model = Model::new(Division::plain(TOTAL));
    let first = model.ask(holder(1, 1), 500);
    let second = model.ask(holder(2, 1), 370);
    let again = model.ask(holder(1, 1), 300);
    let fresh = model.ask(holder(3, 1), 300);
    assert!(model.is_waiting(again) && model.is_waiting(fresh));
    model.leave(second);
    assert!(!model.is_waiting(fresh) && model.is_waiting(again));
    model.leave(first);
    assert!(!model.is_waiting(again));
}
