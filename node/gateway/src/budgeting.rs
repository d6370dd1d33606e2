//! Costs of calls for budgets: the reservation before a call, and the amounts after it.

use std::time::Duration;

use assay_node_budgets::{BudgetAmounts, BudgetCall, nano_usd, nano_usd_up};
use assay_node_dialects::form::TokenUsage;
use assay_node_models::catalog::{CallReservation, Catalog, ModelPrice, ModelSpec, estimate_tokens, reserve};
use assay_node_models::resolution::Candidate;
use assay_storage_model::OrgId;
use serde_json::{Map, Value};

use crate::call::{CallBody, ModelCall};
use crate::outcome::CallOutcome;
use crate::upstream::{answer_bound, output_bound};

/// Members of requests that hold media in base64 or as a data URL, in any wire format.
const MEDIA_MEMBERS: [&str; 6] = ["data", "file_data", "image_url", "video_url", "url", "result"];

/// Returns the reservation of a call: the highest cost among its candidates.
///
/// A call that is not settled within `timeout` releases its reservation.
pub(crate) fn budget_call(
    catalog: &Catalog,
    call: &ModelCall,
    candidates: &[Candidate],
    (now_ms, timeout): (u64, Duration),
) -> BudgetCall {
    let reservations = candidates.iter().map(|candidate| {
        let custom = candidate.spec.as_deref().filter(|_| candidate.is_custom);
        let price = catalog.call_price(custom, candidate.upstream_model(), now_ms);
        reserved(call, candidate, price.as_ref())
    });
    let reservations: Vec<_> = reservations.collect();
    let tokens = reservations.iter().map(|one| one.input_tokens.saturating_add(one.output_tokens)).max();
    let usd = reservations.iter().map(|one| one.usd).collect::<Option<Vec<f64>>>();
    let owner = &call.owner;
    BudgetCall {
        org: OrgId(owner.organization),
        project: owner.project,
        user: (!owner.is_service_account).then_some(owner.principal),
        service_account: owner.is_service_account.then_some(owner.principal),
        api_key: owner.credential,
        temporary: owner.temporary,
        model: call.model.clone(),
        estimate_nano_usd: usd.map(|all| nano_usd_up(all.into_iter().fold(0.0, f64::max))),
        estimate_tokens: tokens.unwrap_or(0),
        timeout,
    }
}

/// Returns the reservation of a call for one candidate.
fn reserved(call: &ModelCall, candidate: &Candidate, price: Option<&ModelPrice>) -> CallReservation {
    let body = call.body.json();
    let input_tokens = estimate_tokens(call.body.bytes().len() as u64);
    let max_tokens = if call.endpoint.generates() { output_bound(body) } else { Some(0) };
    reserve(candidate.spec.as_deref(), price, input_tokens, max_tokens, answer_bound(&call.endpoint, body))
}

/// Returns the usage to charge if the client leaves before any part of the answer arrives.
///
/// A server that streams stops when its reader leaves, so only the input counts, as for a stream that is left later.
/// Any other server may complete the answer, so the upper bound counts. Answers of most other endpoints report no
/// usage and are free, and so are those calls if they are left.
pub(crate) fn usage_of_left(call: &ModelCall, candidate: &Candidate, is_stream: bool) -> Option<TokenUsage> {
    if !call.endpoint.reports_usage() {
        return None;
    }
    let output = if is_stream { 0 } else { reserved(call, candidate, None).output_tokens };
    Some(TokenUsage { input: charged_input(call, candidate.spec.as_deref()), output, ..TokenUsage::default() })
}

/// Estimates the input tokens to charge for a call whose server reports none (G-33).
///
/// Only texts count, up to the context window of the model. The bytes of media do not tell their tokens, which depend
/// on the size of an image or the duration of a recording.
pub(crate) fn charged_input(call: &ModelCall, spec: Option<&ModelSpec>) -> u64 {
    let CallBody::Json { value, bytes, .. } = &call.body else { return 0 };
    let tokens = estimate_tokens((bytes.len() as u64).saturating_sub(media_bytes(value)));
    spec.and_then(|spec| spec.max_input_tokens).map_or(tokens, |window| tokens.min(window))
}

/// Returns the bytes of the media in a request.
fn media_bytes(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(media_bytes).sum(),
        Value::Object(members) => media_bytes_of(members),
        _ => 0,
    }
}

fn media_bytes_of(members: &Map<String, Value>) -> u64 {
    let bytes = members.iter().map(|(name, member)| match member {
        Value::String(text) if MEDIA_MEMBERS.contains(&name.as_str()) && is_media(text) => text.len() as u64,
        member => media_bytes(member),
    });
    bytes.sum()
}

/// Returns whether a text is base64 or a data URL of it.
fn is_media(text: &str) -> bool {
    let data = text.strip_prefix("data:").and_then(|url| url.split_once(";base64,")).map_or(text, |(_, data)| data);
    data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(&byte))
}

/// Returns the cost and the tokens of a call. A call without a price costs nothing.
pub(crate) fn amounts_of(outcome: &CallOutcome) -> BudgetAmounts {
    let tokens = outcome.usage.as_ref().map_or(0, |usage| usage.input.saturating_add(usage.output));
    BudgetAmounts { nano_usd: nano_usd(outcome.cost_usd.unwrap_or(0.0)), tokens }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assay_node_auth::Secret;
    use assay_node_models::provider::{Provider, ProviderScope, ProviderType};
    use futures::FutureExt;
    use futures::future::{self, BoxFuture};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::call::{BodyReservation, CallOwner, ProviderKeys};
    use crate::endpoint::{ClientEndpoint, GeminiVerb};

    const MODEL: &str = "gpt-4o-mini";
    const TEXT: &str = "Describe this, please: it is for the report.";
    const MEDIA_BYTES: usize = 5 << 20;

    #[derive(Debug)]
    struct NoKeys;

    impl ProviderKeys for NoKeys {
        fn key(&self, _: &str) -> BoxFuture<'_, Result<Option<Secret>, String>> {
            future::ready(Ok(None)).boxed()
        }
    }

    fn call(endpoint: ClientEndpoint, body: CallBody) -> ModelCall {
        ModelCall {
            request_id: "1".to_owned(),
            owner: CallOwner {
                organization: Uuid::nil(),
                project: None,
                principal: Uuid::nil(),
                email: None,
                is_service_account: false,
                credential: None,
                temporary: None,
            },
            endpoint,
            model: MODEL.to_owned(),
            stream: false,
            body,
            headers: Vec::new(),
            endpoint_name: None,
            providers: Arc::default(),
            keys: Arc::new(NoKeys),
        }
    }

    fn candidate() -> Candidate {
        let (kind, scope) = (ProviderType::OpenAi, ProviderScope::Organization);
        let (provider, _) = Provider::parse("1".to_owned(), "openai".to_owned(), kind, scope, &Map::new());
        let spec = Catalog::built_in().find(MODEL).cloned();
        Candidate { provider: Arc::new(provider), spec, is_custom: false, model: MODEL.to_owned() }
    }

    #[test]
    fn media_of_a_call_that_is_left_cost_nothing() {
        let media = "aGk/".repeat(MEDIA_BYTES / 4);
        let url = format!("data:image/png;base64,{media}");
        for (endpoint, part) in [
            (ClientEndpoint::Chat, json!({"type": "image_url", "image_url": {"url": url}})),
            (ClientEndpoint::Chat, json!({"type": "input_audio", "input_audio": {"data": media, "format": "wav"}})),
            (ClientEndpoint::Chat, json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}})),
            (ClientEndpoint::Responses, json!({"type": "input_image", "image_url": url})),
            (ClientEndpoint::Messages, json!({"type": "image", "source": {"type": "base64", "data": media}})),
            (ClientEndpoint::Gemini(GeminiVerb::Generate), json!({"inlineData": {"mimeType": "a/b", "data": media}})),
        ] {
            let body = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}, part]}]});
            let left = usage_of_left(&call(endpoint, CallBody::of_value(body)), &candidate(), true);
            let input = left.expect("it is charged").input;
            assert!((TEXT.len() as u64 / 4..100).contains(&input), "{input} tokens for {part}");
        }
        let texts = json!({"text": media, "data": TEXT.repeat(1000)});
        let of_text = charged_input(&call(ClientEndpoint::Chat, CallBody::of_value(texts.clone())), None);
        assert_eq!(of_text, (texts.to_string().len() as u64).div_ceil(4), "texts count, whatever they look like");
    }

    #[test]
    fn a_call_that_costs_nothing_costs_nothing_if_it_is_left() {
        let form = CallBody::Opaque {
            bytes: vec![0; MEDIA_BYTES].into(),
            content_type: "multipart/form-data; boundary=b".into(),
            memory: BodyReservation::default(),
        };
        let transcription = ClientEndpoint::Path("/audio/transcriptions".into());
        assert_eq!(charged_input(&call(transcription.clone(), form.clone()), None), 0);
        for endpoint in [transcription, ClientEndpoint::CountTokens, ClientEndpoint::Moderations] {
            for body in [form.clone(), CallBody::of_value(json!({"prompt": TEXT}))] {
                assert_eq!(usage_of_left(&call(endpoint.clone(), body), &candidate(), false), None);
            }
        }
    }

    #[test]
    fn the_context_window_bounds_the_input() {
        let window = Catalog::built_in().find(MODEL).and_then(|spec| spec.max_input_tokens).expect("a window");
        let body =
            CallBody::of_value(json!({"messages": [{"role": "user", "content": TEXT.repeat(MEDIA_BYTES / 40)}]}));
        let left = usage_of_left(&call(ClientEndpoint::Chat, body), &candidate(), true);
        assert_eq!(left.map(|usage| usage.input), Some(window));
    }
}
