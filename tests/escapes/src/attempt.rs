//! Attempts as data: what a function tries, and what the answer has to name.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Smallest number of attempts that the list must have.
pub const ATTEMPTS_MIN: usize = 60;
/// Directory of the attempts and of the functions that their code uses.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/attempts");
/// Files with attempts, by subject; those that take the longest come first.
const FILES: [&str; 9] =
    ["time", "quickjs", "files", "processes", "sockets", "memory", "channel", "tenants", "bundles"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Python,
    Javascript,
    Quickjs,
}

/// Way in which the harness performs an attempt, other than a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// The client reads none of the events until the time of a call is over.
    Unread,
    /// The function returns its credential, which the harness uses afterwards.
    KeyAfterCall,
    /// Hundreds of clients call at the same time. The answer that refuses one of them is judged.
    Crowd,
    /// The victim calls, the attacker calls many different functions, and the victim calls again.
    Displace,
}

/// Caller of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Caller {
    /// Owner of the attacking organization.
    Attacker,
    /// Another user of that organization.
    Colleague,
    /// Owner of another organization.
    Victim,
}

/// Project in which a step runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepProject {
    #[default]
    Own,
    Other,
    /// Project of the victim.
    Foreign,
}

/// One of several calls of the same code. The answer of the last one is judged.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub by: Caller,
    /// Argument `step` of the function.
    pub step: String,
    #[serde(default)]
    pub project: StepProject,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    pub name: String,
    pub language: Language,
    /// Code of an inline function, without the prelude.
    #[serde(default)]
    pub code: String,
    /// Python that writes a bundle, instead of inline code.
    pub upload: Option<String>,
    pub act: Option<Act>,
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Whether no other attempt of the organization runs at the same time.
    #[serde(default)]
    pub alone: bool,
    /// Whether the function gets its own code as an argument.
    #[serde(default)]
    pub knows_code: bool,
    /// Texts one of which the answer contains: the limit or the rule that refused.
    pub names: Vec<String>,
    /// What a reduced sandbox does not hold, in the words of the guide.
    pub gap: Option<String>,
}

#[derive(Debug, Deserialize)]
struct AttemptFile {
    attempt: Vec<Attempt>,
}

/// Attempts, and the code that precedes that of each.
#[derive(Debug)]
pub struct AttemptList {
    pub attempts: Vec<Attempt>,
    python: String,
    javascript: String,
}

impl AttemptList {
    /// Reads and checks the list.
    pub fn read() -> Result<AttemptList> {
        let read = |name: &str| std::fs::read_to_string(format!("{DIRECTORY}/{name}")).with_context(|| name.to_owned());
        let mut attempts: Vec<Attempt> = Vec::new();
        for name in FILES {
            let file: AttemptFile = toml::from_str(&read(&format!("{name}.toml"))?).with_context(|| name.to_owned())?;
            attempts.extend(file.attempt);
        }
        check(&attempts)?;
        Ok(AttemptList { attempts, python: read("prelude.py")?, javascript: read("prelude.js")? })
    }

    /// Returns the code of the inline function of an attempt.
    pub fn code(&self, attempt: &Attempt) -> String {
        let prelude = match attempt.language {
            Language::Python => &self.python,
            Language::Javascript => &self.javascript,
            Language::Quickjs => "",
        };
        format!("{prelude}\n{}", attempt.code)
    }
}

fn check(attempts: &[Attempt]) -> Result<()> {
    ensure!(attempts.len() >= ATTEMPTS_MIN, "there are {} attempts; {ATTEMPTS_MIN} are needed", attempts.len());
    for (place, attempt) in attempts.iter().enumerate() {
        let name = &attempt.name;
        ensure!(attempts[..place].iter().all(|other| other.name != *name), "two attempts are named `{name}`");
        ensure!(!attempt.names.is_empty(), "`{name}` says nothing about its answer");
        ensure!(attempt.code.is_empty() == attempt.upload.is_some(), "`{name}` needs either code or an upload");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_complete_and_each_attempt_has_its_own_name() {
        let attempts = AttemptList::read().expect("the list").attempts;
        assert!(attempts.iter().any(|attempt| attempt.gap.is_some()));
        let mut twice = attempts.clone();
        twice.push(attempts[0].clone());
        assert!(check(&twice).unwrap_err().to_string().contains("two attempts are named"));
        assert!(check(&attempts[..ATTEMPTS_MIN - 1]).unwrap_err().to_string().contains("60 are needed"));
        let silent = Attempt { names: Vec::new(), name: "silent".into(), ..attempts[0].clone() };
        let with = [attempts, vec![silent]].concat();
        assert!(check(&with).unwrap_err().to_string().contains("says nothing"));
    }
}
