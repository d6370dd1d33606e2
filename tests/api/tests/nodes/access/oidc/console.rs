//! Sign-in of a browser to the console with the provider, each step on another node, and the end of its session.

use assay_test_api::http::HttpResponse;
use serde_json::{Value, json};

use super::provider::Person;
use super::{ORIGIN, OWNER, OidcWorld, json_of, location, request};

const CONSOLE: (&str, &str) = ("x-assay-console", "1");
/// Browsers reach the nodes through a proxy that speaks TLS.
const SECURE: (&str, &str) = ("x-forwarded-proto", "https");

/// Returns the pairs of name and value that a response sets as cookies.
fn cookies(answer: &HttpResponse) -> Vec<(String, String)> {
    let set = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    set.map(|(_, value)| {
        assert!(value.contains("; HttpOnly; ") && value.ends_with("; Secure"), "{value}");
        let (name, rest) = value.split_once('=').expect("a pair");
        assert!(name.starts_with("__Host-"), "{value}");
        (name.to_owned(), rest.split(';').next().unwrap_or_default().to_owned())
    })
    .collect()
}

/// Goes to the provider and comes back. Returns the cookie of the login, and the address of the console that follows.
fn visit(world: &OidcWorld, node: usize, person: Person, next: &str) -> (String, String) {
    world.provider.is_visited_by(person);
    let started = request(world.node(node), "GET", &format!("/console/login?next={next}"), &[SECURE], None);
    let [(name, value)] = cookies(&started).try_into().expect("one cookie");
    assert!(started.header("set-cookie").is_some_and(|set| set.contains("; SameSite=Lax; ")));
    let to_provider = location(&started);
    let target = to_provider.strip_prefix(&world.provider.issuer).expect("it goes to the provider").to_owned();
    let back = location(&request(&world.provider.issuer, "GET", &target, &[], None));
    let target = back.strip_prefix(ORIGIN).expect("it comes back to the nodes").to_owned();
    let finished = request(world.node(node + 1), "GET", &target, &[SECURE], None);
    let callback = location(&finished);
    let target = callback.strip_prefix(ORIGIN).expect("it goes on to the console").to_owned();
    assert!(target.starts_with("/console/login/callback?"), "{target}");
    (format!("{name}={value}"), target)
}

fn come_back(world: &OidcWorld, node: usize, cookie: &str, target: &str) -> HttpResponse {
    request(world.node(node), "GET", target, &[SECURE, ("cookie", cookie)], None)
}

/// Returns the reason that the page is told.
fn problem(answer: &HttpResponse) -> String {
    let address = location(answer);
    let known = cookies(answer);
    assert!(known.iter().all(|(name, value)| name.starts_with("__Host-assay-login-") && value.is_empty()), "{known:?}");
    address.split_once("&problem=").expect("a problem").1.to_owned()
}

fn session(world: &OidcWorld, node: usize, cookie: &str) -> (u16, Value) {
    let answer = request(world.node(node), "GET", "/console/session", &[SECURE, CONSOLE, ("cookie", cookie)], None);
    (answer.status, json_of(&answer))
}

/// Returns every text that opened something.
pub fn held(world: &OidcWorld) -> Vec<String> {
    let about = json_of(&request(world.node(0), "GET", "/console/about", &[], None));
    let host = world.provider.issuer.split_once("://").expect("a scheme").1;
    assert_eq!(about["sign_in"], json!({"key": true, "oidc": {"issuer": host}}));

    let (login, target) = visit(world, 0, Person::of(OWNER), "%2Fapp%2Facme%3Fq%3D1");
    // A code in another browser opens nothing, and is not spent by it.
    assert_eq!(problem(&come_back(world, 2, "__Host-other=1", &target)), "not_here");
    let signed_in = come_back(world, 2, &login, &target);
    assert_eq!(location(&signed_in), "/app/acme?q=1");
    let set = cookies(&signed_in);
    let (name, value) = set.iter().find(|(_, value)| !value.is_empty()).expect("a session");
    assert!(!name.contains("login") && set.len() == 2, "{set:?}");
    let cookie = format!("{name}={value}");
    for node in 0..3 {
        let (status, who) = session(world, node, &cookie);
        assert_eq!((status, &who["user"]["email"], &who["by"]), (200, &json!(OWNER), &json!("login")), "{who}");
    }
    // The same address a second time: the code was used, and ends its login.
    assert_eq!(problem(&come_back(world, 0, &login, &target)), "not_here");
    assert_eq!(session(world, 1, &cookie).0, 401);

    let (login, target) = visit(world, 1, Person::of(OWNER), "%2F%2Fevil.test");
    let signed_in = come_back(world, 1, &login, &target);
    assert_eq!(location(&signed_in), "/app");
    let cookie = cookies(&signed_in).into_iter().find(|(_, value)| !value.is_empty()).expect("a session");
    let cookie = format!("{}={}", cookie.0, cookie.1);
    let ended = request(world.node(2), "DELETE", "/console/session", &[SECURE, CONSOLE, ("cookie", &cookie)], None);
    assert_eq!(ended.status, 200, "{}", ended.text());
    for node in 0..3 {
        assert_eq!(session(world, node, &cookie).0, 401, "node {node}");
    }
    let denied = target.split_once("code=").expect("a code").0.to_owned() + "error=access_denied";
    let state = target.split_once("state=").expect("a state").1;
    assert_eq!(problem(&come_back(world, 0, &login, &format!("{denied}&state={state}"))), "denied");
    vec![value.clone()]
}
