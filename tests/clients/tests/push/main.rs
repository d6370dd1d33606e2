//! Functions that unmodified programs push, and that both SDKs and the command line client invoke, from one node and from
//! three of which one has Python. If a language or a package index is unavailable this reports "not covered" and
//! passes, unless ASSAY_REQUIRE=all.

mod command_line;
mod evaluations;
mod existing;
mod nodes;

use anyhow::{Result, ensure};
use assay_test_clients::models::{ModelNode, ModelProvider};
use assay_test_clients::pushing::{PushProgram, PushPrograms, PushTarget, sources};
use assay_test_clients::python;
use assay_test_clients::suite::{Job, all_at_once, covered};
use assay_test_providers::ProviderServer;
use serde_json::json;

/// Languages of the functions.
const LANGUAGES: [&str; 2] = [JAVASCRIPT, PYTHON];
const JAVASCRIPT: &str = "javascript";
const PYTHON: &str = "python";
/// Files that programs get.
const JAVASCRIPT_FILES: [&str; 5] = ["tools.ts", "scorers.ts", "prompts.ts", "model.ts", "large.ts"];
const PYTHON_FILES: [&str; 2] = ["functions.py", "prompts.py"];

/// A node with the model `scripted`.
struct PushNode {
    node: ModelNode,
    _provider: ProviderServer,
}

impl PushNode {
    fn start() -> PushNode {
        let provider = ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"));
        let node = ModelNode::start();
        let api_base = format!("{}/v1", provider.origin());
        let models = json!({"scripted": {"format": "openai", "flavor": "chat"}});
        let (name, provider_type, secret) = ("scripted", "openai", "key");
        node.add_provider(&ModelProvider { name, provider_type, api_base: &api_base, secret, models });
        PushNode { node, _provider: provider }
    }

    fn target<'t>(&'t self, project: &'t str) -> PushTarget<'t> {
        let (url, key) = self.node.caller();
        PushTarget { url, key, project }
    }
}

/// Pushes the functions of a language with the program of its SDK.
fn push(programs: &PushPrograms, language: &str, target: PushTarget<'_>) -> Result<()> {
    let folder = programs.sources(language, target.project)?;
    if language == JAVASCRIPT {
        let said = folder.run(PushProgram::JavaScriptSdk, &[&["push"][..], &JAVASCRIPT_FILES].concat(), target)?;
        ensure!(said.contains("uploaded successfully"), "{said}");
        return Ok(());
    }
    for file in PYTHON_FILES {
        folder.run(PushProgram::PythonSdk, &["push", "--requirements", "requirements.txt", file], target)?;
    }
    Ok(())
}

/// Pushes the functions of a language, and invokes them with both SDKs.
fn push_and_invoke(programs: &PushPrograms, language: &str, target: PushTarget<'_>) -> Result<()> {
    push(programs, language, target)?;
    let cases = sources().join("cases.json").display().to_string();
    let environment =
        [("ASSAY_PROJECT", target.project), ("ASSAY_LANGUAGE", language), ("ASSAY_CASES", cases.as_str())];
    let at = (target.url, target.key);
    // One after the other, so that the second finds the workers of the first.
    python::run_with(programs.python(), "pushed.py", "push", at, &environment)?;
    programs.javascript().home()?.run("pushed.mjs", "push", at, &environment)
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn pushed_functions_run_for_both_sdks_and_their_evaluations() {
    let Some(programs) = covered("pushed functions", PushPrograms::install()) else { return };
    let mut served = PushNode::start();
    let failures = {
        let (programs, served) = (&programs, &served);
        let jobs = LANGUAGES.map(|language| -> Job<'_> {
            let target = served.target(language);
            Box::new(move || {
                push_and_invoke(programs, language, target)?;
                evaluations::evaluate(programs, language, target)
            })
        });
        all_at_once(&jobs)
    };
    assert!(failures.is_empty(), "{failures}\nthe node said:\n{}", served.node.log());
    served.node.assert_lives();
}
