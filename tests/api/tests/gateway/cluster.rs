//! Calls at three nodes: what one node learns the others know, and what the loss of a node costs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use assay_test_api::dev::{Dev, NODES};
use assay_test_api::http::{Exchange, HttpResponse, SILENCE_MAX, exchange};
use assay_test_providers::{Fault, ProviderServer};
use serde_json::{Value, json};

use crate::fixture::{
    CHAT, api, ask, chat, code_of, eventually, eventually_within, id_of, metadata_at, openai, provider, request,
    secret, stream, streamed_text, text_of, with,
};

const EGRESS: (&str, &str) =
    ("ASSAY_EGRESS_ALLOW", r#"[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models"]}]"#);
/// Time limit of calls, which releases what the calls of a dead node reserved.
const CALL_SECONDS: (&str, &str) = ("ASSAY_GATEWAY_CALL_SECONDS_MAX", "60");
/// Time for that release, and for its detection on a busy machine.
const RELEASED_MAX: Duration = Duration::from_secs(90);
/// Node that is killed.
const LOST: usize = 3;
/// Time after which the other nodes know what one learned.
const KNOWN_AFTER: Duration = Duration::from_secs(1);
/// Rounds of an exchange that is best-effort.
const ROUNDS_MAX: usize = 5;
const STREAMS: usize = 200;
const CALLS: usize = 500;
/// Calls of the lost node that are surely under way when it is killed.
const EARLY: usize = 10;
/// Calls that the budget is for.
const PAID: usize = 100;

/// A cluster in a directory of its own.
struct GatewayCluster {
    dev: Dev,
    _dir: tempfile::TempDir,
}

impl GatewayCluster {
    fn start(settings: &[(&'static str, &'static str)]) -> GatewayCluster {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = [&[EGRESS], settings].concat();
        let dev = Dev::start_with(&dir.path().join("data"), &settings).unwrap_or_else(|error| panic!("{error:#}"));
        GatewayCluster { dev, _dir: dir }
    }

    fn url(&self, call: usize) -> String {
        self.dev.urls[call % NODES].clone()
    }

    fn left(&self) -> &[String] {
        &self.dev.urls[..LOST - 1]
    }

    /// Waits until a node serves a model.
    fn serves(&self, model: &str) {
        for url in &self.dev.urls {
            let listed = || api(url, "GET", "/v1/models", &json!({}))["data"].to_string().contains(model).then_some(());
            eventually("the model", listed);
        }
    }

    fn usage(&self, budget: &str) -> Value {
        let target = format!("/v1/gateway_budget/{budget}/usage");
        eventually("the usage", || {
            let read = exchange(&self.dev.urls[0], &request("GET", &target, &[], None), SILENCE_MAX).ok()?;
            let Exchange::Answered(answer) = read else { return None };
            (answer.status == 200).then(|| serde_json::from_slice(&answer.body).expect("JSON"))
        })
    }
}

/// Calls; none if the connection ended without a whole answer.
fn call(url: &str, body: &Value) -> Option<HttpResponse> {
    match exchange(url, &request("POST", CHAT, &[], Some(body)), SILENCE_MAX) {
        Ok(Exchange::Answered(answer)) => Some(answer),
        _ => None,
    }
}

fn budget(cluster: &GatewayCluster, model: &str, usd: f64) -> String {
    let sent =
        json!({"scope": {"type": "model", "id": model}, "window": "total", "limit_usd": usd, "action": "reject"});
    id_of(&api(&cluster.dev.urls[0], "POST", "/v1/gateway_budget", &sent))
}

#[test]
#[ignore = "takes a cluster; .ci/run runs it"]
fn what_cools_at_one_node_cools_at_all() {
    let cluster = GatewayCluster::start(&[]);
    for round in 1..=ROUNDS_MAX {
        let (limited, spare, model) = (provider(), provider(), format!("cooled-{round}"));
        for (name, server, priority) in [("limited", &limited, 0), ("spare", &spare, 1)] {
            let metadata = with(&openai(server, &model), &json!({"priority": priority}));
            secret(cluster.left()[0].as_str(), &format!("{name}-{round}"), "openai", &metadata);
        }
        cluster.serves(&model);
        limited.inject(Fault::Status { status: 429, retry_after: Some("60".into()) });
        let urls = &cluster.dev.urls;
        assert_eq!(text_of(&ask(&urls[0], CHAT, &[], &chat(&model, "a"))), "echo: a");
        std::thread::sleep(KNOWN_AFTER);
        for url in &urls[1..] {
            let answer = ask(url, CHAT, &[], &chat(&model, "b"));
            assert_eq!(text_of(&answer), "echo: b");
        }
        if limited.requests().len() == 1 {
            println!("known at all nodes in round {round}");
            return;
        }
    }
    panic!("in none of {ROUNDS_MAX} rounds all nodes knew within {KNOWN_AFTER:?} what had failed at one");
}

#[test]
#[ignore = "takes a cluster; .ci/run runs it"]
fn streams_of_other_nodes_go_on_when_a_node_is_killed() {
    let cluster = GatewayCluster::start(&[]);
    let (dying, limited, slow) = (provider(), provider(), provider());
    for (name, server) in [("dying", &dying), ("limited", &limited), ("slow", &slow)] {
        secret(&cluster.dev.urls[0], name, "openai", &openai(server, "m"));
    }
    cluster.serves("m");
    let budget = budget(&cluster, "m", 1000.0);
    limited.inject_always(Some(Fault::Status { status: 429, retry_after: Some("60".into()) }));
    slow.inject_always(Some(Fault::SlowEvents(Duration::from_millis(200))));
    drop(dying);
    let body = with(&stream("m", &"word ".repeat(60)), &json!({"max_tokens": 100}));
    let running: Vec<JoinHandle<Option<HttpResponse>>> = (0..STREAMS)
        .map(|number| {
            // sessions of their own, which spread over the three servers
            let body = with(&body, &json!({"prompt_cache_key": format!("session {number}")}));
            let url = cluster.url(number);
            spawn(move || call(&url, &body))
        })
        .collect();
    eventually("all streams at the slow server", || (slow.requests().len() >= STREAMS).then_some(()));
    cluster.dev.kill(LOST).expect("is killed");
    let answers: Vec<_> = running.into_iter().map(|call| call.join().expect("a call")).collect();
    let expected = format!("echo: {}", "word ".repeat(60));
    let mut whole = 0;
    for (number, answer) in answers.iter().enumerate() {
        match answer {
            Some(answer) => {
                assert_eq!((answer.status, streamed_text(&answer.text())), (200, expected.clone()), "{number}");
                assert!(answer.text().contains("[DONE]"), "{number}");
                whole += 1;
            }
            None => assert_eq!(number % NODES, LOST - 1, "a stream of a living node broke"),
        }
    }
    let broken = STREAMS - whole;
    println!("{whole} streams went on, {broken} broke with their node");
    assert!(broken > 0, "the node was killed too late");
    slow.inject_always(None);
    let again = (0..broken).filter_map(|number| call(&cluster.left()[number % (NODES - 1)], &body));
    let retried = again.filter(|answer| answer.text().contains("[DONE]")).count();
    assert_eq!(retried, broken, "a retry at another node succeeds");
    settles(&cluster, &budget, whole + retried, broken);
}

/// All calls of living nodes are settled; those of the dead one hold what they reserved.
fn settles(cluster: &GatewayCluster, budget: &str, done: usize, dead: usize) {
    // 60 words in and 61 out, at a dollar for a million
    let price = 121e-6;
    let usage = eventually("the settlement of all calls", || {
        let usage = cluster.usage(budget);
        (usage["concurrent"]["running"].as_u64() <= Some(dead as u64)).then_some(usage)
    });
    let spent = usage["usd"]["spent"].as_f64().expect("an amount");
    assert!((spent - done as f64 * price).abs() < price * 0.01, "{done} calls: {usage}");
    assert_eq!(usage["requests"]["spent"], json!(done + dead), "{usage}");
    assert!(dead == 0 || usage["usd"]["reserved"].as_f64() > Some(0.0), "{usage}");
}

#[test]
#[ignore = "takes a cluster; .ci/run runs it"]
fn a_budget_of_a_cluster_is_kept_under_concurrency_and_a_kill() {
    let cluster = GatewayCluster::start(&[CALL_SECONDS]);
    let server = provider();
    secret(&cluster.dev.urls[0], "one", "openai", &metadata_at(&server.origin(), "m"));
    cluster.serves("m");
    // 400 words in and 401 out; a token is estimated for four bytes
    let (body, price) = (with(&chat("m", &"abc ".repeat(400)), &json!({"max_tokens": 401})), 801e-6);
    let budget = budget(&cluster, "m", PAID as f64 * price);
    eventually("the budget at all nodes", || {
        let known =
            |url: &String| call(url, &chat("m", "fail 400"))?.header("x-ratelimit-limit-requests").or(Some("".into()));
        cluster.dev.urls.iter().all(|url| known(url).is_some()).then_some(())
    });
    let before = server.requests().len();
    server.inject_always(Some(Fault::SlowFirstByte(Duration::from_secs(6))));
    let (refused, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (cluster, body, refused, done) = (&cluster, &body, &refused, &done);
        let begin = |number: usize| {
            let url = cluster.url(number);
            scope.spawn(move || match call(&url, body) {
                Some(answer) if answer.status == 200 => _ = done.fetch_add(1, Ordering::Relaxed),
                Some(answer) if answer.status == 429 => {
                    assert_eq!(code_of(&answer), "budget_exceeded", "{}", answer.text());
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                Some(answer) => assert!([502, 503].contains(&answer.status), "{}: {}", answer.status, answer.text()),
                None => assert_eq!(number % NODES, LOST - 1, "a living node gave no answer"),
            });
        };
        // the first calls are those of the node that is lost, which else may be refused them all
        let (first, others): (Vec<_>, Vec<_>) =
            (0..CALLS).partition(|number| number % NODES == LOST - 1 && *number < EARLY * NODES);
        first.into_iter().for_each(begin);
        eventually("the first calls at the server", || (server.requests().len() >= before + EARLY).then_some(()));
        others.into_iter().for_each(begin);
        eventually("calls at the server", || (server.requests().len() > before + PAID / 2).then_some(()));
        cluster.dev.kill(LOST).expect("is killed");
    });
    server.inject_always(None);
    let (refused, done) = (refused.into_inner(), done.into_inner());
    println!("of {CALLS} calls {done} were answered and {refused} refused");
    let asked = || server.requests().len() - before;
    assert!(asked() <= PAID + NODES, "{} calls reached the server", asked());
    let done = done + use_up(&cluster, &body);
    assert!(asked() <= PAID + NODES, "{} calls reached the server", asked());
    nothing_lost(&cluster.usage(&budget), done, asked(), price);
    refuses(&cluster, &server, &body);
    let released = || {
        let usage = cluster.usage(&budget);
        (usage["usd"]["reserved"] == json!(0.0)).then_some(usage)
    };
    let usage = eventually_within(RELEASED_MAX, "the release of what the dead calls reserved", released);
    println!("released: {usage}");
    assert!(use_up(&cluster, &body) > 0, "what was released can be spent");
}

/// Calls until the budget is used up, and returns how often that worked.
fn use_up(cluster: &GatewayCluster, body: &Value) -> usize {
    let mut done = 0;
    let mut refusals = 0;
    while refusals < 2 * NODES {
        let url = &cluster.left()[(done + refusals) % (NODES - 1)];
        match call(url, body) {
            Some(answer) if answer.status == 200 => done += 1,
            _ => {
                refusals += 1;
                std::thread::sleep(Duration::from_millis(300));
            }
        }
        assert!(done <= PAID + NODES, "the budget has no end");
    }
    done
}

/// What reached the server is spent, or still reserved where its node died.
fn nothing_lost(usage: &Value, done: usize, asked: usize, price: f64) {
    println!("{asked} calls reached the server, {done} were answered: {usage}");
    assert!(asked > done, "no call was under way at the node that was killed");
    let amount = |name: &str| usage["usd"][name].as_f64().expect("an amount");
    let (spent, reserved) = (amount("spent"), amount("reserved"));
    assert!(spent >= done as f64 * price - 1e-9, "{usage}");
    assert!(spent + reserved >= asked as f64 * price - 1e-9, "{asked} calls reached the server: {usage}");
    assert!(spent + reserved > (PAID - 2) as f64 * price, "calls were refused for nothing: {usage}");
}

fn refuses(cluster: &GatewayCluster, server: &ProviderServer, body: &Value) {
    let before = server.requests().len();
    for url in cluster.left() {
        let answer = call(url, body).expect("an answer");
        assert_eq!((answer.status, code_of(&answer).as_str()), (429, "budget_exceeded"), "{}", answer.text());
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(server.requests().len(), before);
}
