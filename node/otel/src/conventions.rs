//! Naming conventions of instrumentation libraries, one file for each, in order of precedence.

mod braintrust;
mod gen_ai;
mod langfuse;
mod openinference;
mod traceloop;
mod vercel;

use crate::attributes::Attributes;
use crate::draft::{Convention, Draft};
use crate::events::Messages;

pub(crate) use braintrust::{PARENT, PRESERVE};
pub(crate) use gen_ai::{EVALUATION_EVENT, content_of_event, message_of_event, moves_to_span};
pub use langfuse::{total_cost, usage_metrics};

/// Conventions in order of precedence, for each field. Attributes made for these rows come first, then the common
/// conventions, then those of single libraries. Messages in events come between the first two.
static BEFORE_EVENTS: Convention = braintrust::CONVENTION;
static AFTER_EVENTS: [Convention; 5] =
    [gen_ai::CONVENTION, openinference::CONVENTION, traceloop::CONVENTION, vercel::CONVENTION, langfuse::CONVENTION];

/// Fills the draft. Unused attributes and messages stay in the arguments.
pub(crate) fn fill(attributes: &mut Attributes, messages: &mut Messages, draft: &mut Draft) {
    let spoken: Vec<&Convention> = AFTER_EVENTS.iter().filter(|one| one.is_of(attributes)).collect();
    // The type is determined before attributes are taken. An explicit type precedes the signs of model calls.
    let named = spoken.iter().find_map(|one| (one.span_type)(attributes));
    let is_call = || spoken.iter().any(|one| one.has_model_call(attributes)) || messages.are_there();
    draft.span_type = named.or_else(|| is_call().then_some("llm"));
    if BEFORE_EVENTS.is_of(attributes) {
        BEFORE_EVENTS.fill(attributes, draft);
    }
    messages.fill(draft);
    for convention in spoken {
        convention.fill(attributes, draft);
    }
    draft.add_up_tokens();
}

/// Returns the entry of a table of kinds.
fn kind_of(kinds: &[(&'static str, &'static str)], named: &str) -> Option<&'static str> {
    kinds.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(named)).map(|(_, span_type)| *span_type)
}
