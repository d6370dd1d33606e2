//! Runs the guide's "Three machines" literally, on machines that are network namespaces of this one. Without root, or
//! the programs that make them, it reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_test_api::http::{HttpResponse, Request};
use assay_test_api::machines::{Machine, Network, address_of, lacking};
use assay_test_api::process::{Process, STOP_MAX};
use assay_test_api::server::{Ready, ready};
use serde_json::{Value, json};

const HEADING: &str = "## Three machines";
const MACHINES: usize = 3;
/// Placeholder for a token in the guide.
const TOKEN: &str = "TOKEN";
/// Maximum length of readable words; tokens are longer.
const WORD_MAX: usize = 100;

/// The lines of each fenced block of the section.
fn blocks() -> Vec<Vec<String>> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
    let text = std::fs::read_to_string(Path::new(&folder).join("../../node/guide/clusters.md")).expect("the guide");
    let section = text.lines().skip_while(|line| *line != HEADING).skip(1).take_while(|line| !line.starts_with("## "));
    let (mut blocks, mut fenced) = (Vec::new(), false);
    for line in section {
        if line.starts_with("```") {
            fenced = !fenced;
            if fenced {
                blocks.push(Vec::new());
            }
        } else if let Some(block) = blocks.last_mut().filter(|_| fenced) {
            block.push(line.to_owned());
        }
    }
    blocks
}

/// Commands for the first machine, for each token, for each that joins, and for any in the end.
#[derive(Debug)]
struct Commands {
    found: [String; 2],
    token: String,
    join: [String; 2],
    wait: String,
}

fn walk() -> Commands {
    let blocks = blocks();
    let shape: Vec<usize> = blocks.iter().map(Vec::len).collect();
    assert_eq!(shape, [2, 1, 2, 1], "the guide's section has other blocks now: {blocks:?}");
    let [init, serve, token, join, serve_too, wait] = blocks.concat().try_into().expect("six lines");
    assert!(join.split(' ').any(|word| word == TOKEN), "{join}");
    Commands { found: [init, serve], token, join: [join, serve_too], wait }
}

/// The line for the second machine as the one that machine `number` needs.
fn adapted(line: &str, number: usize, token: &str) -> String {
    let second = address_of(2).to_string();
    assert!(line.contains(&second), "{line}");
    line.replace(&second, &address_of(number).to_string()).replace(TOKEN, token)
}

/// Prints a command with its output, without parts that only programs read.
fn show(machine: &Machine<'_>, line: &str, printed: &[String]) {
    let short = |line: &str| {
        line.split(' ').map(|word| if word.len() > WORD_MAX { "..." } else { word }).collect::<Vec<_>>().join(" ")
    };
    println!("machine {}$ {}", machine.number, short(line));
    printed.iter().for_each(|line| println!("  {}", short(line)));
}

fn done(machine: &Machine<'_>, line: &str) -> Vec<String> {
    let printed = machine.run(line).unwrap_or_else(|error| panic!("{error:#}"));
    show(machine, line, &printed);
    printed
}

fn serving(machine: &Machine<'_>, line: &str) -> (Process, Ready) {
    let start = || {
        let mut process = machine.start(line)?;
        let ready = ready(&mut process)?;
        anyhow::Ok((process, ready))
    };
    let (process, ready) = start().unwrap_or_else(|error| panic!("machine {}$ {line}: {error:#}", machine.number));
    show(machine, line, std::slice::from_ref(&ready.url));
    assert_eq!(ready.url, format!("http://{}:8000", address_of(machine.number)));
    (process, ready)
}

fn asked(from: &Machine<'_>, to: usize, key: &str, target: &str, body: &Value) -> anyhow::Result<HttpResponse> {
    let request = Request {
        method: "POST".into(),
        target: target.into(),
        headers: vec![("authorization".into(), format!("Bearer {key}"))],
        body: Some(body.to_string().into_bytes()),
        declared_length: None,
    };
    from.ask(&format!("http://{}:8000", address_of(to)), &request)
}

fn call(from: &Machine<'_>, to: usize, key: &str, target: &str, body: Value) -> Value {
    let answer = asked(from, to, key, target, &body).unwrap_or_else(|error| panic!("{error:#}"));
    assert_eq!(answer.status, 200, "{target} at machine {to}: {}", answer.text());
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// The first machine founds a cluster, the others join it, and each waits until it is settled. Returns what runs on them,
/// and the key that was printed.
fn together(walk: &Commands, machines: &[Machine<'_>]) -> (Vec<Process>, String) {
    done(&machines[0], &walk.found[0]);
    let (first, ready) = serving(&machines[0], &walk.found[1]);
    let key = ready.printed_key.expect("the first start prints a key");
    let mut nodes = vec![first];
    for machine in &machines[1..] {
        let printed = done(&machines[0], &walk.token);
        let [token] = printed.as_slice() else { panic!("one line, and that is the token: {printed:?}") };
        done(machine, &adapted(&walk.join[0], machine.number, token));
        let (node, ready) = serving(machine, &adapted(&walk.join[1], machine.number, token));
        assert_eq!(ready.printed_key, None, "machine {} made a key of its own", machine.number);
        nodes.push(node);
    }
    for machine in machines {
        let said = done(machine, &walk.wait);
        assert_eq!(said.last().map(String::as_str), Some("settled"));
        let replicated =
            said.iter().filter(|line| line.starts_with("shard ")).all(|line| line.contains("on nodes 1, 2, 3"));
        assert!(replicated && said.iter().any(|line| line.starts_with("shard ")), "{said:?}");
    }
    (nodes, key)
}

/// Network and machines for a test, or why there are none.
fn network(what: &str) -> Option<Network> {
    if let Some(problem) = lacking() {
        assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "{problem}");
        // To the stream itself: what a passing test prints is not shown.
        let _ = writeln!(std::io::stderr(), "NOT COVERED: {what}: {problem}");
        return None;
    }
    Some(Network::create(MACHINES).unwrap_or_else(|error| panic!("{error:#}")))
}

fn machines<'n>(network: &'n Network, dir: &Path) -> [Machine<'n>; MACHINES] {
    [1, 2, 3].map(|number| {
        let made = Machine::new(network, number, &dir.join(format!("machine-{number}")));
        made.unwrap_or_else(|error| panic!("{error:#}"))
    })
}

/// Nodes whose logs are printed when a test fails.
struct LoggedNodes(Vec<Process>);

impl Drop for LoggedNodes {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().zip(1..).for_each(|(node, number)| println!("log of machine {number}:\n{}", node.log()));
        }
    }
}

fn stop_all(nodes: &mut [Process]) {
    for (place, node) in nodes.iter_mut().enumerate() {
        let status = node.stop(STOP_MAX).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(status.success(), "machine {}: {status}", place + 1);
    }
}

/// Projects, so that shards of all leaders are written to.
const PROJECTS: usize = 6;
/// Time after a cut from which every request succeeds, and for as long again.
const SERVED_AGAIN: Duration = Duration::from_secs(2);
const HELD: Duration = Duration::from_secs(20);
/// A request that takes longer on a busy machine is stuck.
const STUCK: Duration = Duration::from_secs(10);

/// Writes to each project in turn at the node of this machine and reads it there, until the time is over. Returns how many
/// requests were sent, and what was wrong with those that were sent after `from` or took longer than [`STUCK`].
fn written_and_read(
    machine: &Machine<'_>,
    key: &str,
    projects: &[String],
    (from, until): (Instant, Instant),
) -> (usize, Vec<String>) {
    let (mut sent, mut wrong) = (0, Vec::new());
    while Instant::now() < until {
        let (begun, row) = (Instant::now(), format!("row-{}-{sent}", machine.number));
        let path = format!("/v1/project_logs/{}", projects[sent % projects.len()]);
        let insert = json!({"events": [{"id": row, "input": row}]});
        for (target, body) in [(format!("{path}/insert"), insert), (format!("{path}/fetch"), json!({"limit": 1}))] {
            let answer = asked(machine, machine.number, key, &target, &body);
            let problem = match &answer {
                Ok(answer) if answer.status == 200 && begun.elapsed() < STUCK => continue,
                Ok(answer) => format!("{}: {}", answer.status, answer.text()),
                Err(error) => format!("{error:#}"),
            };
            if begun >= from {
                wrong.push(format!("machine {}, {target} after {:?}: {problem}", machine.number, begun.elapsed()));
            }
        }
        sent += 1;
    }
    (sent, wrong)
}

/// Two machines that do not reach each other, with a third that both reach. Regression: their nodes served no requests
/// for as long as it lasted.
#[test]
fn half_connected_machines_are_all_served() {
    let Some(network) = network("half-connected machines") else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let machines = machines(&network, dir.path());
    let (nodes, key) = together(&walk(), &machines);
    let mut nodes = LoggedNodes(nodes);
    let project = |number: usize| {
        let made = call(&machines[0], 1, &key, "/v1/project", json!({"name": format!("project {number}")}));
        made["id"].as_str().expect("an id").to_owned()
    };
    let projects: Vec<String> = (0..PROJECTS).map(project).collect();
    for cut in [&[(1, 2), (2, 1)][..], &[(2, 1)]] {
        cut.iter().for_each(|(from, to)| network.cut(*from, *to).unwrap_or_else(|error| panic!("{error:#}")));
        let from = Instant::now() + SERVED_AGAIN;
        let times = (from, from + HELD / u32::try_from(3 - cut.len()).expect("one or two"));
        std::thread::scope(|scope| {
            let (key, projects) = (&key, &projects);
            let clients =
                machines.each_ref().map(|machine| scope.spawn(move || written_and_read(machine, key, projects, times)));
            let ended = clients.map(|client| client.join().expect("a client ends"));
            assert!(ended.iter().all(|(sent, wrong)| wrong.is_empty() && *sent > 5), "{cut:?}: {ended:#?}");
        });
        cut.iter().for_each(|(from, to)| network.mend(*from, *to).unwrap_or_else(|error| panic!("{error:#}")));
    }
    stop_all(&mut nodes.0);
}

#[test]
fn the_readmes_three_machines_become_one_cluster() {
    let walk = walk();
    let Some(network) = network("the guide's three machines") else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let machines = machines(&network, dir.path());
    let (mut nodes, key) = together(&walk, &machines);
    let project = call(&machines[0], 2, &key, "/v1/project", json!({"name": "three machines"}));
    let path = format!("/v1/project_logs/{}", project["id"].as_str().expect("an id"));
    call(&machines[0], 2, &key, &format!("{path}/insert"), json!({"events": [{"id": "row", "input": "written on 2"}]}));
    for (from, to) in [(0, 3), (1, 1), (2, 2)] {
        let page = call(&machines[from], to, &key, &format!("{path}/fetch"), json!({}));
        assert_eq!(page["events"][0]["input"], "written on 2", "read on {to}: {page}");
    }
    stop_all(&mut nodes);
}
