//! Runner of code functions: sandboxed workers, kept warm for one principal and one function each.
//!
//! ```text
//! CodeCall ── admission (fair slots) ── pool (warm worker of the same key?) ──▶ worker ──▶ CodeOutcome
//!                                                 │ no: sandbox + interpreter + load      ├─▶ console, progress
//!                                                 ▼                                       └─▶ tunnel ──▶ TunnelDialer
//! ```
//! | module | contents |
//! |---|---|
//! | [`settings`] | settings of functions |
//! | [`offer`] | what a runner can run, for other nodes |
//! | [`interpreters`] | interpreters of this machine, and the choice of one |
//! | [`admission`] | slots of running calls, shared between organizations |
//! | [`pool`] | idle workers, and which one leaves |
//! | `place` | directory of a runner, and what users of sandboxes reach |
//! | [`worker`] | one sandboxed process: start, load, call |
//! | `watch` | limits of a running call |
//! | [`credentials`] | secret of a worker, which acts for the call that runs |
//! | [`console`] | output of a function while it runs |
//! | [`tunnel`] | network connections of a function |
//! | [`runner`] | the service of all of these |
//! | [`host`] | what a server has for code functions |
//!
//! The crate calls no network itself and knows neither functions nor records.

pub mod admission;
pub mod console;
pub mod credentials;
mod error;
pub mod host;
pub mod interpreters;
pub mod offer;
mod place;
pub mod pool;
pub mod runner;
pub mod settings;
pub mod tunnel;
mod watch;
pub mod worker;

pub use assay_node_bundles as bundles;
pub use assay_node_runtimes as runtimes;
pub use assay_node_sandbox as sandbox;
pub use assay_node_sandbox::{CodeSetting, STAGE_COMMAND, SandboxStrength, run_stage};

pub use admission::{FUNCTION_SLOTS, FunctionSlot};
pub use console::{CodeEvent, ConsoleStream};
pub use credentials::{CallRights, SecretLoan, WorkerSecret};
pub use error::{CodeError, FunctionFailure};
pub use host::{CodeHost, OwnAddress};
pub use offer::{OfferedInterpreter, RunnerOffer};
pub use runner::{CodeCall, CodeOutcome, CodeRunner, CodeUnit, RunnerParts, RunnerReading, RunnerReport, WorkerOwner};
pub use settings::{FunctionNetwork, FunctionSettings};
pub use tunnel::{TunnelDialer, TunnelRefusal, TunnelStream, TunnelTarget};
