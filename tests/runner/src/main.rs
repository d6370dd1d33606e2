//! assay-test-runner: builds all tests of the workspace and runs their binaries side by side.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use assay_test_runner::binaries::{self, TestBinary, Workspace};
use assay_test_runner::durations::Durations;
use assay_test_runner::outcome::{self, Counts};
use assay_test_runner::run::{self, Ended, Progress, Settings};
use clap::Parser;

/// Lines about the failures of one binary at the very end.
const PANIC_LINES_MAX: usize = 24;
/// More test binaries at once need more memory than they save time.
const JOBS_MAX: usize = 8;

/// Runs all tests of the workspace, several test binaries at a time.
///
/// The tests are those of `cargo test --workspace`, which runs one binary after the other: most of them wait for
/// elections, deadlines and syncs.
#[derive(Debug, Parser)]
#[command(name = "assay-test-runner", version)]
struct Cli {
    /// Test binaries that run at the same time [default: one more than there are processors, at most 8]
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Only unit tests, which are those within libraries and programs
    #[arg(long)]
    unit: bool,
    /// Only tests of the crate in this directory; may be repeated
    #[arg(long = "crate", value_name = "DIRECTORY")]
    crates: Vec<PathBuf>,
    /// Arguments of every test binary, such as a part of a test's name, or --ignored
    #[arg(last = true)]
    arguments: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    let begun = Instant::now();
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let workspace =
        Workspace::parse(&output_of(&cargo, &["metadata", "--locked", "--no-deps", "--format-version", "1"])?)?;
    let mut build = vec!["test", "--workspace", "--locked", "--no-run", "--message-format", "json-render-diagnostics"];
    if cli.unit {
        build.extend(["--lib", "--bins"]);
    }
    let (mut tests, variables) = binaries::built(&output_of(&cargo, &build)?, &workspace)?;
    if !cli.crates.is_empty() {
        let wanted: Vec<PathBuf> = cli.crates.iter().map(|directory| workspace.root.join(directory)).collect();
        tests.retain(|test| wanted.contains(&test.package_dir));
    } else if !cli.unit {
        tests.push(doc_tests(cargo, &workspace));
    }
    let durations_file = workspace.target_dir.join("test-durations.json");
    let mut durations = Durations::read(&durations_file);
    durations.sort(&mut tests);
    let jobs = cli.jobs.map_or_else(default_jobs, NonZeroUsize::get);
    println!("{} test binaries, {jobs} at a time", tests.len());

    let settings =
        Settings { jobs, arguments: cli.arguments, variables, output_dir: workspace.target_dir.join("test-output") };
    let (mut counts, mut failed) = (Counts::default(), Vec::new());
    run::run(tests, &settings, |progress| match progress {
        Progress::Ended(ended) => {
            counts += ended.counts;
            print_ended(&ended);
            if ended.passed {
                durations.set(&ended.name, ended.took);
            } else {
                failed.push(ended);
            }
        }
        Progress::Running(running) => {
            let named = running.iter().map(|(name, since)| format!("{name} ({} s)", since.as_secs()));
            println!("     running: {}", named.collect::<Vec<_>>().join(", "));
        }
    })?;
    // A few tests of each say nothing about how long all of them take.
    if settings.arguments.is_empty() && !cli.unit && cli.crates.is_empty() {
        durations.write(&durations_file)?;
    }
    let Counts { passed, failed: tests_failed, ignored } = counts;
    println!("{passed} tests passed, {tests_failed} failed, {ignored} ignored, in {} s", begun.elapsed().as_secs());
    print_failures(&failed);
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn default_jobs() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors + 1).min(JOBS_MAX)
}

/// Standard output of a run of cargo. Its progress and its errors go to the terminal.
fn output_of(cargo: &PathBuf, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let said = || format!("cargo {}", arguments.join(" "));
    let mut command = Command::new(cargo);
    for variable in run::variables_of_cargo_run() {
        command.env_remove(variable);
    }
    let run = command.args(arguments).stderr(Stdio::inherit()).output().with_context(said)?;
    ensure!(run.status.success(), "`{}` failed: {}", said(), run.status);
    Ok(run.stdout)
}

/// Examples in documentation, which cargo runs without a binary that could be named.
fn doc_tests(cargo: PathBuf, workspace: &Workspace) -> TestBinary {
    let arguments = ["test", "--workspace", "--locked", "--doc", "--"].map(str::to_owned).to_vec();
    let package_dir = workspace.root.clone();
    TestBinary {
        name: "documentation".to_owned(),
        executable: cargo,
        arguments,
        variables: Vec::new(),
        package_dir,
        is_alone: false,
    }
}

fn print_ended(ended: &Ended) {
    let said = if ended.passed { "ok" } else { "FAILED" };
    let Counts { passed, failed, ignored } = ended.counts;
    let seconds = ended.took.as_secs_f64();
    println!("{said:>6} {seconds:7.1} s  {}: {passed} passed, {failed} failed, {ignored} ignored", ended.name);
    if !ended.passed {
        println!("{}", ended.output);
    }
    // A pipe that is read while this runs should show each line at once.
    std::io::stdout().flush().ok();
}

fn print_failures(failed: &[Ended]) {
    for ended in failed {
        println!("\nFAILED {}; its output: {}", ended.name, ended.output_file.display());
        for test in outcome::failed_tests(&ended.output) {
            println!("  {test}");
        }
        for line in outcome::panics(&ended.output, PANIC_LINES_MAX) {
            println!("    {line}");
        }
    }
}
