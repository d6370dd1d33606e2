//! AI gateway, which serves requests in the wire format of any model API from servers that may use another format.
//!
//! ```text
//! ModelCall -> candidates -> attempts (plan, credentials, outbound client) -> response, translated or passed -> ModelReply
//!                                                                               └-> outcome: span, budgets, metrics
//! ```
//! | module | subject |
//! |---|---|
//! | [`paths`] | mapping of paths to endpoints |
//! | [`endpoint`], [`call`] | endpoints and their calls |
//! | [`gateway`] | processing of calls |
//! | `conversation` | calls by this node itself, whose responses are read |
//! | `form` | multipart forms, such as those with audio files |
//! | `kept_items` | items of responses to which later requests refer |
//! | [`translation`] | requests, responses and streams between any two wire formats |
//! | [`reply`] | responses to clients |
//! | [`outcome`] | outcomes of calls |
//! | [`span`], [`span_media`] | rows for the spans of calls |
//! | [`settings`] | the table `gateway` of the configuration |
//!
//! The crate depends neither on the HTTP server nor on records. Routes pass in the caller, the providers, and access to
//! their keys.

mod background;
mod budgeting;
mod cached;
pub mod call;
mod conversation;
pub mod endpoint;
pub mod error;
mod form;
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

pub use call::{BodyReservation, CallBody, CallOwner, CallTarget, ModelCall, ProviderKeys, read_target};
pub use conversation::Conversation;
pub use endpoint::{ClientEndpoint, GeminiVerb};
pub use error::GatewayError;
pub use gateway::{CoolingListener, Gateway, GatewayParts};
pub use outcome::{CallAnswer, CallObserver, CallOutcome, TakenRoute};
pub use reply::{ModelReply, ReplyBody, ReplyStream, StreamCut};
pub use settings::GatewaySettings;
