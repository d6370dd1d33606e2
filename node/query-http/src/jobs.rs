//! Handlers of `/btql/async`, which run queries as jobs.
//!
//! A client creates a job, polls its status, and reads its result page by page. A caller sees a job only while the
//! caller may read its objects. For all other callers the job does not exist.

use assay_node_auth::Permission;
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::{kind_of, shortened};
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::response_body::Sending;
use assay_node_http::responses::{HandlerResult, json, json_builder};
use assay_node_http::web::{Bytes, Payload};
use assay_node_query::render::cursors;
use assay_node_query::{Home, JobRequest, JobStatus, JobView, RESULT_ROWS_MAX, ResultRange};
use assay_node_records::RecordsError;
use assay_storage_model::ObjectKind;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::answers::{position, secrets};
use crate::body::query_request;
use crate::masks::masks;
use crate::sources::sources;

/// Format of stored results, which is the only one that a request may name.
const FORMAT: &str = "jsonl";

pub async fn make(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let batch = said(&body)?;
    let mut asked = query_request(body, call.edge.queries.now())?;
    asked.question.whole = true;
    let bounded = asked.question.clone().read()?;
    let sources = sources(&call.edge.identity, &call.principal, &bounded).await?;
    let masks = sources.masks(&call.edge.records, &call.principal)?;
    let homes = sources.homes;
    let is_short = bounded.is_by_key() && homes.len() == 1;
    let secrets = secrets(&call.edge.records)?;
    let after = bounded.cursor().map(|text| position(text, is_short, &secrets)).transpose()?;
    let mut answer = json!({"status": JobStatus::Queued.name()});
    answer["project_id"] = alike(&homes, |home| home.project_id);
    answer["object_id"] = alike(&homes, |home| home.object.id);
    let request = JobRequest {
        org: call.principal.org,
        user: call.principal.user,
        question: asked.question,
        homes,
        masks,
        after,
        seconds: asked.seconds,
        batch,
    };
    answer["id"] = call.edge.queries.submit_job(request).await?.to_string().into();
    json(&answer)
}

pub async fn status(call: Call) -> HandlerResult {
    let id = call.id()?;
    let seen = look(&call, id, None).await?;
    let mut answer = json!({"status": seen.status.name()});
    if let Some(why) = seen.error {
        answer["error"] = why.into();
    }
    json(&answer)
}

pub async fn result(call: Call) -> HandlerResult {
    let id = call.id()?;
    let wanted = wanted(&call.query()?)?;
    let JobView { status, error, lines, next, .. } = look(&call, id, Some(wanted)).await?;
    let mut body = format!("{{\"status\":{},\"rows\":[", json!(status.name())).into_bytes();
    // Each line contains a single line break at its end, so the other breaks become commas.
    let lines = lines.strip_suffix(b"\n").unwrap_or(&lines);
    body.extend(lines.iter().map(|byte| if *byte == b'\n' { b',' } else { *byte }));
    let mut end = json!({"cursor": next.map(cursors::short)});
    if let Some(why) = error {
        end["error"] = why.into();
    }
    let end = end.to_string();
    body.extend_from_slice(b"],");
    body.extend_from_slice(&end.as_bytes()[1..]);
    let held = call.applicant().reserve(&call.edge.budgets.answers, body.len() as u64).await?;
    Ok(json_builder().body(Sending::new(&call, Bytes::from(body), held)))
}

/// Returns the id that all objects share, or null.
fn alike(homes: &[Home], of: fn(&Home) -> Uuid) -> Value {
    match homes {
        [first, others @ ..] if others.iter().all(|home| of(home) == of(first)) => of(first).to_string().into(),
        _ => Value::Null,
    }
}

/// Returns the number of rows per result page, which the body may specify beside the query.
fn said(body: &Map<String, Value>) -> Result<Option<u64>, Refusal> {
    match body.get("format") {
        None | Some(Value::Null) => {}
        Some(Value::String(format)) if format == FORMAT => {}
        Some(Value::String(other)) => {
            let other = shortened(other);
            return Err(Refusal::bad(format!("`format` is `{other}`; asynchronous queries only support {FORMAT}")));
        }
        Some(other) => {
            return Err(Refusal::bad(format!("`format` is {}; it should be \"{FORMAT}\"", kind_of(other))));
        }
    }
    match body.get("batch_size") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().filter(|rows| *rows > 0).map(Some).ok_or_else(|| {
            let value = shortened(&value.to_string());
            Refusal::bad(format!("`batch_size` is {value}; it should be a whole number, 1 or more"))
        }),
    }
}

/// Reads the requested range of rows.
///
/// A `limit` above the page maximum is not an error, because the next page contains the remaining rows.
fn wanted(pairs: &[(String, String)]) -> Result<ResultRange, Refusal> {
    let last = |name: &str| {
        let found = pairs.iter().rev().find(|(found, value)| found == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let limit = |text: &str| {
        let limit = text.parse::<u64>().ok().filter(|limit| *limit > 0);
        limit.map(|limit| limit.min(RESULT_ROWS_MAX)).ok_or_else(|| {
            Refusal::bad(format!("`limit` is {}; it should be an integer of at least 1", shortened(text)))
        })
    };
    let invalid = |_| Refusal::bad("Invalid cursor: pass the cursor of the previous page, of the same query");
    let row = last("cursor").map(cursors::parse_short).transpose().map_err(invalid)?;
    Ok(ResultRange { row: row.unwrap_or(0), limit: last("limit").map(limit).transpose()? })
}

/// Returns a job that the caller may see.
///
/// The response is 404 for missing jobs, jobs of other organizations, and jobs with an unreadable object.
async fn look(call: &Call, id: Uuid, wanted: Option<ResultRange>) -> Result<JobView, Refusal> {
    let missing = || Refusal::not_found(format!("the query {id}"));
    let seen = call.queries().look_at_job(call.principal.org, id, wanted).await?.ok_or_else(missing)?;
    // A caller who sees a project but not its logs must not learn about queries over these logs.
    let hidden = |why| match why {
        RecordsError::NotFound(_) | RecordsError::Forbidden(_) => missing(),
        other => other.into(),
    };
    let mut objects = Vec::new();
    for object in seen.homes.iter().map(|home| home.object) {
        if object.kind == ObjectKind::AuditLog {
            // `audit_log` refreshes the catalog itself, so `still` does not check this object.
            call.edge.records.audit_log(&call.principal, object.org).await.map_err(hidden)?;
            continue;
        }
        call.edge.records.object(&call.principal, object.kind, object.id, Permission::Read).await.map_err(hidden)?;
        objects.push(object);
    }
    call.edge.records.still(&call.principal, &objects, Permission::Read).await.map_err(hidden)?;
    let own = masks(&call.edge.records, &call.principal, seen.homes.iter().map(|home| (home.org, home.project_id)))?;
    if own.iter().any(|(project, mask)| seen.masks.get(project) != Some(mask)) {
        return Err(missing());
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(query: &[(&str, &str)]) -> Result<ResultRange, String> {
        let pairs: Vec<_> = query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        wanted(&pairs).map_err(|refusal| refusal.message)
    }

    #[test]
    fn a_page_is_wanted_from_a_row_on() {
        assert_eq!(pairs(&[]), Ok(ResultRange { row: 0, limit: None }));
        assert_eq!(pairs(&[("limit", ""), ("cursor", "")]), Ok(ResultRange { row: 0, limit: None }));
        let cursor = cursors::short(7);
        assert_eq!(pairs(&[("cursor", &cursor), ("limit", "5")]), Ok(ResultRange { row: 7, limit: Some(5) }));
        assert_eq!(pairs(&[("limit", "99999999")]), Ok(ResultRange { row: 0, limit: Some(RESULT_ROWS_MAX) }));
        for (name, value, words) in [
            ("limit", "0", "at least 1"),
            ("limit", "-1", "at least 1"),
            ("limit", "ten", "`limit` is ten"),
            ("cursor", "7", "Invalid cursor"),
        ] {
            let why = pairs(&[(name, value)]).expect_err("it is wrong");
            assert!(why.contains(words), "{value}: {why}");
        }
    }

    #[test]
    fn a_body_says_how_results_are_read() {
        let read = |body: Value| said(body.as_object().expect("an object")).map_err(|refusal| refusal.message);
        assert_eq!(read(json!({})), Ok(None));
        assert_eq!(read(json!({"format": "jsonl", "batch_size": 10})), Ok(Some(10)));
        assert_eq!(read(json!({"format": null, "batch_size": null})), Ok(None));
        for (body, words) in [
            (json!({"format": "json"}), "`format` is `json`; asynchronous queries only support jsonl"),
            (json!({"format": 1}), "`format` is a number"),
            (json!({"batch_size": 0}), "`batch_size` is 0"),
            (json!({"batch_size": "ten"}), "`batch_size` is \"ten\""),
        ] {
            let why = read(body.clone()).expect_err("it is wrong");
            assert!(why.contains(words), "{body}: {why}");
        }
    }
}
