//! Counts of what rules found, for the metadata of a span.

use serde_json::{Map, Value};

use crate::policy::GuardrailAction;

/// What one rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMatches {
    pub rule: String,
    pub action: GuardrailAction,
    pub matches: u64,
}

/// What the rules found, in the order in which they first did. Rules that found nothing are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardrailReport {
    rules: Vec<RuleMatches>,
}

impl GuardrailReport {
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub fn rules(&self) -> &[RuleMatches] {
        &self.rules
    }

    /// Adds what another report counts, such as that of a further text.
    pub fn merge(&mut self, other: GuardrailReport) {
        for found in other.rules {
            self.add(&found.rule, found.action, found.matches);
        }
    }

    /// Returns the counts by rule, for the metadata of a span.
    pub fn to_metadata(&self) -> Value {
        let counts = self.rules.iter().map(|found| (found.rule.clone(), Value::from(found.matches)));
        Value::Object(counts.collect::<Map<_, _>>())
    }

    pub(crate) fn add(&mut self, rule: &str, action: GuardrailAction, matches: u64) {
        match self.rules.iter_mut().find(|found| found.rule == rule) {
            Some(found) => found.matches = found.matches.saturating_add(matches),
            None => self.rules.push(RuleMatches { rule: rule.to_owned(), action, matches }),
        }
    }
}
