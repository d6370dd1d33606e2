//! Logins of people, by OAuth 2.1 with PKCE: this server is the authorization server of its clients, and has people identified
//! by the provider that the operator named.
//!
//! ```text
//! client -> GET authorize -> provider -> GET callback -> client (with a code) -> POST token -> tokens
//!           |                            |
//!           |                            +-- a person who is invited is asked: POST invitations
//!           +-- what is wrong before the client's address is known to be allowed is a page; behind that the client is told
//! ```

use assay_node_auth::{AskedTicket, IdTokenClaims, LoginAsked, LoginRules, form_encoded, is_pkce_text};
use assay_node_http::requests::admission::anonymous;
use assay_node_http::requests::body;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::response_headers::HTML;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Payload, Query, StatusCode, header};
use assay_node_identity::{GrantRefusal, InvitationReply, LoginTokens, PendingInvitation, ProviderRefusal};
use assay_node_records::RecordsError;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::identity::login::pass;
use crate::identity::setup;

/// What may be asked for: everything that the user may do. Clients of the API's own ask for it.
pub(crate) const SCOPE: &str = "mcp";
const REPLY: &str = "/oauth/invitations";
/// Before the id of an invitation, in the form that asks about it.
const REPLY_FIELD: &str = "invitation-";
const CLIENT_BYTES_MAX: usize = 128;
const REDIRECT_BYTES_MAX: usize = 512;
/// Goes to the provider and back within our own.
const STATE_BYTES_MAX: usize = 1024;
/// A form of tokens.
pub(crate) const FORM_BYTES_MAX: usize = 32 << 10;
/// Parameters of one request; none that is known has ten.
const PARAMETERS_MAX: usize = 64;

/// An error that a client is told: RFC 6749 4.1.2.1 and 5.2.
pub(crate) struct Told {
    error: &'static str,
    pub why: String,
}

fn told(error: &'static str, why: impl Into<String>) -> Told {
    Told { error, why: why.into() }
}

/// RFC 8414.
pub async fn metadata(edge: Data<Edge>) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let origin = &passed.rules.origin;
    json(&json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/oauth/authorize"),
        "token_endpoint": format!("{origin}/oauth/token"),
        "revocation_endpoint": format!("{origin}/oauth/revoke"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": [SCOPE],
    }))
}

/// Sends a browser on to the provider.
pub async fn authorize(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let (asked, place) = match Parameters::of(request.query_string())
        .and_then(|asked| asked.place(passed.rules).map(|place| (asked, place)))
    {
        Ok(asked) => asked,
        Err(wrong) => return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(&wrong.why))),
    };
    let asked = match asked.login(&place) {
        Ok(asked) => asked,
        Err(wrong) => return Ok(sent_back(&place, &wrong)),
    };
    let begun = match edge.identity.begin_login(asked) {
        Err(RecordsError::TooLarge(why)) => return Ok(sent_back(&place, &told("invalid_request", why))),
        begun => begun?,
    };
    match passed.gate.provider.authorize(begun).await {
        Ok(url) => Ok(sent_to(&url)),
        Err(why) => Ok(sent_back(&place, &unavailable(&why))),
    }
}

/// A browser that comes back from the provider.
pub async fn callback(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let shown = Parameters::of(request.query_string());
    let state = shown.as_ref().ok().and_then(|shown| shown.one("state").ok().flatten());
    let pending = state.map(|state| edge.identity.pending_login(state)).transpose()?.flatten();
    let (Ok(shown), Some(pending)) = (&shown, pending) else {
        let why = "This login was not begun here, or longer than ten minutes ago. Begin again from the program that you came \
                   from.";
        return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(why)));
    };
    let asked = pending.asked.clone();
    let place =
        Place { redirect_uri: asked.redirect_uri.clone(), state: asked.state.clone(), client_id: String::new() };
    let code = match (shown.one("error"), shown.one("code")) {
        (Ok(None), Ok(Some(code))) => code.to_owned(),
        (Ok(Some("access_denied")), _) => {
            return Ok(sent_back(&place, &told("access_denied", "the provider says that the login was denied")));
        }
        _ => return Ok(sent_back(&place, &told("server_error", "the provider sent no code"))),
    };
    let who = match passed.gate.provider.identify(code, pending).await {
        Ok(who) => who,
        Err(why @ ProviderRefusal::Unavailable(_)) => return Ok(sent_back(&place, &unavailable(&why))),
        Err(ProviderRefusal::Refused(why)) => {
            tracing::warn!(why, "somebody was not logged in: what the provider says of them is not taken");
            let why = "what the provider says of the login is not taken; the log of the server has more";
            return Ok(sent_back(&place, &told("access_denied", why)));
        }
    };
    let invitations = edge.identity.pending_invitations(&who).await?;
    if asked.session.is_some() {
        return setup::ask(&edge, &asked, &who, &invitations);
    }
    if !invitations.is_empty() {
        return ask(&edge, &asked, &who, &invitations);
    }
    finished(&place, edge.identity.finish_login(&asked, &who).await)
}

fn finished(place: &Place, code: Result<String, RecordsError>) -> HandlerResult {
    match code {
        Ok(code) => Ok(sent_to(&place.with(&[("code", &code)]))),
        Err(RecordsError::Forbidden(why)) => {
            let back = place.with(&[("error", "access_denied"), ("error_description", &why)]);
            Ok(page(StatusCode::FORBIDDEN, &Page::not_logged_in(&why).back_to(&back)))
        }
        Err(why) => Err(why.into()),
    }
}

/// Asks a person about the organizations that invited them, before they are logged in.
fn ask(edge: &Data<Edge>, asked: &LoginAsked, who: &IdTokenClaims, invitations: &[PendingInvitation]) -> HandlerResult {
    let (answer, _) = edge.identity.ask_person(asked, who)?;
    let more = format!(
        "<form method=\"post\" action=\"{REPLY}\"><input type=\"hidden\" name=\"answer\" value=\"{answer}\">{}\
         <button>Continue</button></form>",
        choices(invitations)
    );
    let asks = Page { title: "Invitations", heading: "You are invited", why: "", more, has_form: true };
    Ok(page(StatusCode::OK, &asks))
}

/// A choice for each invitation, as fields of a form. Nothing is chosen for the person: later is the default.
pub(crate) fn choices(invitations: &[PendingInvitation]) -> String {
    let one = |invitation: &PendingInvitation| {
        let (organization, by) = (escaped(&invitation.organization), escaped(&invitation.invited_by));
        let choice = |word: &str, label: &str, more: &str| {
            let name = format!("{REPLY_FIELD}{}", invitation.id);
            format!("<label><input type=\"radio\" name=\"{name}\" value=\"{word}\"{more}> {label}</label> ")
        };
        format!(
            "<p><b>{by}</b> invites you to the organization <b>{organization}</b>. Its owners will see what you write there.</p><p>{}{}{}</p>",
            choice("accept", "Accept", ""),
            choice("decline", "Decline", ""),
            choice("later", "Decide later", " checked"),
        )
    };
    invitations.iter().map(one).collect()
}

/// Carries out what a person chose on such a page.
pub(crate) async fn carry_out(edge: &Data<Edge>, form: &Parameters, who: &IdTokenClaims) -> Result<(), Refusal> {
    for (name, value) in &form.0 {
        let id = name.strip_prefix(REPLY_FIELD).and_then(|id| Uuid::parse_str(id).ok());
        let reply = match value.as_str() {
            "accept" => InvitationReply::Accept,
            "decline" => InvitationReply::Decline,
            _ => continue,
        };
        if let Some(id) = id {
            edge.identity.reply_at_login(who, id, reply).await?;
        }
    }
    Ok(())
}

/// What a person says to their invitations while they log in.
pub async fn reply(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    const TOO_OLD: &str = "You were not asked that here, or longer than five minutes ago. Begin again from the program that you came from.";
    let _passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let form = form(&body.bytes).ok();
    let answer = form.as_ref().and_then(|form| form.one("answer").ok().flatten());
    let ticket = answer.map(|answer| edge.identity.allowed(answer)).transpose()?.flatten();
    let ticket = ticket.filter(|ticket| ticket.asked.session.is_none());
    let (Some(form), Some(AskedTicket { asked, email, is_verified, login: Some(login), .. })) = (form, ticket) else {
        return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(TOO_OLD)));
    };
    let who = IdTokenClaims { email, is_verified };
    let place =
        Place { redirect_uri: asked.redirect_uri.clone(), state: asked.state.clone(), client_id: String::new() };
    if let Err(why) = edge.identity.check_unanswered(login).await {
        return finished(&place, Err(why));
    }
    carry_out(&edge, &form, &who).await?;
    finished(&place, edge.identity.finish_login_as(&asked, &who, login).await)
}

/// For clients that have a code, or a refresh token.
pub async fn token(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let grant = form(&body.bytes).and_then(|form| Grant::read(&form, passed.rules));
    let tokens = match grant {
        Err(wrong) => return Ok(refused(&wrong)),
        Ok(Grant::Code { client, code, redirect_uri, verifier }) => {
            edge.identity.redeem_code(&code, &client, &redirect_uri, &verifier).await
        }
        Ok(Grant::Refresh { client, token }) => edge.identity.refresh_login(&token, &client).await,
    };
    match tokens {
        Ok(LoginTokens { access, refresh, expires_in, scope }) => json(&json!({
            "access_token": access.expose(),
            "token_type": "Bearer",
            "expires_in": expires_in,
            "refresh_token": refresh.expose(),
            "scope": scope,
        })),
        Err(GrantRefusal::Invalid(why)) => Ok(refused(&told("invalid_grant", why))),
        Err(GrantRefusal::Failed(why)) => Err(why.into()),
    }
}

/// RFC 7009. What is no token here is revoked already.
pub async fn revoke(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    let _passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let body = body::read(&edge, &anonymous(&request), &request, payload, FORM_BYTES_MAX).await?;
    let asked = form(&body.bytes).and_then(|form| {
        let client = form.one("client_id")?.map(str::to_owned);
        Ok((form.needed("token")?.to_owned(), client))
    });
    let (token, client) = match asked {
        Ok(asked) => asked,
        Err(wrong) => return Ok(refused(&wrong)),
    };
    match edge.identity.end_login(&token, client.as_deref()).await {
        Ok(()) => json(&json!({})),
        Err(GrantRefusal::Invalid(why)) => Ok(refused(&told("invalid_client", why))),
        Err(GrantRefusal::Failed(why)) => Err(why.into()),
    }
}

/// Names and values, each name once; an empty value is none.
pub(crate) struct Parameters(Vec<(String, String)>);

pub(crate) fn form(body: &[u8]) -> Result<Parameters, Told> {
    let text = std::str::from_utf8(body).map_err(|_| told("invalid_request", "the body is no form in UTF-8"))?;
    Parameters::of(text)
}

impl Parameters {
    pub fn of(text: &str) -> Result<Parameters, Told> {
        let wrong = |why: String| told("invalid_request", why);
        let pairs = Query::<Vec<(String, String)>>::from_query(text);
        let mut pairs = pairs.map_err(|error| wrong(format!("the parameters are malformed: {error}")))?.into_inner();
        if pairs.len() > PARAMETERS_MAX {
            return Err(wrong(format!("there are more than {PARAMETERS_MAX} parameters")));
        }
        pairs.retain(|(_, value)| !value.is_empty());
        Ok(Parameters(pairs))
    }

    pub fn one(&self, name: &str) -> Result<Option<&str>, Told> {
        let mut values = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(told("invalid_request", format!("`{name}` comes more than once"))),
            (value, None) => Ok(value),
        }
    }

    fn needed(&self, name: &str) -> Result<&str, Told> {
        self.one(name)?.ok_or_else(|| told("invalid_request", format!("`{name}` is missing")))
    }

    fn client(&self, rules: &LoginRules) -> Result<&str, Told> {
        let client = self.needed("client_id")?;
        if client.len() > CLIENT_BYTES_MAX || client.chars().any(char::is_control) {
            return Err(told("invalid_request", format!("`client_id` is a name of at most {CLIENT_BYTES_MAX} bytes")));
        }
        match rules.knows_client(client) {
            true => Ok(client),
            false => Err(told("invalid_client", "`client_id` is none of those that `oidc.clients` names")),
        }
    }

    /// Who asks, and where they may be answered.
    fn place(&self, rules: &LoginRules) -> Result<Place, Told> {
        let client_id = self.client(rules)?.to_owned();
        let redirect_uri = self.needed("redirect_uri")?;
        if redirect_uri.len() > REDIRECT_BYTES_MAX || !rules.may_redirect(redirect_uri) {
            let why = "`redirect_uri` is neither http://127.0.0.1:<port>/callback, with [::1] or localhost as well, nor one that \
                       `oidc.redirect_uris` names";
            return Err(told("invalid_request", why));
        }
        // One that comes twice is told of below, and is not given back.
        let state = self.one("state").ok().flatten().map(str::to_owned);
        Ok(Place { redirect_uri: redirect_uri.to_owned(), state, client_id })
    }

    fn login(&self, place: &Place) -> Result<LoginAsked, Told> {
        let wrong = |why: &str| Err(told("invalid_request", why));
        if self.needed("response_type")? != "code" {
            return Err(told("unsupported_response_type", "`response_type` has to be `code`"));
        }
        if self.one("state")?.is_some_and(|state| state.len() > STATE_BYTES_MAX) {
            return Err(told("invalid_request", format!("`state` has more than {STATE_BYTES_MAX} bytes")));
        }
        if self.one("code_challenge_method")? != Some("S256") {
            return wrong("`code_challenge_method` has to be `S256`");
        }
        let challenge = self.needed("code_challenge")?;
        if !is_pkce_text(challenge) {
            return wrong("`code_challenge` has to be the SHA-256 of the verifier, in base64url");
        }
        let scope = self.one("scope")?.unwrap_or(SCOPE);
        if scope.split(' ').any(|word| word != SCOPE) {
            return Err(told("invalid_scope", format!("`scope` has to be `{SCOPE}`")));
        }
        Ok(LoginAsked {
            client_id: place.client_id.clone(),
            redirect_uri: place.redirect_uri.clone(),
            state: place.state.clone(),
            challenge: challenge.to_owned(),
            scope: SCOPE.into(),
            session: None,
        })
    }
}

/// Where a client is told how its request ended.
struct Place {
    client_id: String,
    redirect_uri: String,
    state: Option<String>,
}

impl Place {
    fn with(&self, answer: &[(&str, &str)]) -> String {
        let mut pairs = answer.to_vec();
        pairs.extend(self.state.as_deref().map(|state| ("state", state)));
        let mark = if self.redirect_uri.contains('?') { '&' } else { '?' };
        format!("{}{mark}{}", self.redirect_uri, form_encoded(&pairs))
    }
}

/// What a client shows for tokens.
#[derive(Debug)]
enum Grant {
    Code { client: String, code: String, redirect_uri: String, verifier: String },
    Refresh { client: String, token: String },
}

impl Grant {
    fn read(form: &Parameters, rules: &LoginRules) -> Result<Grant, Told> {
        let grant = form.needed("grant_type")?;
        let text = |name: &str| form.needed(name).map(str::to_owned);
        match grant {
            "authorization_code" => Ok(Grant::Code {
                client: form.client(rules)?.to_owned(),
                code: text("code")?,
                redirect_uri: text("redirect_uri")?,
                verifier: text("code_verifier")?,
            }),
            "refresh_token" => {
                if form.one("scope")?.is_some_and(|scope| scope.split(' ').any(|word| word != SCOPE)) {
                    return Err(told("invalid_scope", format!("`scope` has to be `{SCOPE}`")));
                }
                Ok(Grant::Refresh { client: form.client(rules)?.to_owned(), token: text("refresh_token")? })
            }
            _ => {
                let why = "`grant_type` has to be `authorization_code` or `refresh_token`";
                Err(told("unsupported_grant_type", why))
            }
        }
    }
}

pub(crate) fn unavailable(why: &ProviderRefusal) -> Told {
    let (ProviderRefusal::Unavailable(why) | ProviderRefusal::Refused(why)) = why;
    tracing::warn!(why, "somebody could not log in: the provider does not answer as it should");
    told("temporarily_unavailable", "the provider does not answer as it should; the log of the server has more")
}

pub(crate) fn sent_to(url: &str) -> HttpResponse {
    let mut answer = HttpResponse::Found();
    // Where it leads is nobody's but the browser's, and holds what is shown once.
    answer.insert_header((header::LOCATION, url)).insert_header((header::REFERRER_POLICY, "no-referrer"));
    answer.finish()
}

fn sent_back(place: &Place, wrong: &Told) -> HttpResponse {
    sent_to(&place.with(&[("error", wrong.error), ("error_description", &wrong.why)]))
}

/// RFC 6749 5.2.
fn refused(wrong: &Told) -> HttpResponse {
    let said: Value = json!({"error": wrong.error, "error_description": wrong.why});
    HttpResponse::BadRequest().content_type("application/json").body(said.to_string())
}

/// For a person. It runs nothing.
#[derive(Debug)]
pub(crate) struct Page<'p> {
    pub title: &'p str,
    pub heading: &'p str,
    /// Text.
    pub why: &'p str,
    /// HTML.
    pub more: String,
    /// Of its own, which is sent back here.
    pub has_form: bool,
}

impl<'p> Page<'p> {
    pub fn not_logged_in(why: &'p str) -> Page<'p> {
        Page { title: "Not logged in", heading: "You are not logged in", why, more: String::new(), has_form: false }
    }

    fn back_to(self, url: &str) -> Page<'p> {
        let more = format!("<p><a href=\"{}\">Back to the program that you came from</a></p>", escaped(url));
        Page { more, ..self }
    }
}

pub(crate) fn page(status: StatusCode, page: &Page<'_>) -> HttpResponse {
    const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    // Browsers hold the redirect behind a form to it too, and a login ends at the client's own address.
    const POLICY_OF_FORMS: &str =
        "default-src 'none'; base-uri 'none'; form-action 'self' http: https:; frame-ancestors 'none'";
    let Page { title, heading, why, more, has_form } = page;
    let text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body>\
         <h1>{heading}</h1><p>{}</p>{more}</body></html>\n",
        escaped(why)
    );
    let policy = if *has_form { POLICY_OF_FORMS } else { POLICY };
    let mut answer = HttpResponse::build(status);
    answer.insert_header((header::CONTENT_TYPE, HTML)).insert_header((header::CONTENT_SECURITY_POLICY, policy));
    answer.insert_header((header::REFERRER_POLICY, "no-referrer"));
    answer.body(text)
}

pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    fn rules() -> LoginRules {
        LoginRules {
            origin: "https://assay.example".into(),
            clients: vec!["cli".into()],
            redirect_uris: vec!["https://app.example/back?x=1".into()],
            access_seconds: 600,
            login_seconds: 3600,
        }
    }

    /// What is asked for with a part in the place of one that is right; or the error that is told, and whether the client is.
    fn asked(change: &[(&str, &str)]) -> Result<LoginAsked, (String, bool)> {
        let right = [
            ("client_id", "cli"),
            ("redirect_uri", "http://127.0.0.1:1/callback"),
            ("state", "a&b"),
            ("response_type", "code"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        let kept = right.into_iter().filter(|(name, _)| change.iter().all(|(changed, _)| changed != name));
        let pairs: Vec<_> = kept.chain(change.iter().copied()).collect();
        let parameters = Parameters::of(&form_encoded(&pairs)).map_err(|wrong| (wrong.why, false))?;
        let place = parameters.place(&rules()).map_err(|wrong| (wrong.why, false))?;
        parameters.login(&place).map_err(|wrong| (format!("{}: {}", wrong.error, wrong.why), true))
    }

    #[test]
    fn what_is_asked_for_is_checked_and_the_client_told_once_it_is_known() {
        let right = asked(&[]).expect("is right");
        assert_eq!((right.state.as_deref(), right.scope.as_str()), (Some("a&b"), SCOPE));
        assert!(asked(&[("scope", "mcp"), ("state", ""), ("more", "x")]).expect("is right").state.is_none());
        let long = "x".repeat(STATE_BYTES_MAX + 1);
        for (change, says, tells_client) in [
            (&[("client_id", "")][..], "`client_id` is missing", false),
            (&[("client_id", "other")], "oidc.clients", false),
            (&[("client_id", "cli"), ("client_id", "cli")], "more than once", false),
            (&[("redirect_uri", "")], "`redirect_uri` is missing", false),
            (&[("redirect_uri", "https://evil.example/callback")], "`redirect_uri` is neither", false),
            (&[("response_type", "token")], "unsupported_response_type", true),
            (&[("response_type", "")], "invalid_request: `response_type` is missing", true),
            (&[("code_challenge", "")], "invalid_request: `code_challenge` is missing", true),
            (&[("code_challenge", "short")], "invalid_request: `code_challenge` has", true),
            (&[("code_challenge_method", "plain")], "has to be `S256`", true),
            (&[("code_challenge_method", "")], "has to be `S256`", true),
            (&[("scope", "mcp admin")], "invalid_scope", true),
            (&[("state", &long)], "more than 1024 bytes", true),
            (&[("state", "a"), ("state", "b")], "`state` comes more than once", true),
        ] {
            let (why, told) = asked(change).expect_err(says);
            assert!(why.contains(says) && told == tells_client, "{change:?}: {why}");
        }
        let many = "a=1&".repeat(PARAMETERS_MAX + 1);
        assert!(Parameters::of(&many).is_err_and(|wrong| wrong.why.contains("more than 64")));
    }

    #[test]
    fn an_answer_is_put_behind_what_the_address_has() {
        let place = |redirect_uri: &str| Place {
            client_id: String::new(),
            redirect_uri: redirect_uri.into(),
            state: Some("a&b".into()),
        };
        assert_eq!(place("http://[::1]/callback").with(&[("code", "c")]), "http://[::1]/callback?code=c&state=a%26b");
        assert_eq!(
            place("https://app.example/back?x=1").with(&[("error", "e")]),
            "https://app.example/back?x=1&error=e&state=a%26b"
        );
    }

    #[test]
    fn a_grant_has_all_that_it_needs() {
        let read = |text: &str| {
            let form = form(text.as_bytes()).map_err(|wrong| wrong.error)?;
            Grant::read(&form, &rules()).map_err(|wrong| wrong.error)
        };
        let code = "grant_type=authorization_code&client_id=cli&code=a+b&redirect_uri=x&code_verifier=v";
        assert!(matches!(read(code), Ok(Grant::Code { code, .. }) if code == "a b"));
        assert!(matches!(read("grant_type=refresh_token&client_id=cli&refresh_token=r"), Ok(Grant::Refresh { .. })));
        for name in ["client_id", "code", "redirect_uri", "code_verifier", "grant_type"] {
            let without = code.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect::<Vec<_>>();
            assert_eq!(read(&without.join("&")).unwrap_err(), "invalid_request", "{name}");
        }
        for (text, error) in [
            ("", "invalid_request"),
            ("grant_type=password&client_id=cli", "unsupported_grant_type"),
            ("grant_type=refresh_token&client_id=other&refresh_token=r", "invalid_client"),
            ("grant_type=refresh_token&client_id=cli&refresh_token=r&refresh_token=s", "invalid_request"),
            ("grant_type=refresh_token&client_id=cli&refresh_token=r&scope=all", "invalid_scope"),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
        assert!(form(b"\xff").is_err());
    }

    #[test]
    fn a_page_shows_what_it_is_told_as_text() {
        assert_eq!(escaped("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }
}
