//! Threads that share out the units of a scan. A node has so many turns as it has cores; whoever waited longest for one
//! has the next, for one unit: a small question is answered between two units of a large one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::EngineError;
use crate::select::Scene;
use crate::source::Piece;

/// Cheap to clone: all clones hand out the same turns.
#[derive(Clone, Debug)]
pub struct Workers(Arc<Line>);

#[derive(Debug)]
struct Line {
    threads: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    waiting: VecDeque<Arc<Signal>>,
}

#[derive(Debug, Default)]
struct Signal {
    called: Mutex<bool>,
    changed: Condvar,
}

/// Given back when it is dropped.
struct Turn<'w>(&'w Line);

impl Workers {
    /// At most so many units are worked on at once, by all queries together.
    pub fn new(threads: usize) -> Workers {
        let threads = threads.max(1);
        Workers(Arc::new(Line { threads, state: Mutex::new(State { free: threads, waiting: VecDeque::new() }) }))
    }

    fn turn(&self) -> Turn<'_> {
        let mut state = self.0.state.lock();
        if state.free > 0 {
            state.free -= 1;
            return Turn(&self.0);
        }
        let signal = Arc::new(Signal::default());
        state.waiting.push_back(Arc::clone(&signal));
        drop(state);
        let mut called = signal.called.lock();
        while !*called {
            signal.changed.wait(&mut called);
        }
        Turn(&self.0)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        match state.waiting.pop_front() {
            Some(next) => {
                *next.called.lock() = true;
                next.changed.notify_one();
            }
            None => state.free += 1,
        }
    }
}

/// Works on every piece, in their order as far as several threads have one; answers what each thread made. The first
/// failure ends it.
pub(crate) fn each<T: Send>(
    scene: &Scene<'_>,
    pieces: &[Piece],
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, usize, &Piece) -> Result<(), EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let workers = &scene.shared.workers;
    let run = || {
        let mut made = start();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(number).filter(|_| !failed.load(Ordering::Relaxed)) else { return Ok(made) };
            let _turn = workers.turn();
            let done = scene.watch.check().and_then(|()| work(&mut made, number, piece));
            if let Err(why) = done {
                failed.store(true, Ordering::Relaxed);
                return Err(why);
            }
        }
    };
    let threads = workers.0.threads.min(pieces.len());
    if threads <= 1 {
        return Ok(vec![run()?]);
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut made = vec![run()];
        for other in others {
            made.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_turns_are_taken_than_there_are_and_who_waits_gets_one() {
        let workers = Workers::new(2);
        let (now, most, all) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _turn = workers.turn();
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_micros(20));
                        now.fetch_sub(1, Ordering::SeqCst);
                        all.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((most.into_inner(), all.into_inner(), workers.0.state.lock().free), (2, 400, 2));
    }
}
