//! Guardrails of a call's project, which refuse, mask or cap the call (G-36).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use assay_node_gateway::{CallBody, ClientEndpoint, GatewayError, ModelCall};
use assay_node_guardrails::{GuardrailPolicy, GuardrailRefusal, GuardrailReport, GuardrailStage, TokenDecision};
use assay_node_http::requests::caller::Caller;
use assay_node_http::responses::refusal::Refusal;
use parking_lot::Mutex;
use serde_json::{Value, json};
use uuid::Uuid;

/// Upper bound of compiled policies in memory. At the bound, all of them are dropped.
const POLICIES_MAX: usize = 1_000;

type CompiledPolicies = Mutex<HashMap<Uuid, (Value, Arc<GuardrailPolicy>)>>;

/// Compiled policies by project, each with its stored form.
static COMPILED: LazyLock<CompiledPolicies> = LazyLock::new(CompiledPolicies::default);

/// Guardrails of one call.
#[derive(Clone, Debug, Default)]
pub struct CallGuards {
    policy: Option<Arc<GuardrailPolicy>>,
    /// Findings of the rules in the request.
    pub report: Option<GuardrailReport>,
}

impl CallGuards {
    /// Returns the guardrails of a project. Without a project, there are none.
    pub async fn of_project(caller: &Caller, project: Option<Uuid>) -> Result<CallGuards, Refusal> {
        let Some(project) = project else { return Ok(CallGuards::default()) };
        let settings = caller.edge.records.project_settings(&caller.principal, project).await?;
        let stored = settings.get("gateway_guardrails").filter(|stored| !stored.is_null());
        let Some(stored) = stored else { return Ok(CallGuards::default()) };
        let known = COMPILED.lock().get(&project).filter(|(of, _)| of == stored).map(|(_, policy)| Arc::clone(policy));
        if let Some(policy) = known {
            return Ok(CallGuards { policy: Some(policy), report: None });
        }
        let policy = GuardrailPolicy::parse(stored);
        let policy = policy.map_err(|error| Refusal::internal(format!("guardrails of project {project}: {error}")))?;
        let policy = Arc::new(policy);
        let mut compiled = COMPILED.lock();
        if compiled.len() >= POLICIES_MAX {
            compiled.clear();
        }
        compiled.insert(project, (stored.clone(), Arc::clone(&policy)));
        Ok(CallGuards { policy: Some(policy), report: None })
    }

    /// Checks a call, and masks or caps its body.
    pub fn guard(&mut self, call: &mut ModelCall) -> Result<(), GatewayError> {
        let Some(policy) = &self.policy else { return Ok(()) };
        policy.check_model(&call.model).map_err(|refusal| refused(403, "model_not_allowed", &refusal))?;
        let CallBody::Json { value, .. } = &call.body else { return Ok(()) };
        let mut body = Value::clone(value);
        let blocked = |refusal: GuardrailRefusal| refused(400, "guardrail_blocked", &refusal);
        let is_answer = call.endpoint.is_conversation() || call.endpoint == ClientEndpoint::Completions;
        if is_answer && let TokenDecision::Set(limit) = policy.cap_tokens(call.output_bound()).map_err(blocked)? {
            set_output_bound(&call.endpoint, &mut body, limit);
        }
        if policy.has_rules(GuardrailStage::Request) {
            let report = policy.apply_to_json(GuardrailStage::Request, &mut body).map_err(blocked)?;
            self.report = Some(report).filter(|report| !report.is_empty());
        }
        if body != **value {
            call.body = CallBody::of_value(body);
        }
        Ok(())
    }

    /// Masks a logged value.
    pub fn mask_log(&self, logged: &mut Value) {
        let Some(policy) = self.policy.as_ref().filter(|policy| policy.has_rules(GuardrailStage::Log)) else { return };
        if policy.apply_to_json(GuardrailStage::Log, logged).is_err() {
            // The value is too deep or too large to search.
            *logged = Value::Null;
        }
    }
}

fn refused(status: u16, code: &str, refusal: &GuardrailRefusal) -> GatewayError {
    GatewayError::new(status, code, refusal.to_string())
}

/// Sets the upper bound of output tokens in the wire format of the endpoint.
fn set_output_bound(endpoint: &ClientEndpoint, body: &mut Value, limit: u64) {
    match endpoint {
        ClientEndpoint::Responses => body["max_output_tokens"] = json!(limit),
        ClientEndpoint::Gemini(_) => {
            let spellings = ["generationConfig", "generation_config"];
            if !spellings.iter().any(|name| body.get(*name).is_some_and(Value::is_object)) {
                body[spellings[0]] = json!({});
            }
            for name in spellings {
                if let Some(config) = body.get_mut(name).and_then(Value::as_object_mut) {
                    config.shift_remove("max_output_tokens");
                    config.insert("maxOutputTokens".to_owned(), json!(limit));
                }
            }
        }
        ClientEndpoint::Chat if body.get("max_completion_tokens").is_some() => {
            body["max_completion_tokens"] = json!(limit);
            if let Some(members) = body.as_object_mut() {
                members.shift_remove("max_tokens");
            }
        }
        _ => body["max_tokens"] = json!(limit),
    }
}

#[cfg(test)]
mod tests {
    use assay_node_gateway::GeminiVerb;

    use super::*;

    #[test]
    fn each_format_has_its_bound() {
        for (endpoint, body, expected) in [
            (ClientEndpoint::Chat, json!({"max_tokens": 9}), json!({"max_tokens": 5})),
            (
                ClientEndpoint::Chat,
                json!({"max_completion_tokens": 9, "max_tokens": 9}),
                json!({"max_completion_tokens": 5}),
            ),
            (ClientEndpoint::Messages, json!({}), json!({"max_tokens": 5})),
            (ClientEndpoint::Responses, json!({}), json!({"max_output_tokens": 5})),
            (
                ClientEndpoint::Gemini(GeminiVerb::Generate),
                json!({"generation_config": {"max_output_tokens": 9}}),
                json!({"generation_config": {"maxOutputTokens": 5}}),
            ),
            (
                ClientEndpoint::Gemini(GeminiVerb::Generate),
                json!({"generation_config": {}, "generationConfig": {"maxOutputTokens": 9}}),
                json!({"generation_config": {"maxOutputTokens": 5}, "generationConfig": {"maxOutputTokens": 5}}),
            ),
            (
                ClientEndpoint::Gemini(GeminiVerb::Generate),
                json!({}),
                json!({"generationConfig": {"maxOutputTokens": 5}}),
            ),
        ] {
            let mut capped = body.clone();
            set_output_bound(&endpoint, &mut capped, 5);
            assert_eq!(capped, expected, "{endpoint:?} {body}");
        }
    }
}
