//! Prompts, judges and scorers that run for unmodified clients, before scripted providers. If a language or a package index
//! is unavailable this reports "not covered" and passes, unless ASSAY_REQUIRE=all.

mod cli;
mod judges;
mod templates;

use std::process::Command;

use anyhow::{Context, Result, ensure};
use assay_test_clients::kept::said;
use assay_test_clients::models::{ModelNode, ModelProvider};
use assay_test_clients::suite::{Job, all_at_once, covered};
use assay_test_clients::{javascript, python};
use assay_test_providers::{Fault, ProviderServer};
use serde_json::{Value, json};

/// Good events of a stream before its error: one without a text, and two pieces of the answer.
const GOOD_EVENTS: usize = 3;

/// A node with the models `scripted`, and `broken`, whose streams end with an error.
struct FunctionNode {
    node: ModelNode,
    provider: ProviderServer,
    _broken: ProviderServer,
}

impl FunctionNode {
    fn start() -> FunctionNode {
        let [provider, broken] = [(); 2].map(|()| ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}")));
        broken.inject_always(Some(Fault::ErrorEventAfter(GOOD_EVENTS)));
        let node = ModelNode::start();
        for (name, server) in [("scripted", &provider), ("broken", &broken)] {
            let models = json!({ name: { "format": "openai", "flavor": "chat" } });
            let api_base = format!("{}/v1", server.origin());
            let (provider_type, secret) = ("openai", "key");
            node.add_provider(&ModelProvider { name, provider_type, api_base: &api_base, secret, models });
        }
        FunctionNode { node, provider, _broken: broken }
    }

    /// Bodies of the requests for chat completions, the oldest first.
    fn asked(&self) -> Vec<Value> {
        self.provider.requests().iter().map(assay_test_providers::RecordedRequest::json).collect()
    }
}

/// Runs a script that prints one JSON value.
fn printed(command: &mut Command) -> Result<Value> {
    let output = command.output().with_context(|| format!("{:?} does not run", command.get_program()))?;
    ensure!(output.status.success(), "{command:?}: {}", said(&output));
    serde_json::from_slice(&output.stdout).with_context(|| said(&output))
}

#[test]
fn functions_run_for_both_sdks() {
    let python = covered("functions by the Python SDK", python::environment());
    let javascript = covered("functions by the JavaScript SDK", javascript::environment());
    let mut served = FunctionNode::start();
    let at = served.node.caller();
    let mut jobs: Vec<Job<'_>> = Vec::new();
    if let Some(python) = python {
        jobs.push(Box::new(move || python::run_with(python, "functions.py", "one", at, &[])));
    }
    if let Some(javascript) = javascript {
        jobs.push(Box::new(move || javascript.home()?.run("functions.mjs", "one", at, &[])));
    }
    let failures = all_at_once(&jobs);
    drop(jobs);
    assert!(failures.is_empty(), "{failures}\nthe node said:\n{}", served.node.log());
    served.node.assert_lives();
}
