//! Logins of people: the whole flow from a client over a node, a provider and other nodes to tokens, each step on
//! another node; all its failures; and the end of validity.

mod agents;
mod console;
mod invitations;
mod setup;

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, percent_encoded, send};
use assay_test_api::openid_provider as provider;
use assay_test_api::search::Texts;
use assay_test_api::server::{Options, Server};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use self::provider::{CLIENT, Person, Provider, SECRET, pairs};

/// Public address of the nodes for browsers; the browser of this test chooses the node.
const ORIGIN: &str = "https://assay.test";
const BACK: &str = "http://127.0.0.1:49999/callback";
const STATE: &str = "a state & more";
const VERIFIER: &str = "the-verifier-of-this-test-has-more-than-43-letters";
const OTHER_VERIFIER: &str = "another-verifier-has-more-than-43-letters-as-well";
/// Name of the owner from a first start.
const OWNER: &str = "owner@localhost";
const ANN: &str = "ann@example.com";
/// Maximum time until a revoked credential is invalid everywhere.
const SEEN_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// Validity of a code, with the tolerated clock difference.
const CODE_OVER: Duration = Duration::from_secs(62);

fn request(base: &str, method: &str, target: &str, headers: &[(&str, &str)], body: Option<String>) -> HttpResponse {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let body = body.map(String::into_bytes);
    let request = Request { method: method.into(), target: target.into(), headers, body, declared_length: None };
    send(base, &request).unwrap_or_else(|error| panic!("{error:#}"))
}

fn json_of(answer: &HttpResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("{answer:?} is no JSON"))
}

fn form(fields: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", percent_encoded(value))).collect();
    pairs.join("&")
}

/// Three nodes, the provider, and who sits at the browser.
struct OidcWorld {
    dev: Dev,
    provider: Provider,
    data: PathBuf,
}

impl OidcWorld {
    fn node(&self, turn: usize) -> &str {
        &self.dev.urls[turn % self.dev.urls.len()]
    }

    /// Opens the client's address in a browser, with some parameters replaced; an empty one is left out.
    fn authorize(&self, node: usize, change: &[(&str, &str)]) -> HttpResponse {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()));
        let right = [
            ("response_type", "code"),
            ("client_id", "cli"),
            ("redirect_uri", BACK),
            ("scope", "mcp"),
            ("state", STATE),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let change_of = |name: &str| change.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
        let fields: Vec<_> = right.iter().map(|(name, value)| (*name, change_of(name).unwrap_or(value))).collect();
        let fields: Vec<_> = fields.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        request(self.node(node), "GET", &format!("/oauth/authorize?{}", form(&fields)), &[], None)
    }

    /// Over the provider and back, to the next node: what the browser is answered there.
    fn visit(&self, node: usize, person: &Person) -> HttpResponse {
        self.provider.is_visited_by(person.clone());
        let to_provider = location(&self.authorize(node, &[]));
        let target = to_provider.strip_prefix(&self.provider.issuer).expect("it goes to the provider").to_owned();
        let answer = request(&self.provider.issuer, "GET", &target, &[], None);
        assert_eq!(answer.status, 302, "{}", answer.text());
        let back = location(&answer);
        let target = back.strip_prefix(ORIGIN).expect("it comes back to the nodes").to_owned();
        assert!(target.starts_with("/oauth/callback?"), "{target}");
        request(self.node(node + 1), "GET", &target, &[], None)
    }

    /// Returns the parameters of the client's own address.
    fn told(&self, node: usize, person: &Person) -> std::collections::HashMap<String, String> {
        told(&self.visit(node, person))
    }

    fn code(&self, node: usize, person: &Person) -> String {
        let told = self.told(node, person);
        assert_eq!(told["state"], STATE, "{told:?}");
        told["code"].clone()
    }

    fn token(&self, node: usize, fields: &[(&str, &str)]) -> (u16, Value) {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let answer = request(self.node(node), "POST", "/oauth/token", &headers, Some(form(fields)));
        assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"));
        (answer.status, json_of(&answer))
    }

    fn redeem(&self, node: usize, code: &str, verifier: &str) -> (u16, Value) {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", "cli"),
            ("code", code),
            ("redirect_uri", BACK),
            ("code_verifier", verifier),
        ];
        self.token(node, &fields)
    }

    fn refresh(&self, node: usize, token: &str) -> (u16, Value) {
        self.token(node, &[("grant_type", "refresh_token"), ("client_id", "cli"), ("refresh_token", token)])
    }

    fn log_in(&self, node: usize, person: &Person) -> Tokens {
        let code = self.code(node, person);
        tokens(self.redeem(node + 2, &code, VERIFIER))
    }

    fn ping(&self, node: usize, token: &str) -> (u16, Value) {
        let answer = request(self.node(node), "GET", "/ping", &[("authorization", &format!("Bearer {token}"))], None);
        (answer.status, json_of(&answer))
    }

    fn by_key(&self, method: &str, target: &str, body: &Value) -> Value {
        let credential = format!("Bearer {}", self.dev.key);
        let answer = request(self.node(0), method, target, &[("authorization", &credential)], Some(body.to_string()));
        assert_eq!(answer.status, 200, "{method} {target}: {}", answer.text());
        json_of(&answer)
    }

    #[track_caller]
    fn opens_everywhere(&self, token: &str, email: &str) {
        for node in 0..self.dev.urls.len() {
            let (status, who) = self.ping(node, token);
            assert_eq!((status, who["email"].as_str()), (200, Some(email)), "node {node}: {who}");
        }
    }

    #[track_caller]
    fn opens_nowhere_soon(&self, token: &str, since: Instant) {
        for node in 0..self.dev.urls.len() {
            while self.ping(node, token).0 != 401 {
                assert!(since.elapsed() < SEEN_WITHIN, "node {node} takes it still");
                sleep(LOOK_AGAIN_AFTER);
            }
        }
        assert!(since.elapsed() < SEEN_WITHIN, "it took {:?}", since.elapsed());
    }
}

#[derive(Clone, Debug)]
struct Tokens {
    access: String,
    refresh: String,
}

#[track_caller]
fn tokens((status, said): (u16, Value)) -> Tokens {
    assert_eq!(status, 200, "{said}");
    assert_eq!(
        (&said["token_type"], &said["expires_in"], &said["scope"]),
        (&json!("Bearer"), &json!(600), &json!("mcp"))
    );
    let text = |name: &str| said[name].as_str().expect(name).to_owned();
    Tokens { access: text("access_token"), refresh: text("refresh_token") }
}

#[track_caller]
fn invalid((status, said): (u16, Value), says: &str) {
    assert_eq!((status, said["error"].as_str()), (400, Some("invalid_grant")), "{says}: {said}");
    assert!(said["error_description"].as_str().is_some_and(|why| why.contains(says)), "{says}: {said}");
}

#[track_caller]
fn location(answer: &HttpResponse) -> String {
    assert_eq!(answer.status, 302, "{}", answer.text());
    answer.header("location").expect("where to")
}

/// Returns the parameters of the client's own address.
#[track_caller]
fn told(answer: &HttpResponse) -> std::collections::HashMap<String, String> {
    let location = location(answer);
    let (place, query) = location.split_once('?').expect("a query");
    assert_eq!(place, BACK);
    pairs(query)
}

/// Checks the answer of a page that a person reads.
#[track_caller]
fn page(answer: &HttpResponse, status: u16, says: &str) {
    assert_eq!((answer.status, answer.header("location")), (status, None), "{}", answer.text());
    assert_eq!(answer.header("content-type").as_deref(), Some("text/html; charset=utf-8"));
    assert!(answer.text().contains(says), "{says}: {}", answer.text());
}

#[test]
fn people_log_in_on_three_nodes_in_turn() {
    let provider = Provider::start();
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let environment = [
        ("ASSAY_HTTP_PUBLIC_URL", ORIGIN),
        ("ASSAY_OIDC_ISSUER", &provider.issuer),
        ("ASSAY_OIDC_CLIENT_ID", CLIENT),
        ("ASSAY_OIDC_CLIENT_SECRET", SECRET),
        ("ASSAY_LOG_FILTER", "debug,openraft=off,raft_engine=warn"),
    ];
    let dev = Dev::start_with(&data, &environment).unwrap_or_else(|error| panic!("{error:#}"));
    let world = OidcWorld { dev, provider, data: data.clone() };
    let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| hold(&world)));
    let shown = held.unwrap_or_else(|_| panic!("the nodes said:\n{}", world.dev.log()));
    let log = std::fs::read(data.with_extension("log")).expect("the log");
    drop(world);

    // Nothing that opens something is in a file of a node, or in what it says of itself; who logged in is.
    let parts: Vec<&str> = shown.iter().flat_map(|text| text.split('.')).filter(|part| part.len() > 40).collect();
    let sought = Texts::new(parts.iter().map(|part| &part[part.len() - 32..]).chain([OWNER]));
    let mut found = sought.below(&data);
    found.extend(sought.within(&log).into_iter().map(|text| format!("the log: {text}")));
    let (known, secret): (Vec<_>, Vec<_>) = found.into_iter().partition(|place| place.ends_with(OWNER));
    assert!(secret.is_empty() && !known.is_empty(), "{secret:#?}");
}

/// All of it; and every text that opened something.
fn hold(world: &OidcWorld) -> Vec<String> {
    let owner = Person::of(OWNER);
    let (stale, made) = (world.code(0, &owner), Instant::now());
    for node in 0..3 {
        let answer = request(world.node(node), "GET", "/.well-known/oauth-authorization-server", &[], None);
        let said = json_of(&answer);
        assert_eq!(said["issuer"], ORIGIN);
        assert_eq!(said["token_endpoint"], format!("{ORIGIN}/oauth/token"));
        assert_eq!(said["code_challenge_methods_supported"], json!(["S256"]));
    }
    let mut shown = vec![stale.clone()];
    shown.extend(success(world));
    codes(world);
    requests(world);
    what_the_provider_says(world);
    who_is_not_let_in(world);
    shown.extend(rotation(world));
    ends(world);
    on_record(world);
    shown.extend(setup::held(world));
    shown.extend(invitations::held(world));
    shown.extend(console::held(world));
    shown.extend(agents::held(world));
    sleep(CODE_OVER.saturating_sub(made.elapsed()));
    invalid(world.redeem(1, &stale, VERIFIER), "older than a minute");
    shown
}

/// Each step on another node, from each node on.
fn success(world: &OidcWorld) -> Vec<String> {
    let mut shown = Vec::new();
    for node in 0..3 {
        let code = world.code(node, &Person::of("OWNER@localhost"));
        let first = tokens(world.redeem(node + 2, &code, VERIFIER));
        world.opens_everywhere(&first.access, OWNER);
        let payload = first.access.split('.').nth(1).expect("three parts");
        let payload = URL_SAFE_NO_PAD.decode(payload).expect("base64url");
        let payload: Value = serde_json::from_slice(&payload).expect("JSON");
        let who = world.ping(node, &first.access).1;
        assert_eq!((&payload["sub"], &payload["email"], &payload["iss"]), (&who["id"], &json!(OWNER), &json!(ORIGIN)));
        assert!(payload["name"].is_string() && payload["exp"].is_i64() && payload["jti"].is_string(), "{payload}");
        let credential = format!("Bearer {}", first.access);
        let login = request(world.node(node), "POST", "/api/apikey/login", &[("authorization", &credential)], None);
        assert_eq!(json_of(&login)["org_info"].as_array().map(Vec::len), Some(1));
        let next = tokens(world.refresh(node + 1, &first.refresh));
        world.opens_everywhere(&next.access, OWNER);
        assert_ne!(next.refresh, first.refresh);
        shown.extend([code, first.access, first.refresh, next.access, next.refresh]);
    }
    shown
}

fn codes(world: &OidcWorld) {
    let owner = Person::of(OWNER);
    let code = world.code(0, &owner);
    invalid(world.redeem(1, &code, OTHER_VERIFIER), "`code_verifier`");
    invalid(world.redeem(2, &code, VERIFIER), "was used");
    let code = world.code(1, &owner);
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", "cli"),
        ("code", code.as_str()),
        ("redirect_uri", "http://127.0.0.1:1/callback"),
        ("code_verifier", VERIFIER),
    ];
    invalid(world.token(2, &fields), "`redirect_uri`");
    let code = world.code(2, &owner);
    let got = tokens(world.redeem(0, &code, VERIFIER));
    world.opens_everywhere(&got.access, OWNER);
    let since = Instant::now();
    invalid(world.redeem(1, &code, VERIFIER), "was already used");
    world.opens_nowhere_soon(&got.access, since);
    invalid(world.refresh(2, &got.refresh), "has ended");
    // On all nodes at once: one has it, and then nobody.
    let code = world.code(0, &owner);
    let all: Vec<_> = std::thread::scope(|scope| {
        let code = &code;
        let asked: Vec<_> = (0..3).map(|node| scope.spawn(move || world.redeem(node, code, VERIFIER))).collect();
        asked.into_iter().map(|one| one.join().expect("asks")).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = all.into_iter().partition(|(status, _)| *status == 200);
    assert_eq!(won.len(), 1, "{won:?} {lost:?}");
    let since = Instant::now();
    world.opens_nowhere_soon(won[0].1["access_token"].as_str().expect("a token"), since);
    let (status, said) = world.token(0, &[("grant_type", "password"), ("client_id", "cli")]);
    assert_eq!((status, said["error"].as_str()), (400, Some("unsupported_grant_type")));
}

/// Errors before the client's address is verified are shown on a page; later ones are sent to the client.
fn requests(world: &OidcWorld) {
    for foreign in
        ["https://evil.example/callback", "http://127.0.0.1:1/other", "http://127.0.0.1.evil.example/callback"]
    {
        page(&world.authorize(0, &[("redirect_uri", foreign)]), 400, "`redirect_uri`");
    }
    page(&world.authorize(1, &[("client_id", "")]), 400, "`client_id` is missing");
    for (change, error) in [
        (("code_challenge_method", "plain"), "invalid_request"),
        (("code_challenge_method", ""), "invalid_request"),
        (("code_challenge", ""), "invalid_request"),
        (("response_type", "token"), "unsupported_response_type"),
        (("scope", "everything"), "invalid_scope"),
    ] {
        let told = told(&world.authorize(2, &[change]));
        assert_eq!((told["error"].as_str(), told["state"].as_str()), (error, STATE), "{told:?}");
    }
    for state in ["", "state=x", "state=x&code=y"] {
        page(
            &request(world.node(0), "GET", &format!("/oauth/callback?{state}"), &[], None),
            400,
            "not started on this server",
        );
    }
    // Who says no at the provider, and a code that it does not know.
    let to_provider = location(&world.authorize(0, &[]));
    let state = percent_encoded(&pairs(to_provider.split_once('?').expect("a query").1)["state"]);
    for (said, error) in
        [("error=access_denied", "access_denied"), ("code=unknown", "access_denied"), ("x=y", "server_error")]
    {
        let target = format!("/oauth/callback?state={state}&{said}");
        let told = told(&request(world.node(1), "GET", &target, &[], None));
        assert_eq!((told["error"].as_str(), told["state"].as_str()), (error, STATE), "{said}");
    }
    let wrong = request(world.node(0), "PUT", "/oauth/token", &[], Some(String::new()));
    assert_eq!((wrong.status, wrong.header("allow").as_deref()), (405, Some("POST")));
}

fn what_the_provider_says(world: &OidcWorld) {
    for (turn, claims) in [
        json!({"nonce": "another"}),
        json!({"aud": "another"}),
        json!({"iss": "https://another.example"}),
        json!({"exp": 1_000_000_000}),
        json!({"email": ""}),
    ]
    .into_iter()
    .enumerate()
    {
        let told = world.told(turn, &Person { claims: claims.clone(), ..Person::of(OWNER) });
        assert_eq!((told["error"].as_str(), told["state"].as_str()), ("access_denied", STATE), "{claims}");
        assert!(!told.contains_key("code"));
    }
    let told = world.told(0, &Person { is_forged: true, ..Person::of(OWNER) });
    assert!(told["error"] == "access_denied" && !told.contains_key("code"), "{told:?}");
}

fn who_is_not_let_in(world: &OidcWorld) {
    for is_verified in [json!(false), Value::Null] {
        let answer = world.visit(0, &Person { is_verified, ..Person::of(OWNER) });
        page(&answer, 403, "is verified");
        let back = format!("{BACK}?error=access_denied");
        assert!(answer.text().contains(&back), "the client can be told: {}", answer.text());
    }
    page(&world.visit(1, &Person::of(ANN)), 403, ANN);
    page(&world.visit(2, &Person::of("<b>@example.com")), 403, "&lt;b&gt;@example.com");
}

fn rotation(world: &OidcWorld) -> Vec<String> {
    let first = world.log_in(0, &Person::of(OWNER));
    let second = tokens(world.refresh(1, &first.refresh));
    let third = tokens(world.refresh(2, &second.refresh));
    world.opens_everywhere(&first.access, OWNER);
    world.opens_everywhere(&third.access, OWNER);
    let since = Instant::now();
    invalid(world.refresh(0, &first.refresh), "was already used");
    for token in [&first.access, &second.access, &third.access] {
        world.opens_nowhere_soon(token, since);
    }
    invalid(world.refresh(1, &third.refresh), "has ended");
    vec![first.refresh, second.refresh, third.access]
}

/// Ends sessions by their holder, and by removal of the member.
fn ends(world: &OidcWorld) {
    for (turn, by_refresh) in [(0, true), (1, false)] {
        let got = world.log_in(turn, &Person::of(OWNER));
        world.opens_everywhere(&got.access, OWNER);
        let token = if by_refresh { &got.refresh } else { &got.access };
        let since = Instant::now();
        let sent = Some(form(&[("token", token), ("client_id", "cli")]));
        let answer = request(world.node(turn + 1), "POST", "/oauth/revoke", &[], sent);
        assert_eq!(answer.status, 200, "{}", answer.text());
        world.opens_nowhere_soon(&got.access, since);
        invalid(world.refresh(turn, &got.refresh), "has ended");
    }
    let nothing = request(world.node(0), "POST", "/oauth/revoke", &[], Some(form(&[("token", "nothing")])));
    assert_eq!(nothing.status, 200, "{}", nothing.text());

    world.by_key("PATCH", "/v1/organization/members", &json!({"invite_users": {"emails": [ANN]}}));
    let got = world.log_in(0, &Person::of("Ann@Example.com"));
    world.opens_everywhere(&got.access, ANN);
    let since = Instant::now();
    world.by_key("PATCH", "/v1/organization/members", &json!({"remove_users": {"emails": [ANN]}}));
    world.opens_nowhere_soon(&got.access, since);
    invalid(world.refresh(1, &got.refresh), "has ended");
    page(&world.visit(2, &Person::of(ANN)), 403, ANN);
    world.by_key("PATCH", "/v1/organization/members", &json!({"invite_users": {"emails": [ANN]}}));
    assert_eq!(world.ping(0, &got.access).0, 401, "who comes back logs in again");
}

fn on_record(world: &OidcWorld) {
    let org = world.ping(0, &world.dev.key).1["org_id"].as_str().expect("an id").to_owned();
    let query = format!("SELECT action, actor, details FROM org_audit_logs('{org}') ORDER BY sequence LIMIT 1000");
    let said = world.by_key("POST", "/btql", &json!({ "query": query }));
    let entries = said["data"].as_array().expect("rows");
    for action in
        ["login", "login_refused", "login_code_refused", "login_code_reused", "login_refresh_reused", "logout"]
    {
        let found = entries.iter().find(|entry| entry["action"] == action);
        let found = found.unwrap_or_else(|| panic!("{action} is not on record: {said}"));
        assert_eq!(found["details"]["client_id"], "cli", "{found}");
        let actor = if action == "login_refused" { "unauthenticated" } else { "user" };
        assert_eq!(found["actor"]["type"], actor, "{found}");
    }
}

#[test]
fn where_no_provider_is_named_nobody_logs_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(&Options::new(&dir.path().join("data"))).unwrap_or_else(|error| panic!("{error:#}"));
    for (method, path) in [
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/oauth/authorize?client_id=cli"),
        ("GET", "/oauth/callback?code=x"),
        ("POST", "/oauth/token"),
        ("POST", "/oauth/revoke"),
        ("POST", "/oauth/register"),
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ] {
        let answer = request(&server.url, method, path, &[], (method == "POST").then(String::new));
        assert_eq!(answer.status, 404, "{method} {path}");
        let said = json_of(&answer);
        assert!(said["Message"].as_str().is_some_and(|why| why.contains("`oidc.issuer`")), "{method} {path}: {said}");
    }
}
