//! Guardrails of a project for the gateway, a member of its settings.

use assay_node_guardrails::{
    Detector, GuardrailPolicy, MODEL_BYTES_MAX, MODELS_MAX, NAME_BYTES_MAX, PATTERN_TEXT_BYTES_MAX,
    REPLACEMENT_BYTES_MAX, RULES_MAX,
};
use assay_node_shapes::{Member, Shape};

use crate::error::RecordsError;
use crate::kind::Checked;

/// Number of stages of a call: before it is sent, and before it is logged.
const STAGES_MAX: usize = 2;

pub(super) const GATEWAY_GUARDRAILS: Shape = Shape::Closed(&[
    Member::optional("allowed_models", Shape::Texts { items_max: MODELS_MAX, bytes_max: MODEL_BYTES_MAX }),
    Member::optional("max_output_tokens", OUTPUT_TOKENS),
    Member::optional("rules", Shape::List { of: &RULE, items_max: RULES_MAX }),
]);

const OUTPUT_TOKENS: Shape = Shape::Closed(&[
    Member::required("limit", Shape::Whole { min: 1, max: i64::MAX }),
    Member::optional("action", Shape::Word(&["cap", "refuse"])),
]);

const RULE: Shape = Shape::Closed(&[
    Member::required("name", Shape::Text { bytes_min: 1, bytes_max: NAME_BYTES_MAX }),
    Member::optional("detector", Shape::Word(&Detector::NAMES)),
    Member::optional("pattern", Shape::Text { bytes_min: 1, bytes_max: PATTERN_TEXT_BYTES_MAX }),
    Member::optional("case_insensitive", Shape::Bool),
    Member::optional("apply_to", Shape::List { of: &Shape::Word(&["request", "log"]), items_max: STAGES_MAX }),
    Member::required("action", Shape::Word(&["block", "mask", "report"])),
    Member::optional("replacement", Shape::Text { bytes_min: 0, bytes_max: REPLACEMENT_BYTES_MAX }),
]);

/// Refuses guardrails that cannot be applied, such as those with an invalid pattern.
pub(super) fn check_project(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let Some(stored) = checked.body.get("settings").and_then(|settings| settings.get("gateway_guardrails")) else {
        return Ok(());
    };
    let before = checked.before.and_then(|before| before.get("settings")?.get("gateway_guardrails"));
    if before == Some(stored) {
        return Ok(());
    }
    let parsed = GuardrailPolicy::parse(stored).map(drop);
    parsed.map_err(|error| {
        let path = if error.path.is_empty() { String::new() } else { format!(".{}", error.path) };
        RecordsError::BadRequest(format!("`settings.gateway_guardrails{path}`: {}", error.problem))
    })
}
