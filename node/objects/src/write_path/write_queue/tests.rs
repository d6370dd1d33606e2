//! Tests of the write queue against its three rules.

use proptest::prelude::*;

use super::*;

const SECOND: i64 = 1_000_000;

fn request(n: u32, content: u8) -> RequestId {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&n.to_be_bytes());
    RequestId { key, content: [content; 16] }
}

fn go<W>(queue: &mut WriteQueue<W>, now: i64, last: Xact) -> (u64, Xact) {
    match queue.enqueue(now, last, None) {
        Enqueued::Queued { number, assigned } => (number, assigned),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_id_follows_the_clock_the_shard_and_the_ids_before() {
    let mut queue: WriteQueue<()> = WriteQueue::default();
    assert_eq!(go(&mut queue, 7 * SECOND, Xact::ZERO).1, Xact::new(7, 0));
    assert_eq!(go(&mut queue, 7 * SECOND, Xact::ZERO).1, Xact::new(7, 1));
    assert_eq!(go(&mut queue, 7 * SECOND, Xact::new(7, 90)).1, Xact::new(7, 91));
    assert_eq!(go(&mut queue, 2 * SECOND, Xact::ZERO).1, Xact::new(7, 92), "the clock went back");
    assert_eq!(go(&mut queue, -1, Xact::new(7, u16::MAX)).1, Xact::new(8, 0), "a second is used up");
}

#[test]
fn a_known_request_is_answered_until_it_is_too_old_or_too_many_came() {
    let mut queue: WriteQueue<()> = WriteQueue::default();
    queue.note_written(&request(0, 1), Xact::new(0, 5));
    let enter = |queue: &mut WriteQueue<()>, last, request: RequestId| queue.enqueue(0, last, Some(&request));
    let in_time = Xact::new(REQUEST_AGE_SECONDS_MAX, 0);
    assert_eq!(enter(&mut queue, in_time, request(0, 1)), Enqueued::Duplicate { xact: Xact::new(0, 5) });
    assert_eq!(enter(&mut queue, in_time, request(0, 2)), Enqueued::KeyReused { xact: Xact::new(0, 5) });
    let late = Xact::new(REQUEST_AGE_SECONDS_MAX + 1, 0);
    assert!(matches!(enter(&mut queue, late, request(0, 1)), Enqueued::Queued { .. }));
    for n in 1..=RECENT_REQUESTS_MAX as u32 {
        queue.note_written(&request(n, 1), Xact::new(0, 6));
    }
    assert!(matches!(enter(&mut queue, in_time, request(0, 1)), Enqueued::Queued { .. }));
    assert_eq!(queue.recent.by_key.len(), RECENT_REQUESTS_MAX);
}

#[test]
fn a_request_that_still_waits_is_let_through() {
    let mut queue: WriteQueue<()> = WriteQueue::default();
    assert!(matches!(queue.enqueue(0, Xact::ZERO, Some(&request(1, 1))), Enqueued::Queued { number: 0, .. }));
    assert!(matches!(queue.enqueue(0, Xact::ZERO, Some(&request(1, 1))), Enqueued::Queued { number: 1, .. }));
}

#[derive(Clone, Debug)]
enum WriteQueueStep {
    Enter {
        now: i64,
        shard_ahead: u16,
    },
    /// Completes a write that is being encoded, counted from the front.
    Make(usize),
    Submit,
}

fn step() -> impl Strategy<Value = WriteQueueStep> {
    prop_oneof![
        (0..20_i64, 0..3_u16).prop_map(|(now, shard_ahead)| WriteQueueStep::Enter { now: now * SECOND, shard_ahead }),
        (0..8_usize).prop_map(WriteQueueStep::Make),
        Just(WriteQueueStep::Submit),
    ]
}

proptest! {
    #[test]
    fn whatever_is_made_first_leaves_in_the_order_it_came(steps in proptest::collection::vec(step(), 1..200)) {
        let mut queue: WriteQueue<(u64, Xact)> = WriteQueue::default();
        let (mut making, mut entered, mut left) = (Vec::new(), Vec::new(), Vec::new());
        let mut last = Xact::ZERO;
        for step in steps {
            match step {
                WriteQueueStep::Enter { now, shard_ahead } => {
                    (0..shard_ahead).for_each(|_| last = last.next());
                    let (number, assigned) = go(&mut queue, now, last);
                    prop_assert!(assigned > last && assigned >= Xact::at_micros(now as u64), "L2");
                    making.push((number, assigned));
                    entered.push((number, assigned));
                }
                WriteQueueStep::Make(at) if !making.is_empty() => {
                    let write = making.remove(at % making.len());
                    queue.mark_ready(write.0, write);
                }
                WriteQueueStep::Make(_) => {}
                WriteQueueStep::Submit => {
                    let front = queue.front().copied();
                    let popped = queue.pop();
                    prop_assert_eq!(front, popped);
                    left.extend(popped);
                }
            }
        }
        making.into_iter().for_each(|write| queue.mark_ready(write.0, write));
        while let Some(write) = queue.pop() {
            left.push(write);
        }
        prop_assert!(entered.windows(2).all(|pair| pair[0].1 < pair[1].1), "L2: ids rise");
        prop_assert_eq!(left, entered, "L1");
    }
}
