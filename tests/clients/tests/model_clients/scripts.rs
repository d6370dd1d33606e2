//! The scripts of clients in their environments, what they print, and its comparison with what was wanted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use assay_test_clients::javascript::{self, Environment};
use assay_test_clients::kept::said;
use assay_test_clients::python::{command, folder, made};
use serde_json::Value;

const SDKS: &str = include_str!("../../python/models.lock");
const FRAMEWORKS: &str = include_str!("../../python/frameworks.lock");
const JAVASCRIPT_PACKAGE: &str = include_str!("../../javascript/models/package.json");
const JAVASCRIPT_LOCK: &str = include_str!("../../javascript/models/package-lock.json");
/// Values that each client reads from a provider of its own wire format; a name stands for the values of that client.
const WANTED: &str = include_str!("../../python/model_clients.json");

/// Name of a model, name of a client, values of its scenarios.
pub type FoundValues = BTreeMap<String, BTreeMap<String, Value>>;

/// A script, which has several clients and packages of its own.
#[derive(Clone, Copy, Debug)]
enum ClientScript {
    Sdks,
    Frameworks,
    JavaScript,
}

impl ClientScript {
    const ALL: [ClientScript; 3] = [ClientScript::Sdks, ClientScript::Frameworks, ClientScript::JavaScript];

    /// Names of clients of conversations, and of embeddings.
    fn clients(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            ClientScript::Sdks => (&["chat", "responses", "messages", "gemini"], &["embeddings"]),
            ClientScript::Frameworks => (
                &["braintrust", "litellm_openai", "litellm_anthropic", "langchain_chat", "langchain_responses"],
                &["litellm_embeddings", "langchain_embeddings"],
            ),
            ClientScript::JavaScript => (
                &[
                    "openai_js_chat",
                    "braintrust_js",
                    "openai_js_responses",
                    "anthropic_js",
                    "ai_sdk_chat",
                    "ai_sdk_responses",
                    "ai_sdk_anthropic",
                ],
                &["openai_js_embeddings", "ai_sdk_embeddings"],
            ),
        }
    }
}

/// Installed clients.
#[derive(Debug)]
pub struct ClientScripts {
    sdks: PathBuf,
    frameworks: PathBuf,
    javascript: Environment,
}

impl ClientScripts {
    /// Installs all clients; why not, where they cannot be had.
    pub fn installed() -> Result<ClientScripts, String> {
        let made = || -> Result<ClientScripts> {
            Ok(ClientScripts {
                sdks: made("models", SDKS)?,
                frameworks: made("frameworks", FRAMEWORKS)?,
                javascript: javascript::made("javascript-models", JAVASCRIPT_PACKAGE, JAVASCRIPT_LOCK)?,
            })
        };
        made().map_err(|error| format!("{error:#}"))
    }

    /// Python with the frameworks.
    pub fn frameworks(&self) -> &Path {
        &self.frameworks
    }

    /// Runs every client with every model of its kind. The scripts run at the same time.
    pub fn run_all(&self, caller: (&str, &str), chat_models: &[&str], embedding_models: &[&str]) -> FoundValues {
        let run = |script: ClientScript| -> Vec<FoundValues> {
            let (chat, embedding) = script.clients();
            let runs = [(chat_models, chat), (embedding_models, embedding)];
            let found = runs.map(|(models, clients)| self.run(script, caller, models, clients));
            found.into_iter().map(|found| found.unwrap_or_else(|error| panic!("{error:#}"))).collect()
        };
        let found: Vec<FoundValues> = thread::scope(|scope| {
            let threads = ClientScript::ALL.map(|script| scope.spawn(move || run(script)));
            threads.into_iter().flat_map(|thread| thread.join().expect("a script that ends")).collect()
        });
        let mut all = FoundValues::new();
        for (model, clients) in found.into_iter().flatten() {
            all.entry(model).or_default().extend(clients);
        }
        all
    }

    fn run(
        &self,
        script: ClientScript,
        (origin, key): (&str, &str),
        models: &[&str],
        clients: &[&str],
    ) -> Result<FoundValues> {
        let models = models.join(",");
        let arguments = [&[origin, key, &models], clients].concat();
        let home = tempfile::tempdir()?;
        let found = match script {
            ClientScript::Sdks => printed(python(&self.sdks, home.path(), "model_clients.py").args(arguments)),
            ClientScript::Frameworks => {
                printed(python(&self.frameworks, home.path(), "model_frameworks.py").args(arguments))
            }
            ClientScript::JavaScript => printed(self.javascript.home()?.command("model_clients.mjs").args(arguments)),
        };
        Ok(serde_json::from_value(found?)?)
    }

    /// What the client of chat completions reads from the mock models of LiteLLM's proxy.
    pub fn mocked(&self, (origin, key): (&str, &str)) -> Value {
        let home = tempfile::tempdir().expect("a directory");
        let found = printed(python(&self.sdks, home.path(), "model_mocks.py").args([origin, key]));
        found.unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// Calls models with official SDKs, and checks the spans of the calls.
    pub fn spans(&self, (origin, key): (&str, &str)) -> Result<()> {
        let home = tempfile::tempdir()?;
        let output = python(&self.sdks, home.path(), "model_spans.py").args([origin, key]).output()?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(())
    }
}

fn python(python: &Path, home: &Path, script: &str) -> Command {
    let mut command = command(python, home, "", "");
    command.arg(folder().join(script));
    command
}

/// Runs a script that prints one JSON value.
fn printed(command: &mut Command) -> Result<Value> {
    let output = command.output().context("the script runs")?;
    ensure!(output.status.success(), "{command:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).with_context(|| said(&output))
}

/// Values that clients read from providers of their own wire format.
#[derive(Debug)]
pub struct WantedValues(Value);

impl WantedValues {
    pub fn load() -> WantedValues {
        WantedValues(serde_json::from_str(WANTED).expect("the wanted values"))
    }

    fn of(&self, client: &str) -> &Value {
        match &self.0[client] {
            Value::String(other) => &self.0[other],
            values => values,
        }
    }
}

/// Outcome of a comparison.
#[derive(Debug, Default)]
pub struct ComparedValues {
    pub all: usize,
    pub same: usize,
    /// Reasons of differences that may be, one for each of them.
    pub allowed: Vec<&'static str>,
    pub differing: Vec<String>,
}

/// Compares the values of every model, client and scenario. `allowed` gives the value that may be read instead, and why.
pub fn differing(
    found: &FoundValues,
    wanted: &WantedValues,
    allowed: impl Fn(&str, &str, &str) -> Option<(Value, &'static str)>,
) -> ComparedValues {
    let mut compared = ComparedValues::default();
    for (model, client, values) in
        found.iter().flat_map(|(model, clients)| clients.iter().map(move |(client, values)| (model, client, values)))
    {
        if let Some(failed) = values["failed"].as_str() {
            compared.differing.push(format!("{model} {client} failed: {failed}"));
        }
        let scenarios = wanted.of(client).as_object().unwrap_or_else(|| panic!("no wanted values of {client}"));
        for (scenario, wanted) in scenarios {
            compared.all += 1;
            let found = &values[scenario];
            match allowed(model, client, scenario) {
                _ if are_same(found, wanted) => compared.same += 1,
                Some((value, why)) if are_same(found, &value) => compared.allowed.push(why),
                _ => compared.differing.push(format!("{model} {client} {scenario}: {found} instead of {wanted}")),
            }
        }
    }
    compared
}

/// Compares two values. A number is the same however a language writes it.
fn are_same(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Number(found), Value::Number(wanted)) => found.as_f64() == wanted.as_f64(),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| are_same(found, wanted))
        }
        (Value::Object(found), Value::Object(wanted)) => {
            let is_in =
                |(name, wanted): (&String, &Value)| found.get(name).is_some_and(|found| are_same(found, wanted));
            found.len() == wanted.len() && wanted.iter().all(is_in)
        }
        _ => found == wanted,
    }
}
