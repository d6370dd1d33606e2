//! What official SDKs of model providers read from the scripted providers. If Python or the package index is unavailable
//! this reports "not covered" and passes, unless ASSAY_REQUIRE=all.

use assay_test_clients::kept::said;
use assay_test_clients::python::{command, folder, made};
use assay_test_clients::suite::covered;
use assay_test_providers::ProviderServer;
use serde_json::Value;

const REQUIREMENTS: &str = include_str!("../python/models.lock");
/// Values that each SDK reads from a provider of its own wire format.
const WANTED: &str = include_str!("../python/model_clients.json");
const MODEL: &str = "scripted-cached";

#[test]
#[ignore = "installs SDKs; .ci/run runs it"]
fn official_sdks_read_what_scripted_providers_answer() {
    let python = made("models", REQUIREMENTS).map_err(|problem| format!("{problem:#}"));
    let Some(python) = covered("SDKs of model providers", python) else { return };
    let provider = ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"));
    let wanted: Value = serde_json::from_str(WANTED).expect("the wanted values");
    for client in wanted.as_object().expect("an object").keys() {
        let home = tempfile::tempdir().expect("a directory");
        let mut script = command(&python, home.path(), "", "");
        script.arg(folder().join("model_clients.py")).args([&provider.origin(), "key", MODEL, client]);
        let output = script.output().expect("the script runs");
        assert!(output.status.success(), "{client}: {}", said(&output));
        let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert_eq!(found[client], wanted[client], "{client}");
    }
    let sent = provider.requests();
    assert!(sent.iter().all(|request| request.method == "POST"), "{sent:?}");
}
