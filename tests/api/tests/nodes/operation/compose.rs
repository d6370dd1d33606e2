//! `docker/compose.cluster.yaml` without docker: its services as processes, its volumes as folders, its names as ports
//! of this machine. It is started, restarted in every way described in `docker/README.md`, and loses volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_test_api::http::{Request, send};
use assay_test_api::process::{Process, Ran, STOP_MAX, command, program, run};
use assay_tests_tidy::compose::{Service, services};
use assay_tests_tidy::yaml::yaml;
use serde_json::Value;
use tempfile::TempDir;

const DATA: &str = "/var/lib/assay";
const JOIN: &str = "/var/lib/assay-join";
const HEALTHY_MAX: Duration = Duration::from_secs(60);
const FIRST_PORT: u16 = 20_000;
const POLL: Duration = Duration::from_millis(50);

fn text_of(path: &str) -> String {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where this crate is");
    fs::read_to_string(Path::new(&folder).join("../..").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the rest of a line of `docker/README.md` after its beginning.
fn line_of(page: &str, begin: &str) -> Vec<String> {
    let said = page.lines().find_map(|line| line.strip_prefix(begin));
    said.unwrap_or_else(|| panic!("no line begins `{begin}`")).split_whitespace().map(str::to_owned).collect()
}

struct Composed {
    services: BTreeMap<String, Service>,
    volumes: TempDir,
    /// Addresses of each node: where the others reach it, and where clients do.
    peers: BTreeMap<String, String>,
    doors: BTreeMap<String, String>,
    running: BTreeMap<String, Process>,
}

impl Composed {
    fn new() -> Result<Composed> {
        let services = services(&yaml(&text_of("docker/compose.cluster.yaml")).map_err(anyhow::Error::msg)?);
        let nodes: Vec<&String> =
            services.iter().filter(|(_, service)| !service.ends()).map(|(name, _)| name).collect();
        // Nodes start, and start again, long after this. On a host that processes share, an outgoing connection or another
        // test could take their ports meanwhile, so each process has a loopback host of its own. Process ids have 22 bits.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let address = |port: u16| format!("127.{}.{middle}.{low}:{port}", 64 + high);
        let (mut peers, mut doors) = (BTreeMap::new(), BTreeMap::new());
        for (port, node) in (FIRST_PORT..).step_by(2).zip(nodes) {
            peers.insert(node.clone(), address(port));
            doors.insert(node.clone(), address(port + 1));
        }
        Ok(Composed { services, volumes: tempfile::tempdir()?, peers, doors, running: BTreeMap::new() })
    }

    fn volume(&self, service: &str, at: &str) -> Result<PathBuf> {
        let volume = self.services.get(service).and_then(|service| service.volume_at(at));
        Ok(self.volumes.path().join(volume.with_context(|| format!("{service} has nothing at {at}"))?))
    }

    /// Words of a command as they are on this machine.
    fn adapted(&self, service: &str, words: &[String]) -> Result<Vec<String>> {
        let data = self.volume(service, DATA)?.display().to_string();
        let join = self.volumes.path().join("join").display().to_string();
        fs::create_dir_all(&join)?;
        let adapt = |word: &String| {
            // In two steps: one path begins as the other does.
            let word = word.replace(JOIN, "{join}").replace(DATA, &data).replace("{join}", &join);
            self.peers.iter().fold(word, |word, (name, address)| word.replace(&format!("{name}:7400"), address))
        };
        Ok(words.iter().map(adapt).collect())
    }

    /// Returns the environment without any user-set variables.
    fn environment(&self, service: &str) -> Vec<(&str, &str)> {
        let all = self.services.get(service).map(Service::environment).unwrap_or_default();
        all.into_iter().map(|(name, value)| (name, if value.starts_with("${") { "" } else { value })).collect()
    }

    fn ran(&self, service: &str, words: &[String]) -> Result<Ran> {
        let words = self.adapted(service, words)?;
        run(&words.iter().map(String::as_str).collect::<Vec<_>>(), &self.environment(service), "")
    }

    fn done(&self, service: &str, words: &[String]) -> Result<String> {
        let ran = self.ran(service, words)?;
        ensure!(ran.success, "{service}: {}{}", ran.out, ran.errors);
        Ok(ran.out.trim().to_owned())
    }

    /// Starts every service once its dependencies are ready; one-shot services run again whenever they have run before.
    fn up(&mut self) -> Result<()> {
        let mut come = BTreeSet::new();
        while come.len() < self.services.len() {
            let may = |(name, service): &(&String, &Service)| {
                !come.contains(*name) && service.awaited().iter().all(|(awaited, _)| come.contains(*awaited))
            };
            let Some((name, service)) = self.services.iter().find(may) else { bail!("some wait for each other") };
            let (name, words) =
                (name.clone(), service.items("command").into_iter().map(str::to_owned).collect::<Vec<_>>());
            match service.ends() {
                true => drop(self.done(&name, &words)?),
                false => self.start(&name)?,
            }
            come.insert(name);
        }
        Ok(())
    }

    /// Starts a service that does not run, and waits until it is healthy.
    fn start(&mut self, node: &str) -> Result<()> {
        let door = self.doors.get(node).with_context(|| format!("{node} has no address"))?.clone();
        if self.running.get_mut(node).is_none_or(|process| !process.lives()) {
            let mut command = command(&program()?);
            command.args(["serve", "--listen", &door, "--data-dir"]).arg(self.volume(node, DATA)?);
            // The ports that the containers have of their own would be one here.
            command.envs(self.environment(node)).env("ASSAY_HTTP_OTLP_LISTEN", "off");
            let process = Process::start(&mut command, &self.volumes.path().join(format!("{node}.log")))?;
            self.running.insert(node.to_owned(), process);
        }
        let begun = Instant::now();
        let healthz = Request { method: "GET".into(), target: "/healthz".into(), ..Request::default() };
        while !send(&format!("http://{door}"), &healthz).is_ok_and(|answer| answer.status == 200) {
            let log = self.running.get(node).map(Process::log).unwrap_or_default();
            ensure!(begun.elapsed() < HEALTHY_MAX, "{node} does not become healthy:\n{log}");
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Those that depend on others first.
    fn down(&mut self) -> Result<()> {
        while let Some((node, mut process)) = self.running.pop_last() {
            let status = process.stop(STOP_MAX * 2)?;
            ensure!(status.success(), "{node}: {status}");
        }
        Ok(())
    }

    /// The node ends, and nothing of it is left.
    fn lose(&mut self, node: &str) -> Result<()> {
        self.running.remove(node).with_context(|| format!("{node} does not run"))?.kill()?;
        Ok(fs::remove_dir_all(self.volume(node, DATA)?)?)
    }

    /// Numbers of the nodes that are in, once every group has what it is to have.
    fn settled(&self, asked: &str) -> Result<Vec<u64>> {
        let words = ["cluster", "status", "--wait", "--json", "--data-dir", DATA].map(str::to_owned);
        let status: Value = serde_json::from_str(&self.done(asked, &words)?)?;
        let nodes = status["nodes"].as_array().context("nodes")?.iter();
        Ok(nodes.filter(|node| node["state"] == "active").filter_map(|node| node["id"].as_u64()).collect())
    }

    fn processes(&self) -> Vec<u32> {
        self.running.values().map(Process::id).collect()
    }

    fn logs(&self) -> String {
        self.running.iter().map(|(node, process)| format!("{node}:\n{}\n", process.log())).collect()
    }
}

fn walk(composed: &mut Composed) -> Result<()> {
    let page = text_of("docker/README.md");
    composed.up().context("the first up")?;
    ensure!(composed.settled("node-1")? == [1, 2, 3], "three nodes");
    let processes = composed.processes();
    composed.up().context("up while all run")?;
    ensure!(composed.processes() == processes, "nothing was started anew");
    composed.down()?;
    composed.up().context("up after a down")?;
    ensure!(composed.settled("node-2")? == [1, 2, 3], "the same three");

    composed.lose("node-2")?;
    let refused = composed.up().err().context("a node came out of nothing")?.to_string();
    ensure!(refused.contains("join-2") && refused.contains("its token was used"), "{refused}");
    composed.done("invite-2", &line_of(&page, "dc run --rm --no-deps invite-2 "))?;
    composed.up().context("up with another token")?;
    composed.done("node-1", &line_of(&page, "dc exec node-1 assay "))?;
    ensure!(composed.settled("node-1")? == [1, 3, 4], "another in its place");

    composed.lose("node-1")?;
    let joins = page.lines().find_map(|line| line.strip_prefix("dc run --rm --no-deps init "));
    let (before, rest) =
        joins.and_then(|line| line.split_once("\"$(dc exec -T node-2 assay ")).context("a line that joins")?;
    let (makes, after) = rest.split_once(")\"").context("a token")?;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let token = composed.done("node-2", &words(makes))?;
    composed.done("init", &[words(before), vec![token], words(after)].concat())?;
    composed.up().context("up with another node for the first")?;
    let number = |word: String| if word == "4" { "5".to_owned() } else { word };
    let replace: Vec<String> = line_of(&page, "dc exec node-2 assay ").into_iter().map(number).collect();
    composed.done("node-2", &replace)?;
    ensure!(composed.settled("node-2")? == [3, 4, 5], "another in its place");
    composed.down()
}

#[test]
fn the_cluster_of_the_compose_file_starts_in_every_way() {
    let mut composed = Composed::new().unwrap_or_else(|error| panic!("{error:#}"));
    if let Err(error) = walk(&mut composed) {
        panic!("{error:#}\n{}", composed.logs());
    }
}
