//! Tests of the reservation queue against its rules and a model that recounts everything.

use assay_storage_model::{ObjectKind, OrgId};
use proptest::prelude::*;

use super::*;
use crate::write_path::reservations::Capacity;

const HERE: ReservationLimits = ReservationLimits {
    object: Capacity { writes: 8, bytes: 100 },
    lane: Capacity { writes: 16, bytes: 200 },
    node: Capacity { writes: 32, bytes: 400 },
    objects: 64,
};
const THERE: ReservationLimits = ReservationLimits {
    object: Capacity { writes: 8, bytes: 160 },
    lane: Capacity { writes: 8, bytes: 160 },
    node: Capacity { writes: usize::MAX, bytes: usize::MAX },
    objects: usize::MAX,
};

/// First number of the objects that are written on another node.
const FIRST_THERE: u128 = 100;

fn holder(org: u128, credential: u128) -> Holder {
    Holder::new(Uuid::from_u128(org), Uuid::from_u128(credential))
}

fn key(object: u128) -> ObjectKey {
    ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(object))
}

/// Bytes that a call requests for local objects, two of which share a shard, and for objects on two other nodes.
fn wanted(writes: &[(u128, usize)]) -> (Vec<ReservationRequest<ShardId>>, Vec<ReservationRequest<NodeId>>) {
    let (here, there): (Vec<_>, Vec<_>) = writes.iter().copied().partition(|(object, _)| *object < FIRST_THERE);
    let here = here.into_iter().map(|(object, bytes)| {
        let lane = ShardId(u16::try_from(object / 2).expect("small"));
        ReservationRequest { object: key(object), lane, bytes }
    });
    let there = there.into_iter().map(|(object, bytes)| {
        let lane = NodeId(u64::try_from(object % 2).expect("small"));
        ReservationRequest { object: key(object), lane, bytes }
    });
    (here.collect(), there.collect())
}

/// Call, holder, and the granted bytes of each object.
type GrantedCall = (u64, Holder, Vec<(u128, usize)>);

/// Queue with its grants and waiting calls, for tests that only state their requests.
struct QueueModel {
    queue: ReservationQueue<u128>,
    waits: BTreeMap<u64, (Holder, Vec<(u128, usize)>)>,
    held: Vec<GrantedCall>,
}

impl QueueModel {
    fn new() -> QueueModel {
        QueueModel { queue: ReservationQueue::new(HERE, THERE), waits: BTreeMap::new(), held: Vec::new() }
    }

    /// Enters a call. Returns its number and the numbers of the calls that were granted.
    fn enter(&mut self, holder: Holder, writes: &[(u128, usize)]) -> (u64, Vec<u64>) {
        let (here, there) = wanted(writes);
        let number = self.queue.enter(holder, here, there).expect("is open");
        self.waits.insert(number, (holder, writes.to_vec()));
        (number, self.advance())
    }

    fn advance(&mut self) -> Vec<u64> {
        let granted = self.queue.advance(|want| want.object.id.as_u128());
        for Granted { call, handles } in &granted {
            let (holder, writes) = self.waits.remove(call).expect("it waited");
            let here: Vec<u128> = writes.iter().map(|one| one.0).filter(|object| *object < FIRST_THERE).collect();
            assert_eq!(*handles, here, "a handle for each write here, in their order");
            self.held.push((*call, holder, writes));
        }
        granted.into_iter().map(|granted| granted.call).collect()
    }

    fn release(&mut self, place: usize) -> Vec<u64> {
        let (_, holder, writes) = self.held.remove(place);
        let (here, there) = wanted(&writes);
        here.iter().for_each(|given| self.queue.release(&holder, given));
        there.iter().for_each(|given| self.queue.release_sent(&holder, given));
        self.advance()
    }

    fn leave(&mut self, number: u64) -> Vec<u64> {
        assert_eq!(self.queue.leave(number).is_some(), self.waits.remove(&number).is_some());
        self.advance()
    }

    fn sum(&self, of: impl Fn(u128) -> bool) -> Reserved {
        let writes = self.held.iter().flat_map(|(_, _, writes)| writes).filter(|(object, _)| of(*object));
        writes.fold(Reserved::default(), |sum, (_, bytes)| sum.plus(Reserved { writes: 1, bytes: *bytes }))
    }
}

#[test]
fn what_finds_room_gets_it_and_what_does_not_waits_in_its_order() {
    let (mut queue, who) = (QueueModel::new(), holder(1, 1));
    let (first, granted) = queue.enter(who, &[(0, 100)]);
    assert_eq!(granted, [first]);
    let (second, granted) = queue.enter(who, &[(0, 60)]);
    assert!(granted.is_empty());
    let (third, granted) = queue.enter(who, &[(0, 1)]);
    assert!(granted.is_empty(), "a small one does not pass the one before it");
    assert_eq!(queue.release(0), [second, third]);
    assert_eq!(queue.queue.waiting(), Reserved::default());
}

#[test]
fn a_flood_of_one_object_delays_no_other_of_its_shard() {
    let (mut queue, who) = (QueueModel::new(), holder(1, 1));
    for _ in 0..200 {
        queue.enter(who, &[(0, 30)]);
    }
    assert!(queue.queue.calls_waiting() > 190);
    for _ in 0..100 {
        let (other, granted) = queue.enter(who, &[(1, 20)]);
        assert_eq!(granted, [other], "it has room at once");
        let place = queue.held.iter().position(|(number, ..)| *number == other).expect("held");
        queue.release(place);
        queue.release(0); // the flood goes on beside it
    }
}

#[test]
fn a_flood_on_its_way_to_another_node_leaves_room_for_other_objects() {
    let (mut queue, who) = (QueueModel::new(), holder(1, 1));
    for _ in 0..50 {
        queue.enter(who, &[(100, 20)]);
    }
    assert_eq!(queue.held.len(), 7, "all but the last eighth, where nobody else waits");
    let (other, granted) = queue.enter(who, &[(102, 20)]);
    assert_eq!(granted, [other]);
    let (waits, granted) = queue.enter(who, &[(104, 20)]);
    assert!(granted.is_empty());
    assert_eq!(queue.release(0), [waits], "the object that holds nothing comes before the one that holds most");
}

#[test]
fn a_call_over_two_objects_takes_all_or_nothing_and_is_not_passed_for_ever() {
    let (mut queue, who) = (QueueModel::new(), holder(1, 1));
    for object in [0, 2] {
        queue.enter(who, &[(object, 50)]);
        queue.enter(who, &[(object, 50)]);
    }
    let (both, granted) = queue.enter(who, &[(0, 80), (2, 80)]);
    assert!(granted.is_empty());
    let mut rounds = 0;
    // Later calls to both objects keep coming. Each step releases only the oldest reservation.
    while queue.waits.contains_key(&both) {
        queue.enter(who, &[(0, 50)]);
        queue.enter(who, &[(2, 50)]);
        queue.release(0);
        rounds += 1;
        assert!(rounds <= 4, "only what had its place before queue_up before it");
    }
}

#[test]
fn a_call_that_waits_at_a_flooded_object_does_not_hold_its_other_object_back() {
    let (mut queue, who) = (QueueModel::new(), holder(1, 1));
    for _ in 0..20 {
        queue.enter(who, &[(0, 50)]);
    }
    let (both, granted) = queue.enter(who, &[(0, 50), (2, 10)]);
    assert!(granted.is_empty());
    let (other, granted) = queue.enter(who, &[(2, 10)]);
    assert_eq!(granted, [other]);
    assert!(queue.waits.contains_key(&both));
}

#[test]
fn the_node_is_shared_between_organizations_and_then_between_credentials() {
    let mut queue = QueueModel::new();
    // The first organization fills the node and has many more waiting calls, over as many objects.
    for object in 0..40 {
        queue.enter(holder(1, 1 + object % 2), &[(object, 40)]);
    }
    assert!(queue.queue.calls_waiting() > 20);
    let (light, granted) = queue.enter(holder(2, 9), &[(50, 40)]);
    assert!(granted.is_empty());
    assert_eq!(queue.release(0), [light], "its organization holds nothing");
    let (of_a_third, granted) = queue.enter(holder(1, 3), &[(52, 40)]);
    assert!(granted.is_empty());
    assert_eq!(queue.release(0), [of_a_third], "its credential holds nothing");
}

#[test]
fn whoever_leaves_gives_its_turn_up_at_once() {
    let (mut queue, who) = (QueueModel::new(), holder(1, 1));
    queue.enter(who, &[(0, 60)]);
    let (large, _) = queue.enter(who, &[(0, 90)]);
    let (small, granted) = queue.enter(who, &[(0, 30)]);
    assert!(granted.is_empty());
    assert_eq!(queue.leave(large), [small]);
}

#[test]
fn a_closed_queue_gives_up_what_waits_and_keeps_what_was_given() {
    let (mut queue, who) = (QueueModel::new(), holder(1, 1));
    queue.enter(who, &[(0, 100)]);
    let (waits, _) = queue.enter(who, &[(0, 100)]);
    assert_eq!(queue.queue.close(), [waits]);
    assert!(!queue.queue.is_idle());
    assert!(queue.queue.enter(who, Vec::new(), Vec::new()).is_err());
    queue.waits.clear();
    assert!(queue.release(0).is_empty() && queue.queue.is_idle());
}

#[derive(Clone, Debug)]
enum ReservationQueueStep {
    Enter { org: u128, credential: u128, writes: Vec<(u128, usize)> },
    Release(usize),
    Leave(usize),
}

fn step() -> impl Strategy<Value = ReservationQueueStep> {
    let object = prop_oneof![3 => 0..6_u128, 2 => FIRST_THERE..FIRST_THERE + 4];
    let writes = proptest::collection::vec((object, 0..90_usize), 1..4);
    prop_oneof![
        4 => (1..4_u128, 1..3_u128, writes)
            .prop_map(|(org, credential, writes)| ReservationQueueStep::Enter { org, credential, writes }),
        3 => (0..16_usize).prop_map(ReservationQueueStep::Release),
        1 => (0..16_usize).prop_map(ReservationQueueStep::Leave),
    ]
}

/// Returns whether a counter that held `before` may accept this much more.
fn may(before: Reserved, more: Reserved, limit: Capacity) -> bool {
    let after = before.plus(more);
    before.writes == 0 || (after.writes <= limit.writes && after.bytes <= limit.bytes)
}

/// Asserts that the reservations of a granted call are within every limit.
fn check_given(queue: &QueueModel, given: &[u64]) {
    for number in given {
        let position = queue.held.iter().position(|(call, ..)| call == number).expect("held");
        let (mut before, writes) = (QueueModel::new(), &queue.held[position].2);
        before.held = queue.held[..position].to_vec();
        let of = |all: &[(u128, usize)], of: &dyn Fn(u128) -> bool| {
            let mine = all.iter().filter(|(object, _)| of(*object));
            mine.fold(Reserved::default(), |sum, (_, bytes)| sum.plus(Reserved { writes: 1, bytes: *bytes }))
        };
        for (object, _) in writes {
            let here = *object < FIRST_THERE;
            let limits = if here { HERE } else { THERE };
            let same = |other: u128| other == *object;
            assert!(may(before.sum(same), of(writes, &same), limits.object), "its object");
            let lane = |other: u128| match here {
                true => other / 2 == *object / 2,
                false => other >= FIRST_THERE && other % 2 == *object % 2,
            };
            assert!(may(before.sum(lane), of(writes, &lane), limits.lane), "its lane");
        }
        let here = |object: u128| object < FIRST_THERE;
        assert!(may(before.sum(here), of(writes, &here), HERE.node), "the node");
    }
}

/// Asserts that calls to a single object were granted in their order.
fn check_order(queue: &QueueModel) {
    for (number, _, writes) in &queue.held {
        let [(object, _)] = writes[..] else { continue };
        let earlier = queue
            .waits
            .iter()
            .find(|(other, (_, writes))| *other < number && matches!(writes[..], [(waits, _)] if waits == object));
        assert!(earlier.is_none(), "{number} passed {earlier:?}");
    }
}

proptest! {
    #[test]
    fn places_are_given_within_limits_and_in_order_and_everyone_gets_some(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut queue = QueueModel::new();
        for step in steps {
            let given = match step {
                ReservationQueueStep::Enter { org, credential, writes } => queue.enter(holder(org, credential), &writes).1,
                ReservationQueueStep::Release(at) if !queue.held.is_empty() => queue.release(at % queue.held.len()),
                ReservationQueueStep::Leave(at) if !queue.waits.is_empty() => {
                    let number = *queue.waits.keys().nth(at % queue.waits.len()).expect("one");
                    queue.leave(number)
                }
                ReservationQueueStep::Release(_) | ReservationQueueStep::Leave(_) => Vec::new(),
            };
            check_given(&queue, &given);
            check_order(&queue);
            prop_assert_eq!(queue.queue.held(), queue.sum(|object| object < FIRST_THERE));
            prop_assert_eq!(queue.queue.calls_waiting(), queue.waits.len());
        }
        // After all releases, the next calls are granted until none waits.
        while !queue.waits.is_empty() {
            let before = queue.waits.len();
            while !queue.held.is_empty() {
                queue.release(0);
                if queue.waits.len() < before {
                    break;
                }
            }
            prop_assert!(queue.waits.len() < before, "all places are free and {:?} wait", queue.waits);
        }
        while !queue.held.is_empty() {
            queue.release(0);
        }
        prop_assert!(queue.queue.is_idle() && queue.queue.queues.is_empty() && queue.queue.shares.organizations.is_empty());
        prop_assert_eq!(queue.queue.waiting(), Reserved::default());
    }

    /// A call waits only for earlier calls, however many later ones arrive.
    #[test]
    fn no_call_is_passed_for_ever(
        before in proptest::collection::vec(proptest::collection::vec((0..4_u128, 1..90_usize), 1..3), 1..30),
        call in proptest::collection::vec((0..4_u128, 1..150_usize), 1..4),
        after in proptest::collection::vec(proptest::collection::vec((0..4_u128, 1..90_usize), 1..3), 200),
    ) {
        let (mut queue, who) = (QueueModel::new(), holder(1, 1));
        for writes in &before {
            queue.enter(who, writes);
        }
        let (number, _) = queue.enter(who, &call);
        let mut steps = 0;
        for writes in &after {
            if !queue.waits.contains_key(&number) {
                break;
            }
            queue.enter(who, writes);
            queue.release(0);
            steps += 1;
        }
        prop_assert!(!queue.waits.contains_key(&number), "still waits after {} steps", steps);
    }
}
