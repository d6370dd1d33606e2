//! Login of a program in a terminal that waits for its person, who uses a browser on other nodes.

use assay_test_api::http::HttpResponse;
use serde_json::{Value, json};

use super::provider::Person;
use super::{ANN, ORIGIN, OTHER_VERIFIER, OWNER, OidcWorld, form, json_of, location, page, request};

const AT: &str = "/api/cli/wizard-session";

struct Waiting {
    session: String,
    token: String,
    login_path: String,
    code: String,
}

fn begun(world: &OidcWorld, node: usize) -> Waiting {
    let answer = request(world.node(node), "POST", &format!("{AT}/create"), &[], None);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let said = json_of(&answer);
    let text = |name: &str| said[name].as_str().unwrap_or_else(|| panic!("{name}: {said}")).to_owned();
    assert!(text("expires_at").ends_with('Z'));
    Waiting {
        session: text("session_token"),
        token: text("poll_token"),
        login_path: text("login_path"),
        code: text("verification_code"),
    }
}

fn poll(world: &OidcWorld, node: usize, session: &str, token: &str) -> (u16, Value) {
    let credential = format!("Bearer {token}");
    let target = format!("{AT}/poll?session_token={session}");
    let answer = request(world.node(node), "GET", &target, &[("authorization", &credential)], None);
    (answer.status, json_of(&answer))
}

/// Returns the page that asks the person, after their login.
fn asked(world: &OidcWorld, node: usize, waiting: &Waiting, person: &Person) -> HttpResponse {
    world.provider.is_visited_by(person.clone());
    let to_provider = location(&request(world.node(node), "GET", &waiting.login_path, &[], None));
    let target = to_provider.strip_prefix(&world.provider.issuer).expect("it goes to the provider").to_owned();
    let back = location(&request(&world.provider.issuer, "GET", &target, &[], None));
    let target = back.strip_prefix(ORIGIN).expect("it comes back to the nodes").to_owned();
    request(world.node(node + 1), "GET", &target, &[], None)
}

fn answer_in(page: &HttpResponse) -> String {
    let text = page.text();
    let rest = text.split_once("name=\"answer\" value=\"").expect("a form").1;
    rest.split_once('"').expect("its end").0.to_owned()
}

fn allow(world: &OidcWorld, node: usize, answer: &str) -> HttpResponse {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    request(world.node(node), "POST", &format!("{AT}/allow"), &headers, Some(form(&[("answer", answer)])))
}

/// Every text that opened something.
pub fn held(world: &OidcWorld) -> Vec<String> {
    let mut shown = Vec::new();
    for node in 0..3 {
        let waiting = begun(world, node);
        assert_eq!(poll(world, node + 1, &waiting.session, &waiting.token).1["status"], "pending");
        let asks = asked(world, node, &waiting, &Person::of(OWNER));
        page(&asks, 200, &waiting.code);
        assert!(asks.text().contains(OWNER), "{}", asks.text());
        let policy = asks.header("content-security-policy").expect("a policy");
        assert!(policy.contains("form-action 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        // A login alone lets nobody in.
        assert_eq!(poll(world, node, &waiting.session, &waiting.token).1["status"], "pending");
        let answer = answer_in(&asks);
        page(&allow(world, node + 2, &answer), 200, "has access now");
        page(&allow(world, node, &answer), 403, "already has access");
        let (status, _) = poll(world, node, &waiting.session, OTHER_VERIFIER);
        assert_eq!(status, 403, "what another program shows");
        let (status, said) = poll(world, node + 1, &waiting.session, &waiting.token);
        assert_eq!(
            (status, &said["status"], &said["project_name"]),
            (200, &json!("complete"), &json!("Global")),
            "{said}"
        );
        let key = said["api_key"].as_str().expect("a key").to_owned();
        world.opens_everywhere(&key, OWNER);
        assert_eq!(world.ping(node, &key).1["org_id"], said["org_id"]);
        let project = format!("/v1/project/{}", said["project_id"].as_str().expect("an id"));
        assert_eq!(world.by_key("GET", &project, &json!({}))["name"], "Global");
        // Once it was told there is no other key behind the session, also where the person's answer is sent again.
        page(&allow(world, node, &answer), 403, "already has access");
        let (_, again) = poll(world, node + 2, &waiting.session, &waiting.token);
        assert_eq!((&again["status"], again.get("api_key")), (&json!("claimed"), None), "{again}");
        shown.extend([waiting.token, key]);
    }
    refused(world);
    shown
}

fn refused(world: &OidcWorld) {
    let waiting = begun(world, 0);
    for odd in ["", "x", &waiting.session[1..]] {
        assert_eq!(poll(world, 0, odd, &waiting.token).1["status"], "expired", "{odd}");
        page(&request(world.node(1), "GET", &format!("{AT}/login?session_token={odd}"), &[], None), 400, "Start again");
        page(&allow(world, 2, odd), 400, "Start again");
    }
    assert_eq!(poll(world, 0, &waiting.session, "").0, 401);
    assert_eq!(poll(world, 0, &waiting.session, &waiting.session).0, 403);
    // What one is asked with is no answer, and nobody's session is a code.
    page(&allow(world, 0, &waiting.session), 400, "Start again");
    // A stranger to the organizations is asked, and is not let in.
    let asks = asked(world, 1, &waiting, &Person::of("stranger@example.com"));
    page(&allow(world, 0, &answer_in(&asks)), 403, "No member of an organization");
    let unverified = Person { is_verified: json!(false), ..Person::of(ANN) };
    page(&allow(world, 0, &answer_in(&asked(world, 2, &waiting, &unverified))), 403, "");
    assert_eq!(poll(world, 1, &waiting.session, &waiting.token).1["status"], "pending");
    let denied = format!("{AT}/login?error=access_denied&error_description=call+this+number");
    let denied = request(world.node(0), "GET", &denied, &[], None);
    page(&denied, 400, "The provider denied the login");
    assert!(!denied.text().contains("number"), "what anybody may have written is not shown: {}", denied.text());
}
