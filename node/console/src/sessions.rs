//! Handlers of `/console/session`, with which a browser signs in, renews its session, and signs out.

use assay_node_http::requests::caller::Call;
use assay_node_http::requests::console_session::{
    CONSOLE_HEADER, CONSOLE_HEADER_VALUE, ConsoleCookie, check_origin, has_console_header, session_value,
};
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json_builder};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, Query, header};
use assay_node_identity::{ConsoleSessionTimes, is_login};
use serde_json::{Value, json};

/// Handles `POST /console/session`: opens a session for the credential of the request, and sets its cookie.
///
/// The page discards the credential afterwards.
pub async fn open(call: Call) -> HandlerResult {
    let (edge, request) = (&call.edge, &call.request);
    check_enabled(edge)?;
    if !has_console_header(request.headers()) {
        let why = format!(
            "only pages of this server may open a session: send the header `{CONSOLE_HEADER}: {CONSOLE_HEADER_VALUE}`"
        );
        return Err(Refusal::bad(why));
    }
    check_origin(request, edge)?;
    if session_value(request, edge)?.is_some() {
        // Otherwise a stolen cookie would outlive the end of its session.
        let why = "a session cannot open another one: send an API key or a token in `Authorization`";
        return Err(Refusal::new(ErrorKind::Unauthorized, why));
    }
    let opened = edge.identity.open_console_session(&call.principal).await?;
    let body = described(&call, opened.times).await?;
    let cookie = ConsoleCookie::of_session(request, edge).set(&opened.value, opened.times.seconds_left());
    Ok(json_builder().insert_header((header::SET_COOKIE, cookie)).body(body.to_string()))
}

/// Handles `GET /console/session`: describes the user, extends the session, and replaces an old cookie value.
pub async fn get(call: Call) -> HandlerResult {
    let (edge, request) = (&call.edge, &call.request);
    let Some(value) = session_value(request, edge)? else {
        let why = "the request has no session of the console: sign in, or ask for `/api/self/me` with a credential";
        return Err(Refusal::new(ErrorKind::Unauthorized, why));
    };
    let renewed = edge.identity.renew_console_session(value.expose()).await?;
    let body = described(&call, renewed.times).await?;
    let mut response = json_builder();
    let cookie = ConsoleCookie::of_session(request, edge);
    let value = renewed.value.unwrap_or(value);
    response.insert_header((header::SET_COOKIE, cookie.set(&value, renewed.times.seconds_left())));
    Ok(response.body(body.to_string()))
}

/// Handles `DELETE /console/session`: signs out this browser, or all browsers of the user with `everywhere=true`.
///
/// The request succeeds and removes the cookie even without a session.
pub async fn end(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    check_enabled(&edge)?;
    let asked = Query::<Vec<(String, String)>>::from_query(request.query_string());
    let asked = asked.map_err(|error| Refusal::bad(format!("the query is malformed: {error}")))?.into_inner();
    let everywhere = match asked.iter().find(|(name, _)| name == "everywhere").map(|(_, value)| value.as_str()) {
        None | Some("" | "false") => false,
        Some("true") => true,
        Some(_) => return Err(Refusal::bad("`everywhere` has to be true or false")),
    };
    if let Some(value) = session_value(&request, &edge)? {
        edge.identity.end_console_session(value.expose(), everywhere).await?;
    }
    let cookie = ConsoleCookie::of_session(&request, &edge).removed();
    Ok(json_builder().insert_header((header::SET_COOKIE, cookie)).body("{}"))
}

pub(crate) fn check_enabled(edge: &Edge) -> Result<(), Refusal> {
    match edge.console.config.enabled {
        true => Ok(()),
        false => {
            Err(Refusal::new(ErrorKind::NotFound, "this server does not serve the console: `console.enabled` is false"))
        }
    }
}

/// Returns the caller and the end of the session as JSON.
async fn described(call: &Call, times: ConsoleSessionTimes) -> Result<Value, Refusal> {
    let who = &call.principal;
    let organizations = call.edge.identity.organizations(who).await?;
    let organizations: Vec<Value> = organizations.iter().map(|org| json!({"id": org.id, "name": org.name})).collect();
    let [given, family] = call.edge.identity.names_of(who.user)?;
    Ok(json!({
        "user": {
            "id": who.user, "email": who.user_email,
            "given_name": given, "family_name": family,
        },
        "organizations": organizations,
        "by": if is_login(who) { "login" } else { "key" },
        "expires_at": times.until,
        "idle_until": times.idle_until,
    }))
}
