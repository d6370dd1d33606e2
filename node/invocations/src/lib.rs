//! Invocations of functions: prompts with tools and judges, global functions, threads of traces (functions.md 2 to 7).
//!
//! ```text
//! InvokeRequest ── FunctionSource ──▶ InvokedFunction ── Invoker ──▶ value of the function
//!                                                          ├─▶ ModelCaller, CodeCaller, ToolServers, TraceSource
//!                                                          ├─▶ SpanSink: a span for each function, tool and model call
//!                                                          └─▶ EventOutput: events of a streamed invocation
//! ```
//! The crate depends neither on HTTP nor on storage nor on the gateway, but on the traits in [`services`].

mod answers;
mod code;
mod error;
mod events;
mod facets;
mod function;
mod globals;
mod invoker;
mod judges;
mod log;
mod prompts;
mod request;
pub mod services;
mod threads;
mod tools;
mod usage;

#[cfg(test)]
mod tests;

pub use error::{CodeFailure, InvokeError, InvokeErrorKind};
pub use events::{EVENTS_WAITING_MAX, EventOutput, InvokeEvent, PING, ProgressFrame};
pub use function::{FunctionKind, InvokedFunction};
pub use invoker::{InvokeCall, InvokeOutcome, Invoker};
pub use log::LogScope;
pub use request::{
    FunctionReference, FunctionVersion, InlineFunction, InvokeArguments, InvokeRequest, TaskArguments, is_invocation,
};
pub use threads::{THREAD_MESSAGES_MAX, thread_of_spans};
pub use usage::InvokeUsage;
