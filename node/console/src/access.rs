//! Handler of `GET /console/access`, which explains permissions on an object and the grants behind them.

use assay_node_auth::ObjectType;
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use uuid::Uuid;

pub async fn explain(call: Call) -> HandlerResult {
    let asked = call.query()?;
    let value = |name: &str| {
        let found = asked.iter().rev().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let needed = |name: &str| value(name).ok_or_else(|| Refusal::bad(format!("`{name}` is missing")));
    let word = needed("object_type")?;
    let object = ObjectType::parse(word).ok_or_else(|| {
        let known = ObjectType::WORDS.join(", ");
        Refusal::bad(format!("`object_type` is `{}`; it must be one of {known}", shortened(word)))
    })?;
    let id = |name: &str, text: &str| {
        Uuid::parse_str(text)
            .map_err(|_| Refusal::bad(format!("`{name}` has to be the id of an object, which is a UUID")))
    };
    let object_id = id("object_id", needed("object_id")?)?;
    let user = value("user").map(|user| id("user", user)).transpose()?;
    json(&call.edge.identity.explain_access(&call.principal, (object, object_id), user).await?)
}
