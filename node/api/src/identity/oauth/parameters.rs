//! Parameters of OAuth requests: their checks, and the errors for clients.

use assay_node_auth::{LoginAsked, LoginClient, LoginRules, form_encoded, is_pkce_text};
use assay_node_http::web::Query;
use assay_node_mcp_http::MCP_PATH;

use super::SCOPE;

const REDIRECT_BYTES_MAX: usize = 512;
/// Upper bound of a client's state, which is part of the state for the provider.
const STATE_BYTES_MAX: usize = 1024;
/// Upper bound of the parameters in one request. No known request has ten.
const PARAMETERS_MAX: usize = 64;

/// Error response to a client, as in RFC 6749 4.1.2.1 and 5.2.
#[derive(Debug)]
pub(crate) struct OAuthError {
    pub error: &'static str,
    pub why: String,
}

pub(crate) fn oauth_error(error: &'static str, why: impl Into<String>) -> OAuthError {
    OAuthError { error, why: why.into() }
}

/// Parameters of a query or form. Parameters with an empty value are absent.
pub(crate) struct Parameters(pub Vec<(String, String)>);

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

    pub fn needed(&self, name: &str) -> Result<&str, OAuthError> {
        self.one(name)?.ok_or_else(|| oauth_error("invalid_request", format!("`{name}` is missing")))
    }

    /// Returns the redirect URI, if the client may have it.
    pub fn target(&self, rules: &LoginRules, client: &LoginClient) -> Result<RedirectTarget, OAuthError> {
        let redirect_uri = self.needed("redirect_uri")?;
        if redirect_uri.len() > REDIRECT_BYTES_MAX || !client.may_redirect(rules, redirect_uri) {
            let why = match client.registration {
                Some(_) => "`redirect_uri` is not one that the client has registered",
                None => {
                    "`redirect_uri` is neither http://127.0.0.1:<port>/callback (or [::1], or localhost) nor listed \
                     in `oidc.redirect_uris`"
                }
            };
            return Err(oauth_error("invalid_request", why));
        }
        // A repeated state is not returned, and `login` refuses it.
        let state = self.one("state").ok().flatten().map(str::to_owned);
        Ok(RedirectTarget { redirect_uri: redirect_uri.to_owned(), state, issuer: rules.origin.clone() })
    }

    /// Returns the login that a client asks for.
    pub fn login(
        &self,
        rules: &LoginRules,
        client: &LoginClient,
        target: &RedirectTarget,
    ) -> Result<LoginAsked, OAuthError> {
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
        self.check_resource(rules)?;
        let scope = self.one("scope")?.unwrap_or(SCOPE);
        if scope.split(' ').any(|word| word != SCOPE) {
            return Err(oauth_error("invalid_scope", format!("`scope` has to be `{SCOPE}`")));
        }
        Ok(LoginAsked {
            client_id: client.id.clone(),
            redirect_uri: target.redirect_uri.clone(),
            state: target.state.clone(),
            challenge: challenge.to_owned(),
            scope: SCOPE.into(),
            session: None,
            registered: client.registration.as_ref().map(|registration| registration.name.clone()),
        })
    }

    /// Checks the resource that the tokens are for (RFC 8707), which can only be this server.
    fn check_resource(&self, rules: &LoginRules) -> Result<(), OAuthError> {
        let Some(resource) = self.one("resource")? else { return Ok(()) };
        let path = resource.strip_prefix(rules.origin.as_str()).map(|path| path.trim_end_matches('/'));
        match path {
            Some("" | MCP_PATH) => Ok(()),
            _ => Err(oauth_error("invalid_target", format!("`resource` has to be {}{MCP_PATH}", rules.origin))),
        }
    }
}

/// Redirect URI of a client, to which the result of its request goes.
pub(crate) struct RedirectTarget {
    redirect_uri: String,
    state: Option<String>,
    /// Issuer of the response, by which a client recognizes it (RFC 9207).
    issuer: String,
}

impl RedirectTarget {
    /// Returns the target of a login that was started.
    pub fn of(asked: &LoginAsked, rules: &LoginRules) -> RedirectTarget {
        let (redirect_uri, state) = (asked.redirect_uri.clone(), asked.state.clone());
        RedirectTarget { redirect_uri, state, issuer: rules.origin.clone() }
    }

    pub fn with(&self, answer: &[(&str, &str)]) -> String {
        let mut pairs = answer.to_vec();
        pairs.extend(self.state.as_deref().map(|state| ("state", state)));
        pairs.push(("iss", &self.issuer));
        let mark = if self.redirect_uri.contains('?') { '&' } else { '?' };
        format!("{}{mark}{}", self.redirect_uri, form_encoded(&pairs))
    }
}

/// Grant that a client exchanges for tokens.
#[derive(Debug)]
pub(crate) enum Grant {
    Code { client: String, code: String, redirect_uri: String, verifier: String },
    Refresh { client: String, token: String },
}

impl Grant {
    pub fn read(form: &Parameters, rules: &LoginRules, client: &LoginClient) -> Result<Grant, OAuthError> {
        let grant = form.needed("grant_type")?;
        form.check_resource(rules)?;
        let text = |name: &str| form.needed(name).map(str::to_owned);
        match grant {
            "authorization_code" => Ok(Grant::Code {
                client: client.id.clone(),
                code: text("code")?,
                redirect_uri: text("redirect_uri")?,
                verifier: text("code_verifier")?,
            }),
            "refresh_token" => {
                if form.one("scope")?.is_some_and(|scope| scope.split(' ').any(|word| word != SCOPE)) {
                    return Err(oauth_error("invalid_scope", format!("`scope` has to be `{SCOPE}`")));
                }
                Ok(Grant::Refresh { client: client.id.clone(), token: text("refresh_token")? })
            }
            _ => {
                let why = "`grant_type` has to be `authorization_code` or `refresh_token`";
                Err(oauth_error("unsupported_grant_type", why))
            }
        }
    }
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
            is_registration_open: false,
            access_seconds: 600,
            login_seconds: 3600,
        }
    }

    fn client() -> LoginClient {
        LoginClient { id: "cli".into(), registration: None }
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
        let client = client();
        let target = parameters.target(&rules(), &client).map_err(|wrong| (wrong.why, false))?;
        parameters.login(&rules(), &client, &target).map_err(|wrong| (format!("{}: {}", wrong.error, wrong.why), true))
    }

    #[test]
    fn what_is_asked_for_is_checked_and_the_client_told_once_it_is_known() {
        let right = asked(&[]).expect("is right");
        assert_eq!((right.state.as_deref(), right.scope.as_str()), (Some("a&b"), SCOPE));
        assert!(asked(&[("scope", "mcp"), ("state", ""), ("more", "x")]).expect("is right").state.is_none());
        for resource in ["https://assay.example", "https://assay.example/", "https://assay.example/mcp"] {
            assert!(asked(&[("resource", resource)]).is_ok(), "{resource}");
        }
        let long = "x".repeat(STATE_BYTES_MAX + 1);
        for (change, says, tells_client) in [
            (&[("redirect_uri", "")][..], "`redirect_uri` is missing", false),
            (&[("redirect_uri", "https://evil.example/callback")], "`redirect_uri` is neither", false),
            (&[("response_type", "token")], "unsupported_response_type", true),
            (&[("response_type", "")], "invalid_request: `response_type` is missing", true),
            (&[("code_challenge", "")], "invalid_request: `code_challenge` is missing", true),
            (&[("code_challenge", "short")], "invalid_request: `code_challenge` has", true),
            (&[("code_challenge_method", "plain")], "has to be `S256`", true),
            (&[("code_challenge_method", "")], "has to be `S256`", true),
            (&[("scope", "mcp admin")], "invalid_scope", true),
            (&[("resource", "https://other.example/mcp")], "invalid_target: `resource`", true),
            (&[("resource", "https://assay.example.evil.example/mcp")], "invalid_target", true),
            (&[("resource", "https://assay.example/v1")], "invalid_target", true),
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
            redirect_uri: redirect_uri.into(),
            state: Some("a&b".into()),
            issuer: "i".into(),
        };
        assert_eq!(
            target("http://[::1]/callback").with(&[("code", "c")]),
            "http://[::1]/callback?code=c&state=a%26b&iss=i"
        );
        assert_eq!(
            target("https://app.example/back?x=1").with(&[("error", "e")]),
            "https://app.example/back?x=1&error=e&state=a%26b&iss=i"
        );
    }

    #[test]
    fn a_grant_has_all_that_it_needs() {
        let read = |text: &str| {
            let form = form(text.as_bytes()).map_err(|wrong| wrong.error)?;
            Grant::read(&form, &rules(), &client()).map_err(|wrong| wrong.error)
        };
        let code = "grant_type=authorization_code&client_id=cli&code=a+b&redirect_uri=x&code_verifier=v";
        assert!(matches!(read(code), Ok(Grant::Code { code, .. }) if code == "a b"));
        assert!(matches!(read("grant_type=refresh_token&client_id=cli&refresh_token=r"), Ok(Grant::Refresh { .. })));
        for name in ["code", "redirect_uri", "code_verifier", "grant_type"] {
            let without = code.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect::<Vec<_>>();
            assert_eq!(read(&without.join("&")).unwrap_err(), "invalid_request", "{name}");
        }
        for (text, error) in [
            ("", "invalid_request"),
            ("grant_type=password&client_id=cli", "unsupported_grant_type"),
            ("grant_type=refresh_token&client_id=cli&refresh_token=r&resource=https://other.example", "invalid_target"),
            ("grant_type=refresh_token&client_id=cli&refresh_token=r&refresh_token=s", "invalid_request"),
            ("grant_type=refresh_token&client_id=cli&refresh_token=r&scope=all", "invalid_scope"),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
        assert!(form(b"\xff").is_err());
    }
}
