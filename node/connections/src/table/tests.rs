//! Invariants of the table, and the order in which connections are closed.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { connections: 16, reserve: 2, per_address: 5 };

fn address(number: u8) -> Option<IpAddr> {
    Some(IpAddr::from([192, 0, 2, number]))
}

fn owner(organization: u8, credential: u8) -> Owner {
    Owner {
        organization: Uuid::from_u128(organization.into()),
        credential: Uuid::from_u128(u128::from(organization) * 256 + u128::from(credential)),
    }
}

/// A table with `connections` of nobody, which spoke one after the other.
fn full() -> Table {
    let mut table = Table::new(LIMITS);
    for id in 0..16 {
        assert_eq!(table.step(id, Event::Opened { id, address: None }), [Effect::Admit(id)]);
    }
    table
}

fn open(table: &mut Table, now: Millis, id: Id) -> Vec<Effect> {
    table.step(now, Event::Opened { id, address: None })
}

#[test]
fn the_idlest_of_nobody_closes_first() {
    let mut table = full();
    table.step(20, Event::Moved(0));
    table.step(21, Event::Known { id: 1, owner: owner(1, 1) });
    table.step(22, Event::Began(2));
    assert_eq!(open(&mut table, 30, 16), [Effect::Close(3, Why::Idlest), Effect::Admit(16)]);
    for id in [16, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0] {
        table.step(31, Event::Began(id));
    }
    // Only the connection of somebody known is idle by now.
    table.step(40, Event::Closed(3));
    assert_eq!(open(&mut table, 41, 17), [Effect::Close(1, Why::Idlest), Effect::Admit(17)]);
}

#[test]
fn a_long_request_of_nobody_closes_before_what_somebody_keeps_open() {
    let mut table = full();
    (0..15).for_each(|id| drop(table.step(20, Event::Began(id))));
    table.step(20, Event::Known { id: 15, owner: owner(1, 1) });
    assert_eq!(open(&mut table, 20 + UNKNOWN_BUSY_MAX, 16)[0], Effect::Close(0, Why::Idlest));
}

#[test]
fn health_has_places_where_everything_is_busy() {
    let mut table = full();
    for id in 0..16 {
        table.step(20, Event::Known { id, owner: owner(u8::try_from(id).expect("few"), 1) });
        table.step(20, Event::Began(id));
    }
    assert_eq!(open(&mut table, 30, 16), [Effect::AdmitToReserve(16)]);
    assert_eq!(open(&mut table, 31, 17), [Effect::AdmitToReserve(17)]);
    assert_eq!(open(&mut table, 32, 18), [Effect::Close(16, Why::Idlest), Effect::AdmitToReserve(18)]);
    table.step(33, Event::Ended(3));
    assert_eq!(open(&mut table, 34, 19), [Effect::Close(3, Why::Idlest), Effect::Admit(19)]);
}

#[test]
fn who_holds_more_than_its_share_gives_for_others() {
    // There is room enough at first: nobody waits, and a credential has nine of sixteen.
    let mut table = Table::new(LIMITS);
    for id in 0..9 {
        open(&mut table, id, id);
        assert_eq!(table.step(id, Event::Known { id, owner: owner(1, 1) }), []);
    }
    (9..16).for_each(|id| drop(open(&mut table, id, id)));
    // The seven of nobody are younger, and would go before those of somebody within a share.
    assert_eq!(open(&mut table, 30, 16)[0], Effect::Close(0, Why::Share));
    for id in 1..5 {
        table.step(31, Event::Closed(id - 1));
        assert_eq!(open(&mut table, 31, 100 + id)[0], Effect::Close(id, Why::Share));
    }
    table.step(32, Event::Closed(4));
    assert_eq!(open(&mut table, 32, 17)[0], Effect::Close(9, Why::Idlest), "a quarter is left to it");
}

#[test]
fn nobody_gets_more_than_a_share_of_a_full_table() {
    let mut table = full();
    for id in 0..4 {
        assert_eq!(table.step(20, Event::Known { id, owner: owner(1, 1) }), []);
        table.step(20, Event::Began(id));
    }
    assert_eq!(table.step(21, Event::Known { id: 4, owner: owner(1, 1) }), [Effect::TurnAway(4)]);
    assert_eq!(table.step(22, Event::Known { id: 4, owner: owner(2, 1) }), [], "others get what is left");
    table.step(23, Event::Ended(2));
    let given = table.step(24, Event::Known { id: 5, owner: owner(1, 1) });
    assert_eq!(given, [Effect::Close(2, Why::Share)], "one of its own closes for it");
    assert_eq!(table.counts().turned_away, 1);
}

#[test]
fn an_address_has_no_more_than_it_may() {
    let mut table = Table::new(LIMITS);
    for id in 0..5 {
        assert_eq!(table.step(id, Event::Opened { id, address: address(1) }), [Effect::Admit(id)]);
    }
    let more = table.step(9, Event::Opened { id: 5, address: address(1) });
    assert_eq!(more, [Effect::Close(0, Why::Address), Effect::Admit(5)]);
    assert_eq!(table.step(9, Event::Opened { id: 6, address: address(2) }), [Effect::Admit(6)]);
    (1..6).for_each(|id| drop(table.step(10, Event::Known { id, owner: owner(1, 1) })));
    (1..6).for_each(|id| drop(table.step(10, Event::Began(id))));
    let more = table.step(20_000, Event::Opened { id: 7, address: address(1) });
    assert_eq!(more, [Effect::AdmitToReserve(7)], "its own connections are all busy");
}

/// A connection that showed another credential of its organization was counted off twice.
#[test]
fn a_connection_does_not_make_room_for_itself() {
    let mut table = Table::new(LIMITS);
    let connections = LIMITS.connections as Id;
    let own = connections / ORGANIZATION_SHARE as Id + 2;
    for id in 0..own {
        table.step(id, Event::Opened { id, address: None });
        table.step(id, Event::Known { id, owner: owner(1, id as u8) });
    }
    let idle = own - 1;
    (0..idle).for_each(|id| drop(table.step(own, Event::Began(id))));
    (own..connections).for_each(|id| drop(table.step(id, Event::Opened { id, address: None })));
    let other = Event::Known { id: idle, owner: owner(1, u8::MAX) };
    assert_eq!(table.step(connections, other), [Effect::TurnAway(idle)], "the others of its organization are busy");
    assert_eq!(table.counts().open, LIMITS.connections);
}

/// State of a connection in the model.
#[derive(Clone, Copy, Debug, Default)]
struct ModelConnection {
    is_reserve: bool,
    is_leaving: bool,
    address: Option<IpAddr>,
    owner: Option<Owner>,
    busy: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Open(u8),
    Move(usize),
    Begin(usize),
    End(usize),
    Know(usize, u8, u8),
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..6).prop_map(Step::Open),
        1 => any::<usize>().prop_map(Step::Move),
        2 => any::<usize>().prop_map(Step::Begin),
        2 => any::<usize>().prop_map(Step::End),
        2 => (any::<usize>(), 0_u8..3, 0_u8..3).prop_map(|(at, organization, credential)| Step::Know(at, organization, credential)),
        2 => any::<usize>().prop_map(Step::Close),
    ]
}

/// The table beside a model of it.
struct World {
    table: Table,
    seen: BTreeMap<Id, ModelConnection>,
    next: Id,
    now: Millis,
}

impl World {
    fn at(&self, place: usize) -> Id {
        // One that is not there now and then.
        self.seen.keys().nth(place % (self.seen.len() + 1)).copied().unwrap_or(Id::MAX)
    }

    fn event(&mut self, step: Step) -> Event {
        match step {
            Step::Open(from) => {
                self.next += 1;
                Event::Opened { id: self.next, address: if from == 0 { None } else { address(from) } }
            }
            Step::Move(at) => Event::Moved(self.at(at)),
            Step::Begin(at) => Event::Began(self.at(at)),
            Step::End(at) => Event::Ended(self.at(at)),
            Step::Know(at, organization, credential) => {
                Event::Known { id: self.at(at), owner: owner(organization, credential) }
            }
            Step::Close(at) => Event::Closed(self.at(at)),
        }
    }

    fn run(&mut self, step: Step, passed: Millis) {
        self.now += passed;
        let event = self.event(step);
        let before = self.seen.clone();
        let effects = self.table.step(self.now, event);
        if let Event::Began(id) | Event::Ended(id) = event
            && let Some(seen) = self.seen.get_mut(&id)
        {
            seen.busy = if matches!(event, Event::Began(_)) { seen.busy + 1 } else { seen.busy.saturating_sub(1) };
        }
        if let Event::Known { id, owner } = event
            && !effects.contains(&Effect::TurnAway(id))
            && let Some(seen) = self.seen.get_mut(&id)
        {
            seen.owner = Some(owner);
        }
        match event {
            Event::Closed(id) => {
                self.seen.remove(&id);
            }
            Event::Opened { id, address } => {
                let decided: Vec<_> = effects.iter().filter(|effect| !matches!(effect, Effect::Close(..))).collect();
                match decided.as_slice() {
                    [Effect::Admit(admitted)] | [Effect::AdmitToReserve(admitted)] if *admitted == id => {
                        let is_reserve = matches!(decided[0], Effect::AdmitToReserve(_));
                        self.seen.insert(id, ModelConnection { is_reserve, address, ..ModelConnection::default() });
                    }
                    [Effect::Refuse(refused)] if *refused == id => {
                        assert_eq!(before.len(), LIMITS.connections + 2 * LIMITS.reserve);
                    }
                    other => panic!("{event:?}: {other:?}"),
                }
                let idle = |seen: &ModelConnection| !seen.is_leaving && !seen.is_reserve && seen.busy == 0;
                if decided.as_slice() == [&Effect::AdmitToReserve(id)] && address.is_none() {
                    assert!(!before.values().any(idle), "somebody idle could have left");
                }
            }
            _ => {}
        }
        for effect in &effects {
            if let Effect::Close(id, _) = effect {
                let seen = self.seen.get_mut(id).expect("it is there");
                assert!(!seen.is_leaving, "told once");
                assert!(
                    seen.is_reserve || seen.busy == 0 || before[id].owner.is_none(),
                    "a request of somebody is cut"
                );
                seen.is_leaving = true;
            }
        }
        self.check();
    }

    fn check(&self) {
        let main = || self.seen.values().filter(|seen| !seen.is_reserve && !seen.is_leaving);
        let reserve = self.seen.values().filter(|seen| seen.is_reserve && !seen.is_leaving).count();
        assert!(main().count() <= LIMITS.connections && reserve <= LIMITS.reserve);
        assert!(self.seen.len() <= LIMITS.connections + 2 * LIMITS.reserve);
        assert_eq!((self.table.counts().open, self.table.counts().reserve), (main().count(), reserve));
        let addresses: BTreeSet<IpAddr> = main().filter_map(|seen| seen.address).collect();
        for address in &addresses {
            assert!(main().filter(|seen| seen.address == Some(*address)).count() <= LIMITS.per_address);
        }
        assert_eq!(self.table.of_address.len(), addresses.len());
        let credentials: BTreeSet<Uuid> = main().filter_map(|seen| seen.owner).map(|owner| owner.credential).collect();
        assert_eq!(self.table.of_credential.len(), credentials.len());
        assert!(self.table.of_organization.len() <= credentials.len());
    }
}

proptest! {
    #[test]
    fn the_limits_hold_whatever_happens(steps in proptest::collection::vec((step(), 0_u64..3_000), 1..300)) {
        let mut world = World { table: Table::new(LIMITS), seen: BTreeMap::new(), next: 0, now: 0 };
        for (step, passed) in steps {
            world.run(step, passed);
        }
    }
}
