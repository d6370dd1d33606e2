//! The guide's examples, as they are printed: every page runs in order on one node. Only addresses and keys are those of
//! the test's node and of its scripted model server. Examples that a test cannot run name commands and options that the
//! program has.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use assay_test_api::process;
use assay_test_api::server::{Options, Server};
use assay_test_clients::pages::{self, Expected, ScriptPlace, commands};
use assay_test_clients::suite::covered;
use assay_test_clients::{javascript, python};
use assay_test_providers::ProviderServer;

/// Directories that the pages name.
const DATA_DIR: &str = "assay-data";
const OTHER_DATA_DIR: &str = "other-data";
/// Addresses that the node may call: those of the scripted model server, which has tools too.
const EGRESS_ALLOW: &str = r#"egress.allow=[{cidr = "127.0.0.0/8", ports = [PORT], for = ["models", "mcp"]}]"#;
/// Examples without a mark `not run` at the least: pages that are not found would have none.
const RUN_MIN: usize = 80;

struct Node {
    home: tempfile::TempDir,
    server: Server,
    models: ProviderServer,
}

impl Node {
    fn start() -> Result<Node> {
        let home = tempfile::tempdir()?;
        // The directory that an import goes to was started once.
        Server::start(&Options::new(&home.path().join(OTHER_DATA_DIR)))?.stop()?;
        let models = ProviderServer::start()?;
        let origin = models.origin();
        let port = origin.rsplit(':').next().context("a port")?;
        let mut options = Options::new(&home.path().join(DATA_DIR));
        options.settings.push(EGRESS_ALLOW.replace("PORT", port));
        let server = Server::start(&options)?;
        Ok(Node { home, server, models })
    }

    fn run(&self, page: &Path, examples: &[pages::Example], scripts: &Path, python: Option<&Path>) -> Result<()> {
        let (url, key) = (self.server.url.as_str(), self.server.key.as_str());
        let otlp_url = self.server.otlp_url.as_deref().context("no address for exporters")?;
        let has_typescript = scripts.join("../node_modules").exists();
        let models_url = &self.models.origin();
        let place = ScriptPlace { url, otlp_url, models_url, key, python, has_typescript, scripts };
        let script = pages::script(examples, &place)?;
        let program = process::program()?;
        let mut path = program.parent().context("a directory")?.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("STATUSES", self.home.path().join("statuses"))
            .env("OUTPUT", self.home.path().join("output"))
            .env("BRAINTRUST_APP_URL", url)
            .env("BRAINTRUST_API_URL", url)
            .env("BRAINTRUST_API_KEY", key)
            .output()?;
        let last = std::fs::read(self.home.path().join("output")).unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(output.status.success(), "{}: {}\nits output: {}", page.display(), text(&output.stderr), text(&last));
        Ok(())
    }
}

/// Checks that the program has the commands and options of an example that is not run.
fn check_commands(text: &str) -> Result<()> {
    for (names, options) in commands(text) {
        let arguments: Vec<&str> = names.iter().map(String::as_str).chain(["--help"]).collect();
        let help = process::run(&arguments, &[], "")?;
        ensure!(help.success, "assay {}: {}", names.join(" "), help.errors);
        pages::check_options(&help.out, &options).with_context(|| format!("assay {}", names.join(" ")))?;
    }
    Ok(())
}

#[test]
#[ignore = "minutes where packages have to be fetched: .ci/run asks for it"]
fn the_guide_works_as_it_is_printed() {
    let python = covered("the Python SDKs", python::guide());
    let javascript = covered("the JavaScript SDK", javascript::environment());
    let alone = tempfile::tempdir().expect("a directory");
    let home = javascript.map(|javascript| javascript.home().expect("a directory"));
    let scripts = home.as_ref().map_or(alone.path().to_owned(), javascript::Home::scripts);
    let mut node = Node::start().unwrap_or_else(|error| panic!("{error:#}"));
    let (mut failures, mut ran) = (Vec::new(), 0);
    for page in pages::pages().expect("pages") {
        let text = std::fs::read_to_string(&page).expect("a page");
        let examples = pages::examples(&text).unwrap_or_else(|error| panic!("{}: {error:#}", page.display()));
        if let Err(error) = node.run(&page, &examples, &scripts, python.as_deref()) {
            failures.push(format!("{error:#}"));
        }
        let is_run = |example: &&pages::Example| !matches!(example.expected, Expected::NotRun | Expected::Output);
        ran += examples.iter().filter(is_run).count();
        for example in examples.iter().filter(|example| example.expected == Expected::NotRun) {
            if let Err(error) = check_commands(&example.text) {
                failures.push(format!("{}, line {}: {error:#}", page.display(), example.line));
            }
        }
    }
    assert!(node.server.lives(), "the server died:\n{}", node.server.log());
    assert!(failures.is_empty(), "{}\nthe server said:\n{}", failures.join("\n\n"), node.server.log());
    assert!(ran >= RUN_MIN, "only {ran} examples ran");
}
