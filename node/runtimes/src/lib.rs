//! Runtimes of code functions: the programs that run user code, and the frames that they exchange with the server.
//!
//! A worker is one process of an interpreter. It loads one function, and then serves one call at a time.
//!
//! ```text
//! server ── load ──▶ worker        ready, once the interpreter has started
//!        ── call ──▶               loaded | error
//!        ── list ──▶               progress*, then result | error
//!                                  listed | error
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `frames` | typed frames of both directions |
//! | `codec` | bytes of a frame: encoding, an incremental decoder, and a blocking reader |
//! | `programs` | files of the runtimes, and how each interpreter is started with them |
//!
//! The channel is a stream socket in blocking mode, at the descriptor that [`CHANNEL_VARIABLE`] names in the worker.
//! Standard output and error are the console of the function, and carry no frames.
//!
//! A worker holds no secrets of the server, but user code shares its process. So the server must check what it receives:
//! user code can write any frame to the channel.

mod codec;
mod frames;
mod programs;

pub use codec::{ChannelDecoder, ChannelFrame, ChannelReadError, FrameCodecError, encode_frame, read_frame};
pub use codec::{
    FRAME_HEADER_BYTES, FROM_WORKER_BYTES_MAX, FROM_WORKER_DEPTH_MAX, FROM_WORKER_VALUES_MAX, FrameShape,
    TO_WORKER_BYTES_MAX,
};
pub use frames::{BundleList, FromWorker, LoadedFunction};
pub use frames::{
    BundleLocation, CallForm, CallOutput, CodeSource, FunctionCall, FunctionLoad, ListedEvaluator, ListedEvaluators,
    NamedScorer, SourceLanguage, TaskHooks, TaskNotes, TaskProgress, ToWorker, WorkerFailure, WorkerReady, WorkerTrace,
};
pub use programs::{
    CHANNEL_FD, CHANNEL_VARIABLE, NODE_MODULES_VARIABLE, RUNTIME_FILES, RuntimeFile, RuntimeKind, STREAMS_VARIABLE,
    TUNNEL_VARIABLE, WORKER_COMMAND,
};

/// Upper bound of the encoded value that a call answers.
pub const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;
