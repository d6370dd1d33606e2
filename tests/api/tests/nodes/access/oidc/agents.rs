//! Coding agents that find the login by the MCP server, register themselves, and are confirmed by their person.

use assay_test_api::http::HttpResponse;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::provider::{Person, pairs};
use super::{ORIGIN, OWNER, OidcWorld, VERIFIER, form, json_of, location, page, request};

/// Address that the agent registers. The port differs when it logs in.
const REGISTERED: &str = "http://127.0.0.1:1/agent";
const BACK: &str = "http://127.0.0.1:41234/agent";
const RESOURCE: &str = "https://assay.test/mcp";

fn register(world: &OidcWorld, node: usize, body: &Value) -> (u16, Value) {
    let headers = [("content-type", "application/json")];
    let answer = request(world.node(node), "POST", "/oauth/register", &headers, Some(body.to_string()));
    (answer.status, json_of(&answer))
}

/// Starts a login of an agent, with some parameters replaced.
fn authorize(world: &OidcWorld, node: usize, client: &str, change: &[(&str, &str)]) -> HttpResponse {
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()));
    let right = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", BACK),
        ("scope", "mcp"),
        ("state", "s"),
        ("resource", RESOURCE),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let change_of = |name: &str| change.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
    let fields: Vec<_> = right.iter().map(|(name, value)| (*name, change_of(name).unwrap_or(value))).collect();
    request(world.node(node), "GET", &format!("/oauth/authorize?{}", form(&fields)), &[], None)
}

/// Returns the page that asks the person, who logs in at the provider.
fn asked(world: &OidcWorld, node: usize, client: &str) -> HttpResponse {
    world.provider.is_visited_by(Person::of(OWNER));
    let to_provider = location(&authorize(world, node, client, &[]));
    let target = to_provider.strip_prefix(&world.provider.issuer).expect("it goes to the provider").to_owned();
    let back = location(&request(&world.provider.issuer, "GET", &target, &[], None));
    let target = back.strip_prefix(ORIGIN).expect("it comes back to the nodes").to_owned();
    request(world.node(node + 1), "GET", &target, &[], None)
}

/// Sends the form of a page, and returns the parameters of the agent's address.
fn answered(
    world: &OidcWorld,
    node: usize,
    asked: &HttpResponse,
    more: &[(&str, &str)],
) -> std::collections::HashMap<String, String> {
    let text = asked.text();
    let answer = text.split_once("name=\"answer\" value=\"").expect("a form").1.split_once('"').expect("its end").0;
    let fields = [&[("answer", answer)], more].concat();
    let sent = request(world.node(node), "POST", "/oauth/invitations", &[], Some(form(&fields)));
    let location = location(&sent);
    let (place, query) = location.split_once('?').expect("a query");
    assert_eq!(place, BACK);
    pairs(query)
}

fn ping(world: &OidcWorld, node: usize, token: Option<&str>) -> HttpResponse {
    let credential = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = credential.iter().map(|value| ("authorization", value.as_str())).collect();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    request(world.node(node), "POST", "/mcp", &headers, Some(body))
}

/// Every text that opened something.
pub fn held(world: &OidcWorld) -> Vec<String> {
    finds_the_login(world);
    let asks = json!({"client_name": "An <agent>", "redirect_uris": [REGISTERED]});
    let (status, registered) = register(world, 0, &asks);
    assert_eq!((status, &registered["token_endpoint_auth_method"]), (201, &json!("none")), "{registered}");
    let client = registered["client_id"].as_str().expect("an id").to_owned();
    refusals(world, &client);

    let asked = asked(world, 1, &client);
    page(&asked, 200, "An &lt;agent&gt;");
    page(&asked, 200, "127.0.0.1:41234");
    let denied = answered(world, 0, &asked, &[("consent", "deny")]);
    assert_eq!((denied["error"].as_str(), denied["state"].as_str()), ("access_denied", "s"));
    let told = answered(world, 2, &asked, &[]);
    assert_eq!((told["state"].as_str(), told["iss"].as_str()), ("s", ORIGIN), "{told:?}");
    let fields = |client: &str| {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", &told["code"]),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
            ("resource", RESOURCE),
        ];
        fields.map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let redeem = |node: usize, client: &str| {
        let fields = fields(client);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        world.token(node, &fields)
    };
    let (status, got) = redeem(0, &client);
    assert_eq!(status, 200, "{got}");
    let access = got["access_token"].as_str().expect("a token").to_owned();
    let refresh = got["refresh_token"].as_str().expect("a token").to_owned();
    for node in 0..3 {
        assert_eq!(ping(world, node, Some(&access)).status, 200, "node {node}");
    }
    let refreshed = [("grant_type", "refresh_token"), ("client_id", client.as_str()), ("refresh_token", &refresh)];
    let (status, next) = world.token(1, &refreshed);
    assert_eq!(status, 200, "{next}");
    let stolen = [
        ("grant_type", "refresh_token"),
        ("client_id", "cli"),
        ("refresh_token", next["refresh_token"].as_str().expect("a token")),
    ];
    assert_eq!(world.token(2, &stolen).1["error"], "invalid_grant", "a token belongs to its client");
    vec![told["code"].clone(), access, refresh]
}

/// Checks the way from a refusal of the MCP server to the registration.
fn finds_the_login(world: &OidcWorld) {
    for node in 0..3 {
        let refused = ping(world, node, None);
        let challenge = refused.header("www-authenticate").expect("a challenge");
        assert_eq!(refused.status, 401);
        let metadata = format!("{ORIGIN}/.well-known/oauth-protected-resource/mcp");
        assert_eq!(challenge, format!("Bearer resource_metadata=\"{metadata}\", scope=\"mcp\""));
        let wrong = ping(world, node, Some("sk-unknown")).header("www-authenticate").expect("a challenge");
        assert!(wrong.starts_with("Bearer error=\"invalid_token\", "), "{wrong}");
        for path in ["", "/mcp"] {
            let target = format!("/.well-known/oauth-protected-resource{path}");
            let said = json_of(&request(world.node(node), "GET", &target, &[], None));
            assert_eq!((&said["resource"], &said["authorization_servers"]), (&json!(RESOURCE), &json!([ORIGIN])));
        }
        let said = request(world.node(node), "GET", "/.well-known/oauth-authorization-server", &[], None);
        let said = json_of(&said);
        assert_eq!(said["registration_endpoint"], format!("{ORIGIN}/oauth/register"));
        assert_eq!(said["authorization_response_iss_parameter_supported"], true);
    }
}

fn refusals(world: &OidcWorld, client: &str) {
    for (body, error) in [
        (json!({"redirect_uris": ["http://evil.example/back"]}), "invalid_redirect_uri"),
        (json!({"redirect_uris": []}), "invalid_redirect_uri"),
        (json!({"redirect_uris": [REGISTERED], "grant_types": ["password"]}), "invalid_client_metadata"),
    ] {
        let (status, said) = register(world, 1, &body);
        assert_eq!((status, &said["error"]), (400, &json!(error)), "{body}");
    }
    for foreign in ["http://127.0.0.1:41234/other", "http://localhost:41234/agent", "https://evil.example/agent"] {
        let answer = authorize(world, 2, client, &[("redirect_uri", foreign)]);
        page(&answer, 400, "not one that the client has registered");
    }
    let changed = format!("{client}x");
    page(&authorize(world, 0, &changed, &[]), 400, "`client_id` is unknown");
    page(&authorize(world, 0, "registered-0123", &[]), 400, "`client_id` is unknown");
    let other = authorize(world, 1, client, &[("resource", "https://other.example/mcp")]);
    let location = location(&other);
    assert_eq!(pairs(location.split_once('?').expect("a query").1)["error"], "invalid_target", "{location}");
}
