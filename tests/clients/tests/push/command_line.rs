//! `bt functions push` and `bt functions invoke`.

use anyhow::{Context, Result, ensure};
use assay_test_clients::pushing::{PushProgram, PushPrograms, PushTarget, SourceFolder, sources};
use assay_test_clients::suite::{Job, all_at_once, covered};
use serde_json::Value;

use crate::{JAVASCRIPT, JAVASCRIPT_FILES, PYTHON, PYTHON_FILES, PushNode};

/// Pushes the functions of a language, and invokes those whose input needs no other names.
fn push_and_invoke(programs: &PushPrograms, language: &str, target: PushTarget<'_>) -> Result<()> {
    let folder = programs.sources(language, target.project)?;
    let files: &[&str] = if language == JAVASCRIPT { &JAVASCRIPT_FILES } else { &PYTHON_FILES };
    let mut arguments = vec!["functions", "push", "--create-missing-projects", "--yes"];
    if language == PYTHON {
        arguments.extend(["--requirements", "requirements.txt"]);
    }
    arguments.extend(files);
    folder.run(PushProgram::CommandLine, &arguments, target)?;
    let table: Value = serde_json::from_str(&std::fs::read_to_string(sources().join("cases.json"))?)?;
    // Those of both languages are invoked in one of them, because each function starts a process of its own.
    let groups: &[&str] = if language == JAVASCRIPT { &["both", JAVASCRIPT] } else { &[PYTHON] };
    for group in groups {
        for case in table[group].as_array().context("cases")? {
            invoke(&folder, case, target)?;
        }
    }
    Ok(())
}

fn invoke(folder: &SourceFolder<'_>, case: &Value, target: PushTarget<'_>) -> Result<()> {
    let (input, slug) = (case["input"].to_string(), case["slug"].as_str().context("a slug")?);
    if input.contains('$') {
        return Ok(());
    }
    let arguments = ["functions", "invoke", slug, "--input", &input];
    if let Some(value) = case.get("value") {
        let found = folder.json(&arguments, target)?;
        ensure!(found == *value, "{slug}: wanted {value}, found {found}");
        return Ok(());
    }
    let (succeeded, text) = folder.attempt(PushProgram::CommandLine, &arguments, target)?;
    let words = case["error"]["message"].as_str().or(case["says"].as_str()).context("words")?;
    ensure!(!succeeded && text.contains(words), "{slug}: {text}");
    Ok(())
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn the_command_line_pushes_and_invokes_functions() {
    let Some(programs) = covered("pushes by the command line", PushPrograms::install()) else { return };
    let mut served = PushNode::start();
    let jobs = [(JAVASCRIPT, "line-javascript"), (PYTHON, "line-python")].map(|(language, project)| -> Job<'_> {
        let target = served.target(project);
        let programs = &programs;
        Box::new(move || push_and_invoke(programs, language, target))
    });
    let failures = all_at_once(&jobs);
    drop(jobs);
    assert!(failures.is_empty(), "{failures}\nthe node said:\n{}", served.node.log());
    served.node.assert_lives();
}
