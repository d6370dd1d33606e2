//! Strengths of a sandbox, and the setting that chooses one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Strength of the sandbox around a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxStrength {
    /// Resource limits only, for development.
    Unsafe,
    /// Landlock, a filter of system calls, and resource limits. The guide lists what it does not hold.
    Reduced,
    /// Namespaces and a private root, and all that `Reduced` has.
    Full,
}

impl SandboxStrength {
    pub fn name(self) -> &'static str {
        match self {
            SandboxStrength::Unsafe => "unsafe",
            SandboxStrength::Reduced => "reduced",
            SandboxStrength::Full => "full",
        }
    }
}

impl fmt::Display for SandboxStrength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Setting `functions.code`: which sandbox code of users may run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeSetting {
    /// Runs code in a full sandbox, or not at all.
    #[default]
    Auto,
    /// Runs code also in a reduced sandbox where no full one is available.
    Reduced,
    /// Runs code without a sandbox.
    Unsafe,
    /// Runs no code.
    Off,
}

/// Error for a name that is no setting.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is no strength; valid are auto, reduced, unsafe and off")]
pub struct UnknownStrength(String);

impl FromStr for CodeSetting {
    type Err = UnknownStrength;

    fn from_str(name: &str) -> Result<CodeSetting, UnknownStrength> {
        match name {
            "auto" => Ok(CodeSetting::Auto),
            "reduced" => Ok(CodeSetting::Reduced),
            "unsafe" => Ok(CodeSetting::Unsafe),
            "off" => Ok(CodeSetting::Off),
            other => Err(UnknownStrength(other.to_owned())),
        }
    }
}

impl CodeSetting {
    pub fn name(self) -> &'static str {
        match self {
            CodeSetting::Auto => "auto",
            CodeSetting::Reduced => "reduced",
            CodeSetting::Unsafe => "unsafe",
            CodeSetting::Off => "off",
        }
    }

    /// Returns the strength to run code with, given the strongest one of the machine (F-47).
    pub fn chosen(self, available: Option<SandboxStrength>) -> Option<SandboxStrength> {
        let available = available.filter(|strength| *strength >= SandboxStrength::Reduced);
        match self {
            CodeSetting::Off => None,
            CodeSetting::Unsafe => Some(SandboxStrength::Unsafe),
            CodeSetting::Reduced => available,
            CodeSetting::Auto => available.filter(|strength| *strength == SandboxStrength::Full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_without_a_full_sandbox_only_if_the_operator_says_so() {
        use SandboxStrength::{Full, Reduced, Unsafe};
        let cases = [
            (CodeSetting::Auto, [Some(Full), None, None]),
            (CodeSetting::Reduced, [Some(Full), Some(Reduced), None]),
            (CodeSetting::Unsafe, [Some(Unsafe), Some(Unsafe), Some(Unsafe)]),
            (CodeSetting::Off, [None, None, None]),
        ];
        for (setting, expected) in cases {
            let chosen = [Some(Full), Some(Reduced), None].map(|available| setting.chosen(available));
            assert_eq!(chosen, expected, "{setting:?}");
            assert_eq!(setting.name().parse(), Ok(setting));
        }
        assert!("full".parse::<CodeSetting>().unwrap_err().to_string().contains("auto, reduced, unsafe and off"));
    }
}
