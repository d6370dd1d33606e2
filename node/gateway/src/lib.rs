//! The AI gateway: requests of clients in the wire format of one model API, served by servers that may speak another.
//!
//! ```text
//! ModelCall -> candidates -> attempts (plan, credentials, outbound client) -> response, translated or passed -> ModelReply
//!                                                                               └-> outcome: span, budgets, metrics
//! ```
//! | module | subject |
//! |---|---|
//! | [`paths`] | which endpoint a path is for |
//! | [`endpoint`], [`call`] | what clients call, and with what |
//! | [`gateway`] | the calls themselves |
//! | `conversation` | calls by this node itself, whose answers are read |
//! | `kept_items` | items of answers that later requests only name |
//! | [`translation`] | requests, responses and streams between any two wire formats |
//! | [`reply`] | responses to clients |
//! | [`outcome`] | what came of a call |
//! | [`span`], [`span_media`] | the span of a call, as a row |
//! | [`settings`] | the table `gateway` of the configuration |
//!
//! The crate knows neither HTTP servers nor records: routes hand in the caller, the providers and access to their keys.

mod background;
mod budgeting;
mod cached;
pub mod call;
mod conversation;
pub mod endpoint;
pub mod error;
pub mod gateway;
mod kept_items;
pub mod outcome;
pub mod paths;
pub mod reply;
pub mod settings;
pub mod span;
pub mod span_media;
pub mod translation;
mod upstream;

pub use call::{CallBody, CallOwner, CallTarget, ModelCall, ProviderKeys, read_target};
pub use conversation::Conversation;
pub use endpoint::{ClientEndpoint, GeminiVerb};
pub use error::GatewayError;
pub use gateway::{CoolingListener, Gateway, GatewayParts};
pub use outcome::{CallAnswer, CallObserver, CallOutcome, TakenRoute};
pub use reply::{ModelReply, ReplyBody, ReplyStream, StreamCut};
pub use settings::GatewaySettings;
