//! Handlers of `/console/download`, which send the result of a query as a file.
//!
//! The browser saves the file while it arrives. A link cannot carry an authorization header, so the page first requests
//! a link with a ticket. The ticket is valid for one download within a minute.

use assay_node_http::requests::caller::{Call, Caller, wait_of};
use assay_node_http::requests::console_session::{cookie_value, session_value};
use assay_node_http::requests::error_texts::kind_of;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, Payload};
use assay_node_query::render::Format;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::answers::{ResponseTo, answer};
use crate::body::{QueryRequest, query_request};
use crate::sources::sources;

const PATH: &str = "/console/download";
const FILE_NAME: &str = "filename";
/// Default file name.
const FILE_NAME_DEFAULT: &str = "assay-export";
/// Upper bound of the number of characters in a file name.
const FILE_NAME_CHARS_MAX: usize = 100;

/// Handles `POST /console/download`: checks a query and returns a link to its result.
///
/// The body is the same as for `/btql`, with an additional file name.
pub async fn link(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let request = Value::Object(body.clone()).to_string();
    let (_, asked) = download(body, &call.edge)?;
    let bounded = asked.question.read()?;
    sources(&call.edge.identity, &call.principal, &bounded).await?;
    let session = session_value(&call.request, &call.edge)?;
    let session = session.as_ref().map(|value| value.expose());
    let (ticket, until) = call.edge.identity.download_ticket(&call.principal, session, request)?;
    json(&json!({"url": format!("{PATH}/{ticket}"), "expires_at": until}))
}

/// Handles `GET /console/download/{ticket}`: returns the result of a query as a file.
pub async fn file(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let began = Instant::now();
    let ticket = request.match_info().get("ticket").unwrap_or_default();
    let session = cookie_value(&request, &edge);
    let session = session.as_ref().map(|value| value.expose());
    let (principal, body) = edge.identity.use_download_ticket(ticket, session).await?;
    let body: Map<String, Value> = serde_json::from_str(&body).map_err(Refusal::internal)?;
    let (name, asked) = download(body, &edge)?;
    let caller = Caller { edge, principal, wait: wait_of(&request), temporary: None, invocation: None };
    let call = Call::by_ticket(caller, request).await?;
    answer(&ResponseTo { call: &call, began, attachment: Some(disposition(&name, asked.format)) }, asked).await
}

/// Reads the file name and the query of a download request.
fn download(mut body: Map<String, Value>, edge: &Edge) -> Result<(String, QueryRequest), Refusal> {
    let name = match body.remove(FILE_NAME) {
        None | Some(Value::Null) => FILE_NAME_DEFAULT.to_owned(),
        Some(Value::String(name)) => name,
        Some(other) => {
            let why = format!("`{FILE_NAME}` is {}; it should be a string", kind_of(&other));
            return Err(Refusal::bad(why));
        }
    };
    Ok((name, query_request(body, edge.queries.now())?))
}

/// Returns the `Content-Disposition` header for a file. Non-ASCII characters are encoded as in RFC 8187.
fn disposition(name: &str, format: Format) -> String {
    let is_safe = |letter: &char| letter.is_alphanumeric() || " -_.()".contains(*letter);
    let name: String = name.chars().filter(is_safe).take(FILE_NAME_CHARS_MAX).collect();
    let name = match name.trim_matches([' ', '.']) {
        "" => FILE_NAME_DEFAULT,
        name => name,
    };
    let extension = format!(".{}", format.extension());
    let name = format!("{}{extension}", name.strip_suffix(&extension).unwrap_or(name));
    let ascii: String = name.chars().map(|letter| if letter.is_ascii() { letter } else { '_' }).collect();
    let encoded: String = name
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_name_that_every_system_takes() {
        for (name, format, expected) in [
            ("logs", Format::JsonLines, "attachment; filename=\"logs.jsonl\"; filename*=UTF-8''logs.jsonl"),
            ("../a\"b\r\n", Format::SpreadsheetCsv, "attachment; filename=\"ab.csv\"; filename*=UTF-8''ab.csv"),
            ("für", Format::Parquet, "attachment; filename=\"f_r.parquet\"; filename*=UTF-8''f%C3%BCr.parquet"),
            ("logs.csv", Format::Csv, "attachment; filename=\"logs.csv\"; filename*=UTF-8''logs.csv"),
            ("//", Format::Json, "attachment; filename=\"assay-export.json\"; filename*=UTF-8''assay-export.json"),
        ] {
            assert_eq!(disposition(name, format), expected);
        }
    }
}
