//! Offer of a runner to other nodes: what it can run, and how busy it is.

use assay_node_runtimes::RuntimeKind;
use serde::{Deserialize, Serialize};

use crate::interpreters::{InterpreterVersion, WantedVersion, choose};

/// What a runner can run, and how busy it is. Nodes of different versions exchange it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerOffer {
    /// Reason why the runner runs no code at all.
    #[serde(default)]
    pub refusal: Option<String>,
    #[serde(default)]
    pub interpreters: Vec<OfferedInterpreter>,
    /// Calls from outside of functions that run at once.
    #[serde(default)]
    pub slots: u64,
    #[serde(default)]
    pub running: u64,
    #[serde(default)]
    pub waiting: u64,
}

/// Interpreter of another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedInterpreter {
    /// Name of the runtime, which this version may not know.
    pub runtime: String,
    pub version: String,
}

impl OfferedInterpreter {
    pub fn of(interpreter: &InterpreterVersion) -> OfferedInterpreter {
        OfferedInterpreter { runtime: interpreter.runtime.name().to_owned(), version: interpreter.version.clone() }
    }

    fn version(&self) -> Option<InterpreterVersion> {
        InterpreterVersion::read(RuntimeKind::named(&self.runtime)?, &self.version)
    }
}

impl RunnerOffer {
    /// Returns whether the runner can run code of a runtime and a version. The error says what is missing.
    pub fn can_run(&self, wanted: WantedVersion<'_>) -> Result<(), String> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let versions: Vec<_> = self.interpreters.iter().filter_map(OfferedInterpreter::version).collect();
        choose(&versions, wanted).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_says_what_its_runner_can_run() {
        let offer = serde_json::json!({"interpreters": [
            {"runtime": "python", "version": "3.11.7"},
            {"runtime": "a runtime of a later version", "version": "1"},
        ]});
        let offer: RunnerOffer = serde_json::from_value(offer).expect("an offer");
        let wants = |runtime, version, is_exact| offer.can_run(WantedVersion { runtime, version, is_exact });
        assert_eq!(wants(RuntimeKind::Python, "3.12", false), Ok(()));
        assert_eq!(wants(RuntimeKind::Python, "3.11", true), Ok(()));
        let why = wants(RuntimeKind::Python, "3.12", true).expect_err("another version");
        assert!(why.contains("3.11.7"), "{why}");
        let why = wants(RuntimeKind::Node, "20", false).expect_err("no node");
        assert!(why.contains("no node"), "{why}");
        let off = RunnerOffer { refusal: Some("functions.code is off".into()), ..offer.clone() };
        let wanted = WantedVersion { runtime: RuntimeKind::Python, version: "3.11", is_exact: false };
        assert_eq!(off.can_run(wanted), Err("functions.code is off".to_owned()));
    }
}
