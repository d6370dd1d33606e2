//! Functions that pass a limit which the kernel holds, with the answers of their calls.
//!
//! Without a delegated cgroup v2 they report "not covered" and pass, also with ASSAY_REQUIRE=all: few machines delegate
//! one. With ASSAY_REQUIRE=cgroups they fail. The script sandbox/vm/run starts them under a kernel of their own.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use assay_node_limits::Refusals;
use assay_node_runner::runtimes::{CallForm, FunctionCall, RuntimeKind, SourceLanguage};
use assay_node_runner::{
    CallRights, CodeCall, CodeError, CodeRunner, CodeSetting, CodeUnit, FunctionNetwork, FunctionSettings, RunnerParts,
    SandboxStrength, SecretLoan, TunnelDialer, TunnelRefusal, TunnelStream, TunnelTarget, WorkerOwner, WorkerSecret,
};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

const TIME_MAX: Duration = Duration::from_secs(120);

/// Functions without a network.
#[derive(Debug)]
struct ClosedNetwork;

impl TunnelDialer for ClosedNetwork {
    fn dial(&self, _: TunnelTarget) -> BoxFuture<'_, Result<Box<dyn TunnelStream>, TunnelRefusal>> {
        ready(Err(TunnelRefusal("no network".to_owned()))).boxed()
    }
}

/// Functions without rights.
#[derive(Debug)]
struct EmptyRights;

impl CallRights for EmptyRights {
    fn issue(&self) -> Result<WorkerSecret, CodeError> {
        Ok(WorkerSecret::new("secret".to_owned(), ()))
    }

    fn lend(&self, _: &WorkerSecret) -> Result<SecretLoan, CodeError> {
        Ok(SecretLoan::new(()))
    }
}

fn stage() -> PathBuf {
    let test = std::env::current_exe().expect("the test's program");
    test.parent().and_then(|deps| deps.parent()).expect("a target directory").join("examples/runner_stage")
}

fn call(code: &str) -> CodeCall {
    let id = Uuid::from_u128(1);
    CodeCall {
        owner: WorkerOwner { organization: id, project: None, principal: id },
        unit: CodeUnit::Inline {
            runtime: RuntimeKind::Python,
            version: String::new(),
            code: code.to_owned(),
            is_module: false,
            language: SourceLanguage::Python,
        },
        variables: BTreeMap::new(),
        rights: Arc::new(EmptyRights),
        secret_names: Vec::new(),
        call: FunctionCall {
            id: String::new(),
            form: CallForm::Function,
            input: json!({}),
            parent: None,
            trace: None,
            environment: BTreeMap::new(),
            hooks: None,
        },
        time_max: TIME_MAX,
        events: None,
    }
}

/// Runs a function, and returns its value, or the name and message of its failure.
async fn answer(runner: &CodeRunner, code: &str) -> Result<Value, String> {
    let call = call(code);
    let slot = runner.slot(&call.owner, 0, Instant::now() + TIME_MAX).await.expect("a slot");
    match runner.call(slot, call).await {
        Ok(outcome) => Ok(outcome.output.value),
        Err(CodeError::Function(failure)) => Err(format!("{}: {}", failure.name, failure.message)),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_kernel_is_named_as_that_of_the_watcher() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
    let settings = FunctionSettings {
        code: CodeSetting::Reduced,
        network: FunctionNetwork::Off,
        memory_bytes_max: 64 << 20,
        processes_max: 24,
        ..FunctionSettings::default()
    };
    let parts = RunnerParts {
        settings,
        directory: directory.path().join("functions"),
        stage: stage(),
        dialer: Arc::new(ClosedNetwork),
        refusals: Refusals::default(),
    };
    let runner = CodeRunner::start(&parts).await.expect("a runner");
    let report = runner.report();
    if report.kernel_limits != "cgroup v2" || report.strength.is_none() {
        assert_ne!(std::env::var("ASSAY_REQUIRE").as_deref(), Ok("cgroups"), "{report:?}");
        // To the stream itself: what a passing test prints is not shown.
        let _ = writeln!(std::io::stderr(), "NOT COVERED: limits of the kernel: {}", report.kernel_limits);
        return;
    }
    // At once, between two measurements of the watcher.
    let memory = "import mmap\n\
        def handler():\n    \
            held = mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)\n    \
            return len(held)\n";
    let memory = answer(&runner, memory).await;
    // The watcher does not count files in memory, so only the kernel finds this.
    let files = "def handler():\n    \
            with open('/tmp/file', 'wb') as file:\n        \
                for _ in range(200): file.write(b'x' * (1 << 20))\n";
    let files = match report.strength {
        Some(SandboxStrength::Full) => answer(&runner, files).await,
        _ => memory.clone(),
    };
    // A process that is refused ends the function at once. It does not see how many there are.
    let processes = "import os, signal\n\
        def handler():\n    \
            while True:\n        \
                if os.fork() == 0: signal.pause()\n";
    let processes = answer(&runner, processes).await;
    // A refused process that the function survives does not count against its next call.
    let usual = answer(&runner, "def handler():\n    return 1\n").await;
    println!("{:?}: {memory:?}, {files:?}, {processes:?}, {usual:?}", report.strength);
    assert_eq!(memory, files);
    assert_eq!(memory, Err("LimitError: the function used more than 64 MiB of memory".to_owned()));
    assert_eq!(processes, Err("LimitError: the function started more than 24 processes and threads".to_owned()));
    assert_eq!(usual, Ok(json!(1)));
}
