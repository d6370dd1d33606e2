//! Turns of the query threads.
//!
//! A node has as many turns as cores, and a thread works only while it has a turn. Organizations take turns, and within
//! them credentials. A turn is limited to [`TURN_MAX`] while others wait, so a small query completes while large ones
//! run.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::EngineError;
use crate::scheduling::fair_queue::{Asker, FairQueue};
use crate::scheduling::watch::Watch;

/// Time after which a thread gives up its turn, if others wait.
const TURN_MAX: Duration = Duration::from_millis(2);
/// Interval at which a waiting thread checks whether its query was stopped.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Handle that gives out turns to the threads of an asker. Clones share the same turns.
#[derive(Clone, Debug)]
pub struct Workers {
    queue: Arc<TurnQueue>,
    asker: Asker,
}

#[derive(Debug)]
struct TurnQueue {
    threads: usize,
    /// Number of waiting threads, readable without the lock.
    waiting: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: FairQueue<Arc<Signal>>,
}

#[derive(Debug, Default)]
struct Signal {
    called: Mutex<bool>,
    changed: Condvar,
}

/// Turn of a thread, released on drop.
struct Turn;

/// State of a thread that has a turn.
struct Has {
    workers: Workers,
    since: Instant,
}

thread_local! {
    static HAS: RefCell<Option<Has>> = const { RefCell::new(None) };
}

impl Workers {
    /// Creates workers for at most this many units at a time over all queries.
    pub fn new(threads: usize) -> Workers {
        let threads = threads.max(1);
        let state = Mutex::new(State { free: threads, waiting: FairQueue::new() });
        Workers { queue: Arc::new(TurnQueue { threads, waiting: AtomicUsize::new(0), state }), asker: Asker::default() }
    }

    /// Returns workers that take turns for another asker.
    pub fn of(&self, asker: Asker) -> Workers {
        Workers { queue: Arc::clone(&self.queue), asker }
    }

    /// Returns the number of threads that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.queue.waiting.load(Ordering::Relaxed)
    }

    /// Waits for a turn and does a query's work in it. Each [`Watch::check`] in the work may give the turn to others.
    pub fn work<T>(&self, watch: &Watch, work: impl FnOnce() -> T) -> Result<T, EngineError> {
        let _turn = self.turn(&|| watch.goes_on())?;
        Ok(work())
    }

    /// Processes pieces, several at a time and approximately in their order. Returns the first error.
    pub fn each_of<P: Send, E: Send + From<EngineError>>(
        &self,
        watch: &Watch,
        pieces: Vec<P>,
        work: impl Fn(P) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let pieces: Vec<Mutex<Option<P>>> = pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect();
        let each = |_: &mut (), _, piece: &Mutex<Option<P>>| {
            let piece = piece.lock().take();
            piece.map_or(Ok(()), &work)
        };
        self.each(watch, &pieces, || (), each).map(drop)
    }

    /// Processes pieces approximately in their order. Returns the result of each thread, or the first error.
    pub(crate) fn each<P: Sync, T: Send, E: Send + From<EngineError>>(
        &self,
        watch: &Watch,
        pieces: &[P],
        start: impl Fn() -> T + Sync,
        work: impl Fn(&mut T, usize, &P) -> Result<(), E> + Sync,
    ) -> Result<Vec<T>, E> {
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let run = || {
            let mut made = start();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let piece = pieces.get(number).filter(|_| !failed.load(Ordering::Relaxed));
                let Some(piece) = piece else { return Ok(made) };
                let turn = if has_turn() { Ok(None) } else { self.turn(&|| watch.goes_on()).map(Some) };
                let done = turn.map_err(E::from).and_then(|_turn| {
                    watch.check()?;
                    work(&mut made, number, piece)
                });
                if let Err(why) = done {
                    failed.store(true, Ordering::Relaxed);
                    return Err(why);
                }
            }
        };
        let threads = self.queue.threads.min(pieces.len());
        if threads <= 1 {
            return Ok(vec![run()?]);
        }
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
            // A panic is delayed until the other threads have ended, because they need the turn of this thread.
            let own = catch_unwind(AssertUnwindSafe(run));
            failed.fetch_or(own.is_err(), Ordering::Relaxed);
            let join = || others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            let joined = without_turn(&|| watch.goes_on(), || join().collect::<Vec<_>>());
            let own = own.unwrap_or_else(|panic| resume_unwind(panic));
            std::iter::once(own).chain(joined?).collect()
        })
    }

    fn turn(&self, goes_on: &dyn Fn() -> Result<(), EngineError>) -> Result<Turn, EngineError> {
        self.queue.wait(self.asker, goes_on)?;
        HAS.set(Some(Has { workers: self.clone(), since: Instant::now() }));
        Ok(Turn)
    }
}

/// Gives up the turn to others if it has lasted too long. It is called between two steps of any work.
///
/// Fails if the query is stopped meanwhile. The thread has no turn then.
pub(crate) fn let_others(now: Instant, goes_on: &dyn Fn() -> Result<(), EngineError>) -> Result<(), EngineError> {
    let is_due = |has: &Has| has.workers.waiting() > 0 && now.saturating_duration_since(has.since) >= TURN_MAX;
    let Some(has) = HAS.with_borrow_mut(|has| has.take_if(|has| is_due(has))) else { return Ok(()) };
    has.workers.queue.call_next();
    // The caller's guard also covers the new turn.
    has.workers.turn(goes_on).map(std::mem::forget)
}

/// Waits without the turn of this thread, and takes a turn again afterwards.
fn without_turn<T>(goes_on: &dyn Fn() -> Result<(), EngineError>, wait: impl FnOnce() -> T) -> Result<T, EngineError> {
    let Some(has) = HAS.take() else { return Ok(wait()) };
    has.workers.queue.call_next();
    let waited = wait();
    // As in `let_others`.
    has.workers.turn(goes_on).map(std::mem::forget)?;
    Ok(waited)
}

fn has_turn() -> bool {
    HAS.with_borrow(Option::is_some)
}

impl TurnQueue {
    /// Waits for a turn.
    fn wait(&self, asker: Asker, goes_on: &dyn Fn() -> Result<(), EngineError>) -> Result<(), EngineError> {
        let signal = Arc::new(Signal::default());
        {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(());
            }
            state.waiting.push(asker, Arc::clone(&signal));
            self.waiting.store(state.waiting.len(), Ordering::Relaxed);
        }
        loop {
            {
                let mut called = signal.called.lock();
                if !*called {
                    signal.changed.wait_for(&mut called, LOOK_EVERY);
                }
                if *called {
                    return Ok(());
                }
            }
            if let Err(why) = goes_on() {
                self.leave(asker, &signal);
                return Err(why);
            }
        }
    }

    /// Leaves the queue, and passes on a turn that was granted at the same moment.
    fn leave(&self, asker: Asker, signal: &Arc<Signal>) {
        let was_there = {
            let mut state = self.state.lock();
            let was_there = state.waiting.remove(asker, |waiting| Arc::ptr_eq(waiting, signal));
            self.waiting.store(state.waiting.len(), Ordering::Relaxed);
            was_there
        };
        if !was_there {
            self.call_next();
        }
    }

    /// Grants a turn to the next thread.
    fn call_next(&self) {
        let next = {
            let mut state = self.state.lock();
            let next = state.waiting.pop();
            self.waiting.store(state.waiting.len(), Ordering::Relaxed);
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            *next.called.lock() = true;
            next.changed.notify_one();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // The thread has no turn if it gave it up and was stopped before it got another one.
        if let Some(has) = HAS.take() {
            has.workers.queue.call_next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn always() -> Result<(), EngineError> {
        Ok(())
    }

    #[test]
    fn no_more_turns_are_taken_than_there_are_and_who_waits_gets_one() {
        let workers = Workers::new(2);
        let (now, most, all) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _turn = workers.turn(&always).expect("nobody stops it");
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_micros(20));
                        now.fetch_sub(1, Ordering::SeqCst);
                        all.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((most.into_inner(), all.into_inner(), workers.queue.state.lock().free), (2, 400, 2));
    }

    #[test]
    fn each_piece_is_worked_on_once_and_the_first_error_ends_it() {
        let workers = Workers::new(3);
        let watch = Watch::new(Instant::now() + Duration::from_secs(60), 1, &crate::Memory::new(1));
        let mut done = [0; 20];
        let add = |piece: &mut i32| {
            *piece += 1;
            Ok::<_, EngineError>(())
        };
        workers.each_of(&watch, done.iter_mut().collect(), add).expect("no error");
        assert_eq!(done, [1; 20]);
        let fail = |piece: i32| if piece == 3 { Err(EngineError::Groups(3)) } else { Ok(()) };
        let failed = workers.each_of(&watch, (0..20).collect(), fail);
        assert!(matches!(failed, Err(EngineError::Groups(3))));
        assert_eq!(workers.queue.state.lock().free, 3, "all turns are free again");
    }

    /// One asker has many threads with one long unit each. Another one requests one short unit at a time.
    #[test]
    fn a_small_query_has_its_turn_while_another_asker_keeps_all_threads_busy() {
        let workers = Workers::new(1);
        let (heavy, light) = (Asker { org: None, credential: 1 }, Asker { org: None, credential: 2 });
        let done = AtomicBool::new(false);
        let stopped = || if done.load(Ordering::Relaxed) { Err(EngineError::Stopped) } else { Ok(()) };
        let turns = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let _turn = workers.of(heavy).turn(&always).expect("its turn");
                    while stopped().is_ok() {
                        std::thread::sleep(Duration::from_micros(200));
                        turns.fetch_add(1, Ordering::Relaxed);
                        if let_others(Instant::now(), &stopped).is_err() {
                            break;
                        }
                    }
                });
            }
            while workers.waiting() < 5 {
                std::thread::sleep(Duration::from_millis(1));
            }
            for _ in 0..10 {
                let before = turns.load(Ordering::Relaxed);
                drop(workers.of(light).turn(&always).expect("its turn"));
                // One turn of the heavy asker lies in between, not one turn of each of its threads.
                let between = turns.load(Ordering::Relaxed) - before;
                assert!(between <= 3 * 50, "{between} steps of the other asker came first");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!((workers.queue.state.lock().free, workers.waiting()), (1, 0));
    }

    #[test]
    fn a_query_that_is_stopped_leaves_the_line() {
        let workers = Workers::new(1);
        let turn = workers.turn(&always).expect("it is free");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| workers.turn(&|| Err(EngineError::Stopped)).is_err());
            assert!(waits.join().expect("no panic"), "it waits no longer than it may");
        });
        assert_eq!(workers.waiting(), 0);
        drop(turn);
        assert_eq!(workers.queue.state.lock().free, 1);
    }
}
