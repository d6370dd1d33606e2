//! Tests of reservations against their rules and a model that recounts everything.

use assay_storage_model::{ObjectKind, OrgId};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const LIMITS: ReservationLimits = ReservationLimits {
    object: Capacity { writes: 4, bytes: 100 },
    lane: Capacity { writes: 6, bytes: 150 },
    node: Capacity { writes: 8, bytes: 200 },
    objects: 5,
};

fn want(object: u128, bytes: usize) -> ReservationRequest {
    let key = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(object));
    ReservationRequest { object: key, lane: ShardId((object % 2) as u16), bytes }
}

fn reservations() -> Reservations<u128> {
    Reservations::new(LIMITS)
}

fn reserve(reservations: &mut Reservations<u128>, wanted: &[ReservationRequest]) -> Result<Vec<u128>, NotWritten> {
    reservations.reserve(wanted, |want| want.object.id.as_u128())
}

#[test]
fn every_counter_refuses_beyond_its_limit() {
    let mut reservations = reservations();
    reserve(&mut reservations, &[want(1, 60)]).expect("fits");
    assert_eq!(
        reserve(&mut reservations, &[want(1, 41)]),
        Err(NotWritten::busy("too many writes are waiting for this object"))
    );
    reserve(&mut reservations, &[want(3, 60)]).expect("fits");
    assert_eq!(
        reserve(&mut reservations, &[want(5, 31)]),
        Err(NotWritten::busy("too many writes are waiting for this object's shard"))
    );
    reserve(&mut reservations, &[want(2, 60)]).expect("fits");
    assert_eq!(
        reserve(&mut reservations, &[want(4, 21)]),
        Err(NotWritten::busy("too many writes are waiting on this node"))
    );
    for object in [5, 4] {
        reserve(&mut reservations, &[want(object, 0)]).expect("fits");
    }
    assert_eq!(
        reserve(&mut reservations, &[want(6, 0)]),
        Err(NotWritten::busy("too many objects are being written at once"))
    );
}

#[test]
fn a_write_above_every_limit_is_taken_when_nothing_waits() {
    let mut reservations = reservations();
    reserve(&mut reservations, &[want(1, 1000), want(3, 1000)]).expect("nothing waits");
    assert!(reserve(&mut reservations, &[want(2, 1)]).is_err());
    reservations.release(&want(1, 1000));
    reservations.release(&want(3, 1000));
    assert!(reservations.is_idle());
    reserve(&mut reservations, &[want(2, 1)]).expect("there is room again");
}

#[test]
fn an_object_with_a_place_stays_and_one_without_goes() {
    let mut reservations = reservations();
    reserve(&mut reservations, &[want(1, 1)]).expect("fits");
    assert!(!reservations.put_away(&want(1, 0).object));
    reservations.release(&want(1, 1));
    assert!(reservations.put_away(&want(1, 0).object) && !reservations.put_away(&want(1, 0).object));
    assert_eq!(reservations.objects(), 0);
}

#[test]
fn a_closed_book_gives_no_place_and_keeps_those_given() {
    let mut reservations = reservations();
    reserve(&mut reservations, &[want(1, 1)]).expect("fits");
    reservations.close();
    assert_eq!(reserve(&mut reservations, &[want(1, 1)]), Err(NotWritten::Closing));
    assert!(!reservations.is_idle());
    reservations.release(&want(1, 1));
    assert!(reservations.is_idle());
}

#[derive(Clone, Debug)]
enum ReservationStep {
    Reserve(Vec<(u128, usize)>),
    Release(usize),
    PutAway(u128),
}

fn step() -> impl Strategy<Value = ReservationStep> {
    prop_oneof![
        3 => proptest::collection::vec((0..7_u128, 0..80_usize), 1..4).prop_map(ReservationStep::Reserve),
        2 => (0..16_usize).prop_map(ReservationStep::Release),
        1 => (0..7_u128).prop_map(ReservationStep::PutAway),
    ]
}

fn held(places: &[ReservationRequest], of: impl Fn(&ReservationRequest) -> bool) -> Reserved {
    let mine = places.iter().filter(|place| of(place));
    mine.fold(Reserved::default(), |sum, place| sum.plus(Reserved { writes: 1, bytes: place.bytes }))
}

proptest! {
    #[test]
    fn places_are_given_whole_or_not_at_all_and_within_their_limits(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut reservations = reservations();
        let mut places: Vec<ReservationRequest> = Vec::new();
        for step in steps {
            let before = reservations.held();
            match step {
                ReservationStep::Reserve(wants) => {
                    let wants: Vec<_> = wants.into_iter().map(|(object, bytes)| want(object, bytes)).collect();
                    match reserve(&mut reservations, &wants) {
                        Ok(handles) => {
                            let objects: Vec<_> = wants.iter().map(|want| want.object.id.as_u128()).collect();
                            prop_assert_eq!(handles, objects);
                            let all = held(&wants, |_| true);
                            let within = |was: Reserved, more: Reserved, limit: Capacity| {
                                was.writes == 0 || (was.plus(more).writes <= limit.writes && was.plus(more).bytes <= limit.bytes)
                            };
                            prop_assert!(within(held(&places, |_| true), all, LIMITS.node), "B2");
                            for one in &wants {
                                let same = |place: &ReservationRequest| place.object == one.object;
                                prop_assert!(within(held(&places, same), held(&wants, same), LIMITS.object), "B2");
                            }
                            places.extend(wants);
                        }
                        Err(_) => prop_assert_eq!(reservations.held(), before, "B1"),
                    }
                }
                ReservationStep::Release(at) if !places.is_empty() => {
                    let given = places.swap_remove(at % places.len());
                    reservations.release(&given);
                }
                ReservationStep::Release(_) => {}
                ReservationStep::PutAway(object) => {
                    let object = want(object, 0).object;
                    let gone = reservations.put_away(&object);
                    prop_assert!(!gone || places.iter().all(|place| place.object != object), "B3");
                }
            }
            prop_assert_eq!(reservations.held(), held(&places, |_| true));
            prop_assert!(reservations.objects() <= LIMITS.objects);
        }
        for place in places {
            reservations.release(&place);
        }
        prop_assert!(reservations.is_idle());
    }
}
