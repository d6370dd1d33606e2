//! Lists of the models that a caller can use, in the format of each model API (G-02).

use assay_node_gateway::GatewayError;
use assay_node_http::requests::caller::Call;
use serde_json::{Value, json};

use super::providers::CallerProviders;
use assay_node_gateway::paths::ModelsForm;

/// Upper bound of the models in one response.
const LISTED_MAX: usize = 10_000;

/// Returns all models, or the model with the id.
pub fn listed(
    call: &Call,
    providers: &CallerProviders,
    form: ModelsForm,
    id: Option<&str>,
) -> Result<Value, GatewayError> {
    let mut models = call.edge.gateway.models(&providers.providers);
    models.truncate(LISTED_MAX);
    let entry = |(id, owner): &(String, String)| match form {
        ModelsForm::OpenAi => json!({"id": id, "object": "model", "created": 0, "owned_by": owner}),
        ModelsForm::Anthropic => {
            json!({"type": "model", "id": id, "display_name": id, "created_at": "1970-01-01T00:00:00Z"})
        }
        ModelsForm::Gemini => json!({"name": format!("models/{id}"), "baseModelId": id, "displayName": id,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent"]}),
    };
    if let Some(id) = id {
        let id = id.strip_prefix("models/").unwrap_or(id);
        let found = models.iter().find(|(known, _)| known == id);
        let missing =
            || GatewayError::new(404, "model_not_found", format!("no provider secret serves the model `{id}`"));
        return found.map(entry).ok_or_else(missing);
    }
    let entries: Vec<Value> = models.iter().map(entry).collect();
    Ok(match form {
        ModelsForm::OpenAi => json!({"object": "list", "data": entries}),
        ModelsForm::Anthropic => {
            let id = |model: Option<&(String, String)>| model.map(|(id, _)| id.clone());
            json!({"data": entries, "has_more": false, "first_id": id(models.first()), "last_id": id(models.last())})
        }
        ModelsForm::Gemini => json!({"models": entries}),
    })
}
