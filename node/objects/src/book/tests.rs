//! The book of places, held against its rules and against a model that counts everything anew.

use assay_storage_model::{ObjectKind, OrgId};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const LIMITS: BookLimits = BookLimits {
    object: Room { writes: 4, bytes: 100 },
    lane: Room { writes: 6, bytes: 150 },
    node: Room { writes: 8, bytes: 200 },
    objects: 5,
};

fn want(object: u128, bytes: usize) -> Wanted {
    let key = ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(object));
    Wanted { object: key, lane: ShardId((object % 2) as u16), bytes }
}

fn book() -> Book<u128> {
    Book::new(LIMITS)
}

fn reserve(book: &mut Book<u128>, wanted: &[Wanted]) -> Result<Vec<u128>, NotWritten> {
    book.reserve(wanted, |want| want.object.id.as_u128())
}

#[test]
fn every_counter_refuses_beyond_its_limit() {
    let mut book = book();
    reserve(&mut book, &[want(1, 60)]).expect("fits");
    assert_eq!(reserve(&mut book, &[want(1, 41)]), Err(NotWritten::busy("too many writes wait for this object")));
    reserve(&mut book, &[want(3, 60)]).expect("fits");
    assert_eq!(
        reserve(&mut book, &[want(5, 31)]),
        Err(NotWritten::busy("too many writes wait for this object's shard"))
    );
    reserve(&mut book, &[want(2, 60)]).expect("fits");
    assert_eq!(reserve(&mut book, &[want(4, 21)]), Err(NotWritten::busy("too many writes wait on this node")));
    for object in [5, 4] {
        reserve(&mut book, &[want(object, 0)]).expect("fits");
    }
    assert_eq!(reserve(&mut book, &[want(6, 0)]), Err(NotWritten::busy("too many objects are written to at once")));
}

#[test]
fn a_write_above_every_limit_is_taken_when_nothing_waits() {
    let mut book = book();
    reserve(&mut book, &[want(1, 1000), want(3, 1000)]).expect("nothing waits");
    assert!(reserve(&mut book, &[want(2, 1)]).is_err());
    book.release(&want(1, 1000));
    book.release(&want(3, 1000));
    assert!(book.is_idle());
    reserve(&mut book, &[want(2, 1)]).expect("there is room again");
}

#[test]
fn an_object_with_a_place_stays_and_one_without_goes() {
    let mut book = book();
    reserve(&mut book, &[want(1, 1)]).expect("fits");
    assert!(!book.put_away(&want(1, 0).object));
    book.release(&want(1, 1));
    assert!(book.put_away(&want(1, 0).object) && !book.put_away(&want(1, 0).object));
    assert_eq!(book.objects(), 0);
}

#[test]
fn a_closed_book_gives_no_place_and_keeps_those_given() {
    let mut book = book();
    reserve(&mut book, &[want(1, 1)]).expect("fits");
    book.close();
    assert_eq!(reserve(&mut book, &[want(1, 1)]), Err(NotWritten::Closing));
    assert!(!book.is_idle());
    book.release(&want(1, 1));
    assert!(book.is_idle());
}

#[derive(Clone, Debug)]
enum Step {
    Reserve(Vec<(u128, usize)>),
    Release(usize),
    PutAway(u128),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => proptest::collection::vec((0..7_u128, 0..80_usize), 1..4).prop_map(Step::Reserve),
        2 => (0..16_usize).prop_map(Step::Release),
        1 => (0..7_u128).prop_map(Step::PutAway),
    ]
}

fn held(places: &[Wanted], of: impl Fn(&Wanted) -> bool) -> Held {
    let mine = places.iter().filter(|place| of(place));
    mine.fold(Held::default(), |sum, place| sum.plus(Held { writes: 1, bytes: place.bytes }))
}

proptest! {
    #[test]
    fn places_are_given_whole_or_not_at_all_and_within_their_limits(
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut book = book();
        let mut places: Vec<Wanted> = Vec::new();
        for step in steps {
            let before = book.held();
            match step {
                Step::Reserve(wants) => {
                    let wants: Vec<_> = wants.into_iter().map(|(object, bytes)| want(object, bytes)).collect();
                    match reserve(&mut book, &wants) {
                        Ok(handles) => {
                            let objects: Vec<_> = wants.iter().map(|want| want.object.id.as_u128()).collect();
                            prop_assert_eq!(handles, objects);
                            let all = held(&wants, |_| true);
                            let within = |was: Held, more: Held, room: Room| {
                                was.writes == 0 || (was.plus(more).writes <= room.writes && was.plus(more).bytes <= room.bytes)
                            };
                            prop_assert!(within(held(&places, |_| true), all, LIMITS.node), "B2");
                            for one in &wants {
                                let same = |place: &Wanted| place.object == one.object;
                                prop_assert!(within(held(&places, same), held(&wants, same), LIMITS.object), "B2");
                            }
                            places.extend(wants);
                        }
                        Err(_) => prop_assert_eq!(book.held(), before, "B1"),
                    }
                }
                Step::Release(at) if !places.is_empty() => {
                    let given = places.swap_remove(at % places.len());
                    book.release(&given);
                }
                Step::Release(_) => {}
                Step::PutAway(object) => {
                    let object = want(object, 0).object;
                    let gone = book.put_away(&object);
                    prop_assert!(!gone || places.iter().all(|place| place.object != object), "B3");
                }
            }
            prop_assert_eq!(book.held(), held(&places, |_| true));
            prop_assert!(book.objects() <= LIMITS.objects);
        }
        for place in places {
            book.release(&place);
        }
        prop_assert!(book.is_idle());
    }
}
