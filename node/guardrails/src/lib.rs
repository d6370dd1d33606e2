//! Guardrails of a project for calls of models (G-36): allowed models, output tokens, and rules for texts.
//!
//! Rules find personal data, secrets or patterns of a project. They are applied before a request is sent, and before it
//! is logged.
//!
//! ```text
//! stored JSON ── GuardrailPolicy::parse ──▶ GuardrailPolicy
//! request ──▶ check_model ──▶ cap_tokens ──▶ apply_to_json(Request) ──▶ provider
//!                                            apply_to_json(Log) ──▶ spans
//! ```
//! Answers go to clients as they are; what is logged of a stream is masked when it is whole.
//! The crate is pure. Its work is linear in the texts, and nothing is allocated while no rule finds anything.
//!
//! The stored form:
//!
//! ```json
//! {
//!   "allowed_models": ["gpt-4o*", "claude-*"],
//!   "max_output_tokens": {"limit": 4096, "action": "cap"},
//!   "rules": [
//!     {"name": "keys", "detector": "api_key", "action": "block"},
//!     {"name": "mail", "detector": "email", "apply_to": ["log"], "action": "mask"},
//!     {"name": "tickets", "pattern": "TICKET-[0-9]+", "action": "mask", "replacement": "[TICKET]"}
//!   ]
//! }
//! ```
//! All members are optional, and null counts as absent. `*` in a model stands for any characters, `?` for one. The action
//! of `max_output_tokens` is `cap` or `refuse`. A rule has a `detector` or a `pattern`, which may have
//! `case_insensitive`. `apply_to` is a list of `request` and `log`, both if absent. The action of a rule is `block`, `mask`
//! or `report`.

mod apply;
mod detectors;
mod error;
mod glob;
mod json;
mod json_text;
mod parse;
mod pattern;
mod policy;
mod report;

pub use detectors::Detector;
pub use error::{GuardrailError, GuardrailRefusal};
pub use json::{JSON_DEPTH_MAX, TEXT_BYTES_MAX};
pub use json_text::NESTED_TEXTS_MAX;
pub use parse::{
    MODEL_BYTES_MAX, MODELS_MAX, NAME_BYTES_MAX, PATTERN_TEXT_BYTES_MAX, REPLACEMENT_BYTES_MAX, RULES_MAX,
};
pub use pattern::{COMPILED_BYTES_MAX, MATCHES_MAX, SURE_MATCH_BYTES_MAX};
pub use policy::{GuardrailAction, GuardrailPolicy, GuardrailStage, TokenAction, TokenDecision};
pub use report::{GuardrailReport, RuleMatches};
