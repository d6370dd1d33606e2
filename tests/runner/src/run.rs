//! Runs test binaries, several at a time, and reports the outcome of each.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::binaries::{TestBinary, Variables};
use crate::outcome::Counts;

/// Interval at which running binaries are listed.
const PROGRESS_EVERY: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Settings {
    /// Binaries that run at the same time.
    pub jobs: usize,
    /// Handed to each binary.
    pub arguments: Vec<String>,
    /// Set for each binary, besides its own.
    pub variables: Variables,
    /// Directory for the output of each binary.
    pub output_dir: PathBuf,
}

/// Outcome of one binary.
#[derive(Debug)]
pub struct Ended {
    pub name: String,
    pub took: Duration,
    pub passed: bool,
    pub counts: Counts,
    pub output: String,
    pub output_file: PathBuf,
}

/// Progress of a run.
#[derive(Debug)]
pub enum Progress {
    Ended(Ended),
    /// Names of what runs, and for how long it has.
    Running(Vec<(String, Duration)>),
}

/// Runs all binaries in their order, those that are to be alone at the end.
pub fn run(tests: Vec<TestBinary>, settings: &Settings, mut on_progress: impl FnMut(Progress)) -> anyhow::Result<()> {
    fs::create_dir_all(&settings.output_dir).with_context(|| format!("creating {}", settings.output_dir.display()))?;
    let (alone, together): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| test.is_alone);
    run_queue(together, settings.jobs, settings, &mut on_progress)?;
    run_queue(alone, 1, settings, &mut on_progress)
}

fn run_queue(
    tests: Vec<TestBinary>,
    jobs: usize,
    settings: &Settings,
    on_progress: &mut impl FnMut(Progress),
) -> anyhow::Result<()> {
    let queue = Mutex::new(VecDeque::from(tests));
    let running = Mutex::new(Vec::new());
    let (sender, results) = channel();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, queue, running) = (sender.clone(), &queue, &running);
            scope.spawn(move || work(queue, running, settings, &sender));
        }
        drop(sender);
        follow(&results, &running, on_progress)
    })
}

type Running = Mutex<Vec<(String, Instant)>>;

fn work(
    queue: &Mutex<VecDeque<TestBinary>>,
    running: &Running,
    settings: &Settings,
    results: &Sender<anyhow::Result<Ended>>,
) {
    loop {
        let Some(test) = queue.lock().expect("no holder panics").pop_front() else { return };
        running.lock().expect("no holder panics").push((test.name.clone(), Instant::now()));
        let result = run_one(&test, settings);
        running.lock().expect("no holder panics").retain(|(name, _)| *name != test.name);
        if results.send(result).is_err() {
            return;
        }
    }
}

fn follow(
    results: &Receiver<anyhow::Result<Ended>>,
    running: &Running,
    on_progress: &mut impl FnMut(Progress),
) -> anyhow::Result<()> {
    loop {
        match results.recv_timeout(PROGRESS_EVERY) {
            Ok(result) => on_progress(Progress::Ended(result?)),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let running = running.lock().expect("no holder panics");
                let now = running.iter().map(|(name, begun)| (name.clone(), begun.elapsed())).collect();
                on_progress(Progress::Running(now));
            }
        }
    }
}

/// Variables that `cargo run` sets for this program. A build script that depends on one of them, such as ring's, would
/// run again for each value.
pub fn variables_of_cargo_run() -> impl Iterator<Item = OsString> {
    let is_one = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    std::env::vars_os().map(|(name, _)| name).filter(move |name| name.to_str().is_some_and(is_one))
}

/// Both streams of the binary go into one file, which is there to look at while it runs.
fn run_one(test: &TestBinary, settings: &Settings) -> anyhow::Result<Ended> {
    let output_file = settings.output_dir.join(format!("{}.txt", test.name.replace('/', "-")));
    let output = File::create(&output_file).with_context(|| format!("creating {}", output_file.display()))?;
    let begun = Instant::now();
    let mut command = Command::new(&test.executable);
    for variable in variables_of_cargo_run() {
        command.env_remove(variable);
    }
    let status = command
        .args(test.arguments.iter().chain(&settings.arguments))
        .current_dir(&test.package_dir)
        .envs(settings.variables.iter().chain(&test.variables).cloned())
        .stdin(Stdio::null())
        .stderr(output.try_clone()?)
        .stdout(output)
        .status()
        .with_context(|| format!("starting {}", test.executable.display()))?;
    let took = begun.elapsed();
    let output = read(&output_file)?;
    let counts = Counts::parse(&output);
    Ok(Ended { name: test.name.clone(), took, passed: status.success(), counts, output, output_file })
}

fn read(file: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str, is_alone: bool) -> TestBinary {
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        TestBinary {
            name: name.to_owned(),
            executable: "sh".into(),
            arguments,
            variables: Vec::new(),
            package_dir: "/".into(),
            is_alone,
        }
    }

    /// Two wait for each other, so they have to run at the same time; the one that runs alone finds that both have ended.
    #[test]
    fn binaries_run_side_by_side_and_those_that_want_to_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        let meets = |own: &str, other: &str| {
            format!(
                "cd {at} && touch {own} && while [ ! -e {other} ]; do sleep 0.01; done; sleep 0.2; touch {own}.done"
            )
        };
        let tests = vec![
            shell("w/alone", &format!("cd {at} && test -e a.done && test -e b.done && echo alone"), true),
            shell("w/a", &meets("a", "b"), false),
            shell("w/b", &meets("b", "a"), false),
            shell("w/fails", "echo 'test it ... FAILED'; echo why >&2; exit 101", false),
        ];
        let settings =
            Settings { jobs: 2, arguments: Vec::new(), variables: Vec::new(), output_dir: dir.path().join("out") };
        let mut ended = Vec::new();
        let on_progress = |progress| {
            if let Progress::Ended(test) = progress {
                ended.push(test);
            }
        };
        run(tests, &settings, on_progress).unwrap();
        assert_eq!(ended.len(), 4);
        let failed: Vec<_> = ended.iter().filter(|test| !test.passed).collect();
        assert_eq!((failed.len(), failed[0].name.as_str()), (1, "w/fails"));
        assert_eq!(failed[0].output, "test it ... FAILED\nwhy\n");
        assert_eq!((ended[3].name.as_str(), ended[3].output.as_str()), ("w/alone", "alone\n"));
    }
}
