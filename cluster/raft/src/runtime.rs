//! Runtime of consensus: tokio with two changes.
//!
//! The random source of election timeouts can be seeded, so that a simulation is reproducible. Ticks follow a common
//! beat.

use std::cell::RefCell;
use std::fmt::Debug;
use std::future::Future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use openraft::{AsyncRuntime, OptionalSend, TokioRuntime};
use rand_of_openraft::rngs::StdRng;
use rand_of_openraft::{Error, RngCore, SeedableRng, thread_rng};
use tokio::time::Instant;

thread_local! {
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// Seeds the election timeouts of groups on this thread. For simulations.
pub fn seed_elections(seed: u64) {
    SEEDED.with_borrow_mut(|seeded| *seeded = Some(StdRng::seed_from_u64(seed)));
}

/// Random source of this thread: that of the system, unless it was seeded.
#[derive(Clone, Copy, Debug)]
pub struct Dice;

impl RngCore for Dice {
    fn next_u32(&mut self) -> u32 {
        SEEDED.with_borrow_mut(|seeded| seeded.as_mut().map_or_else(|| thread_rng().next_u32(), RngCore::next_u32))
    }

    fn next_u64(&mut self) -> u64 {
        SEEDED.with_borrow_mut(|seeded| seeded.as_mut().map_or_else(|| thread_rng().next_u64(), RngCore::next_u64))
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        SEEDED.with_borrow_mut(|seeded| match seeded {
            Some(seeded) => seeded.fill_bytes(bytes),
            None => thread_rng().fill_bytes(bytes),
        });
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

/// Microseconds between two beats, or 0 before the first group was started.
static BEAT_MICROS: AtomicU64 = AtomicU64::new(0);

/// Sets the beat of this process. Of several values the shortest wins: a short beat costs wakeups, and a long one would
/// delay ticks.
pub(crate) fn beat_every(tick: Duration) {
    let tick = u64::try_from(tick.as_micros()).unwrap_or(u64::MAX);
    let shorter = |beat: u64| (beat == 0 || tick < beat).then_some(tick);
    // An error means that the beat is already as short.
    let _ = BEAT_MICROS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shorter);
}

/// Aligns a deadline to the beat of all groups of a node.
///
/// Leaders then send their heartbeats together, in few packets, and wake the other nodes only once (decisions/0012).
fn on_the_beat(deadline: Instant) -> Instant {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    if SEEDED.with_borrow(Option::is_some) {
        return deadline; // simulated nodes share a process, and their behavior must depend only on the seed
    }
    let first = *FIRST.get_or_init(|| deadline);
    let beat = u128::from(BEAT_MICROS.load(Ordering::Relaxed));
    if beat == 0 {
        return deadline;
    }
    let since = deadline.saturating_duration_since(first).as_micros();
    // The nearest beat is chosen, so that a slightly late wakeup does not miss the next one.
    let beats = (since + beat / 2) / beat;
    first + Duration::from_micros(u64::try_from(beats * beat).unwrap_or(u64::MAX / 2))
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Runtime;

impl AsyncRuntime for Runtime {
    type JoinError = <TokioRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::JoinHandle<T>;
    type Sleep = <TokioRuntime as AsyncRuntime>::Sleep;
    type Instant = <TokioRuntime as AsyncRuntime>::Instant;
    type TimeoutError = <TokioRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <TokioRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = Dice;
    type OneshotSender<T: OptionalSend> = <TokioRuntime as AsyncRuntime>::OneshotSender<T>;
    type OneshotReceiver<T: OptionalSend> = <TokioRuntime as AsyncRuntime>::OneshotReceiver<T>;
    type OneshotReceiverError = <TokioRuntime as AsyncRuntime>::OneshotReceiverError;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        TokioRuntime::spawn(future)
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        TokioRuntime::sleep(duration)
    }

    /// In openraft, only ticks sleep until a deadline.
    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        TokioRuntime::sleep_until(on_the_beat(deadline))
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: Self::Instant, future: F) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        TokioRuntime::is_panic(error)
    }

    fn thread_rng() -> Dice {
        Dice
    }

    fn oneshot<T: OptionalSend>() -> (Self::OneshotSender<T>, Self::OneshotReceiver<T>) {
        TokioRuntime::oneshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(180);

    #[test]
    fn ticks_of_any_phase_fall_on_one_beat_and_none_is_missed() {
        beat_every(TICK);
        let start = Instant::now();
        let beats: Vec<Instant> = (0..40u32)
            .map(|phase| {
                // Each tick wakes a little late, and sleeps for the next tick from there.
                let mut at = start + TICK * phase / 40;
                for _ in 0..50 {
                    let next = on_the_beat(at + TICK);
                    assert!(next > at && next - at <= TICK * 3 / 2, "{:?}", next - at);
                    at = next + TICK * (phase % 5) / 20;
                }
                on_the_beat(at + TICK)
            })
            .collect();
        let off = |beat: &Instant| {
            (beat.duration_since(start).as_micros()).abs_diff(beats[0].duration_since(start).as_micros())
        };
        assert!(beats.iter().all(|beat| off(beat) % TICK.as_micros() == 0), "{beats:?}");
    }
}
