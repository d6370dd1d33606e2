//! Interpreters of this machine, and the choice of one for a function.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use assay_node_runtimes::RuntimeKind;
use assay_node_sandbox::{JailBind, OWN_PROGRAM};
use tokio::process::Command;
use tokio::time::timeout;

use crate::settings::FunctionSettings;

/// Upper bound of the time in which an interpreter tells its version.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
/// Oldest major version of Node.js.
const NODE_MAJOR_MIN: u32 = 20;
/// Oldest version of Python.
const PYTHON_MIN: (u32, u32) = (3, 10);
/// Version of the language of QuickJS.
const QUICKJS_MAJOR: u32 = 2023;
/// Directories that every sandbox sees.
const SEEN_ANYWAY: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// Program that tells version, program and directories of a Python.
const ABOUT_PYTHON: &str = "import json, sys; \
    print(json.dumps([sys.version.split()[0], sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix]))";
/// Program that tells version and program of a Node.js.
const ABOUT_NODE: &str = "JSON.stringify([process.versions.node, process.execPath])";

/// Runtime and version of an interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterpreterVersion {
    pub runtime: RuntimeKind,
    pub major: u32,
    pub minor: u32,
    /// Full version, for people.
    pub version: String,
}

impl InterpreterVersion {
    /// Reads a version such as `3.11.7` or `ES2023`. Returns `None` if the text has no numbers.
    pub fn read(runtime: RuntimeKind, version: &str) -> Option<InterpreterVersion> {
        if runtime == RuntimeKind::QuickJs {
            let major = version.strip_prefix("ES")?.parse().ok()?;
            return Some(InterpreterVersion { runtime, major, minor: 0, version: version.to_owned() });
        }
        let mut numbers = version.split('.').map(|part| part.parse::<u32>().ok());
        let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else { return None };
        Some(InterpreterVersion { runtime, major, minor, version: version.to_owned() })
    }
}

/// Interpreter of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    pub about: InterpreterVersion,
    pub program: PathBuf,
    /// Directories that the interpreter reads, apart from those of the system.
    pub directories: Vec<PathBuf>,
}

impl Interpreter {
    /// Returns the engine in the server's program, which needs no installation.
    pub fn quickjs() -> Interpreter {
        let about = InterpreterVersion {
            runtime: RuntimeKind::QuickJs,
            major: QUICKJS_MAJOR,
            minor: 0,
            version: format!("ES{QUICKJS_MAJOR}"),
        };
        Interpreter { about, program: PathBuf::from(OWN_PROGRAM), directories: Vec::new() }
    }

    /// Returns the directories of the interpreter as binds at the same paths.
    pub fn binds(&self) -> Vec<JailBind> {
        let bind = |path: &PathBuf| JailBind { source: path.clone(), target: path.clone() };
        self.directories.iter().map(bind).collect()
    }
}

/// Finds the interpreters that the settings name, or those of the search path. Also returns what is wrong.
pub async fn find(settings: &FunctionSettings) -> (Vec<Interpreter>, Vec<String>) {
    let mut found: Vec<Interpreter> = Vec::new();
    let mut problems = Vec::new();
    let node = candidates(&settings.node, &["node", "/usr/bin/node", "/usr/local/bin/node"]);
    let python = candidates(&settings.python, &["python3", "/usr/bin/python3", "/usr/local/bin/python3"]);
    for (runtime, programs) in [(RuntimeKind::Node, node), (RuntimeKind::Python, python)] {
        let is_named = programs.iter().any(|(_, is_named)| *is_named);
        for (program, is_named) in programs {
            match ask(runtime, &program).await {
                Ok(interpreter) if found.iter().all(|known| known.program != interpreter.program) => {
                    found.push(interpreter);
                }
                Ok(_) => {}
                Err(why) if is_named => problems.push(format!("{}: {why}", program.display())),
                Err(_) => {}
            }
        }
        if !is_named && found.iter().all(|interpreter| interpreter.about.runtime != runtime) {
            let name = runtime.name();
            problems.push(format!("no {name} for functions: install it, or name it in functions.{name}"));
        }
    }
    (found, problems)
}

/// Returns the programs to try, and whether the operator named each.
fn candidates(named: &[PathBuf], usual: &[&str]) -> Vec<(PathBuf, bool)> {
    if named.is_empty() {
        usual.iter().map(|program| (PathBuf::from(program), false)).collect()
    } else {
        named.iter().map(|program| (program.clone(), true)).collect()
    }
}

async fn ask(runtime: RuntimeKind, program: &Path) -> Result<Interpreter, String> {
    let arguments = match runtime {
        RuntimeKind::Node => ["-p", ABOUT_NODE],
        RuntimeKind::Python => ["-c", ABOUT_PYTHON],
        RuntimeKind::QuickJs => return Ok(Interpreter::quickjs()),
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(ANSWER_TIME_MAX, command.output()).await;
    let output = output.map_err(|_| "does not answer".to_owned())?.map_err(|why| why.to_string())?;
    let facts: Vec<String> = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("does not tell its version (exit code {})", output.status.code().unwrap_or(-1)))?;
    interpreter(runtime, &facts)
}

/// Makes an interpreter of its version, its program and its directories.
fn interpreter(runtime: RuntimeKind, facts: &[String]) -> Result<Interpreter, String> {
    let [version, program, directories @ ..] = facts else { return Err("tells no version".to_owned()) };
    let about = InterpreterVersion::read(runtime, version)
        .ok_or_else(|| format!("tells the version `{version}`, which has no two numbers"))?;
    let name = runtime.name();
    match runtime {
        RuntimeKind::Node if about.major < NODE_MAJOR_MIN => {
            return Err(format!("is {name} {version}; functions need {NODE_MAJOR_MIN} or newer"));
        }
        RuntimeKind::Python if (about.major, about.minor) < PYTHON_MIN => {
            return Err(format!("is {name} {version}; functions need {}.{} or newer", PYTHON_MIN.0, PYTHON_MIN.1));
        }
        _ => {}
    }
    let program = PathBuf::from(program);
    let own = program.parent().and_then(Path::parent).map(Path::to_owned);
    let mut all: Vec<PathBuf> = directories.iter().map(PathBuf::from).chain(own).collect();
    all.retain(|path| path.is_absolute() && path.parent().is_some() && !is_seen_anyway(path));
    all.sort_unstable();
    all.dedup();
    Ok(Interpreter { about, program, directories: all })
}

fn is_seen_anyway(path: &Path) -> bool {
    SEEN_ANYWAY.iter().any(|seen| path.starts_with(seen))
}

/// Version that a function wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedVersion<'a> {
    pub runtime: RuntimeKind,
    pub version: &'a str,
    /// Whether the function holds native code for one minor version of Python.
    pub is_exact: bool,
}

/// Chooses an interpreter (F-03), and returns its position. The error names the versions that there are.
pub fn choose(interpreters: &[InterpreterVersion], wanted: WantedVersion<'_>) -> Result<usize, String> {
    let name = wanted.runtime.name();
    let mut own: Vec<(usize, &InterpreterVersion)> =
        interpreters.iter().enumerate().filter(|(_, interpreter)| interpreter.runtime == wanted.runtime).collect();
    if own.is_empty() {
        return Err(format!("there is no {name} to run the function with"));
    }
    own.sort_by_key(|(_, interpreter)| (interpreter.major, interpreter.minor));
    let mut numbers = wanted.version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    let newest = own.last().copied();
    let chosen = match wanted.runtime {
        RuntimeKind::Node => own.iter().copied().find(|(_, own)| Some(own.major) >= major).or(newest),
        RuntimeKind::Python => {
            let exact = own.iter().copied().find(|(_, own)| (Some(own.major), Some(own.minor)) == (major, minor));
            if wanted.is_exact { exact } else { exact.or(newest) }
        }
        RuntimeKind::QuickJs => newest,
    };
    chosen.map(|(position, _)| position).ok_or_else(|| {
        let versions: Vec<&str> = own.iter().map(|(_, interpreter)| interpreter.version.as_str()).collect();
        format!("the bundle is for {name} {}, and there is only {}", wanted.version, versions.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runtime: RuntimeKind, version: &str) -> Interpreter {
        let facts = [version.to_owned(), format!("/opt/{version}/bin/x"), "/usr".to_owned()];
        interpreter(runtime, &facts).expect("an interpreter")
    }

    #[test]
    fn the_closest_version_is_chosen() {
        let all = [
            of(RuntimeKind::Node, "24.1.0"),
            of(RuntimeKind::Node, "20.20.2"),
            of(RuntimeKind::Python, "3.11.7"),
            of(RuntimeKind::Python, "3.13.0"),
        ];
        let all = all.map(|interpreter| interpreter.about);
        let chosen = |runtime, version, is_exact| {
            choose(&all, WantedVersion { runtime, version, is_exact }).map(|found| all[found].version.clone())
        };
        for (version, expected) in [("18", "20.20.2"), ("20", "20.20.2"), ("22.3.1", "24.1.0"), ("26", "24.1.0")] {
            assert_eq!(chosen(RuntimeKind::Node, version, false).as_deref(), Ok(expected), "{version}");
        }
        assert_eq!(chosen(RuntimeKind::Python, "3.11", true).as_deref(), Ok("3.11.7"));
        assert_eq!(chosen(RuntimeKind::Python, "3.12", false).as_deref(), Ok("3.13.0"));
        let why = chosen(RuntimeKind::Python, "3.12", true).unwrap_err();
        assert!(why.contains("for python 3.12") && why.contains("3.11.7, 3.13.0"), "{why}");
        let quickjs = [Interpreter::quickjs().about];
        let wanted = WantedVersion { runtime: RuntimeKind::QuickJs, version: "ES2023", is_exact: false };
        assert_eq!(choose(&quickjs, wanted), Ok(0));
        assert_eq!(InterpreterVersion::read(RuntimeKind::QuickJs, "ES2023").as_ref(), Some(&quickjs[0]));
        let why =
            choose(&[], WantedVersion { runtime: RuntimeKind::Node, version: "20", is_exact: false }).unwrap_err();
        assert!(why.contains("no node"), "{why}");
    }

    #[test]
    fn an_interpreter_outside_of_the_system_brings_its_directory() {
        let found = of(RuntimeKind::Python, "3.11.7");
        assert_eq!(found.directories, [PathBuf::from("/opt/3.11.7")]);
        let system = ["20.1.0".to_owned(), "/usr/bin/node".to_owned()];
        assert!(interpreter(RuntimeKind::Node, &system).expect("one").directories.is_empty());
        assert!(interpreter(RuntimeKind::Node, &["18.0.0".to_owned(), "/x/y/node".to_owned()]).is_err());
        assert!(interpreter(RuntimeKind::Python, &["3.9.1".to_owned(), "/x/y/z".to_owned()]).is_err());
        assert!(interpreter(RuntimeKind::Python, &["x".to_owned(), "/x/y/z".to_owned()]).is_err());
    }
}
