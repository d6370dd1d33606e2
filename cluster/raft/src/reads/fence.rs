//! Linearizable reads through a shared read index.
//!
//! A fence proves that a replica has applied everything acknowledged before the fence was requested. A round requests
//! the read index from consensus. The leader confirms with a majority that it still leads, and returns the index that
//! was committed when the round began.
//!
//! F1: a request joins the next round, never a running one. A running round may have begun before the write whose
//!     acknowledgement the requester has seen.
//! F2: one round serves all requests that joined it, and the next round gathers requests meanwhile. A round that takes
//!     longer than [`OVERLAP_AFTER`] delays no other, because the next one begins concurrently. If nodes are far apart,
//!     a fence thus takes two round trips instead of up to four.
//! F3: a fence returns when the index of its round is applied here. That wait does not delay the next round.
//! F4: a replica that does not lead asks the leader once per round. Without a leader it waits for a while.
//! F5: requests of other replicas use separate rounds, which ask no other replica. Two replicas that each consider the
//!     other the leader must not wait for each other's rounds.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::timeout;

use crate::counters::Counters;
use crate::error::FenceError;
use crate::reads::read_index::ReadIndex;

/// Time limit for a fence's index to be applied.
pub const FENCE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Time after which the next round begins concurrently with a running one.
const OVERLAP_AFTER: Duration = Duration::from_millis(100);
/// Maximum number of concurrent rounds. Each retries while there is no leader.
const ROUNDS_AT_ONCE_MAX: usize = 4;

/// Index found by a round. Reads at or behind it include everything acknowledged before their requests.
pub(crate) type FenceResult = Result<u64, FenceError>;
type Waiter = oneshot::Sender<FenceResult>;

#[derive(Clone, Debug)]
pub(crate) struct Fences {
    shared: Arc<FencesState>,
}

#[derive(Debug)]
struct FencesState {
    waiting: Mutex<FenceQueue>,
    /// Applied index plus one.
    applied: watch::Receiver<u64>,
    runtime: Handle,
    counters: Arc<Counters>,
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct FenceQueue {
    next_round: Vec<Waiter>,
    /// Whether a task begins the next round as soon as possible.
    has_task: bool,
    /// Whether the runtime is gone, so that requests are never answered.
    closed: bool,
}

/// Task of the running rounds. If a shutdown of the runtime ends it, its drop releases the waiters of the next round.
struct Rounds {
    shared: Arc<FencesState>,
    /// Set under the lock that ends the rounds. Later requests begin new rounds, which this task must not end.
    ended: bool,
}

impl Rounds {
    /// Takes the waiters of the next round. Without any, the rounds end.
    fn next(&mut self) -> Option<Vec<Waiter>> {
        let mut waiting = self.shared.waiting.lock();
        let joined = mem::take(&mut waiting.next_round);
        if joined.is_empty() {
            waiting.has_task = false;
            self.ended = true;
            return None;
        }
        Some(joined)
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        if !self.ended {
            let mut waiting = self.shared.waiting.lock();
            waiting.closed = true;
            waiting.next_round.clear();
        }
    }
}

impl Fences {
    pub fn new(applied: watch::Receiver<u64>, runtime: Handle, counters: Arc<Counters>) -> Fences {
        let places = Arc::new(Semaphore::new(ROUNDS_AT_ONCE_MAX));
        Fences { shared: Arc::new(FencesState { waiting: Mutex::default(), applied, runtime, counters, places }) }
    }

    /// Waits until this replica has applied the index of the next round.
    pub async fn wait(&self, read_index: &Arc<ReadIndex>) -> FenceResult {
        let read_index = Arc::clone(read_index);
        let answer = self.join(move || {
            let read_index = Arc::clone(&read_index);
            async move { read_index.confirm().await }
        });
        answer.await.unwrap_or_else(|_| Err(FenceError::Stopped("it was shut down meanwhile".into())))
    }

    /// Serves the fence of another replica (F5). Fails if this replica does not lead.
    pub async fn wait_as_leader(&self, read_index: &Arc<ReadIndex>) -> FenceResult {
        let read_index = Arc::clone(read_index);
        let answer = self.join(move || {
            let read_index = Arc::clone(&read_index);
            async move { read_index.confirm_own_lead().await }
        });
        answer.await.unwrap_or_else(|_| Err(FenceError::Stopped("it was shut down meanwhile".into())))
    }

    /// Returns a receiver for the applied index plus one.
    pub fn applied_changes(&self) -> watch::Receiver<u64> {
        let mut applied = self.shared.applied.clone();
        applied.mark_unchanged();
        applied
    }

    /// Waits until this replica has applied the entry at `index`, without requests to other replicas.
    pub async fn wait_applied(&self, index: u64) -> FenceResult {
        applied_here(index, self.shared.applied.clone()).await
    }

    fn join<F, Round>(&self, confirm: F) -> oneshot::Receiver<FenceResult>
    where
        F: Fn() -> Round + Send + 'static,
        Round: Future<Output = Result<Option<u64>, FenceError>> + Send + 'static,
    {
        Counters::add(&self.shared.counters.fences, 1);
        let (waiter, answer) = oneshot::channel();
        let start = {
            let mut waiting = self.shared.waiting.lock();
            if waiting.closed {
                return answer; // the sender is dropped here, so the receiver fails
            }
            waiting.next_round.push(waiter); // F1
            !mem::replace(&mut waiting.has_task, true)
        };
        if start {
            self.shared.runtime.spawn(rounds(Rounds { shared: Arc::clone(&self.shared), ended: false }, confirm));
        }
        answer
    }
}

async fn rounds<F, Round>(mut rounds: Rounds, confirm: F)
where
    F: Fn() -> Round + Send + 'static,
    Round: Future<Output = Result<Option<u64>, FenceError>> + Send + 'static,
{
    loop {
        let place = Arc::clone(&rounds.shared.places).acquire_owned().await.expect("the semaphore is never closed");
        let Some(joined) = rounds.next() else { return };
        let shared = &rounds.shared;
        Counters::add(&shared.counters.fence_rounds, 1);
        let (confirming, applied) = (confirm(), shared.applied.clone());
        let (ended, until_ended) = oneshot::channel::<()>();
        shared.runtime.spawn(async move {
            let confirmed = confirming.await;
            drop((ended, place));
            answer(joined, confirmed, applied).await; // F3
        });
        let _ = timeout(OVERLAP_AFTER, until_ended).await; // F2
    }
}

async fn applied_here(index: u64, mut applied: watch::Receiver<u64>) -> FenceResult {
    match timeout(FENCE_WAIT_MAX, applied.wait_for(|next| *next > index)).await {
        Ok(Ok(_)) => Ok(index),
        Ok(Err(_)) => Err(FenceError::Stopped("it was shut down meanwhile".into())),
        Err(_) => Err(FenceError::Late { index, seconds: FENCE_WAIT_MAX.as_secs() }),
    }
}

async fn answer(joined: Vec<Waiter>, confirmed: Result<Option<u64>, FenceError>, applied: watch::Receiver<u64>) {
    let result = match confirmed {
        Err(error) => Err(error),
        Ok(None) => Ok(0), // nothing was ever committed
        Ok(Some(index)) => applied_here(index, applied).await,
    };
    for waiter in joined {
        let _ = waiter.send(result.clone()); // possibly nobody waits any more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::sync::Semaphore;

    /// Rounds that end one by one, when the test allows it. Each finds the index that was committed when it began.
    struct FenceHarness {
        fences: Fences,
        committed: Arc<AtomicU64>,
        allowed: Arc<Semaphore>,
        applied: watch::Sender<u64>,
    }

    impl FenceHarness {
        fn new() -> FenceHarness {
            let applied = watch::Sender::new(0);
            let fences = Fences::new(applied.subscribe(), Handle::current(), Arc::default());
            FenceHarness { fences, committed: Arc::default(), allowed: Arc::new(Semaphore::new(0)), applied }
        }

        fn ask(&self) -> oneshot::Receiver<FenceResult> {
            let (committed, allowed) = (Arc::clone(&self.committed), Arc::clone(&self.allowed));
            self.fences.join(move || {
                let found = committed.load(Ordering::SeqCst);
                let allowed = Arc::clone(&allowed);
                async move {
                    allowed.acquire().await.expect("the test lives").forget();
                    Ok(Some(found))
                }
            })
        }

        async fn round_begins(&self, rounds: u64) {
            while self.fences.shared.counters.read().fence_rounds < rounds {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    #[tokio::test]
    async fn who_asks_during_a_round_is_answered_by_the_next() {
        let rounds = FenceHarness::new();
        rounds.applied.send_replace(100);
        let first = rounds.ask();
        rounds.round_begins(1).await;
        rounds.committed.store(7, Ordering::SeqCst); // acknowledged while the first round runs
        let others: Vec<_> = (0..50).map(|_| rounds.ask()).collect();
        rounds.allowed.add_permits(2);
        assert_eq!(first.await.unwrap(), Ok(0));
        for other in others {
            assert_eq!(other.await.unwrap(), Ok(7));
        }
        assert_eq!(rounds.fences.shared.counters.read().fence_rounds, 2, "one round answered all who waited");
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_round_does_not_hold_up_the_next() {
        let rounds = FenceHarness::new();
        rounds.applied.send_replace(100);
        let begun = tokio::time::Instant::now();
        let mut long = rounds.ask();
        rounds.round_begins(1).await;
        rounds.committed.store(7, Ordering::SeqCst);
        let next = rounds.ask();
        rounds.round_begins(2).await;
        assert!(begun.elapsed() >= OVERLAP_AFTER);
        assert!(long.try_recv().is_err());
        rounds.allowed.add_permits(2);
        assert_eq!((long.await.unwrap(), next.await.unwrap()), (Ok(0), Ok(7)));
        // The task has ended, so a later request begins the next round at once.
        let asked = tokio::time::Instant::now();
        let later = rounds.ask();
        rounds.allowed.add_permits(1);
        assert_eq!(later.await.unwrap(), Ok(7));
        assert!(asked.elapsed() < OVERLAP_AFTER);
    }

    #[tokio::test(start_paused = true)]
    async fn rounds_under_way_are_limited() {
        let rounds = FenceHarness::new();
        rounds.applied.send_replace(100);
        let mut asked = Vec::new();
        for round in 1..=ROUNDS_AT_ONCE_MAX {
            asked.push(rounds.ask());
            rounds.round_begins(round as u64).await;
        }
        asked.push(rounds.ask());
        tokio::time::sleep(OVERLAP_AFTER * 10).await;
        let begun = || rounds.fences.shared.counters.read().fence_rounds;
        assert_eq!(begun(), ROUNDS_AT_ONCE_MAX as u64);
        rounds.allowed.add_permits(ROUNDS_AT_ONCE_MAX + 1);
        for answer in asked {
            assert_eq!(answer.await.unwrap(), Ok(0));
        }
        assert_eq!(begun(), ROUNDS_AT_ONCE_MAX as u64 + 1);
    }

    #[tokio::test]
    async fn an_answer_waits_for_apply_and_holds_nobody_up() {
        let rounds = FenceHarness::new();
        rounds.committed.store(9, Ordering::SeqCst);
        rounds.allowed.add_permits(10);
        let mut early = rounds.ask();
        rounds.round_begins(1).await;
        assert!(early.try_recv().is_err());
        let later = rounds.ask();
        rounds.round_begins(2).await;
        rounds.applied.send_replace(10); // index 9 is applied
        assert_eq!((early.await.unwrap(), later.await.unwrap()), (Ok(9), Ok(9)));
    }

    /// Regression: rounds that ended also ended later ones, and the group then refused every read until its end.
    #[test]
    fn rounds_that_ended_leave_those_alone_that_began_after() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let applied = watch::Sender::new(100);
        let fences = Fences::new(applied.subscribe(), runtime.handle().clone(), Arc::default());
        let round = || async { Ok(Some(7)) };
        let (first, mut ending) = (fences.join(round), Rounds { shared: Arc::clone(&fences.shared), ended: false });
        for waiter in ending.next().expect("the first") {
            waiter.send(Ok(7)).expect("it waits");
        }
        assert!(ending.next().is_none(), "nobody else has asked");
        let second = fences.join(round); // between the end of the rounds and the end of their task
        drop(ending);
        let third = fences.join(round);
        let answers = runtime.block_on(async { (first.await, second.await, third.await) });
        assert_eq!(answers, (Ok(Ok(7)), Ok(Ok(7)), Ok(Ok(7))));
    }

    #[tokio::test]
    async fn rounds_that_are_cut_off_answer_nobody() {
        let rounds = FenceHarness::new();
        let under_way = rounds.ask();
        rounds.round_begins(1).await;
        let waiting = rounds.ask();
        drop(Rounds { shared: Arc::clone(&rounds.fences.shared), ended: false });
        assert!(waiting.await.is_err() && rounds.ask().await.is_err());
        rounds.applied.send_replace(100);
        rounds.allowed.add_permits(1);
        assert_eq!(under_way.await.unwrap(), Ok(0), "what was under way here goes on");
    }
}
