//! Value of a slow source, which is fetched when a reader needs it. Concurrent readers share one fetch.
//!
//! No lock is held during a fetch. A reader waits for a fetch only as long as it must:
//!
//! | last value | waits |
//! |---|---|
//! | none, or known to be outdated | until the fetch ends |
//! | old | up to [`CACHED_AFTER`], and then uses the last value |
//! | recent | not at all |

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

/// Age at which a value is fetched again.
const FETCHED_EVERY: Duration = Duration::from_secs(300);
/// Minimum time between two fetches, whatever readers want.
const FETCHED_AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Minimum time between two fetches before the first success.
const FIRST_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Duration of a fetch after which readers use an old value instead of waiting longer.
const CACHED_AFTER: Duration = Duration::from_secs(2);

/// Cached value. Clones share it.
pub(crate) struct Refreshed<T>(Arc<Mutex<RefreshState<T>>>);

struct RefreshState<T> {
    last: Option<FetchedValue<T>>,
    /// Start of the last fetch.
    begun: Option<Instant>,
    /// Error of the last fetch.
    failed: Option<String>,
    running: Option<RunningFetch>,
}

struct FetchedValue<T> {
    value: Arc<T>,
    at: Instant,
}

type RunningFetch = Shared<BoxFuture<'static, ()>>;

impl<T> Clone for Refreshed<T> {
    fn clone(&self) -> Refreshed<T> {
        Refreshed(Arc::clone(&self.0))
    }
}

impl<T> Default for Refreshed<T> {
    fn default() -> Refreshed<T> {
        let state = RefreshState { last: None, begun: None, failed: None, running: None };
        Refreshed(Arc::new(Mutex::new(state)))
    }
}

impl<T: Send + Sync + 'static> Refreshed<T> {
    /// Returns the value, or the error of the last fetch if there is no value.
    ///
    /// `fetch` runs on the runtime if a fetch is due, and must have a time limit of its own. `is_outdated` tells that
    /// the last value no longer fits.
    pub async fn read<F>(
        &self,
        is_outdated: bool,
        runtime: &Handle,
        fetch: impl FnOnce() -> F,
    ) -> Result<Arc<T>, String>
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        match self.fetch(is_outdated, runtime, fetch) {
            Some((running, Some(until))) => drop(timeout_at(until, running).await),
            Some((running, None)) => running.await,
            None => {}
        }
        let state = self.0.lock();
        let failed = || state.failed.clone().unwrap_or_default();
        state.last.as_ref().map(|last| Arc::clone(&last.value)).ok_or_else(failed)
    }

    /// Returns the running fetch, which is started if it is due, and the end of the wait for it.
    fn fetch<F>(
        &self,
        is_outdated: bool,
        runtime: &Handle,
        fetch: impl FnOnce() -> F,
    ) -> Option<(RunningFetch, Option<Instant>)>
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        let mut state = self.0.lock();
        let RefreshState { last, begun, failed, running } = &mut *state;
        let is_recent = |last: &FetchedValue<T>| failed.is_none() && last.at.elapsed() < FETCHED_EVERY;
        if !is_outdated && last.as_ref().is_some_and(is_recent) {
            return None;
        }
        let until = |begun: Instant| (last.is_some() && !is_outdated).then(|| begun + CACHED_AFTER);
        // A fetch that panicked has ended without a trace in the state.
        if let (Some(running), Some(begun)) = (running.as_ref().filter(|running| running.peek().is_none()), *begun) {
            return Some((running.clone(), until(begun)));
        }
        let again = if last.is_some() { FETCHED_AGAIN_AFTER } else { FIRST_AGAIN_AFTER };
        if begun.is_some_and(|begun| begun.elapsed() < again) {
            return None;
        }
        let now = Instant::now();
        let (fetched, kept) = (fetch(), self.clone());
        let task = runtime.spawn(async move { kept.keep(fetched.await) });
        let started = task.map(drop).boxed().shared();
        (*begun, *running) = (Some(now), Some(started.clone()));
        Some((started, until(now)))
    }

    /// Keeps the result of a fetch.
    fn keep(&self, fetched: Result<T, String>) {
        let mut state = self.0.lock();
        state.running = None;
        match fetched {
            Ok(value) => {
                state.last = Some(FetchedValue { value: Arc::new(value), at: Instant::now() });
                state.failed = None;
            }
            Err(why) => state.failed = Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::time::{advance, sleep};

    use super::*;

    /// Source that responds after a while with the number of the fetch, or fails.
    #[derive(Default)]
    struct Source {
        kept: Refreshed<usize>,
        fetches: Arc<AtomicUsize>,
    }

    impl Source {
        async fn read(&self, is_outdated: bool, seconds: u64, is_silent: bool) -> Result<usize, String> {
            let fetches = Arc::clone(&self.fetches);
            let fetch = || async move {
                let number = fetches.fetch_add(1, Ordering::Relaxed) + 1;
                sleep(Duration::from_secs(seconds)).await;
                if is_silent { Err("no response".to_owned()) } else { Ok(number) }
            };
            self.kept.read(is_outdated, &Handle::current(), fetch).await.map(|value| *value)
        }

        fn fetches(&self) -> usize {
            self.fetches.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_readers_share_one_fetch() {
        let (source, began) = (Source::default(), Instant::now());
        let read = join_all((0..8).map(|_| source.read(false, 10, false))).await;
        assert!(read.iter().all(|value| *value == Ok(1)), "{read:?}");
        assert_eq!((source.fetches(), began.elapsed()), (1, Duration::from_secs(10)));
        assert_eq!(source.read(false, 10, false).await, Ok(1));
        assert_eq!(
            (source.fetches(), began.elapsed()),
            (1, Duration::from_secs(10)),
            "a recent value is there at once"
        );
    }

    /// Logins queued behind the fetch, each with the whole time limit.
    #[tokio::test(start_paused = true)]
    async fn readers_of_an_old_value_do_not_wait_for_a_silent_source() {
        let source = Source::default();
        assert_eq!(source.read(false, 1, false).await, Ok(1));
        advance(FETCHED_EVERY).await;
        let began = Instant::now();
        let outdated = source.read(true, 25, true);
        let cached = async {
            let read = join_all((0..8).map(|_| source.read(false, 25, true))).await;
            assert!(read.iter().all(|value| *value == Ok(1)), "{read:?}");
            assert_eq!(began.elapsed(), CACHED_AFTER);
            assert_eq!(source.read(false, 25, true).await, Ok(1));
            assert_eq!(began.elapsed(), CACHED_AFTER, "the fetch has had its time");
        };
        let (outdated, ()) = tokio::join!(outdated, cached);
        assert_eq!((outdated, began.elapsed(), source.fetches()), (Ok(1), Duration::from_secs(25), 2));
        advance(FETCHED_AGAIN_AFTER).await;
        assert_eq!(source.read(true, 1, false).await, Ok(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_fails_is_asked_again_after_a_while() {
        let source = Source::default();
        assert_eq!(source.read(false, 1, true).await, Err("no response".into()));
        assert_eq!(source.read(false, 1, false).await, Err("no response".into()));
        assert_eq!(source.fetches(), 1);
        advance(FIRST_AGAIN_AFTER).await;
        assert_eq!(source.read(false, 1, false).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_goes_on_without_the_reader_that_began_it() {
        let source = Source::default();
        tokio::select! {
            read = source.read(false, 10, false) => panic!("{read:?}"),
            () = sleep(Duration::from_secs(3)) => {}
        }
        let began = Instant::now();
        assert_eq!(source.read(false, 10, false).await, Ok(1));
        assert_eq!((source.fetches(), began.elapsed()), (1, Duration::from_secs(7)));
    }
}
