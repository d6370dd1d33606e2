//! Tests of the code around leases, with several nodes in one process and simulated time.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use assay_node_auth::{Credential, Rights};
use assay_storage_model::OrgId;
use futures::FutureExt;
use futures::future::join_all;
use tokio::time::sleep;

use super::*;

const ON_THE_WAY: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct Net {
    nodes: OnceLock<Vec<RateLimiter>>,
    down: Mutex<BTreeSet<NodeId>>,
    /// Nodes that count as dead.
    unseen: Mutex<BTreeSet<NodeId>>,
}

#[derive(Debug)]
struct Peer {
    own: NodeId,
    count: u64,
    net: Arc<Net>,
}

impl RatePeers for Peer {
    fn view(&self) -> Arc<RateView> {
        let unseen = self.net.unseen.lock();
        let alive = (0..self.count).map(NodeId).filter(|node| !unseen.contains(node)).collect();
        Arc::new(RateView { own: self.own, known: usize::try_from(self.count).expect("few"), alive })
    }

    fn ask(&self, node: NodeId, body: Bytes, _: Duration) -> BoxFuture<'static, Result<Bytes, String>> {
        let net = Arc::clone(&self.net);
        async move {
            sleep(ON_THE_WAY).await;
            if net.down.lock().contains(&node) {
                std::future::pending::<()>().await;
            }
            let answer = net.nodes.get().expect("nodes")[usize::try_from(node.0).expect("few")].answer(&body);
            sleep(ON_THE_WAY).await;
            answer
        }
        .boxed()
    }
}

fn rule(requests: u64) -> RateRule {
    RateRule {
        endpoint: "/logs3".into(),
        methods: Vec::new(),
        per: Per::Organization,
        requests,
        seconds: 1,
        burst: None,
        organizations: Vec::new(),
    }
}

fn cluster(count: u64, rules: &[RateRule]) -> (Vec<RateLimiter>, Arc<Net>) {
    let net = Arc::new(Net::default());
    let limits = LimitsConfig { rates: rules.to_vec(), ..LimitsConfig::default() };
    let node = |own| {
        let peer = Peer { own: NodeId(own), count, net: Arc::clone(&net) };
        RateLimiter::new(&limits, Arc::new(peer), Handle::current()).expect("rules")
    };
    let nodes: Vec<RateLimiter> = (0..count).map(node).collect();
    net.nodes.set(nodes.clone()).expect("set once");
    (nodes, net)
}

fn caller(org: u128) -> Principal {
    Principal {
        org: OrgId(Uuid::from_u128(org)),
        org_name: format!("org {org}"),
        user: Uuid::nil(),
        user_email: String::new(),
        impersonator: None,
        credential: Credential::ApiKey(Uuid::nil()),
        rights: Arc::new(Rights::default()),
    }
}

async fn admitted(node: &RateLimiter, who: &Principal) -> bool {
    node.admit("POST", "/logs3", who, || None).await.is_ok()
}

/// Sends a request to each node at an interval. Returns the number of admitted requests.
async fn flood(nodes: &[RateLimiter], who: &Principal, every: Duration, lasts: Duration) -> usize {
    flooded(nodes, who, every, lasts).await.into_iter().sum()
}

/// Sends a request to each node at an interval. Returns the number of admitted requests by node.
async fn flooded(nodes: &[RateLimiter], who: &Principal, every: Duration, lasts: Duration) -> Vec<usize> {
    let flooding = nodes.iter().map(|node| async {
        let end = Instant::now() + lasts;
        let mut asked = Vec::new();
        while Instant::now() < end {
            let (node, who) = (node.clone(), who.clone());
            asked.push(tokio::spawn(async move { admitted(&node, &who).await }));
            sleep(every).await;
        }
        join_all(asked).await.into_iter().filter(|answer| *answer.as_ref().expect("no panic")).count()
    });
    join_all(flooding).await
}

/// Returns the home of the bucket of the first rule.
fn home_of(node: &RateLimiter, who: &Principal) -> usize {
    let limiter = node.0.as_ref().expect("rules");
    let home = limiter.rules[0].key(who, || None).home(&limiter.peers.view().alive).expect("a node");
    usize::try_from(home.0).expect("few")
}

fn waiting(node: &RateLimiter) -> bool {
    let limiter = node.0.as_ref().expect("rules");
    let who = caller(1);
    let key = limiter.rules[0].key(&who, || None);
    let idle = limiter.leases.lock().get(&key).is_none_or(|held| held.told.receiver_count() == 0);
    !idle
}

#[tokio::test(start_paused = true)]
async fn three_nodes_let_in_what_one_would() {
    let (nodes, _net) = cluster(3, &[rule(100)]);
    let began = Instant::now();
    let let_in = flood(&nodes, &caller(1), Duration::from_millis(10), Duration::from_secs(20)).await;
    let limit = 100.0 * began.elapsed().as_secs_f64() + 100.0;
    let part = let_in as f64 / limit;
    assert!((0.9..=1.1).contains(&part), "{let_in} of {limit}");
    for node in &nodes {
        let asks = node.0.as_ref().expect("rules").counts.asks.load(Ordering::Relaxed);
        assert!(asks <= 20 * 20 + 3, "{asks} asks in 20 s");
    }
    assert!(nodes[0].text().contains("assay_rate_alone_total 0"), "{}", nodes[0].text());
}

/// Tests a former defect: of two nodes that asked at the same interval, one got a tenth of the other's tokens.
#[tokio::test(start_paused = true)]
async fn nodes_that_ask_at_the_same_pace_get_as_much() {
    for count in 2..=3 {
        let (nodes, _net) = cluster(count, &[rule(60)]);
        let let_in = flooded(&nodes, &caller(1), Duration::from_millis(11), Duration::from_secs(40)).await;
        let equal = let_in.iter().sum::<usize>() / let_in.len();
        assert!(let_in.iter().all(|one| (equal * 2 / 3..equal * 3 / 2).contains(one)), "{let_in:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_few_requests_below_the_limit_are_let_in_wherever_they_come() {
    let (nodes, _net) = cluster(3, &[rule(100)]);
    let mut slowest = Duration::ZERO;
    for round in 0..200 {
        let began = Instant::now();
        assert!(admitted(&nodes[round % 3], &caller(1)).await);
        slowest = slowest.max(began.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    assert!(slowest <= Duration::from_millis(51), "{slowest:?}");
}

#[tokio::test(start_paused = true)]
async fn while_a_home_is_lost_each_node_lets_in_its_share_and_then_the_next_home_serves() {
    let (nodes, net) = cluster(3, &[rule(300)]);
    let who = caller(1);
    let home = home_of(&nodes[0], &who);
    let others: Vec<RateLimiter> = (0..3).filter(|node| *node != home).map(|node| nodes[node].clone()).collect();
    let (every, second) = (Duration::from_millis(3), Duration::from_secs(1));
    flood(&others, &who, every, 5 * second).await;
    net.down.lock().insert(NodeId(home as u64));
    let alone = flood(&others, &who, every, 6 * second).await as f64 / (300.0 * 6.0);
    assert!((0.6..=0.72).contains(&alone), "two shares of three: {alone}");
    net.unseen.lock().insert(NodeId(home as u64));
    let next = flood(&others, &who, every, 10 * second).await as f64 / (300.0 * 11.0);
    assert!((0.9..=1.1).contains(&next), "{next}");
    net.unseen.lock().clear();
    net.down.lock().clear();
    let again = flood(&nodes, &who, every, 10 * second).await as f64 / (300.0 * 10.0);
    assert!((0.9..=1.15).contains(&again), "{again}");
    assert!(!nodes.iter().any(waiting), "nobody is left waiting");
}

#[tokio::test(start_paused = true)]
async fn only_the_home_gives_and_only_of_rules_that_it_has() {
    let (nodes, net) = cluster(3, &[rule(100)]);
    let who = caller(1);
    let home = home_of(&nodes[0], &who);
    let limiter = nodes[0].0.as_ref().expect("rules");
    let key = limiter.rules[0].key(&who, || None);
    let body = wire::ask(&key, &Ask { want: 5, ..Ask::default() });
    for (number, node) in nodes.iter().enumerate() {
        match node.answer(&body) {
            Ok(grant) => assert!(number == home && wire::read_grant(&grant).expect("a grant").granted == 5),
            Err(why) => assert!(number != home && why.contains("another node"), "{why}"),
        }
    }
    let unknown = wire::ask(&BucketKey { rule: 1, ..key }, &Ask::default());
    assert!(nodes[home].answer(&unknown).expect_err("unknown").contains("no such rule"));
    assert!(nodes[home].answer(b"?").expect_err("unread").contains("cannot be decoded"));
    assert!(RateLimiter::default().answer(&body).expect_err("none").contains("no rules"));
    net.unseen.lock().insert(NodeId(home as u64));
    assert!(nodes[home].answer(&body).is_err(), "it is not the home of what it sees itself");
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_waits_no_more() {
    let (nodes, net) = cluster(2, &[rule(1)]);
    let who = caller(1);
    let home = home_of(&nodes[0], &who);
    net.down.lock().insert(NodeId(home as u64));
    let node = &nodes[1 - home];
    assert!(timeout(Duration::from_millis(10), admitted(node, &who)).await.is_err(), "it waits");
    let limiter = node.0.as_ref().expect("rules");
    assert!(!waiting(node));
    sleep(Duration::from_secs(30)).await;
    let key = limiter.rules[0].key(&who, || None);
    let terms = limiter.rules[0].terms;
    let mut leases = limiter.leases.lock();
    assert!(leases.get(&key).expect("a lease").lease.is_idle(limiter.now(), terms, 2), "nothing is left of it");
}

#[tokio::test(start_paused = true)]
async fn what_another_rule_refused_comes_back_also_to_a_lease() {
    let wide = RateRule { endpoint: "*".into(), ..rule(20) };
    let narrow = RateRule { seconds: 3600, burst: Some(1), ..rule(1) };
    let (nodes, _net) = cluster(3, &[wide, narrow]);
    let who = caller(1);
    let began = Instant::now();
    assert!(admitted(&nodes[0], &who).await);
    for _ in 0..200 {
        assert!(!admitted(&nodes[0], &who).await);
    }
    let mut let_in = 0;
    while nodes[0].admit("GET", "/ping", &who, || None).await.is_ok() {
        let_in += 1;
    }
    let most = 20.0 + 20.0 * began.elapsed().as_secs_f64();
    assert!(let_in >= 15 && f64::from(let_in) <= most, "{let_in} of {most}");
}
