//! Three nodes, of which one has Python: the others pass its functions on.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assay_test_api::dev::NODES;
use assay_test_api::rows::call;
use assay_test_clients::pushing::{PushPrograms, PushTarget};
use assay_test_clients::suite::{Job, all_at_once, covered, on_nodes_with};
use assay_test_providers::ProviderServer;
use serde_json::json;

use crate::{LANGUAGES, push_and_invoke};

/// Lets the nodes call the model on this machine.
const EGRESS: &str = r#"[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models"]}]"#;
/// Interpreter that only the first node can start: a node tells its children by its directory, which is an argument of it.
const PYTHON_OF_FIRST_NODE: &str = "#!/bin/sh\n\
    grep -q -a '/node-1' \"/proc/$PPID/cmdline\" || exit 1\n\
    exec python3 \"$@\"\n";

/// Writes the interpreter, and returns its path.
fn python_of_first_node(folder: &Path) -> PathBuf {
    let path = folder.join("python-of-first-node");
    std::fs::write(&path, PYTHON_OF_FIRST_NODE).expect("a program");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn pushed_functions_run_at_any_of_three_nodes_of_which_one_has_python() {
    let Some(programs) = covered("pushed functions on three nodes", PushPrograms::install()) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let python = format!("[{:?}]", python_of_first_node(folder.path()).display().to_string());
    let provider = ProviderServer::start().unwrap_or_else(|error| panic!("{error:#}"));
    let environment = [("ASSAY_EGRESS_ALLOW", EGRESS), ("ASSAY_FUNCTIONS_PYTHON", &python)];
    on_nodes_with(NODES, &environment, |place| {
        let models = json!({"scripted": {"format": "openai", "flavor": "chat"}});
        let api_base = format!("{}/v1", provider.origin());
        let metadata = json!({"api_base": api_base, "excludeDefaultModels": true, "customModels": models});
        let secret = json!({"name": "scripted", "type": "openai", "secret": "key", "metadata": metadata});
        call(&place.url, "POST", "/v1/ai_secret", &secret).expect("a provider");
        let programs = &programs;
        let jobs = LANGUAGES.map(|language| -> Job<'_> {
            let target = PushTarget { url: &place.url, key: &place.key, project: language };
            Box::new(move || push_and_invoke(programs, language, target))
        });
        all_at_once(&jobs)
    });
}
