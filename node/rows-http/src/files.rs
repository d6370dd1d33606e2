//! Handlers for files: attachments of rows, bundles of code, and rows too large for one request.
//!
//! A client requests a URL and uploads the bytes there. For an attachment, it also reports the outcome. URLs contain no
//! credential, but a signed ticket for one file, which expires. Rows may name the key of an attachment before its
//! upload.

use assay_node_auth::{Permission, Principal};
use assay_node_files::{About, Content, Deed, File, FileName, NAMED_MAX, Purpose, Ticket, keys_in};
use assay_node_http::requests::admission::Applicant;
use assay_node_http::requests::background::{INLINE_BYTES_MAX, in_background};
use assay_node_http::requests::body::{Body, ROWS_MAX, announced_length, pieces, too_many_rows};
use assay_node_http::requests::caller::Caller;
use assay_node_http::requests::caller::{Call, wait_of};
use assay_node_http::requests::error_texts::{kind_of, shortened};
use assay_node_http::requests::limits::{admit_upload, admit_writes};
use assay_node_http::requests::range::{RequestedRange, requested_range};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Bytes, Data, HttpRequest, HttpResponse, HttpResponseBuilder, Payload, StatusCode, header};
use assay_node_limits::Holder;
use assay_node_objects::ObjectWrite;
use assay_node_records::kinds::organization::name_of;
use assay_node_records::mechanism::CatalogView;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::RecordKind;
use assay_storage_model::event::SentItem;
use futures::{TryStreamExt, stream};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::rows::now_micros;
use assay_node_http::requests::origin::origin_of;

const TICKET_CONTEXT: &str = "assay tickets of files 1";
/// Validity of a ticket for an upload. Large uploads take longer than downloads to begin.
const WRITE_SECONDS: u64 = 3600;
/// Validity of a ticket for a download.
const READ_SECONDS: u64 = 900;
/// Upper bound of the objects that are checked for whether the caller may read them.
const REFS_LOOKED_AT_MAX: usize = 100;
const TEXT_BYTES_MAX: usize = 4096;
/// Content type of a file without one.
const ANY_TYPE: &str = "application/octet-stream";
/// Upper bound of the bytes that a download reserves from the response budget.
const PIECE_BYTES: usize = 4 << 20;

/// Handles `POST /attachment`: returns the URL for the upload.
pub async fn ask(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let name = named(&call, &body).await?;
    let filename = needed(&body, "filename")?;
    let content_type = content_type(&body)?;
    begin(&call, &name, filename, content_type).await?;
    let url = address(&call, &name, Deed::Write)?;
    json(&json!({"signedUrl": url, "headers": {"Content-Type": content_type}}))
}

/// Handles `POST /attachment/status`: records the outcome that the client reports for its upload.
pub async fn note(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let name = named(&call, &body).await?;
    let Some(Value::Object(status)) = body.get("status") else {
        return Err(Refusal::bad("`status` has to be an object with `upload_status`"));
    };
    let word = match needed(status, "upload_status")? {
        known @ ("done" | "error" | "uploading") => known,
        other => {
            let other = shortened(other);
            return Err(Refusal::bad(format!("`upload_status` is `{other}`; it must be uploading, done or error")));
        }
    };
    let error = text(status, "error_message")?;
    let file = call.edge.files.look(&name).await?;
    own(&call, file.as_ref())?;
    // A client also reports a status when its request for the URL failed.
    if file.as_ref().is_none_or(|file| file.owner.is_none()) {
        begin(&call, &name, "", ANY_TYPE).await?;
    }
    call.edge.files.note(&name, word, error).await?;
    let file = call.edge.files.look(&name).await?.unwrap_or_default();
    json(&json!({"status": shown(&file)}))
}

/// Handles `GET /attachment`: returns the URL for the download.
pub async fn look(call: Call) -> HandlerResult {
    let body: Map<String, Value> =
        call.query()?.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    if let Some(url) = text(&body, "url")? {
        return external(url);
    }
    if text(&body, "key")?.is_none() {
        return Err(Refusal::bad("the request names no attachment: add `key` or `url`"));
    }
    let name = named(&call, &body).await?;
    let missing = || Refusal::new(ErrorKind::NotFound, "no attachment with this key is visible to this credential");
    let file = call.edge.files.look(&name).await?.ok_or_else(missing)?;
    if !may_read(&call.edge, &call.principal, name.org, &file).await? {
        return Err(missing());
    }
    json(&json!({"downloadUrl": address(&call, &name, Deed::Read)?, "status": shown(&file)}))
}

/// Returns the URL of an external file, which the client fetches itself.
fn external(url: &str) -> HandlerResult {
    if url.starts_with("https://") || url.starts_with("http://") {
        return json(&json!({"downloadUrl": url, "status": {"upload_status": "done"}}));
    }
    let scheme = shortened(url.split_once(':').map_or(url, |(scheme, _)| scheme));
    let said = format!("attachments of the scheme `{scheme}` are not supported: this server cannot read other stores");
    Err(Refusal::new(ErrorKind::NotImplemented, said))
}

/// Handles `POST /logs3/overflow`: returns the URL for rows that are too large for one request.
pub async fn overflow(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let content_type = content_type(&body)?;
    match body.get("rows") {
        None | Some(Value::Null) => {}
        Some(Value::Array(rows)) if rows.len() <= ROWS_MAX => {}
        Some(Value::Array(rows)) => return Err(too_many_rows(rows.len())),
        Some(other) => return Err(Refusal::bad(format!("`rows` is {}; it should be an array", kind_of(other)))),
    }
    match body.get("size_bytes") {
        None | Some(Value::Null) => {}
        Some(size) => {
            let size = size.as_u64().ok_or_else(|| Refusal::bad("`size_bytes` has to be a whole number, 0 or more"))?;
            let most = overflow_bytes_max(&call.edge);
            if size > most as u64 {
                let said = format!("the rows have {size} bytes; the maximum of one upload is {most}");
                return Err(Refusal::new(ErrorKind::TooLarge, said));
            }
        }
    }
    let key = Uuid::new_v4().to_string();
    let name = FileName::new(call.principal.org, Purpose::Overflow, &key)?;
    begin(&call, &name, "rows.json", content_type).await?;
    let url = address(&call, &name, Deed::Write)?;
    json(&json!({"method": "PUT", "signedUrl": url, "headers": {"Content-Type": content_type}, "key": key}))
}

/// Returns the upper bound of an upload of rows: twice the bytes of a request.
///
/// Bodies in memory share one budget, which also bounds the upload.
pub fn overflow_bytes_max(edge: &Edge) -> usize {
    (2 * edge.config.body_bytes_max).min(edge.config.bodies_bytes_max)
}

/// Returns the rows that were uploaded under a key, as a request body.
///
/// The upload is kept for a while, so that a client without a response can try again.
pub async fn overflowed(call: &Call, key: &str) -> Result<Body, Refusal> {
    let name = FileName::new(call.principal.org, Purpose::Overflow, key)?;
    let missing =
        || Refusal::bad(format!("`rows.key`: there is no upload with the key `{}`, or it has expired", shortened(key)));
    let file = call.edge.files.look(&name).await?.ok_or_else(missing)?;
    let is_own = file.owner == Some(call.principal.user);
    let content = file.content.filter(|_| is_own).ok_or_else(missing)?;
    let applicant = call.applicant();
    let held = applicant.reserve(&call.edge.budgets.bodies, content.bytes).await?;
    let bytes = call.edge.files.read_whole(&name, &content, overflow_bytes_max(&call.edge)).await?;
    Ok(Body::kept(&call.edge, applicant, bytes, held))
}

/// Handles `POST /function/code`: returns the URL for a bundle. Functions may name the bundle before its upload.
pub async fn code(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    let org = organization(&call, &body).await?;
    match body.get("runtime_context") {
        None | Some(Value::Null | Value::Object(_)) => {}
        Some(other) => {
            return Err(Refusal::bad(format!("`runtime_context` is {}; it should be an object", kind_of(other))));
        }
    }
    let key = Uuid::new_v4().to_string();
    let name = FileName::new(org, Purpose::Bundle, &key)?;
    begin(&call, &name, "bundle", ANY_TYPE).await?;
    json(&json!({"url": address(&call, &name, Deed::Write)?, "bundleId": key}))
}

/// Handles `PUT /attachment/bytes/{ticket}`: stores the bytes unmodified, whatever encoding the request declares.
pub async fn upload(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let ticket = ticket(&edge, &request, Deed::Write).await?;
    let bytes_max = match ticket.name.purpose {
        Purpose::Overflow => overflow_bytes_max(&edge) as u64,
        Purpose::Attachment | Purpose::Bundle => edge.config.file_bytes_max,
    };
    check_quota(&edge, ticket.name.org, announced_length(&request).unwrap_or_default())?;
    let holder = Holder::new(ticket.name.org.0, ticket.user);
    let applicant = Applicant { holder, wait: wait_of(&request) };
    let pieces = std::pin::pin!(pieces(&edge, applicant, &request, payload, bytes_max).await?);
    let content = edge.files.put(&ticket.name, bytes_max, seconds(), pieces).await?;
    json(&json!({"key": ticket.name.key, "bytes": content.bytes, "hash": content.hash}))
}

/// Admits or refuses an upload by the quotas. One of unknown length counts when it is stored.
fn check_quota(edge: &Edge, org: OrgId, bytes: u64) -> Result<(), Refusal> {
    let organization = |view: &CatalogView<'_>| view.get(RecordKind::ORGANIZATION, org.0).map(|org| name_of(org));
    let name = edge.records.catalog().peek(organization).transpose()?;
    admit_upload(&edge.quotas, (org, &name.unwrap_or_default()), bytes)
}

/// Handles `GET /attachment/bytes/{ticket}`: streams the file or the requested range.
pub async fn download(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let ticket = ticket(&edge, &request, Deed::Read).await?;
    let missing =
        || Refusal::new(ErrorKind::NotFound, "the content of this file has not been uploaded, or was removed");
    let file = edge.files.look(&ticket.name).await?.ok_or_else(missing)?;
    check_still_readable(&edge, &ticket, &file).await?;
    let content = file.content.clone().ok_or_else(missing)?;
    let range = requested_range(request.headers(), content.bytes);
    let (status, part) = match &range {
        RequestedRange::Whole => (StatusCode::OK, 0..content.bytes),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part.clone()),
        RequestedRange::Beyond => {
            let mut answer = HttpResponse::build(StatusCode::RANGE_NOT_SATISFIABLE);
            return Ok(answer.insert_header((header::CONTENT_RANGE, format!("bytes */{}", content.bytes))).finish());
        }
    };
    let mut answer = HttpResponse::build(status);
    add_file_headers(&mut answer, &file, &content);
    if status == StatusCode::PARTIAL_CONTENT {
        let said = format!("bytes {}-{}/{}", part.start, part.end - 1, content.bytes);
        answer.insert_header((header::CONTENT_RANGE, said));
    }
    let bytes = part.end - part.start;
    let holder = Holder::new(ticket.name.org.0, ticket.user);
    let applicant = Applicant { holder, wait: wait_of(&request) };
    let held = applicant.reserve(&edge.budgets.answers, bytes.min(PIECE_BYTES as u64)).await?;
    let pieces = edge.files.read(ticket.name, content, part).map_err(std::io::Error::other);
    // The reservation is released with the stream.
    let pieces = pieces.map_ok(move |piece| {
        let _held = &held;
        piece
    });
    Ok(answer.no_chunking(bytes).streaming(pieces))
}

/// Adds headers that make a browser save the file instead of showing or running it.
fn add_file_headers(answer: &mut HttpResponseBuilder, file: &File, content: &Content) {
    let content_type = file.content_type.as_deref().unwrap_or(ANY_TYPE);
    answer.insert_header((header::CONTENT_TYPE, content_type));
    answer.insert_header((header::ACCEPT_RANGES, "bytes"));
    answer.insert_header((header::ETAG, format!("\"{}\"", content.hash)));
    answer.insert_header((header::CACHE_CONTROL, "private, no-store"));
    answer.insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    answer.insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"));
    let name = encoded(file.filename.as_deref().unwrap_or_default());
    answer.insert_header((header::CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{name}")));
}

/// Encodes a text for a header, as in RFC 8187.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let each = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    each.collect()
}

/// Reads and checks the ticket in the path.
///
/// Refuses tickets with a wrong signature or purpose, expired tickets, and tickets of removed users.
async fn ticket(edge: &Edge, request: &HttpRequest, deed: Deed) -> Result<Ticket, Refusal> {
    let text = request.match_info().get("ticket").unwrap_or_default();
    let secrets = edge.records.secrets().signing_secrets(TICKET_CONTEXT)?;
    let read = secrets.accepted().find_map(|secret| Ticket::parse(text, secret));
    let read = read.filter(|ticket| ticket.deed == deed && ticket.until > seconds());
    let ticket = read.ok_or_else(|| {
        Refusal::new(
            ErrorKind::Unauthorized,
            "this URL was not issued by this server for this purpose, or has expired: request a new one",
        )
    })?;
    let given = ticket.until.saturating_sub(lasts(deed));
    edge.identity.check_ticket(ticket.name.org, ticket.user, ticket.impersonator, given).await?;
    Ok(ticket)
}

/// Refuses a download whose credential has been deleted or may no longer read the file.
async fn check_still_readable(edge: &Edge, ticket: &Ticket, file: &File) -> Result<(), Refusal> {
    let Some(credential) = ticket.credential else { return Ok(()) };
    let impersonated = ticket.impersonator.map(|_| ticket.user);
    let who = edge.identity.bearer_of_url(credential, ticket.name.org, impersonated).await?;
    match may_read(edge, &who, ticket.name.org, file).await? {
        true => Ok(()),
        false => Err(Refusal::new(
            ErrorKind::Forbidden,
            "the credential that requested this URL may no longer read the file: request a new one",
        )),
    }
}

fn lasts(deed: Deed) -> u64 {
    if deed == Deed::Write { WRITE_SECONDS } else { READ_SECONDS }
}

fn address(call: &Call, name: &FileName, deed: Deed) -> Result<String, Refusal> {
    let Principal { user, impersonator, credential, .. } = call.principal;
    // An upload may go on after a short-lived credential, such as that of a call of a function.
    let credential = (deed == Deed::Read).then_some(credential);
    let ticket = Ticket { name: name.clone(), deed, user, impersonator, credential, until: seconds() + lasts(deed) };
    let text = ticket.to_text(&call.edge.records.secrets().signing_secrets(TICKET_CONTEXT)?.sign);
    Ok(format!("{}/attachment/bytes/{text}", origin_of(call)?))
}

/// Registers an upload. The first caller owns the key, so nobody else can replace the content.
async fn begin(call: &Caller, name: &FileName, filename: &str, content_type: &str) -> Result<(), Refusal> {
    let edge = &call.edge;
    own(call, edge.files.look(name).await?.as_ref())?;
    let write = ObjectWrite { object: FileName::index(name.org), rows: vec![SentItem::from(json!({}))], request: None };
    admit_writes(&edge.quotas, &call.principal, &[write])?;
    let about = About { filename, content_type, user: call.principal.user, now: seconds() };
    Ok(edge.files.begin(name, &about).await?)
}

fn own(call: &Caller, file: Option<&File>) -> Result<(), Refusal> {
    match file.and_then(|file| file.owner) {
        Some(owner) if owner != call.principal.user => {
            Err(Refusal::new(ErrorKind::Conflict, "another caller has a file with this key: use a new UUID as the key"))
        }
        _ => Ok(()),
    }
}

/// Returns whether the caller uploaded the file or may read an object that names it.
async fn may_read(edge: &Edge, who: &Principal, org: OrgId, file: &File) -> Result<bool, Refusal> {
    if file.owner == Some(who.user) {
        return Ok(true);
    }
    for object in file.refs(org).take(REFS_LOOKED_AT_MAX) {
        let found = edge.records.object(who, object.kind, object.id, Permission::Read).await;
        match found.map_err(Refusal::from) {
            Ok(home) => {
                edge.records.still(who, &[home.key], Permission::Read).await?;
                return Ok(true);
            }
            Err(refusal) if matches!(refusal.kind, ErrorKind::NotFound | ErrorKind::Forbidden) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(false)
}

/// Returns the content of an attachment that the caller may read, up to `bytes_max`.
pub async fn attachment(call: &Caller, key: &str, bytes_max: usize) -> Result<Bytes, Refusal> {
    let name = FileName::new(call.principal.org, Purpose::Attachment, key)?;
    let missing = || Refusal::new(ErrorKind::NotFound, "no attachment with this key is visible to this credential");
    let file = call.edge.files.look(&name).await?.ok_or_else(missing)?;
    if !may_read(&call.edge, &call.principal, name.org, &file).await? {
        return Err(missing());
    }
    let content = file.content.as_ref();
    let content = content.ok_or_else(|| Refusal::bad("the attachment is not uploaded yet"))?;
    Ok(call.edge.files.read_whole(&name, content, bytes_max).await?)
}

/// Stores an attachment of the caller and returns its key.
pub async fn store(caller: &Caller, (filename, content_type): (&str, &str), bytes: Bytes) -> Result<String, Refusal> {
    let (files, key) = (&caller.edge.files, Uuid::new_v4().to_string());
    let name = FileName::new(caller.principal.org, Purpose::Attachment, &key)?;
    begin(caller, &name, filename, content_type).await?;
    let source = std::pin::pin!(stream::iter([Ok::<_, Refusal>(bytes)]));
    files.put(&name, caller.edge.config.file_bytes_max, seconds(), source).await?;
    Ok(key)
}

/// Result of searching rows for attachments before they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachments {
    /// The rows name no attachments.
    None,
    /// The rows name attachments, or were not searched.
    #[default]
    Unknown,
}

impl Attachments {
    /// Searches rows for attachments. Callers use it while a body is parsed, outside of the request's worker.
    pub fn in_rows(rows: &[SentItem]) -> Attachments {
        if keys_in(rows).is_empty() { Attachments::None } else { Attachments::Unknown }
    }
}

/// Records which files the rows of a write name, and returns the write.
///
/// Skips files that the caller may not read, because a reference makes a file readable.
pub async fn refer(call: &Caller, write: ObjectWrite) -> Result<ObjectWrite, Refusal> {
    let (files, org) = (&call.edge.files, write.object.org);
    let bytes: usize = write.rows.iter().map(SentItem::bytes_about).sum();
    let (write, keys) = if bytes <= INLINE_BYTES_MAX {
        let keys = keys_in(&write.rows);
        (write, keys)
    } else {
        in_background(move || {
            let keys = keys_in(&write.rows);
            Ok((write, keys))
        })
        .await?
    };
    if keys.len() > NAMED_MAX {
        let said = format!("the rows name {} attachments; the maximum of one request is {NAMED_MAX}", keys.len());
        return Err(Refusal::new(ErrorKind::TooLarge, said));
    }
    let names = keys.iter().filter_map(|key| FileName::new(org, Purpose::Attachment, key).ok());
    let mut names: Vec<FileName> = names.filter(|name| !files.is_referred(&write.object, name)).collect();
    if names.is_empty() {
        return Ok(write);
    }
    for (name, file) in files.look_all(org, &names).await? {
        if file.owner.is_some() && !may_read(&call.edge, &call.principal, org, &file).await? {
            names.retain(|one| *one != name);
        }
    }
    if !names.is_empty() {
        files.refer(org, &write.object, &names).await?;
    }
    Ok(write)
}

fn shown(file: &File) -> Value {
    let mut status = json!({"upload_status": file.status()});
    if let Some(error) = file.error() {
        status["error_message"] = error.into();
    }
    status
}

async fn named(call: &Call, body: &Map<String, Value>) -> Result<FileName, Refusal> {
    let org = organization(call, body).await?;
    Ok(FileName::new(org, Purpose::Attachment, needed(body, "key")?)?)
}

/// Returns the organization that the body names, or else the caller's. Some clients send an empty name.
async fn organization(call: &Call, body: &Map<String, Value>) -> Result<OrgId, Refusal> {
    let Some(text) = text(body, "org_id")? else { return Ok(call.principal.org) };
    let id = Uuid::parse_str(text).map_err(|_| Refusal::bad("`org_id` has to be a UUID"))?;
    let mine = call.edge.identity.organizations(&call.principal).await?;
    let found = mine.into_iter().find(|org| org.id.0 == id);
    found.map(|org| org.id).ok_or_else(|| {
        Refusal::new(ErrorKind::NotFound, format!("no organization with the id {id} is visible to this credential"))
    })
}

fn text<'b>(body: &'b Map<String, Value>, name: &str) -> Result<Option<&'b str>, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() > TEXT_BYTES_MAX => {
            Err(Refusal::bad(format!("`{name}` has more than {TEXT_BYTES_MAX} bytes")))
        }
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(other) => Err(Refusal::bad(format!("`{name}` is {}; it should be a string", kind_of(other)))),
    }
}

/// Returns the content type of a body. It has to be printable ASCII, because downloads send it as a header.
fn content_type(body: &Map<String, Value>) -> Result<&str, Refusal> {
    let said = text(body, "content_type")?.unwrap_or(ANY_TYPE);
    if said.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Ok(said);
    }
    Err(Refusal::bad("`content_type` has characters outside ASCII; use a media type such as `image/png`"))
}

fn needed<'b>(body: &'b Map<String, Value>, name: &str) -> Result<&'b str, Refusal> {
    text(body, name)?.ok_or_else(|| Refusal::bad(format!("`{name}` is missing")))
}

fn seconds() -> u64 {
    u64::try_from(now_micros().div_euclid(1_000_000)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_headers_are_encoded() {
        assert_eq!(encoded("a b\"é.png"), "a%20b%22%C3%A9.png");
    }
}
