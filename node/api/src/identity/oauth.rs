//! Handlers of OAuth 2.1 with PKCE for user logins.
//!
//! This server is the authorization server of its clients, and the configured provider identifies the users.
//!
//! ```text
//! client -> GET authorize -> provider -> GET callback -> client (with a code) -> POST token -> tokens
//!           |                            |
//!           |                            +-- a person who is invited is asked: POST invitations
//!           +-- an error is a page until the redirect URI is known to be allowed; after that it goes to the client
//! ```

use assay_node_auth::{AskedTicket, IdTokenClaims, LoginAsked, LoginRules, form_encoded, is_pkce_text};
use assay_node_http::requests::admission::anonymous;
use assay_node_http::requests::body;
use assay_node_http::requests::login::pass;
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::response_headers::HTML;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{Data, HttpRequest, HttpResponse, Payload, Query, StatusCode, header};
use assay_node_identity::{GrantRefusal, InvitationReply, LoginTokens, PendingInvitation, ProviderRefusal};
use assay_node_records::RecordsError;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::identity::setup;

/// Only scope, which grants everything that the user may do.
pub(crate) const SCOPE: &str = "mcp";
const REPLY: &str = "/oauth/invitations";
/// Prefix of form fields that name an invitation.
const REPLY_FIELD: &str = "invitation-";
const CLIENT_BYTES_MAX: usize = 128;
const REDIRECT_BYTES_MAX: usize = 512;
/// Upper bound of a client's state, which is part of the state for the provider.
const STATE_BYTES_MAX: usize = 1024;
/// Upper bound of the body of a form.
pub(crate) const FORM_BYTES_MAX: usize = 32 << 10;
/// Upper bound of the parameters in one request. No known request has ten.
const PARAMETERS_MAX: usize = 64;

/// Error response to a client, as in RFC 6749 4.1.2.1 and 5.2.
pub(crate) struct OAuthError {
    error: &'static str,
    pub why: String,
}

fn oauth_error(error: &'static str, why: impl Into<String>) -> OAuthError {
    OAuthError { error, why: why.into() }
}

/// Returns the metadata of the authorization server, as in RFC 8414.
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

/// Redirects a browser to the provider.
pub async fn authorize(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let (asked, target) = match Parameters::of(request.query_string())
        .and_then(|asked| asked.target(passed.rules).map(|target| (asked, target)))
    {
        Ok(asked) => asked,
        Err(wrong) => return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(&wrong.why))),
    };
    let asked = match asked.login(&target) {
        Ok(asked) => asked,
        Err(wrong) => return Ok(sent_back(&target, &wrong)),
    };
    let begun = match edge.identity.begin_login(asked) {
        Err(RecordsError::TooLarge(why)) => return Ok(sent_back(&target, &oauth_error("invalid_request", why))),
        begun => begun?,
    };
    match passed.gate.provider.authorize(begun).await {
        Ok(url) => Ok(sent_to(&url)),
        Err(why) => Ok(sent_back(&target, &unavailable(&why))),
    }
}

/// Handles the redirect from the provider back to this server.
pub async fn callback(edge: Data<Edge>, request: HttpRequest) -> HandlerResult {
    let passed = pass(edge.logins.as_ref(), &edge.identity)?;
    let shown = Parameters::of(request.query_string());
    let state = shown.as_ref().ok().and_then(|shown| shown.one("state").ok().flatten());
    let pending = state.map(|state| edge.identity.pending_login(state)).transpose()?.flatten();
    let (Ok(shown), Some(pending)) = (&shown, pending) else {
        let why = "This login was not started on this server, or is older than ten minutes. Start again from your \
                   program.";
        return Ok(page(StatusCode::BAD_REQUEST, &Page::not_logged_in(why)));
    };
    let asked = pending.asked.clone();
    let target = RedirectTarget {
        redirect_uri: asked.redirect_uri.clone(),
        state: asked.state.clone(),
        client_id: String::new(),
    };
    let code = match (shown.one("error"), shown.one("code")) {
        (Ok(None), Ok(Some(code))) => code.to_owned(),
        (Ok(Some("access_denied")), _) => {
            return Ok(sent_back(&target, &oauth_error("access_denied", "the provider denied the login")));
        }
        _ => return Ok(sent_back(&target, &oauth_error("server_error", "the provider returned no code"))),
    };
    let who = match passed.gate.provider.identify(code, pending).await {
        Ok(who) => who,
        Err(why @ ProviderRefusal::Unavailable(_)) => return Ok(sent_back(&target, &unavailable(&why))),
        Err(ProviderRefusal::Refused(why)) => {
            tracing::warn!(why, "a login failed: the token of the provider is invalid");
            let why = "the token of the provider is invalid; the log of the server has the details";
            return Ok(sent_back(&target, &oauth_error("access_denied", why)));
        }
    };
    let invitations = edge.identity.pending_invitations(&who).await?;
    if asked.session.is_some() {
        return setup::ask(&edge, &asked, &who, &invitations);
    }
    if !invitations.is_empty() {
        return ask(&edge, &asked, &who, &invitations);
    }
    finished(&target, edge.identity.finish_login(&asked, &who).await)
}

fn finished(target: &RedirectTarget, code: Result<String, RecordsError>) -> HandlerResult {
    match code {
        Ok(code) => Ok(sent_to(&target.with(&[("code", &code)]))),
        Err(RecordsError::Forbidden(why)) => {
            let back = target.with(&[("error", "access_denied"), ("error_description", &why)]);
            Ok(page(StatusCode::FORBIDDEN, &Page::not_logged_in(&why).back_to(&back)))
        }
        Err(why) => Err(why.into()),
    }
}

/// Asks a user about pending invitations before the login finishes.
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

/// Returns the form fields for each invitation. The default postpones the decision.
pub(crate) fn choices(invitations: &[PendingInvitation]) -> String {
    let one = |invitation: &PendingInvitation| {
        let (organization, by) = (escaped(&invitation.organization), escaped(&invitation.invited_by));
        let choice = |word: &str, label: &str, more: &str| {
            let name = format!("{REPLY_FIELD}{}", invitation.id);
            format!("<label><input type=\"radio\" name=\"{name}\" value=\"{word}\"{more}> {label}</label> ")
        };
        format!(
            "<p><b>{by}</b> invites you to the organization <b>{organization}</b>. Its owners can see what you write \
             there.</p><p>{}{}{}</p>",
            choice("accept", "Accept", ""),
            choice("decline", "Decline", ""),
            choice("later", "Decide later", " checked"),
        )
    };
    invitations.iter().map(one).collect()
}

/// Accepts and declines invitations as the form says.
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

/// Handles `POST /oauth/invitations`: replies to invitations and finishes the login.
pub async fn reply(edge: Data<Edge>, request: HttpRequest, payload: Payload) -> HandlerResult {
    const TOO_OLD: &str = "This form was not issued by this server, or is older than five minutes. Start again from \
                           your program.";
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
    let target = RedirectTarget {
        redirect_uri: asked.redirect_uri.clone(),
        state: asked.state.clone(),
        client_id: String::new(),
    };
    if let Err(why) = edge.identity.check_unanswered(login).await {
        return finished(&target, Err(why));
    }
    carry_out(&edge, &form, &who).await?;
    finished(&target, edge.identity.finish_login_as(&asked, &who, login).await)
}

/// Handles `POST /oauth/token`: exchanges a code or a refresh token for tokens.
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
        Err(GrantRefusal::Invalid(why)) => Ok(refused(&oauth_error("invalid_grant", why))),
        Err(GrantRefusal::Failed(why)) => Err(why.into()),
    }
}

/// Revokes a token, as in RFC 7009. Unknown tokens count as revoked.
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
        Err(GrantRefusal::Invalid(why)) => Ok(refused(&oauth_error("invalid_client", why))),
        Err(GrantRefusal::Failed(why)) => Err(why.into()),
    }
}

/// Parameters of a query or form. Parameters with an empty value are absent.
pub(crate) struct Parameters(Vec<(String, String)>);

pub(crate) fn form(body: &[u8]) -> Result<Parameters, OAuthError> {
    let text =
        std::str::from_utf8(body).map_err(|_| oauth_error("invalid_request", "the body is not a form in UTF-8"))?;
    Parameters::of(text)
}

impl Parameters {
    pub fn of(text: &str) -> Result<Parameters, OAuthError> {
        let wrong = |why: String| oauth_error("invalid_request", why);
        let pairs = Query::<Vec<(String, String)>>::from_query(text);
        let mut pairs = pairs.map_err(|error| wrong(format!("the parameters are malformed: {error}")))?.into_inner();
        if pairs.len() > PARAMETERS_MAX {
            return Err(wrong(format!("there are more than {PARAMETERS_MAX} parameters")));
        }
        pairs.retain(|(_, value)| !value.is_empty());
        Ok(Parameters(pairs))
    }

    pub fn one(&self, name: &str) -> Result<Option<&str>, OAuthError> {
        let mut values = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(oauth_error("invalid_request", format!("`{name}` is repeated"))),
            (value, None) => Ok(value),
        }
    }

    fn needed(&self, name: &str) -> Result<&str, OAuthError> {
        self.one(name)?.ok_or_else(|| oauth_error("invalid_request", format!("`{name}` is missing")))
    }

    fn client(&self, rules: &LoginRules) -> Result<&str, OAuthError> {
        let client = self.needed("client_id")?;
        if client.len() > CLIENT_BYTES_MAX || client.chars().any(char::is_control) {
            return Err(oauth_error(
                "invalid_request",
                format!("`client_id` has to be a name of at most {CLIENT_BYTES_MAX} bytes"),
            ));
        }
        match rules.knows_client(client) {
            true => Ok(client),
            false => Err(oauth_error("invalid_client", "`client_id` is not listed in `oidc.clients`")),
        }
    }

    /// Returns the client and the redirect URI, if the rules allow them.
    fn target(&self, rules: &LoginRules) -> Result<RedirectTarget, OAuthError> {
        let client_id = self.client(rules)?.to_owned();
        let redirect_uri = self.needed("redirect_uri")?;
        if redirect_uri.len() > REDIRECT_BYTES_MAX || !rules.may_redirect(redirect_uri) {
            let why = "`redirect_uri` is neither http://127.0.0.1:<port>/callback (or [::1], or localhost) nor \
                       listed in `oidc.redirect_uris`";
            return Err(oauth_error("invalid_request", why));
        }
        // A repeated state is not returned, and `login` refuses it.
        let state = self.one("state").ok().flatten().map(str::to_owned);
        Ok(RedirectTarget { redirect_uri: redirect_uri.to_owned(), state, client_id })
    }

    fn login(&self, target: &RedirectTarget) -> Result<LoginAsked, OAuthError> {
        let wrong = |why: &str| Err(oauth_error("invalid_request", why));
        if self.needed("response_type")? != "code" {
            return Err(oauth_error("unsupported_response_type", "`response_type` has to be `code`"));
        }
        if self.one("state")?.is_some_and(|state| state.len() > STATE_BYTES_MAX) {
            return Err(oauth_error("invalid_request", format!("`state` has more than {STATE_BYTES_MAX} bytes")));
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
            return Err(oauth_error("invalid_scope", format!("`scope` has to be `{SCOPE}`")));
        }
        Ok(LoginAsked {
            client_id: target.client_id.clone(),
            redirect_uri: target.redirect_uri.clone(),
            state: target.state.clone(),
            challenge: challenge.to_owned(),
            scope: SCOPE.into(),
            session: None,
        })
    }
}

/// Redirect URI of a client, to which the result of its request goes.
struct RedirectTarget {
    client_id: String,
    redirect_uri: String,
    state: Option<String>,
}

impl RedirectTarget {
    fn with(&self, answer: &[(&str, &str)]) -> String {
        let mut pairs = answer.to_vec();
        pairs.extend(self.state.as_deref().map(|state| ("state", state)));
        let mark = if self.redirect_uri.contains('?') { '&' } else { '?' };
        format!("{}{mark}{}", self.redirect_uri, form_encoded(&pairs))
    }
}

/// Grant that a client exchanges for tokens.
#[derive(Debug)]
enum Grant {
    Code { client: String, code: String, redirect_uri: String, verifier: String },
    Refresh { client: String, token: String },
}

impl Grant {
    fn read(form: &Parameters, rules: &LoginRules) -> Result<Grant, OAuthError> {
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
                    return Err(oauth_error("invalid_scope", format!("`scope` has to be `{SCOPE}`")));
                }
                Ok(Grant::Refresh { client: form.client(rules)?.to_owned(), token: text("refresh_token")? })
            }
            _ => {
                let why = "`grant_type` has to be `authorization_code` or `refresh_token`";
                Err(oauth_error("unsupported_grant_type", why))
            }
        }
    }
}

pub(crate) fn unavailable(why: &ProviderRefusal) -> OAuthError {
    let (ProviderRefusal::Unavailable(why) | ProviderRefusal::Refused(why)) = why;
    tracing::warn!(why, "a login failed: the provider did not respond as expected");
    oauth_error(
        "temporarily_unavailable",
        "the provider did not respond as expected; the log of the server has the details",
    )
}

pub(crate) fn sent_to(url: &str) -> HttpResponse {
    let mut answer = HttpResponse::Found();
    // The URL contains secrets for one use, so no other server may see it.
    answer.insert_header((header::LOCATION, url)).insert_header((header::REFERRER_POLICY, "no-referrer"));
    answer.finish()
}

fn sent_back(target: &RedirectTarget, wrong: &OAuthError) -> HttpResponse {
    sent_to(&target.with(&[("error", wrong.error), ("error_description", &wrong.why)]))
}

/// Returns an error response, as in RFC 6749 5.2.
fn refused(wrong: &OAuthError) -> HttpResponse {
    let said: Value = json!({"error": wrong.error, "error_description": wrong.why});
    HttpResponse::BadRequest().content_type("application/json").body(said.to_string())
}

/// HTML page for a user, without scripts.
#[derive(Debug)]
pub(crate) struct Page<'p> {
    pub title: &'p str,
    pub heading: &'p str,
    /// Plain text.
    pub why: &'p str,
    /// HTML after the text.
    pub more: String,
    /// Whether the page has a form that this server receives.
    pub has_form: bool,
}

impl<'p> Page<'p> {
    pub fn not_logged_in(why: &'p str) -> Page<'p> {
        Page { title: "Not logged in", heading: "You are not logged in", why, more: String::new(), has_form: false }
    }

    fn back_to(self, url: &str) -> Page<'p> {
        let more = format!("<p><a href=\"{}\">Back to your program</a></p>", escaped(url));
        Page { more, ..self }
    }
}

pub(crate) fn page(status: StatusCode, page: &Page<'_>) -> HttpResponse {
    const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    // Browsers also apply `form-action` to redirects after a form, and a login ends at the client's URL.
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
            provider: "login.example".into(),
            origin: "https://assay.example".into(),
            clients: vec!["cli".into()],
            redirect_uris: vec!["https://app.example/back?x=1".into()],
            access_seconds: 600,
            login_seconds: 3600,
        }
    }

    /// Reads a right request with one parameter replaced. An error comes with whether it goes to the client.
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
        let target = parameters.target(&rules()).map_err(|wrong| (wrong.why, false))?;
        parameters.login(&target).map_err(|wrong| (format!("{}: {}", wrong.error, wrong.why), true))
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
            (&[("client_id", "cli"), ("client_id", "cli")], "is repeated", false),
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
            (&[("state", "a"), ("state", "b")], "`state` is repeated", true),
        ] {
            let (why, told) = asked(change).expect_err(says);
            assert!(why.contains(says) && told == tells_client, "{change:?}: {why}");
        }
        let many = "a=1&".repeat(PARAMETERS_MAX + 1);
        assert!(Parameters::of(&many).is_err_and(|wrong| wrong.why.contains("more than 64")));
    }

    #[test]
    fn an_answer_is_put_behind_what_the_address_has() {
        let target = |redirect_uri: &str| RedirectTarget {
            client_id: String::new(),
            redirect_uri: redirect_uri.into(),
            state: Some("a&b".into()),
        };
        assert_eq!(target("http://[::1]/callback").with(&[("code", "c")]), "http://[::1]/callback?code=c&state=a%26b");
        assert_eq!(
            target("https://app.example/back?x=1").with(&[("error", "e")]),
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
