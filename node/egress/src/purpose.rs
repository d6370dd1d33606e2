//! Purposes of outbound calls, for which an operator lists targets.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Purpose of an outbound call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EgressPurpose {
    Models,
    Webhooks,
    Mcp,
    Media,
    /// Connections of code functions.
    Functions,
    /// Servers of remote evaluations.
    Evals,
    /// Object stores of backups.
    Backups,
    /// Source and target of an import, which the command names itself.
    Imports,
}

impl EgressPurpose {
    /// Returns the name in settings.
    pub fn name(self) -> &'static str {
        match self {
            EgressPurpose::Models => "models",
            EgressPurpose::Webhooks => "webhooks",
            EgressPurpose::Mcp => "mcp",
            EgressPurpose::Media => "media",
            EgressPurpose::Functions => "functions",
            EgressPurpose::Evals => "evals",
            EgressPurpose::Backups => "backups",
            EgressPurpose::Imports => "imports",
        }
    }
}

impl fmt::Display for EgressPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
