//! Compose files: services with minimal privileges and health checks, that wait for their dependencies, and run
//! commands that `up` may repeat.

use std::collections::{BTreeMap, BTreeSet};

use crate::yaml::yaml;

const DATA: &str = "/var/lib/assay";
/// A node without a majority takes more than 71 s to stop.
pub const STOP_GRACE: &str = "120s";
/// Required settings of each service, and the required beginning of an item in each list.
const SAID: [(&str, &str); 2] = [("read_only", "true"), ("stop_grace_period", STOP_GRACE)];
const LISTED: [(&str, &str); 2] = [("cap_drop", "ALL"), ("security_opt", "no-new-privileges")];

/// A service's values, by their path in it.
#[derive(Clone, Debug, Default)]
pub struct Service(BTreeMap<String, String>);

impl Service {
    fn said(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// The items of a list, in order.
    pub fn items(&self, path: &str) -> Vec<&str> {
        (0..).map_while(|place| self.said(&format!("{path}.{place}"))).collect()
    }

    /// It does something and ends, and is done again at each `up`; a node goes on.
    pub fn ends(&self) -> bool {
        self.items("command").first().is_some_and(|word| *word == "cluster")
    }

    /// Returns the value of a command's option, which is `--name value` or `--name=value`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let words = self.items("command");
        let joined = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        joined.or_else(|| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1).copied()))
    }

    /// The volume that is mounted at a path.
    pub fn volume_at(&self, at: &str) -> Option<&str> {
        let mounts = self.items("volumes").into_iter().filter_map(|mount| mount.split_once(':'));
        mounts.into_iter().find_map(|(volume, path)| (path == at).then_some(volume))
    }

    /// Returns its dependencies with their conditions.
    pub fn awaited(&self) -> Vec<(&str, &str)> {
        let pairs = self.0.iter().filter_map(|(path, value)| Some((path.strip_prefix("depends_on.")?, value.as_str())));
        pairs.map(|(path, value)| (path.strip_suffix(".condition").unwrap_or(path), value)).collect()
    }

    /// Names of the environment, each with its value, which may be none of a name that is passed on.
    pub fn environment(&self) -> Vec<(&str, &str)> {
        let pairs =
            self.0.iter().filter_map(|(path, value)| Some((path.strip_prefix("environment.")?, value.as_str())));
        let is_item = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        pairs
            .map(
                |(name, value)| {
                    if is_item(name) { value.split_once('=').unwrap_or((value, "")) } else { (name, value) }
                },
            )
            .collect()
    }
}

/// The services of a compose file by name.
pub fn services(values: &BTreeMap<String, String>) -> BTreeMap<String, Service> {
    let mut found: BTreeMap<String, Service> = BTreeMap::new();
    for (path, value) in values {
        if let Some((name, rest)) = path.strip_prefix("services.").and_then(|path| path.split_once('.')) {
            found.entry(name.to_owned()).or_default().0.insert(rest.to_owned(), value.clone());
        }
    }
    found
}

/// Returns the defects of a compose file; `known` are the environment variables of the program.
pub fn compose(text: &str, known: &BTreeSet<String>) -> Vec<String> {
    let values = match yaml(text) {
        Ok(values) => values,
        Err(problem) => return vec![problem],
    };
    let all = services(&values);
    let mut found = Vec::new();
    for (name, service) in &all {
        let complaints =
            [fences(service), variables(service, known), waits(service, &all), work(service, &all)].concat();
        found.extend(complaints.into_iter().map(|complaint| format!("{name}: {complaint}")));
    }
    found.extend(volumes(&values, &all));
    found
}

/// Checks the restrictions that protect a service, and others from it.
fn fences(service: &Service) -> Vec<String> {
    let mut found = Vec::new();
    let restart = if service.ends() { "no" } else { "unless-stopped" };
    for (path, wanted) in SAID.into_iter().chain([("restart", restart)]) {
        if service.said(path) != Some(wanted) {
            found.push(format!("{path} is not {wanted}"));
        }
    }
    for (path, wanted) in LISTED {
        if !service.items(path).iter().any(|item| item.starts_with(wanted)) {
            found.push(format!("{path} has no {wanted}"));
        }
    }
    let ports = service.items("ports");
    if ports.is_empty() != service.ends() || ports.iter().any(|port| !port.starts_with("127.0.0.1:")) {
        found.push("a node has a port on 127.0.0.1:, and nothing else has any".into());
    }
    if service.volume_at(DATA).is_none() {
        found.push(format!("no volume is at {DATA}"));
    }
    found
}

/// Checks that variables are passed on under their own name, and exist in the program.
fn variables(service: &Service, known: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in service.environment() {
        if !known.contains(name) {
            found.push(format!("the program knows no {name}"));
        }
        let passed = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let passed = passed.map(|rest| rest.split([':', '-', '?']).next().unwrap_or_default());
        found
            .extend(passed.filter(|passed| *passed != name).map(|passed| format!("{name} is passed on from {passed}")));
    }
    found
}

/// Checks that dependencies exist and can reach their condition.
fn waits(service: &Service, all: &BTreeMap<String, Service>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, until) in service.awaited() {
        let Some(awaited) = all.get(name) else {
            found.push(format!("it waits for {name}, which is not there"));
            continue;
        };
        let comes = match until {
            "service_completed_successfully" => awaited.ends(),
            "service_healthy" => !awaited.ends() && awaited.said("healthcheck.disable").is_none(),
            _ => false,
        };
        found.extend((!comes).then(|| format!("it waits until {name} is {until}, which never comes")));
    }
    found
}

/// Commands that find their work done when `up` runs them again, for a node that is there and waits for them.
fn work(service: &Service, all: &BTreeMap<String, Service>) -> Vec<String> {
    if !service.ends() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let node = all.iter().find(|(_, node)| !node.ends() && node.volume_at(DATA) == service.volume_at(DATA));
    let Some((node, _)) = node else { return vec!["no node has its volume".into()] };
    let prepares = service.option("--peer-address").map(|address| address.split(':').next().unwrap_or_default());
    match service.items("command").get(1).copied() {
        Some("init" | "join") if prepares != Some(node.as_str()) => {
            found.push(format!("--peer-address is not that of {node}, which has its volume"));
        }
        Some("init") => {}
        Some("join") => {
            let file = service.option("--token-file");
            let makes = |(name, _): &(&str, &str)| all.get(*name).is_some_and(|made| made.option("--output") == file);
            if file.is_none() || !service.awaited().iter().any(makes) {
                found.push("it waits for nobody who writes its token".into());
            }
        }
        Some("token") if service.option("--output").is_some() && !service.items("command").contains(&"--anew") => {}
        other => found.push(format!("`{}` is not done when it is done again", other.unwrap_or_default())),
    }
    found
}

/// Those that are declared are those that are mounted, and each node has one of its own.
fn volumes(values: &BTreeMap<String, String>, all: &BTreeMap<String, Service>) -> Vec<String> {
    let declared: BTreeSet<&str> = values.keys().filter_map(|path| path.strip_prefix("volumes.")).collect();
    let mounts = all.values().flat_map(|service| service.items("volumes"));
    let mounted: BTreeSet<&str> = mounts.filter_map(|mount| Some(mount.split_once(':')?.0)).collect();
    let differ = declared.symmetric_difference(&mounted);
    let mut found: Vec<String> =
        differ.map(|name| format!("the volume {name} is not both declared and mounted")).collect();
    let mut own = BTreeSet::new();
    for (name, node) in all.iter().filter(|(_, service)| !service.ends()) {
        if let Some(volume) = node.volume_at(DATA).filter(|volume| !own.insert(*volume)) {
            found.push(format!("{name}: another node has the volume {volume}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"x: &node
  restart: unless-stopped
  stop_grace_period: 120s
  read_only: true
  cap_drop:
    - ALL
  security_opt:
    - no-new-privileges:true
  environment:
    ASSAY_URL: ${ASSAY_URL:-}
services:
  invite:
    <<: *node
    restart: "no"
    command: ["cluster", "token", "--output", "/join/2"]
    volumes: ["one:/var/lib/assay", "join:/join"]
    depends_on:
      one: { condition: service_healthy }
  prepare:
    <<: *node
    restart: "no"
    command: ["cluster", "join", "--token-file=/join/2", "--peer-address=two:1"]
    volumes: ["two:/var/lib/assay", "join:/join"]
    depends_on:
      invite: { condition: service_completed_successfully }
  one:
    <<: *node
    ports: ["127.0.0.1:1:1"]
    volumes: ["one:/var/lib/assay"]
  two:
    <<: *node
    ports: ["127.0.0.1:2:1"]
    volumes: ["two:/var/lib/assay"]
    depends_on:
      prepare: { condition: service_completed_successfully }
volumes:
  one: {}
  two: {}
  join: {}
"#;

    #[test]
    fn services_that_cannot_start_or_not_again_are_named() {
        let known = BTreeSet::from(["ASSAY_URL".to_owned()]);
        assert_eq!(compose(GOOD, &known), Vec::<String>::new());
        for (from, to, complaint) in [
            ("restart: unless-stopped", "restart: always", "one: restart is not unless-stopped"),
            ("period: 120s", "period: 60s", "two: stop_grace_period is not 120s"),
            ("- ALL", "- KILL", "one: cap_drop has no ALL"),
            (r#""127.0.0.1:2:1""#, r#""2:1""#, "two: a node has a port on 127.0.0.1:"),
            ("{ASSAY_URL:-", "{ASSAY_ULR:-", "one: ASSAY_URL is passed on from ASSAY_ULR"),
            ("ASSAY_URL:", "ASSAY_ULR:", "one: the program knows no ASSAY_ULR"),
            ("      invite: {", "      invited: {", "prepare: it waits for invited, which is not there"),
            (
                "      prepare: { condition: service_completed_successfully }",
                "      prepare: { condition: service_healthy }",
                "two: it waits until prepare is service_healthy, which never comes",
            ),
            (r#", "--output", "/join/2""#, "", "invite: `token` is not done when it is done again"),
            (r#""--output""#, r#""--anew", "--output""#, "invite: `token` is not done"),
            ("--token-file=/join/2", "--token-file=/join/3", "prepare: it waits for nobody who writes its token"),
            ("--peer-address=two:1", "--peer-address=one:1", "prepare: --peer-address is not that of two"),
            ("  join: {}\n", "", "the volume join is not both declared and mounted"),
            (r#"["two:/var/lib/assay"]"#, r#"["one:/var/lib/assay"]"#, "two: another node has the volume one"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let found = compose(&GOOD.replace(from, to), &known);
            assert!(found.iter().any(|found| found.starts_with(complaint)), "{complaint}, and not {found:?}");
        }
    }
}
