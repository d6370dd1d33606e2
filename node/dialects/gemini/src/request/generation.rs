//! Settings of generation.

use serde_json::{Map, Value, json};

use super::{UnsentNames, output, thinking};
use crate::fields::GeminiFields;
use assay_node_dialects::form::ModelRequest;
use assay_node_dialects::{DialectError, WriteOptions};

/// Upper bound of stop sequences; the servers take fewer.
const STOP_SEQUENCES_MAX: usize = 1_024;

pub(super) fn read_generation(body: &mut GeminiFields, request: &mut ModelRequest) -> Result<(), DialectError> {
    let Some(mut settings) = body.object("generationConfig")? else { return Ok(()) };
    let sampling = &mut request.sampling;
    sampling.temperature = settings.number("temperature")?;
    sampling.top_p = settings.number("topP")?;
    sampling.top_k = settings.number("topK")?;
    sampling.frequency_penalty = settings.number("frequencyPenalty")?;
    sampling.presence_penalty = settings.number("presencePenalty")?;
    sampling.seed = settings.number("seed")?;
    sampling.choices = settings.count("candidateCount")?;
    sampling.logprobs = settings.flag("responseLogprobs")?;
    sampling.top_logprobs = settings.count("logprobs")?;
    request.max_output_tokens = settings.count("maxOutputTokens")?;
    request.stop = settings.texts("stopSequences", STOP_SEQUENCES_MAX)?;
    request.output_format = output::read_format(&mut settings)?;
    request.reasoning = thinking::read_thinking(&mut settings)?;
    settings.rest_into(body, "generationConfig");
    Ok(())
}

pub(super) fn write_generation(
    request: &ModelRequest,
    options: &WriteOptions,
    dropped: &mut UnsentNames,
) -> Result<Map<String, Value>, DialectError> {
    let sampling = &request.sampling;
    let count = |count: Option<u64>| count.map(|count| json!(count));
    let seed = sampling.seed.clone().filter(is_seed);
    dropped.add_if(seed.is_none() && sampling.seed.is_some(), "seed");
    dropped.add_if(sampling.logit_bias.is_some(), "logit_bias");
    let fields = [
        ("temperature", sampling.temperature.clone()),
        ("topP", sampling.top_p.clone()),
        ("topK", sampling.top_k.clone()),
        ("candidateCount", count(sampling.choices)),
        ("maxOutputTokens", count(request.max_output_tokens)),
        ("stopSequences", (!request.stop.is_empty()).then(|| json!(request.stop))),
        ("presencePenalty", sampling.presence_penalty.clone()),
        ("frequencyPenalty", sampling.frequency_penalty.clone()),
        ("seed", seed),
        ("responseLogprobs", sampling.logprobs.map(Value::Bool)),
        ("logprobs", count(sampling.top_logprobs)),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut settings: Map<String, Value> = set.collect();
    if let Some(format) = &request.output_format {
        output::write_format(format, options, dropped, &mut settings)?;
    }
    if let Some(reasoning) = &request.reasoning
        && let Some(thinking) = thinking::write_thinking(reasoning, options, dropped)
    {
        settings.insert("thinkingConfig".to_owned(), Value::Object(thinking));
    }
    Ok(settings)
}

/// Whether a seed has 32 bits; servers refuse longer ones.
fn is_seed(seed: &Value) -> bool {
    seed.as_f64().is_some_and(|seed| seed >= f64::from(i32::MIN) && seed <= f64::from(i32::MAX))
}
