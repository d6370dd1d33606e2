//! Handler of `GET /v1/usage`: usage of the organization by day and credential.

use assay_node_http::openapi::{Operation, reference, text};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_records::is_owner;
use assay_node_usage::{DAYS_MAX, Day, UsageEntry};
use serde_json::{Value, json};

/// Number of days without a `from`, including today.
const DAYS_DEFAULT: u32 = 30;
const MICROS_PER_USD: f64 = 1e6;

/// Handles `GET /v1/usage`, for owners of the organization.
pub async fn usage(call: Call) -> HandlerResult {
    if !is_owner(&call.principal) {
        let why = "the usage of an organization is for its owners: this credential needs the role Owner in it";
        return Err(Refusal::new(ErrorKind::Forbidden, why));
    }
    let (first, last) = range(&call.query()?, call.edge.usage.today())?;
    let report = call.edge.usage.of_organization(call.principal.org.0, first, last).await;
    json(&json!({
        "from": first.to_string(), "to": last.to_string(),
        "usage": report.entries.iter().map(shown).collect::<Vec<_>>(),
        "silent_nodes": report.silent.iter().map(ToString::to_string).collect::<Vec<_>>(),
    }))
}

/// Reads the first and the last day of a request. Later pairs replace earlier ones. A range may be empty.
fn range(pairs: &[(String, String)], today: Day) -> Result<(Day, Day), Refusal> {
    let named = |name: &str| {
        let found = pairs.iter().rev().find(|(found, value)| found == name && !value.is_empty());
        let read = |value: &str| {
            let why =
                || Refusal::bad(format!("`{name}` is {}; it should be a date, such as 2026-11-30", shortened(value)));
            Day::parse(value).ok_or_else(why)
        };
        found.map(|(_, value)| read(value)).transpose()
    };
    let last = named("to")?.unwrap_or(today);
    let first = named("from")?.unwrap_or(last.minus(DAYS_DEFAULT - 1));
    Ok((first, last))
}

fn shown(entry: &UsageEntry) -> Value {
    let UsageEntry { day, credential, amounts, .. } = entry;
    json!({
        "date": day.to_string(), "credential_id": (!credential.is_nil()).then_some(credential), "rows": amounts.rows,
        "bytes": amounts.bytes, "queries": amounts.queries, "model_calls": amounts.model_calls,
        "cost_usd": amounts.cost_micro_usd as f64 / MICROS_PER_USD,
    })
}

/// Describes the route for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let date = json!({"type": "string", "format": "date"});
    let count = json!({"type": "integer", "minimum": 0});
    let entry = json!({
        "type": "object",
        "required": ["date", "credential_id", "rows", "bytes", "queries", "model_calls", "cost_usd"],
        "properties": {
            "date": date, "credential_id": {"type": "string", "format": "uuid", "nullable": true}, "rows": count,
            "bytes": count, "queries": count, "model_calls": count, "cost_usd": {"type": "number", "minimum": 0},
        },
    });
    let summary =
        format!("Get the usage of the organization by day and credential, for the last {DAYS_MAX} days at most");
    let usage = Operation::new("get", "/v1/usage", "Organizations", &summary)
        .asks("from", date.clone())
        .asks("to", date.clone())
        .answers(json!({
            "type": "object", "required": ["from", "to", "usage", "silent_nodes"],
            "properties": {
                "from": date, "to": date, "usage": {"type": "array", "items": reference("UsageEntry")},
                "silent_nodes": {"type": "array", "items": text()},
            },
        }))
        .with("UsageEntry", entry);
    vec![usage]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<(String, String), String> {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let today = Day::parse("2026-11-30").expect("a date");
        range(&pairs, today).map(|(first, last)| (first.to_string(), last.to_string())).map_err(|why| why.message)
    }

    #[test]
    fn a_range_ends_today_and_has_thirty_days_unless_said() {
        let expected = |first: &str, last: &str| Ok((first.to_owned(), last.to_owned()));
        assert_eq!(read(&[]), expected("2026-11-01", "2026-11-30"));
        assert_eq!(read(&[("from", "2026-11-29"), ("to", "")]), expected("2026-11-29", "2026-11-30"));
        assert_eq!(read(&[("to", "2026-03-01")]), expected("2026-01-31", "2026-03-01"));
        for (pairs, words) in [
            ([("from", "yesterday"), ("to", "2026-11-30")], "`from` is yesterday"),
            ([("from", "2026-11-30"), ("to", "2026-11-31")], "`to` is 2026-11-31"),
        ] {
            assert!(read(&pairs).is_err_and(|why| why.contains(words)), "{pairs:?}");
        }
    }
}
