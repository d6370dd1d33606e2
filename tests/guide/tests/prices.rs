//! The built-in price table: the guide says how old it is, and its script writes it. Without Python the script's test
//! reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use assay_test_guide::generated;
use assay_tests_tidy::workspace::Workspace;
use serde_json::{Value, json};

fn table(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a table")).expect("JSON")
}

#[test]
fn the_guide_says_how_old_the_table_is() {
    let root = Workspace::this().root;
    let table = table(&root.join("node/engine/prices/prices.json"));
    let (date, models) = (table["date"].as_str().expect("a date"), table["models"].as_object().expect("models").len());
    let wanted = format!("Built-in prices: {models} models, as of {date}.\n");
    let page = root.join("node/guide/operations.md");
    generated::check(&page, "prices", &wanted).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn the_script_writes_the_table_and_keeps_models_that_the_source_has_no_more() {
    if let Err(why) = Command::new("python3").arg("--version").output() {
        assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("all"), "python3: {why}");
        let _ = writeln!(std::io::stderr(), "NOT COVERED: the script of the price table: {why}");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (source, own) = (dir.path().join("source.json"), dir.path().join("prices.json"));
    let priced = |vendor: &str, mode: &str, input: f64| {
        json!({"litellm_provider": vendor, "mode": mode, "input_cost_per_token": input, "output_cost_per_token": 1e-5,
            "cache_read_input_token_cost": 1.25e-7})
    };
    let listed = json!({
        "sample_spec": {"litellm_provider": "one of many", "mode": "one of many"},
        "gpt-9": priced("openai", "chat", 2.5e-6),
        "gemini/gemini-9": priced("gemini", "chat", 3e-7),
        "mistral/gpt-9": priced("mistral", "chat", 9e-6),
        "azure/gpt-9": priced("azure", "chat", 9e-6),
        "ft:gpt-9": priced("openai", "chat", 9e-6),
        "dall-e-9": priced("openai", "image_generation", 9e-6),
        "changed": priced("openai", "responses", 7.5e-8),
        "gpt-image-text": {"litellm_provider": "openai", "mode": "chat", "output_cost_per_token": 1e-5},
        "preview": {"litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0},
    });
    fs::write(&source, listed.to_string()).expect("a file");
    let before = json!({"models": {
        "retired": {"input": 30, "output": 60.5, "also": ["retired-1"]}, "changed": {"input": 1, "output": 2}}});
    fs::write(&own, before.to_string()).expect("a file");
    let script = Workspace::this().root.join("node/engine/prices/refresh.py");
    let written = || {
        let mut command = Command::new("python3");
        command.arg(&script).arg(&source).args(["--date", "2026-11-27", "--table"]).arg(&own);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(&own).expect("a table")
    };
    let once = written();
    assert_eq!(written(), once, "the same again");
    let retired = json!({"input": 30, "output": 60.5});
    let found = table(&own);
    assert_eq!(found["date"], "2026-11-27");
    assert_eq!(
        found["models"],
        json!({
            "changed": {"input": 0.075, "output": 10, "cached": 0.125},
            "gemini-9": {"input": 0.3, "output": 10, "cached": 0.125},
            "gpt-9": {"input": 2.5, "output": 10, "cached": 0.125},
            "retired": retired,
            "retired-1": retired,
        })
    );
    assert_eq!(once.lines().filter(|line| line.contains("\"input\"")).count(), 5, "a line for each model");
}
