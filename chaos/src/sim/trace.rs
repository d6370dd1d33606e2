//! Trace of a simulation, line by line: two runs of one seed must produce the same one.

use std::fmt::Arguments;
use std::hash::{DefaultHasher, Hasher};

use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Debug)]
pub struct Trace {
    began: Instant,
    state: Mutex<TraceState>,
}

#[derive(Debug)]
struct TraceState {
    hasher: DefaultHasher,
    /// None where only the digest is wanted.
    lines: Option<Vec<String>>,
}

impl Trace {
    pub fn new(keep: bool) -> Trace {
        let state = TraceState { hasher: DefaultHasher::new(), lines: keep.then(Vec::new) };
        Trace { began: Instant::now(), state: Mutex::new(state) }
    }

    pub fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub fn say(&self, what: Arguments<'_>) {
        let line = format!("{:>10} {what}\n", self.micros());
        let mut state = self.state.lock();
        state.hasher.write(line.as_bytes());
        if let Some(lines) = &mut state.lines {
            lines.push(line);
        }
    }

    pub fn digest(&self) -> u64 {
        self.state.lock().hasher.finish()
    }

    pub fn text(&self) -> String {
        self.state.lock().lines.as_ref().map(|lines| lines.concat()).unwrap_or_default()
    }
}
