//! Worker for JavaScript functions on QuickJS, a small engine inside of the program.
//!
//! Code has the globals of ES2023 and a `console`. It has neither imports nor IO: no files, no network, no timers.
//! Handlers are synchronous, or return promises that settle without anything from outside.
//!
//! ```text
//! frames ──▶ worker: one function ──▶ engine: one context for each call ──▶ harness.js: handler, JSON
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `worker` | answers to the frames of the server |
//! | `engine` | evaluation with bounds of memory, stack and time |
//! | `failures` | errors of code and of the engine as frames |
//! | `console` | console output to the standard streams |
//!
//! A context is new for each call, so that nothing passes from one call to the next. The engine stays, unless a call
//! failed. Limits bound mistakes; against errors of the engine itself the process has to be jailed.

mod console;
mod engine;
mod failures;
mod worker;

use std::io::{Read, Write};
use std::rc::Rc;
use std::time::Duration;

use assay_node_runtimes::{ChannelDecoder, ChannelReadError, FromWorker, WorkerReady, encode_frame, read_frame};

use crate::console::{ConsoleSink, StandardStreams};
use crate::worker::QuickJsWorker;

pub use crate::console::CONSOLE_BYTES_MAX;

/// Version of the language, as in the runtime context of a function.
const LANGUAGE_VERSION: &str = "ES2023";

/// Bounds of what a function may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickJsLimits {
    /// Memory of the engine with all values.
    pub memory_bytes: usize,
    /// Stack of the engine, which must be well below that of the thread.
    pub stack_bytes: usize,
    /// Time of a load or a call.
    pub time: Duration,
}

impl Default for QuickJsLimits {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, stack_bytes: 1 << 20, time: Duration::from_secs(900) }
    }
}

/// Serves the frames of `channel` until the server closes it. Console output goes to the standard streams.
pub fn run<C: Read + Write>(channel: C, limits: QuickJsLimits) -> Result<(), ChannelReadError> {
    serve(channel, limits, Rc::new(StandardStreams))
}

fn serve<C: Read + Write>(
    mut channel: C,
    limits: QuickJsLimits,
    console: Rc<dyn ConsoleSink>,
) -> Result<(), ChannelReadError> {
    let ready = WorkerReady { runtime: "quickjs".to_owned(), version: LANGUAGE_VERSION.to_owned() };
    channel.write_all(&encode_frame(&FromWorker::Ready(ready))?)?;
    let mut worker = QuickJsWorker::new(limits, console);
    let mut decoder = ChannelDecoder::default();
    while let Some(frame) = read_frame(&mut channel, &mut decoder)? {
        channel.write_all(&encode_frame(&worker.answer(frame))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
