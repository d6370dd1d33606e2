//! Settings of code functions.

use std::path::PathBuf;
use std::time::Duration;

use assay_node_sandbox::{CodeSetting, JailLimits};
use serde::{Deserialize, Serialize};

/// Slots for each processor. Functions mostly wait for models and networks.
const SLOTS_PER_PROCESSOR: usize = 4;

/// Network that functions reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionNetwork {
    /// This cluster only.
    #[serde(rename = "self")]
    Own,
    /// This cluster, public addresses over any port, and targets that `egress.allow` lists for `functions`.
    #[default]
    Public,
    /// Nothing.
    Off,
}

/// Settings of code functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FunctionSettings {
    /// Sandbox for code of users: `auto` runs code in a full sandbox only, `reduced` also without namespaces.
    ///
    /// `unsafe` runs it without a sandbox, for development, and `off` runs none. See the page on the sandbox.
    pub code: CodeSetting,
    /// Programs of Node.js, version 20 or newer. By default, `node` on the search path.
    pub node: Vec<PathBuf>,
    /// Programs of Python, version 3.10 or newer. By default, `python3` on the search path and in `/usr/bin`.
    pub python: Vec<PathBuf>,
    /// Whether inline JavaScript without imports runs in QuickJS, if no node of the cluster has a Node.js for it.
    pub quickjs_for_node: bool,
    /// Directory named `node_modules` with packages for JavaScript functions, such as `braintrust` and `openai`.
    pub node_modules: Option<PathBuf>,
    /// Directory with packages for inline Python functions, such as one that `pip install --target` made.
    pub python_path: Option<PathBuf>,
    /// Directory of running functions: programs, unpacked bundles, temporary files. By default `functions` in the data
    /// directory. A server of root with `code` `reduced` or `unsafe` has it beside, since other users have to enter it.
    pub directory: Option<PathBuf>,
    /// Network that functions reach: `self` is this cluster only, `public` also public addresses, `off` nothing.
    pub network: FunctionNetwork,
    /// Calls that run at once on a node; 0 means four for each processor. An organization has at most half.
    pub running_max: usize,
    /// Calls that wait for a slot on a node.
    pub waiting_max: usize,
    /// Seconds that a call may run.
    pub seconds_max: u64,
    /// Bytes of memory of a call.
    pub memory_bytes_max: u64,
    /// Processes and threads of a call.
    pub processes_max: u64,
    /// Seconds after which an idle worker ends.
    pub idle_seconds: u64,
    /// Idle workers of a node.
    pub idle_max: usize,
    /// Bytes of unpacked bundles that a node keeps.
    pub bundle_bytes_max: u64,
}

impl Default for FunctionSettings {
    fn default() -> FunctionSettings {
        FunctionSettings {
            code: CodeSetting::Auto,
            node: Vec::new(),
            python: Vec::new(),
            quickjs_for_node: false,
            node_modules: None,
            python_path: None,
            directory: None,
            network: FunctionNetwork::Public,
            running_max: 0,
            waiting_max: 256,
            seconds_max: 900,
            memory_bytes_max: 512 << 20,
            processes_max: 128,
            idle_seconds: 60,
            idle_max: 32,
            bundle_bytes_max: 2 << 30,
        }
    }
}

impl FunctionSettings {
    pub fn limits(&self) -> JailLimits {
        JailLimits { memory_bytes: self.memory_bytes_max, processes: self.processes_max, ..JailLimits::default() }
    }

    /// Returns the number of calls that run at once.
    pub fn slots(&self) -> usize {
        match self.running_max {
            0 => std::thread::available_parallelism().map_or(2, usize::from) * SLOTS_PER_PROCESSOR,
            slots => slots,
        }
    }

    pub fn time_max(&self) -> Duration {
        Duration::from_secs(self.seconds_max)
    }
}
