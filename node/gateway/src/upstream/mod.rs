//! Calls to model servers: requests for candidates, and attempts until one responds.

mod attempts;
mod call_signatures;
mod client_certificate;
mod conversation;
mod credentials;
mod embeddings;
mod key_mask;
mod plan;
mod remote_media;
mod request;
mod server_facts;

pub(crate) use attempts::{ActiveCall, Arrival, CallAdmission, ServerResponse, texts};
pub(crate) use call_signatures::CallSignatures;
pub(crate) use credentials::CredentialSource;
pub(crate) use embeddings::{gemini_to_openai, openai_to_gemini_response};
pub(crate) use key_mask::KeyMask;
pub(crate) use plan::{AttemptPlan, EmbeddingForm, ReplyForm, answer_bound, output_bound};
