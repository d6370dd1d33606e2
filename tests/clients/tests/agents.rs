//! Coding agents: the public MCP libraries of Python and TypeScript list and call every tool on three nodes, another node
//! at each request: with a key, with OAuth, and without rights. If a language or a package index is unavailable this
//! reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::Result;
use assay_test_api::agent_data::{AgentData, HIDDEN_TEXTS, key_without_rights};
use assay_test_api::dev::Dev;
use assay_test_api::openid_provider::{CLIENT, Person, Provider, SECRET};
use assay_test_clients::javascript::{self, Environment};
use assay_test_clients::kept::ends_well;
use assay_test_clients::proxy::Proxy;
use assay_test_clients::python;
use assay_test_clients::suite::covered;
use serde_json::{Value, json};

const PYTHON: &str = include_str!("../python/agents.lock");
const PACKAGE: &str = include_str!("../javascript/agents/package.json");
const LOCK: &str = include_str!("../javascript/agents/package-lock.json");
/// User of the logins: the owner from a first start.
const OWNER: &str = "owner@localhost";
/// Modes of the Python library: with and without a handshake.
const MODES: [&str; 2] = ["auto", "legacy"];
/// Libraries of TypeScript: the one with a handshake, and its successor.
const LIBRARIES: [&str; 2] = ["sdk", "client"];
/// Name of the tool that older clients call, which is not in the list.
const ALIAS: &str = "btql_query";
/// Tool for the guide, which everybody may read.
const GUIDE: &str = "search_docs";

/// Three nodes behind one address, with a provider and data.
struct AgentNodes {
    dev: Dev,
    _provider: Provider,
    proxy: Proxy,
    dir: tempfile::TempDir,
    /// File with the calls.
    calls: PathBuf,
    /// Key of a member without grants.
    refused: String,
}

impl AgentNodes {
    fn start() -> Result<AgentNodes> {
        let provider = Provider::start();
        provider.is_visited_by(Person::of(OWNER));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let public_url = format!("http://{}", listener.local_addr()?);
        let dir = tempfile::tempdir()?;
        let data = dir.path().join("data");
        let environment = [
            // Every request opens a connection, and so goes to the next node.
            ("ASSAY_HTTP_KEEP_ALIVE_SECONDS", "0"),
            ("ASSAY_HTTP_PUBLIC_URL", public_url.as_str()),
            ("ASSAY_OIDC_ISSUER", &provider.issuer),
            ("ASSAY_OIDC_CLIENT_ID", CLIENT),
            ("ASSAY_OIDC_CLIENT_SECRET", SECRET),
        ];
        let dev = Dev::start_with(&data, &environment)?;
        let proxy = Proxy::start_at(listener, &dev.urls)?;
        let agent_data = AgentData::create(&dev.urls[0])?;
        let refused = key_without_rights(&dev.urls[0], &data.join("node-1"))?;
        let calls = dir.path().join("calls.json");
        std::fs::write(&calls, wanted(&agent_data).to_string())?;
        Ok(AgentNodes { dev, _provider: provider, proxy, dir, calls, refused })
    }

    /// Returns how callers authenticate, with their keys.
    fn ways(&self) -> [(&'static str, &str); 3] {
        [("key", self.dev.key.as_str()), ("oauth", ""), ("refused", self.refused.as_str())]
    }

    fn environment(&self, key: &str) -> Vec<(&'static str, String)> {
        vec![("MCP_URL", format!("{}/mcp", self.proxy.url())), ("MCP_KEY", key.to_owned())]
    }

    fn python(&self, python: &Path) -> Vec<Result<()>> {
        let run = |way: &str, key: &str, mode: &str| {
            let mut command = python::command(python, self.dir.path(), &self.proxy.url(), key);
            command.envs(self.environment(key)).arg(python::folder().join("agents.py")).args([way, mode]);
            ends_well(&format!("agents.py {way} {mode}"), command.arg(&self.calls))
        };
        self.ways().into_iter().flat_map(|(way, key)| MODES.map(|mode| run(way, key, mode))).collect()
    }

    fn typescript(&self, node: &Environment) -> Result<Vec<Result<()>>> {
        let home = node.home()?;
        let run = |way: &str, key: &str, library: &str| {
            let mut command = home.command("agents.mjs");
            command.envs(self.environment(key)).args([way, library]);
            ends_well(&format!("agents.mjs {way} {library}"), command.arg(&self.calls))
        };
        Ok(self.ways().into_iter().flat_map(|(way, key)| LIBRARIES.map(|library| run(way, key, library))).collect())
    }
}

/// Returns what the scripts are told: the tools, a call of each, and what callers without rights must not see.
fn wanted(data: &AgentData) -> Value {
    let calls: Vec<Value> = data
        .calls()
        .into_iter()
        .filter(|(tool, ..)| *tool != ALIAS)
        .map(|(tool, arguments, text)| {
            json!({"tool": tool, "arguments": arguments, "text": text, "is_public": tool == GUIDE})
        })
        .collect();
    let tools: Vec<&Value> = calls.iter().map(|call| &call["tool"]).collect();
    json!({"tools": tools, "calls": calls, "hidden": HIDDEN_TEXTS})
}

fn check(nodes: &AgentNodes, runs: Vec<Result<()>>) {
    let failures: Vec<String> =
        runs.into_iter().filter_map(|run| run.err().map(|error| format!("{error:#}"))).collect();
    assert!(failures.is_empty(), "{}\nthe nodes said:\n{}", failures.join("\n\n"), nodes.dev.log());
    let carried = nodes.proxy.carried();
    assert!(carried.iter().all(|count| *count > 20), "every node has answered: {carried:?}");
}

#[test]
fn the_mcp_library_of_python_calls_every_tool() {
    let made = || python::made("agents", PYTHON).map_err(|error| format!("{error:#}"));
    let Some(python) = covered("the MCP library of Python", made()) else { return };
    let nodes = AgentNodes::start().unwrap_or_else(|error| panic!("{error:#}"));
    check(&nodes, nodes.python(&python));
}

#[test]
fn the_mcp_libraries_of_typescript_call_every_tool() {
    let made = || javascript::made("agents-javascript", PACKAGE, LOCK).map_err(|error| format!("{error:#}"));
    let Some(node) = covered("the MCP libraries of TypeScript", made()) else { return };
    let nodes = AgentNodes::start().unwrap_or_else(|error| panic!("{error:#}"));
    let runs = nodes.typescript(&node).unwrap_or_else(|error| panic!("{error:#}"));
    check(&nodes, runs);
}
