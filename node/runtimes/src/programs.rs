//! Files of the runtimes, and how each interpreter is started with them.

use std::path::Path;

/// Descriptor of the channel in a worker, unless [`CHANNEL_VARIABLE`] says otherwise.
pub const CHANNEL_FD: i32 = 3;
/// Environment variable with the descriptor of the channel.
pub const CHANNEL_VARIABLE: &str = "ASSAY_CHANNEL";
/// Environment variable with the path of a Unix socket that accepts connections to the network.
///
/// A worker writes `host:port` and a newline to each connection. All further bytes belong to the TCP stream.
pub const TUNNEL_VARIABLE: &str = "ASSAY_TUNNEL";
/// Environment variable with a list of descriptors such as `10,12`: connected stream sockets instead of a tunnel.
///
/// Each descriptor serves one connection, with the same protocol as [`TUNNEL_VARIABLE`].
pub const STREAMS_VARIABLE: &str = "ASSAY_STREAMS";
/// Hidden command of the server's program that serves functions for [`RuntimeKind::QuickJs`].
pub const WORKER_COMMAND: &str = "function-worker";
/// Environment variable with the directory of the operator's npm packages, which must be named `node_modules`.
pub const NODE_MODULES_VARIABLE: &str = "ASSAY_NODE_MODULES";

/// File that the server writes to the directory of the runtimes.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeFile {
    pub name: &'static str,
    pub content: &'static str,
}

/// Files of all runtimes. The jail sees their directory read-only.
pub const RUNTIME_FILES: [RuntimeFile; 14] = [
    RuntimeFile { name: "worker.js", content: include_str!("../runtimes/worker.js") },
    RuntimeFile { name: "channel.js", content: include_str!("../runtimes/channel.js") },
    RuntimeFile { name: "values.js", content: include_str!("../runtimes/values.js") },
    RuntimeFile { name: "functions.js", content: include_str!("../runtimes/functions.js") },
    RuntimeFile { name: "evaluators.js", content: include_str!("../runtimes/evaluators.js") },
    RuntimeFile { name: "trace.js", content: include_str!("../runtimes/trace.js") },
    RuntimeFile { name: "network.js", content: include_str!("../runtimes/network.js") },
    RuntimeFile { name: "braintrust.js", content: include_str!("../runtimes/braintrust.js") },
    RuntimeFile { name: "worker.py", content: include_str!("../runtimes/worker.py") },
    RuntimeFile { name: "assay_values.py", content: include_str!("../runtimes/assay_values.py") },
    RuntimeFile { name: "assay_functions.py", content: include_str!("../runtimes/assay_functions.py") },
    RuntimeFile { name: "assay_trace.py", content: include_str!("../runtimes/assay_trace.py") },
    RuntimeFile { name: "assay_network.py", content: include_str!("../runtimes/assay_network.py") },
    RuntimeFile { name: "sitecustomize.py", content: include_str!("../runtimes/sitecustomize.py") },
];

/// Interpreter that runs a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuntimeKind {
    Node,
    Python,
    /// Engine inside of the server's program, without files, network and timers.
    QuickJs,
}

impl RuntimeKind {
    /// Name in the runtime context of a function, and in [`crate::WorkerReady::runtime`].
    pub fn name(self) -> &'static str {
        match self {
            RuntimeKind::Node => "node",
            RuntimeKind::Python => "python",
            RuntimeKind::QuickJs => "quickjs",
        }
    }

    /// Returns the runtime of a name.
    pub fn named(name: &str) -> Option<RuntimeKind> {
        [RuntimeKind::Node, RuntimeKind::Python, RuntimeKind::QuickJs].into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the arguments of the interpreter after its options, for runtimes in `directory`.
    pub fn arguments(self, directory: &Path) -> Vec<String> {
        let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
        match self {
            // worker threads of user code inherit the option, and with it the network
            RuntimeKind::Node => vec!["--require".into(), file("network.js"), file("worker.js")],
            RuntimeKind::Python => vec![file("worker.py")],
            RuntimeKind::QuickJs => vec![WORKER_COMMAND.to_owned()],
        }
    }

    /// Returns the environment variables that the interpreter needs to find the runtimes in `directory`.
    pub fn variables(self, directory: &Path) -> Vec<(&'static str, String)> {
        match self {
            RuntimeKind::Node | RuntimeKind::QuickJs => Vec::new(),
            // child processes of user code find `sitecustomize` by it, and with it the network
            RuntimeKind::Python => vec![("PYTHONPATH", directory.to_string_lossy().into_owned())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_the_arguments_are_among_the_files() {
        for kind in [RuntimeKind::Node, RuntimeKind::Python] {
            let files = kind.arguments(Path::new("/r")).into_iter().filter(|argument| argument.starts_with('/'));
            for file in files {
                assert!(RUNTIME_FILES.iter().any(|known| format!("/r/{}", known.name) == file), "{file}");
            }
        }
    }

    #[test]
    fn the_names_of_files_are_unique() {
        let mut names: Vec<&str> = RUNTIME_FILES.iter().map(|file| file.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RUNTIME_FILES.len());
    }
}
