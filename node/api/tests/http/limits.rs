//! Limits of requests on one node: who is refused and how, and who is not.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use assay_node_limits::{Per, RateRule};
use serde_json::json;
use uuid::Uuid;

use crate::client::{ClientResponse, connect, exchange, read_answer, request};
use crate::fixture::{Fixture, KEY, ORG};

/// So rare that nothing comes back while a test runs.
fn rule(endpoint: &str, per: Per, burst: u64) -> RateRule {
    RateRule {
        endpoint: endpoint.into(),
        methods: Vec::new(),
        per,
        requests: 1,
        seconds: 3600,
        burst: Some(burst),
        organizations: Vec::new(),
    }
}

fn acting_in(fixture: &Fixture, org: &str, method: &str, path: &str) -> ClientResponse {
    fixture.call(method, path, &[("x-bt-org-name", org)], b"{}")
}

#[track_caller]
fn is_refused(answer: &ClientResponse, said: &str) {
    let message = answer.refused(429);
    assert!(message.contains(said), "{message}");
    assert_eq!(answer.json()["Code"], "TooManyRequestsError");
    let seconds: u64 = answer.header("retry-after").and_then(|text| text.parse().ok()).expect("whole seconds");
    assert!((1..=3600).contains(&seconds) && message.contains(&format!("{seconds} s")), "{seconds}: {message}");
}

#[test]
fn what_is_above_the_limit_is_told_when_to_come_again_and_by_which_rule() {
    let fixture = Fixture::with_rates(vec![rule("/ping", Per::Organization, 3)]);
    fixture.organization("globex");
    for _ in 0..3 {
        fixture.get("/ping").ok();
    }
    let refused = fixture.get("/ping");
    is_refused(&refused, "`/ping`, 1 requests in 3600 s for each organization");
    assert!(refused.header("retry-after").is_some_and(|text| text.parse::<u64>().is_ok_and(|seconds| seconds > 3000)));
    fixture.get("/v1/project").ok();
    acting_in(&fixture, "globex", "GET", "/ping").ok();
    is_refused(&acting_in(&fixture, ORG, "GET", "/ping"), "/ping");
    fixture.knock("GET", "/healthz").ok();
    let text = fixture.knock("GET", "/metrics").text();
    for line in [
        "assay_rate_admitted_total{rule=\"1\",endpoint=\"/ping\",per=\"organization\"} 4",
        "assay_rate_refused_total{rule=\"1\",endpoint=\"/ping\",per=\"organization\"} 2",
        "assay_rate_asks_total 0",
        "assay_rate_buckets 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[test]
fn tokens_come_back_at_the_rate() {
    let fast = RateRule { requests: 50, seconds: 1, burst: Some(5), ..rule("/ping", Per::Organization, 5) };
    let fixture = Fixture::with_rates(vec![fast]);
    let (began, mut admitted, mut refused) = (Instant::now(), 0_u32, 0_u32);
    while began.elapsed() < Duration::from_secs(2) {
        let answer = fixture.get("/ping");
        match answer.status {
            200 => admitted += 1,
            _ => {
                is_refused_soon(&answer);
                refused += 1;
            }
        }
        thread::sleep(Duration::from_millis(3));
    }
    let most = 5.0 + 50.0 * began.elapsed().as_secs_f64() + 1.0;
    assert!(f64::from(admitted) <= most, "{admitted} of {most}");
    assert!(refused == 0 || admitted >= 70, "{admitted} let in, {refused} refused");
}

#[track_caller]
fn is_refused_soon(answer: &ClientResponse) {
    answer.refused(429);
    assert_eq!(answer.header("retry-after"), Some("1"), "at least a second");
}

#[test]
fn whoever_is_not_known_counts_for_nobody() {
    let fixture = Fixture::with_rates(vec![rule("*", Per::Organization, 2)]);
    for _ in 0..20 {
        fixture.knock("GET", "/ping").refused(401);
        fixture.send(&request("GET", "/ping", &[("Authorization", "Bearer sk-wrong")], b"")).refused(401);
        acting_in(&fixture, "no-such-organization", "GET", "/ping").refused(404);
    }
    fixture.get("/ping").ok();
    fixture.get("/ping").ok();
    is_refused(&fixture.get("/ping"), "`*`");
    is_refused(&fixture.get("/v1/prompt"), "`*`");
    fixture.knock("GET", "/ping").refused(401);
}

/// Paths are decoded before they are routed: another spelling is the same path.
#[test]
fn another_spelling_of_a_path_is_no_way_round() {
    let fixture = Fixture::with_rates(vec![rule("/v1/project", Per::Organization, 1)]);
    fixture.get("/v1/project").ok();
    for spelling in ["/v1/project", "/v1/projec%74", "/%76%31/project", "/v1/project?limit=1", "/v1/project?"] {
        is_refused(&fixture.get(spelling), "`/v1/project`");
    }
    for other in ["/v1/project/", "//v1/project", "/v1//project", "/V1/project"] {
        fixture.get(other).refused(404);
    }
}

#[test]
fn a_rule_is_about_its_methods_and_its_organizations() {
    let posts = RateRule { methods: vec!["POST".into()], ..rule("/v1/project", Per::Organization, 1) };
    let named = RateRule { organizations: vec!["globex".into()], ..rule("/ping", Per::Organization, 1) };
    let fixture = Fixture::with_rates(vec![posts, named]);
    fixture.organization("globex");
    fixture.project("p");
    is_refused(&fixture.post("/v1/project", &json!({"name": "q"})), "`POST /v1/project`");
    fixture.get("/v1/project").ok();
    for _ in 0..3 {
        fixture.get("/ping").ok();
    }
    acting_in(&fixture, "globex", "GET", "/ping").ok();
    is_refused(&acting_in(&fixture, "globex", "GET", "/ping"), "`/ping`");
}

#[test]
fn all_rules_have_to_let_a_request_in_and_one_that_does_not_takes_nothing_of_the_others() {
    let fixture = Fixture::with_rates(vec![rule("*", Per::Organization, 6), rule("/ping", Per::Organization, 1)]);
    fixture.get("/ping").ok();
    for _ in 0..20 {
        is_refused(&fixture.get("/ping"), "`/ping`");
    }
    for _ in 0..5 {
        fixture.get("/v1/project").ok();
    }
    is_refused(&fixture.get("/v1/project"), "`*`");
}

#[test]
fn a_project_counts_what_names_it_in_the_path() {
    let per_project = rule("*", Per::Project, 3);
    let only = RateRule { methods: vec!["GET".into()], ..per_project };
    let fixture = Fixture::with_rates(vec![only]);
    fixture.organization("globex");
    let (one, other) = (fixture.project("one"), fixture.project("other"));
    let dataset = fixture.make("dataset", &json!({"name": "d", "project_id": one}));
    fixture.get(&format!("/v1/project/{one}")).ok();
    fixture.get(&format!("/v1/project_logs/{one}/fetch")).ok();
    fixture.get(&format!("/v1/dataset/{dataset}/fetch")).ok();
    is_refused(&fixture.get(&format!("/v1/dataset/{dataset}")), "for each project");
    is_refused(&fixture.get(&format!("/v1/project/{}", one.to_uppercase())), "for each project");
    for _ in 0..3 {
        fixture.get(&format!("/v1/project/{other}")).ok();
    }
    // Projects that are not there, or another organization's, are nobody's to use up: the organization counts them.
    for _ in 0..2 {
        fixture.get(&format!("/v1/project/{}", Uuid::new_v4())).refused(404);
    }
    fixture.get("/ping").ok();
    is_refused(&fixture.get(&format!("/v1/project/{}", Uuid::new_v4())), "for each project");
    is_refused(&fixture.get("/v1/project"), "for each project");
    acting_in(&fixture, "globex", "GET", "/ping").ok();
}

#[test]
fn each_credential_has_its_own() {
    let fixture = Fixture::with_rates(vec![rule("/ping", Per::Credential, 1)]);
    let made = fixture.post("/v1/api_key", &json!({"name": "second"})).ok();
    let second = made["key"].as_str().expect("a key").to_owned();
    fixture.get("/ping").ok();
    is_refused(&fixture.get("/ping"), "for each credential");
    let bearer = format!("Bearer {second}");
    fixture.send(&request("GET", "/ping", &[("Authorization", &bearer)], b"")).ok();
}

/// A refusal is worth little: it comes before the body, also where that never comes.
#[test]
fn a_refusal_does_not_wait_for_the_body() {
    let fixture = Fixture::with_rates(vec![rule("/logs3", Per::Organization, 1)]);
    fixture.call("POST", "/logs3", &[], b"not JSON").refused(400);
    let mut stream = connect(fixture.address);
    let head =
        format!("POST /logs3 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 10000000\r\n\r\n");
    let began = Instant::now();
    stream.write_all(head.as_bytes()).expect("sent");
    is_refused(&read_answer(&mut stream), "`/logs3`");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let text = fixture.knock("GET", "/metrics").text();
    assert!(text.contains("assay_http_body_bytes_held 0"), "{text}");
}

/// Beyond what is taken there is a status that says so, whoever notices first: this server up to 128 KiB, else the library
/// below it.
#[test]
fn heads_that_are_too_large_are_refused_and_smaller_ones_are_not() {
    let fixture = Fixture::open();
    let with = |count: usize, bytes: usize| {
        let value = "x".repeat(bytes);
        let names: Vec<String> = (0..count).map(|number| format!("x-more-{number}")).collect();
        let headers: Vec<_> = names.iter().map(|name| (name.as_str(), value.as_str())).collect();
        fixture.call("GET", "/ping", &headers, b"")
    };
    with(1, 12 << 10).ok();
    with(80, 100).ok();
    for (count, bytes) in [(1, 16 << 10), (80, 250), (1, 100 << 10)] {
        let said = with(count, bytes).refused(431);
        assert!(said.contains("the maximum is 16384"), "{said}");
    }
    let long = format!("/ping?{}", "x".repeat(17 << 10));
    assert!(fixture.get(&long).refused(431).contains("request line and headers"));
    let far_beyond =
        exchange(&mut connect(fixture.address), &request("GET", "/ping", &[("x-more", &"x".repeat(300 << 10))], b""));
    assert_eq!(far_beyond.status, 431);
    assert_eq!(with(200, 10).status, 431, "more than 96 headers");
    fixture.get("/ping").ok();
}
