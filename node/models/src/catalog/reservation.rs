//! Amounts that a budget reserves before a call (G-34).

use super::{ModelFlavor, ModelPrice, ModelSpec};

/// Number of reserved output tokens if neither the call nor the model limits them.
pub const OUTPUT_TOKENS_DEFAULT: u64 = 4096;
/// Upper bound of the reserved output tokens.
pub const OUTPUT_TOKENS_MAX: u64 = 200_000;
/// Average size of a token in bytes (G-33).
const TOKEN_BYTES: u64 = 4;
const MILLION: f64 = 1e6;

/// Upper estimate of the usage of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallReservation {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Cost, or `None` without a price. A budget in USD rejects such a call unless it allows unpriced models.
    pub usd: Option<f64>,
}

/// Estimates the tokens of a text from its size.
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(TOKEN_BYTES)
}

/// Returns the reservation for a call: its estimated input, and its maximum output.
///
/// `max_tokens` is the limit sent to the upstream, and `choices` is `n` of the request.
pub fn reserve(
    spec: Option<&ModelSpec>,
    price: Option<&ModelPrice>,
    input_tokens: u64,
    max_tokens: Option<u64>,
    choices: u64,
) -> CallReservation {
    let model_max = spec.and_then(|spec| spec.max_output_tokens);
    let wanted = max_tokens.or(model_max.map(|max| max.min(OUTPUT_TOKENS_DEFAULT))).unwrap_or(OUTPUT_TOKENS_DEFAULT);
    let of_choice = wanted.min(model_max.unwrap_or(OUTPUT_TOKENS_MAX));
    let output_tokens = match spec.map(|spec| spec.flavor) {
        Some(ModelFlavor::Embedding) => 0,
        _ => of_choice.saturating_mul(choices.max(1)).min(OUTPUT_TOKENS_MAX),
    };
    let usd = price
        .map(|price| (input_tokens as f64 * price.input_at_most() + output_tokens as f64 * price.output) / MILLION);
    CallReservation { input_tokens, output_tokens, usd }
}
