//! Members of another organization: effects of an invitation before and after its acceptance, and effects of leaving.

use std::time::Instant;

use assay_test_api::http::HttpResponse;
use assay_test_api::process::run;
use serde_json::{Value, json};

use super::provider::Person;
use super::{LOOK_AGAIN_AFTER, OidcWorld, SEEN_WITHIN, VERIFIER, form, json_of, page, request, tokens, told};

const ZED: &str = "zed@zeta.example";
const ORGANIZATION: &str = "default";

/// A call with a credential and, where it is named, in an organization.
fn call(
    world: &OidcWorld,
    node: usize,
    key: &str,
    org: &str,
    method: &str,
    target: &str,
    body: &Value,
) -> (u16, Value) {
    let credential = format!("Bearer {key}");
    let headers = [("authorization", credential.as_str()), ("x-bt-org-name", org)];
    let answer = request(world.node(node), method, target, &headers, Some(body.to_string()));
    (answer.status, json_of(&answer))
}

fn in_org(world: &OidcWorld, node: usize, key: &str, org: &str) -> (u16, String) {
    let (status, said) = call(world, node, key, org, "GET", "/ping", &Value::Null);
    (status, said["org_name"].as_str().unwrap_or_default().to_owned())
}

fn admin(world: &OidcWorld, words: &[&str]) -> Value {
    let node = world.data.join("node-1");
    let place = ["--data-dir", node.to_str().expect("a path that is text")];
    let ran = run(&[["admin"].as_slice(), words, &place].concat(), &[], "").and_then(|ran| ran.json());
    ran.unwrap_or_else(|error| panic!("{words:?}: {error:#}"))
}

fn members(world: &OidcWorld, what: &Value) -> Value {
    world.by_key("PATCH", "/v1/organization/members", what)
}

/// Waits for a change: a node that lags responds as before, for a moment.
#[track_caller]
fn soon(look: impl Fn() -> u16, wanted: u16) {
    let begun = Instant::now();
    loop {
        match look() {
            found if found == wanted => return,
            found => assert!(begun.elapsed() < SEEN_WITHIN, "it answers {found} and not {wanted}"),
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}

/// Returns the reply to the page about invitations.
fn reply(world: &OidcWorld, node: usize, asks: &HttpResponse, chosen: &str) -> HttpResponse {
    let text = asks.text();
    let between = |before: &str| {
        let rest = text.split_once(before).unwrap_or_else(|| panic!("{before}: {text}")).1;
        rest.split_once('"').expect("its end").0.to_owned()
    };
    let (answer, invitation) = (between("name=\"answer\" value=\""), between("type=\"radio\" name=\""));
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let sent = form(&[("answer", &answer), (&invitation, chosen)]);
    request(world.node(node), "POST", "/oauth/invitations", &headers, Some(sent))
}

/// Every text that opened something.
pub fn held(world: &OidcWorld) -> Vec<String> {
    let made = admin(world, &["create-organization", "zeta", "--owner", ZED]);
    let zeta_key = made["api_key"].as_str().expect("a key").to_owned();
    let zed = Person::of(ZED);
    let first = world.log_in(0, &zed);
    let invited = json!({"invite_users": {"emails": [ZED], "group_names": ["Engineers"]}});
    let added = members(world, &invited);
    assert_eq!((&added["status"], &added["added_users"][0]["email"]), (&json!("success"), &json!(ZED)));

    // Invited is not in: what they write goes where it went before.
    for node in 0..3 {
        assert_eq!(in_org(world, node, &first.access, ""), (200, "zeta".into()));
        assert_eq!(in_org(world, node, &first.access, ORGANIZATION).0, 404);
    }
    let (status, said) = call(world, 1, &first.access, "", "GET", "/v1/invitation", &Value::Null);
    assert_eq!((status, &said["objects"][0]["org_name"]), (200, &json!(ORGANIZATION)), "{said}");
    let (_, me) = call(world, 2, &first.access, "", "POST", "/api/self/me", &Value::Null);
    let (status, said) = call(
        world,
        0,
        &world.dev.key,
        "",
        "PATCH",
        "/v1/organization/members",
        &json!({"invite_users": {"ids": [me["id"]]}}),
    );
    assert!(status == 400 && !said.to_string().contains(ZED), "{status} {said}");

    // The page of the login asks. Later is nothing, and the same page is good once.
    let asks = world.visit(1, &zed);
    page(&asks, 200, "You are invited");
    let code = told(&reply(world, 2, &asks, "later"))["code"].clone();
    page(&reply(world, 0, &asks, "accept"), 403, "already has access");
    tokens(world.redeem(0, &code, VERIFIER));
    members(world, &json!({"remove_users": {"emails": [ZED]}}));
    assert_eq!(call(world, 1, &first.access, "", "GET", "/v1/invitation", &Value::Null).1["objects"], json!([]));
    members(world, &invited);
    let asks = world.visit(2, &zed);
    let code = told(&reply(world, 1, &asks, "accept"))["code"].clone();
    let second = tokens(world.redeem(1, &code, VERIFIER));
    let made = admin(world, &["create-key", "of-default", "--organization", ORGANIZATION, "--user", ZED]);
    let key = made["api_key"].as_str().expect("a key").to_owned();
    let (project, name) = (json!({"name": "of zeta"}), |node| {
        call(world, node, &second.access, "", "POST", "/v1/project", &json!({"name": "of zeta"})).1
    });
    let (_, zeta) = call(world, 0, &zeta_key, "", "POST", "/v1/project", &project);
    for node in 0..3 {
        assert_eq!(in_org(world, node, &second.access, ORGANIZATION), (200, ORGANIZATION.into()));
        assert_eq!(name(node)["org_id"], zeta["org_id"], "the default stays, though the other organization is older");
    }
    let attachment = json!({"key": "left-behind", "filename": "f", "content_type": "text/plain"});
    let (_, address) = call(world, 0, &second.access, ORGANIZATION, "POST", "/attachment", &attachment);
    let address =
        address["signedUrl"].as_str().and_then(|url| url.strip_prefix(super::ORIGIN)).expect("an address").to_owned();

    left_and_back(world, &invited, [&second.access, &key, &zeta_key], &address);
    let third = tokens(world.refresh(0, &second.refresh));
    assert_eq!(in_org(world, 1, &third.access, ORGANIZATION).0, 404);
    recorded(world);
    vec![first.access, second.refresh, third.access, key, zeta_key]
}

fn left_and_back(world: &OidcWorld, invited: &Value, [access, key, zeta_key]: [&str; 3], address: &str) {
    // Out of one organization: its keys and addresses are gone for good, the rest goes on.
    members(world, &json!({"remove_users": {"emails": [ZED]}}));
    for is_back in [false, true] {
        if is_back {
            let id = members(world, invited)["added_users"][0]["id"].as_str().expect("an id").to_owned();
            let accepted = call(world, 2, zeta_key, "", "POST", &format!("/v1/invitation/{id}/accept"), &Value::Null);
            assert_eq!((accepted.0, &accepted.1["status"]), (200, &json!("accepted")));
        }
        for node in 0..3 {
            soon(|| in_org(world, node, access, ORGANIZATION).0, 404);
            soon(|| in_org(world, node, key, "").0, 401);
            assert_eq!(in_org(world, node, access, "").1, "zeta", "node {node}, {is_back}");
        }
        if !is_back {
            soon(|| request(world.node(1), "PUT", address, &[], Some("bytes".into())).status, 401);
        }
    }
}

fn recorded(world: &OidcWorld) {
    let org = world.ping(0, &world.dev.key).1["org_id"].as_str().expect("an id").to_owned();
    let query = format!("SELECT action, object_name FROM org_audit_logs('{org}') ORDER BY sequence LIMIT 1000");
    let said = world.by_key("POST", "/btql", &json!({ "query": query }));
    let entries = said["data"].as_array().expect("rows");
    for action in ["invite", "withdraw_invitation", "accept_invitation"] {
        assert!(
            entries.iter().any(|entry| entry["action"] == action && entry["object_name"] == ZED),
            "{action}: {said}"
        );
    }
}
