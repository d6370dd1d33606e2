//! The program as an operator meets it: what it says, how it starts, why it refuses, how it stops.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_assay");

fn assay(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    // What the one who runs the tests has set is not theirs to know.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ASSAY_")) {
        command.env_remove(name);
    }
    command
}

fn said(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A node that was started and says that it is ready.
struct ServeProcess {
    process: Child,
    /// What it said on stdout until then.
    lines: Vec<String>,
}

impl ServeProcess {
    fn start(dir: &Path) -> ServeProcess {
        let mut command = assay(&["serve", "--listen", "127.0.0.1:0", "--set", "store.shards=4", "--data-dir"]);
        command.arg(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut node = ServeProcess { process: command.spawn().unwrap(), lines: Vec::new() };
        let mut out = BufReader::new(node.process.stdout.take().unwrap());
        loop {
            let mut line = String::new();
            if out.read_line(&mut line).unwrap() == 0 {
                let mut errors = String::new();
                node.process.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
                panic!("it ended before it was ready: {errors}");
            }
            let ready = line.starts_with("Assay is ready at http://127.0.0.1:");
            node.lines.push(line.trim_end().to_owned());
            if ready {
                return node;
            }
        }
    }

    /// As an operator does: by its own process id.
    fn stop(mut self) -> bool {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        self.process.wait().unwrap().success()
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        // Both fail when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn help_teaches_what_to_do_first() {
    let (help, _) = said(&assay(&["--help"]).output().unwrap());
    for part in ["assay serve", "BRAINTRUST_API_KEY", "assay config", "assay admin", "assay doctor"] {
        assert!(help.contains(part), "{part} in {help}");
    }
    let (serve, _) = said(&assay(&["serve", "--help"]).output().unwrap());
    assert!(serve.contains("127.0.0.1:8000") && serve.contains("./assay-data") && serve.contains("ASSAY_API_KEY"));
}

#[test]
fn config_prints_what_the_later_word_made_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("assay.toml");
    std::fs::write(&file, "[store]\nshards = 8\nseal_age_seconds = 7\n").unwrap();
    let mut command = assay(&["config", "--data-dir", "/flag", "--config"]);
    let output = command.arg(&file).env("ASSAY_STORE_SHARDS", "32").output().unwrap();
    let (printed, errors) = said(&output);
    assert!(output.status.success(), "{errors}");
    for line in ["data_dir = \"/flag\"", "shards = 32", "seal_age_seconds = 7", "listen = \"127.0.0.1:8000\""] {
        assert!(printed.contains(line), "{line} in {printed}");
    }
    let output = assay(&["config", "--set", "store.shard=4"]).output().unwrap();
    assert!(!output.status.success());
    assert!(said(&output).1.contains("did you mean `store.shards`?"));
}

/// As a compose file passes on what nobody set.
#[test]
fn empty_variables_of_the_environment_count_as_not_set() {
    let empty = |mut command: Command| {
        let names = [
            "API_KEY",
            "MASTER_KEY",
            "CONFIG",
            "HTTP_PUBLIC_URL",
            "ADMIN_URL",
            "ADMIN_TOKEN",
            "ADMIN_TOKEN_FILE",
            "ADMIN_CA",
        ];
        said(&command.envs(names.map(|name| (format!("ASSAY_{name}"), ""))).output().unwrap())
    };
    let (printed, errors) = empty(assay(&["config"]));
    assert!(printed.contains("# http.public_url") && errors.is_empty(), "{printed}{errors}");
    let (_, errors) = empty(assay(&["cluster", "status", "--data-dir", "/nowhere"]));
    assert!(errors.contains("no node runs on /nowhere"), "{errors}");
}

/// A release build has no deliberate faults, and ignores the variable; `.ci/first-start` asks one.
#[test]
fn only_a_debug_build_has_deliberate_faults() {
    let told = assay(&["--version"]).env("ASSAY_SABOTAGE", "skip-fsync").output().unwrap();
    assert_eq!(said(&told).0.contains("SABOTAGED"), cfg!(debug_assertions));
    assert!(!said(&assay(&["--version"]).output().unwrap()).0.contains("SABOTAGED"));
    let dir = tempfile::tempdir().unwrap();
    let mut node = assay(&["serve", "--listen", "nowhere", "--data-dir"]);
    let started = node.arg(dir.path()).env("ASSAY_SABOTAGE", "no-such-fault").output().unwrap();
    assert_eq!(said(&started).1.contains("there are ack-before-quorum"), cfg!(debug_assertions), "{started:?}");
}

#[test]
fn a_node_starts_says_its_key_once_and_stops_when_it_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let first = ServeProcess::start(&data);
    assert!(first.lines.iter().any(|line| line.starts_with("API key (shown once): sk-")), "{:?}", first.lines);

    let (_, errors) = said(&assay(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data).output().unwrap());
    assert!(errors.contains("is in use by another process"), "{errors}");
    let keys = assay(&["admin", "keys", "--organization", "default", "--data-dir"]).arg(&data).output().unwrap();
    assert!(said(&keys).0.contains("sk-***"), "a running node answers an administrator: {keys:?}");
    assert!(first.stop(), "SIGTERM ends it well");

    let keys = assay(&["admin", "keys", "--organization", "default", "--data-dir"]).arg(&data).output().unwrap();
    assert!(said(&keys).0.contains("sk-***"), "and so does its directory where none runs: {keys:?}");
    let again = ServeProcess::start(&data);
    assert!(!again.lines.iter().any(|line| line.contains("key")), "{:?}", again.lines);
    assert!(again.stop());
}

#[test]
fn a_directory_that_is_not_this_nodes_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    assert!(ServeProcess::start(&data).stop());
    let refused = |arguments: &[&str]| {
        let output = assay(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data).args(arguments).output();
        let output = output.unwrap();
        assert!(!output.status.success());
        said(&output).1
    };
    let other = refused(&["--set", "store.cluster_id=00000000-0000-4000-8000-000000000001"]);
    assert!(other.contains("belongs to cluster") && other.contains("give this node the directory it had"), "{other}");
    // With the checksum that a newer program would have written.
    std::fs::write(data.join("FORMAT"), "assay 99\nwhatever\nsum 42d29239\n").unwrap();
    let newer = refused(&[]);
    assert!(newer.contains("newer version") && newer.contains("upgrade this program"), "{newer}");
}
