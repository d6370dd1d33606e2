//! Settings of the console, and what every request needs to know of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Settings of the web console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Whether this server serves the console at `/app`.
    pub enabled: bool,
    /// Folder to serve in the place of the console inside the program, for its development.
    pub dir: Option<PathBuf>,
}

impl Default for ConsoleConfig {
    fn default() -> ConsoleConfig {
        ConsoleConfig { enabled: true, dir: None }
    }
}

/// The console of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Console {
    pub config: ConsoleConfig,
    /// First eight hexadecimal digits of the cluster's id.
    pub cluster: String,
    /// The node that serves it.
    pub node: String,
}
