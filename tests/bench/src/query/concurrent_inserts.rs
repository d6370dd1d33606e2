//! Inserts that run during queries: into a project of their own, so that the queried rows do not change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::assay::{Inserted, insert};
use super::event_feed::Feed;
use crate::client_threads::{join, spawn};
use crate::http::client::Target;
use crate::http::client_runtime;

/// A feed limited to a rate of bytes a second, until it is stopped.
struct Paced<F> {
    feed: F,
    bytes_per_second: f64,
    ended: Arc<AtomicBool>,
    began: Instant,
    bytes: u64,
}

impl<F: Feed> Feed for Paced<F> {
    fn next(&mut self, out: &mut Vec<u8>) -> Option<String> {
        let due = self.began + Duration::from_secs_f64(self.bytes as f64 / self.bytes_per_second);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if self.ended.load(Ordering::Relaxed) {
            return None;
        }
        let before = out.len();
        let id = self.feed.next(out)?;
        self.bytes += (out.len() - before) as u64;
        Some(id)
    }
}

#[derive(Debug)]
pub struct ConcurrentInserts {
    ended: Arc<AtomicBool>,
    began: Instant,
    inserting: JoinHandle<anyhow::Result<u64>>,
}

impl ConcurrentInserts {
    /// Begins to insert into an object.
    pub fn start<F: Feed + Send + 'static>(
        target: &Target,
        object: &str,
        feed: F,
        bytes_per_second: f64,
    ) -> anyhow::Result<ConcurrentInserts> {
        let (ended, began) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let paced = Paced { feed, bytes_per_second, ended: Arc::clone(&ended), began, bytes: 0 };
        let (target, path) = (target.clone(), format!("/v1/project_logs/{object}/insert"));
        let inserting = spawn("bench-beside", move || {
            let Inserted { bytes, .. } = insert(&client_runtime()?, &target, &path, paced)?;
            Ok(bytes)
        })?;
        Ok(ConcurrentInserts { ended, began, inserting })
    }

    /// Returns the bytes of rows taken per second, once it has ended.
    pub fn end(self) -> anyhow::Result<f64> {
        self.ended.store(true, Ordering::Relaxed);
        let bytes = join(self.inserting)?;
        Ok(bytes as f64 / self.began.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Endless;

    impl Feed for Endless {
        fn next(&mut self, out: &mut Vec<u8>) -> Option<String> {
            out.extend_from_slice(&[b'1'; 1000]);
            Some("id".to_owned())
        }
    }

    #[test]
    fn a_pace_is_kept_and_an_end_ends_it() {
        let ended = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let mut paced = Paced { feed: Endless, bytes_per_second: 1e5, ended: Arc::clone(&ended), began, bytes: 0 };
        let mut out = Vec::new();
        while out.len() < 20_000 {
            assert!(paced.next(&mut out).is_some());
        }
        assert!(began.elapsed() >= Duration::from_millis(190), "the last of them waited for the others' time");
        ended.store(true, Ordering::Relaxed);
        assert!(paced.next(&mut out).is_none());
        assert_eq!(out.len(), 20_000);
    }
}
