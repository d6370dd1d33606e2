//! Client threads that share the work: each thread has shards of its own and sends their entries in turn, one at a
//! time.

use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use assay_bench::generate::{EntryStream, GeneratedEntry, Workload};

/// Shards that objects are spread over; object n lies in shard n % SHARDS.
pub const SHARDS: u16 = 16;

/// The endless work of one client.
#[derive(Debug)]
pub struct Lane {
    streams: Vec<(u16, EntryStream)>,
    turn: usize,
}

impl Lane {
    /// Lane `at` of `lanes`: the shards whose number leaves `at` as the remainder.
    pub fn new(workload: &Workload, objects_per_shard: u64, at: usize, lanes: usize) -> Lane {
        let streams = (0..SHARDS)
            .filter(|shard| usize::from(*shard) % lanes == at)
            .map(|shard| (shard, EntryStream::new(workload, &objects_of(shard, objects_per_shard))))
            .collect();
        Lane { streams, turn: 0 }
    }

    pub fn next(&mut self) -> (u16, GeneratedEntry) {
        let at = self.turn % self.streams.len();
        self.turn += 1;
        let (shard, stream) = &mut self.streams[at];
        (*shard, stream.next_entry())
    }

    /// Every object with the rows that were started in it.
    pub fn objects(&self) -> impl Iterator<Item = (u64, u64)> {
        self.streams.iter().flat_map(|(_, stream)| stream.objects()).map(|object| (object.number(), object.rows()))
    }
}

pub fn objects_of(shard: u16, objects_per_shard: u64) -> Vec<u64> {
    (0..objects_per_shard).map(|at| u64::from(shard) + at * u64::from(SHARDS)).collect()
}

pub fn shard_of(object: u64) -> u16 {
    (object % u64::from(SHARDS)) as u16
}

/// Returns the number of lanes: one per thread, but at most one per shard.
pub fn lanes(threads: usize) -> usize {
    threads.clamp(1, usize::from(SHARDS))
}

/// Starts a thread whose CPU time is counted under its name.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<JoinHandle<anyhow::Result<T>>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).with_context(|| format!("starting the thread {name}"))
}

pub fn join<T>(thread: JoinHandle<anyhow::Result<T>>) -> anyhow::Result<T> {
    thread.join().map_err(|_| anyhow!("a thread panicked; its message is above"))?
}
