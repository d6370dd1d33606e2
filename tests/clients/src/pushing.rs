//! Programs with which people push functions and run evaluations, and the functions of the tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::kept::said;
use crate::{javascript, python};

const JAVASCRIPT_PACKAGE: &str = include_str!("../javascript/push/package.json");
const JAVASCRIPT_LOCK: &str = include_str!("../javascript/push/package-lock.json");
const PYTHON_LOCK: &str = include_str!("../python/push.lock");
/// Directory of an environment in which the resolver of Python bundles keeps what it has downloaded.
const DOWNLOADS: &str = "downloads";
/// Variables that tell programs which certificates this machine trusts.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Programs with which people push functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushProgram {
    /// `braintrust` of the JavaScript SDK.
    JavaScriptSdk,
    /// `braintrust` of the Python SDK.
    PythonSdk,
    /// `bt`, the command line client.
    CommandLine,
}

/// The programs, each with the packages that the functions need.
#[derive(Clone, Debug)]
pub struct PushPrograms {
    javascript: javascript::Environment,
    python: PathBuf,
}

/// Directory with the sources of the functions, as their author has one.
#[derive(Debug)]
pub struct SourceFolder<'p> {
    programs: &'p PushPrograms,
    folder: tempfile::TempDir,
}

/// Destination of a push.
#[derive(Clone, Copy, Debug)]
pub struct PushTarget<'t> {
    pub url: &'t str,
    pub key: &'t str,
    pub project: &'t str,
}

impl PushPrograms {
    /// Installs the programs, or tells why that is impossible.
    pub fn install() -> Result<PushPrograms, String> {
        let installed = || -> Result<PushPrograms> {
            let javascript = javascript::made("push", JAVASCRIPT_PACKAGE, JAVASCRIPT_LOCK)?;
            Ok(PushPrograms { javascript, python: python::made("push-python", PYTHON_LOCK)? })
        };
        installed().map_err(|error| format!("{error:#}"))
    }

    /// Returns the environment of the JavaScript SDK.
    pub fn javascript(&self) -> &javascript::Environment {
        &self.javascript
    }

    /// Returns the interpreter with the Python SDK.
    pub fn python(&self) -> &Path {
        &self.python
    }

    /// Copies the functions of a language, for a project, into a new directory.
    pub fn sources(&self, language: &str, project: &str) -> Result<SourceFolder<'_>> {
        let folder = tempfile::tempdir()?;
        std::os::unix::fs::symlink(self.javascript.packages(), folder.path().join("node_modules"))?;
        let from = sources().join(language);
        for entry in std::fs::read_dir(&from).with_context(|| format!("no functions in {}", from.display()))? {
            let path = entry?.path();
            let name = path.file_name().context("the name of a file")?;
            std::fs::copy(&path, folder.path().join(name))?;
        }
        std::fs::write(folder.path().join("name.ts"), format!("export const projectName = {project:?};\n"))?;
        std::fs::write(folder.path().join("name.py"), format!("PROJECT = {project:?}\n"))?;
        // The resolver is bound to the versions of the environment.
        std::fs::write(folder.path().join("constraints.lock"), PYTHON_LOCK)?;
        Ok(SourceFolder { programs: self, folder })
    }
}

/// Returns the directory of the functions, by language.
pub fn sources() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("pushed")
}

impl SourceFolder<'_> {
    /// Adds a file, or replaces it.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(std::fs::write(self.folder.path().join(name), text)?)
    }

    /// Runs a program with these arguments. Returns its output; an error if the program fails.
    pub fn run(&self, program: PushProgram, arguments: &[&str], target: PushTarget<'_>) -> Result<String> {
        let (succeeded, text) = self.attempt(program, arguments, target)?;
        ensure!(succeeded, "{program:?} {arguments:?}: {text}");
        Ok(text)
    }

    /// Runs a program with these arguments. Returns whether it succeeded, and its output.
    pub fn attempt(&self, program: PushProgram, arguments: &[&str], target: PushTarget<'_>) -> Result<(bool, String)> {
        let output = self.command(program, target)?.args(arguments).output();
        let output = output.with_context(|| format!("{program:?} does not run"))?;
        Ok((output.status.success(), said(&output)))
    }

    /// Returns the standard output of the command line client, which is one JSON value.
    pub fn json(&self, arguments: &[&str], target: PushTarget<'_>) -> Result<serde_json::Value> {
        let output = self.command(PushProgram::CommandLine, target)?.args(arguments).arg("--json").output()?;
        ensure!(output.status.success(), "{arguments:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).with_context(|| format!("{arguments:?}: {}", said(&output)))
    }

    /// Returns the command of a program, with only what it needs in its environment.
    fn command(&self, program: PushProgram, target: PushTarget<'_>) -> Result<Command> {
        let (packages, python) = (self.programs.javascript.packages(), &self.programs.python);
        let binaries = python.parent().context("the directory of the interpreter")?;
        let mut command = Command::new(match program {
            PushProgram::JavaScriptSdk => packages.join(".bin/braintrust"),
            PushProgram::PythonSdk => binaries.join("braintrust"),
            PushProgram::CommandLine => packages.join("@braintrust/bt-linux-x64/bin/bt"),
        });
        let own = [binaries.to_owned(), packages.join(".bin")];
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&usual)))?;
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_clear().env("PATH", path).env("HOME", self.folder.path());
        for name in CERTIFICATES {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("BRAINTRUST_APP_URL", target.url).env("BRAINTRUST_API_KEY", target.key);
        // Clients that modules make when they are loaded need one.
        command.env("OPENAI_API_KEY", "not used while functions are pushed");
        command.env("UV_CACHE_DIR", binaries.with_file_name(DOWNLOADS)).env("UV_CONSTRAINT", "constraints.lock");
        if program == PushProgram::CommandLine {
            command.env("BRAINTRUST_API_URL", target.url).env("BRAINTRUST_DEFAULT_PROJECT", target.project);
            command.env("BRAINTRUST_NO_INPUT", "true").env("BRAINTRUST_NO_COLOR", "true");
        }
        Ok(command)
    }
}
