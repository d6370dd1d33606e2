//! Bare interpreters, without the server: one that stays and answers lines over a pipe, and one that is started for each
//! call.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::group::waited_seconds;

/// Language of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HandlerLanguage {
    JavaScript,
    Python,
}

impl HandlerLanguage {
    pub const ALL: [HandlerLanguage; 2] = [HandlerLanguage::JavaScript, HandlerLanguage::Python];

    /// Returns the name that requests and settings have.
    pub fn runtime(self) -> &'static str {
        match self {
            HandlerLanguage::JavaScript => "node",
            HandlerLanguage::Python => "python",
        }
    }

    /// Returns the source of the scorer that is called.
    pub fn handler(self) -> &'static str {
        match self {
            HandlerLanguage::JavaScript => include_str!("programs/handler.js"),
            HandlerLanguage::Python => include_str!("programs/handler.py"),
        }
    }

    /// Returns the source of a function that holds memory until a time.
    pub fn holder(self) -> &'static str {
        match self {
            HandlerLanguage::JavaScript => include_str!("programs/holder.js"),
            HandlerLanguage::Python => include_str!("programs/holder.py"),
        }
    }

    fn program(self, mode: InterpreterMode) -> String {
        let rest = match (self, mode) {
            (HandlerLanguage::JavaScript, InterpreterMode::Pipe) => include_str!("programs/pipe.js"),
            (HandlerLanguage::JavaScript, InterpreterMode::Once) => include_str!("programs/once.js"),
            (HandlerLanguage::Python, InterpreterMode::Pipe) => include_str!("programs/pipe.py"),
            (HandlerLanguage::Python, InterpreterMode::Once) => include_str!("programs/once.py"),
        };
        format!("{}\n\n{rest}", self.handler())
    }

    /// Returns the program that tells the interpreter's own path: a name on the search path may be that of a script.
    fn about(self) -> [&'static str; 2] {
        match self {
            HandlerLanguage::JavaScript => ["-p", "process.execPath"],
            HandlerLanguage::Python => ["-c", "import sys; print(sys.executable)"],
        }
    }
}

impl fmt::Display for HandlerLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandlerLanguage::JavaScript => "JavaScript",
            HandlerLanguage::Python => "Python",
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum InterpreterMode {
    Pipe,
    Once,
}

/// Input of every call.
pub fn input() -> Value {
    let words = "The capital of Peru is Lima, which lies on the coast of the Pacific Ocean. ".repeat(12);
    json!({ "output": words, "expected": "coast of the Pacific" })
}

/// Value of every call.
pub fn expected() -> Value {
    json!({ "score": 1, "metadata": { "words": 181 } })
}

/// Interpreter with its programs in a directory.
#[derive(Clone, Debug)]
pub struct BareInterpreter {
    pub language: HandlerLanguage,
    /// Path of the interpreter itself, which the server uses too.
    pub path: PathBuf,
    dir: PathBuf,
}

impl BareInterpreter {
    /// Finds the interpreter, and writes its programs.
    pub fn new(language: HandlerLanguage, named: &Path, dir: &Path) -> anyhow::Result<BareInterpreter> {
        let said = Command::new(named).args(language.about()).output();
        let said = said.with_context(|| format!("{} does not run", named.display()))?;
        let path = PathBuf::from(String::from_utf8(said.stdout)?.trim());
        ensure!(path.is_file(), "{} does not tell its path: name another interpreter", named.display());
        let interpreter = BareInterpreter { language, path, dir: dir.to_owned() };
        for mode in [InterpreterMode::Pipe, InterpreterMode::Once] {
            let file = interpreter.file(mode);
            std::fs::write(&file, language.program(mode)).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(interpreter)
    }

    fn file(&self, mode: InterpreterMode) -> PathBuf {
        let name = match mode {
            InterpreterMode::Pipe => "pipe",
            InterpreterMode::Once => "once",
        };
        let ending = match self.language {
            HandlerLanguage::JavaScript => "cjs",
            HandlerLanguage::Python => "py",
        };
        self.dir.join(name).with_extension(ending)
    }

    fn command(&self, mode: InterpreterMode) -> Command {
        let mut command = Command::new(&self.path);
        if self.language == HandlerLanguage::Python {
            // As the server starts it.
            command.args(["-s", "-B"]);
        }
        command.arg(self.file(mode)).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// Calls the handler over a pipe for a time, one call after the other. Returns the milliseconds of each.
    pub fn piped_calls(&self, time: Duration) -> anyhow::Result<Vec<f64>> {
        let mut pipe = BarePipe::start(self)?;
        let line = format!("{}\n", input());
        // The interpreter's own start is no call.
        pipe.call(&line)?;
        let (until, mut ms) = (Instant::now() + time, Vec::new());
        while Instant::now() < until {
            let began = Instant::now();
            pipe.call(&line)?;
            ms.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(ms)
    }

    /// Starts an interpreter for each call, one after the other, for a time.
    pub fn spawned_calls(&self, time: Duration) -> anyhow::Result<SpawnedCalls> {
        let (before, began) = (waited_seconds()?, Instant::now());
        let mut ms = Vec::new();
        while began.elapsed() < time {
            let call_began = Instant::now();
            let mut child = self.command(InterpreterMode::Once).spawn().context("starting the interpreter")?;
            write!(child.stdin.take().context("its input")?, "{}", input())?;
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "the interpreter ended with {}", output.status);
            check(&output.stdout)?;
            ms.push(call_began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(SpawnedCalls { cpu_seconds: waited_seconds()? - before, ms })
    }
}

/// Calls each with an interpreter of its own.
#[derive(Debug)]
pub struct SpawnedCalls {
    /// Processor seconds of the interpreters alone, without those of the program that starts them.
    pub cpu_seconds: f64,
    /// Milliseconds of each call.
    pub ms: Vec<f64>,
}

/// Interpreter that answers lines. It is killed on drop.
#[derive(Debug)]
struct BarePipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl BarePipe {
    fn start(interpreter: &BareInterpreter) -> anyhow::Result<BarePipe> {
        let mut child = interpreter.command(InterpreterMode::Pipe).spawn().context("starting the interpreter")?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the interpreter has no pipes");
        };
        Ok(BarePipe { child, input, output: BufReader::new(output) })
    }

    fn call(&mut self, line: &str) -> anyhow::Result<()> {
        self.input.write_all(line.as_bytes()).context("the interpreter ended")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        check(answer.as_bytes())
    }
}

impl Drop for BarePipe {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks the value of a call.
pub fn check(answer: &[u8]) -> anyhow::Result<()> {
    let value: Value = serde_json::from_slice(answer).context("the value of a call")?;
    ensure!(value == expected(), "a call was answered {value} instead of {}", expected());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_interpreters_answer_what_the_server_has_to_answer() {
        let dir = tempfile::tempdir().expect("a directory");
        for (language, name) in [(HandlerLanguage::JavaScript, "node"), (HandlerLanguage::Python, "python3")] {
            if Command::new(name).arg("--version").output().is_err() {
                eprintln!("NOT COVERED: there is no {name}");
                continue;
            }
            let interpreter = BareInterpreter::new(language, Path::new(name), dir.path()).expect("an interpreter");
            assert!(!interpreter.piped_calls(Duration::from_millis(1)).expect("calls").is_empty());
            let spawned = interpreter.spawned_calls(Duration::from_millis(1)).expect("calls");
            assert_eq!(spawned.ms.len(), 1);
        }
    }
}
