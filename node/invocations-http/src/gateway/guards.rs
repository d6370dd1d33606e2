//! Guardrails of a call's projects, which refuse, mask or cap the call (G-36).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use assay_node_gateway::{CallBody, ClientEndpoint, GatewayError, ModelCall};
use assay_node_guardrails::{
    GuardrailAction, GuardrailPolicy, GuardrailRefusal, GuardrailReport, GuardrailStage, TokenDecision,
};
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
    /// Policies of the projects of the call, all of which apply.
    policies: Vec<Arc<GuardrailPolicy>>,
    /// Findings of the rules in the request.
    pub report: Option<GuardrailReport>,
}

impl CallGuards {
    /// Returns the guardrails of the project that a call names and of the one that logs it, each if there is one.
    ///
    /// Both apply, so that a caller cannot choose the weaker ones. Logging needs no permission to read a project, so
    /// the node itself reads the guardrails of `logged`. The caller must have been permitted to write there.
    pub async fn of_projects(
        caller: &Caller,
        named: Option<Uuid>,
        logged: Option<Uuid>,
    ) -> Result<CallGuards, Refusal> {
        let mut policies = Vec::new();
        let records = &caller.edge.records;
        let named = named.map(|project| (project, Some(&caller.principal)));
        let logged = logged.filter(|logged| named.is_none_or(|(named, _)| named != *logged));
        for (project, who) in named.into_iter().chain(logged.map(|logged| (logged, None))) {
            policies.extend(policy_of(project, &records.project_settings(who, project).await?)?);
        }
        Ok(CallGuards { policies, report: None })
    }

    /// Checks a call, and masks or caps its body.
    pub fn guard(&mut self, call: &mut ModelCall) -> Result<(), GatewayError> {
        let blocked = |refusal: GuardrailRefusal| refused(400, "guardrail_blocked", &refusal);
        for policy in &self.policies {
            policy.check_model(&call.model).map_err(|refusal| refused(403, "model_not_allowed", &refusal))?;
            let is_answer = call.endpoint.is_conversation() || call.endpoint == ClientEndpoint::Completions;
            if is_answer
                && let CallBody::Json { value, .. } = &call.body
                && let TokenDecision::Set(limit) = policy.cap_tokens(call.output_bound()).map_err(blocked)?
            {
                let mut body = Value::clone(value);
                set_output_bound(&call.endpoint, &mut body, limit);
                call.body.set_texts(body)?;
            }
            if policy.has_rules(GuardrailStage::Request) {
                let mut texts = call.body.texts()?;
                let report = policy.apply_to_json(GuardrailStage::Request, &mut texts).map_err(blocked)?;
                if report.rules().iter().any(|found| found.action == GuardrailAction::Mask) {
                    call.body.set_texts(texts)?;
                }
                self.report.get_or_insert_default().merge(report);
            }
        }
        self.report = self.report.take().filter(|report| !report.is_empty());
        Ok(())
    }

    /// Masks a logged value.
    pub fn mask_log(&self, logged: &mut Value) {
        for policy in self.policies.iter().filter(|policy| policy.has_rules(GuardrailStage::Log)) {
            if policy.apply_to_json(GuardrailStage::Log, logged).is_err() {
                // The value is too deep or too large to search.
                *logged = Value::Null;
            }
        }
    }
}

/// Returns the guardrails in the settings of a project, or `None` if it has none.
fn policy_of(project: Uuid, settings: &Value) -> Result<Option<Arc<GuardrailPolicy>>, Refusal> {
    let stored = settings.get("gateway_guardrails").filter(|stored| !stored.is_null());
    let Some(stored) = stored else { return Ok(None) };
    let known = COMPILED.lock().get(&project).filter(|(of, _)| of == stored).map(|(_, policy)| Arc::clone(policy));
    if known.is_some() {
        return Ok(known);
    }
    let policy = GuardrailPolicy::parse(stored);
    let policy = policy.map_err(|error| Refusal::internal(format!("guardrails of project {project}: {error}")))?;
    let policy = Arc::new(policy);
    let mut compiled = COMPILED.lock();
    if compiled.len() >= POLICIES_MAX {
        compiled.clear();
    }
    compiled.insert(project, (stored.clone(), Arc::clone(&policy)));
    Ok(Some(policy))
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
