//! Settings of rate limiting and quotas: the table `limits` of the configuration.

use serde::{Deserialize, Serialize};

use crate::quotas::{QuotaRule, check_quotas};
use crate::rate_limiting::{RateRule, check_rates, warnings};

/// Limits of requests and of storage. Read once by the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Rules of rate limiting. A request needs a token of every rule that matches it; without rules nothing is counted.
    pub rates: Vec<RateRule>,
    /// Rules of quotas. A write has to satisfy all rules of its organization.
    pub quotas: Vec<QuotaRule>,
}

impl LimitsConfig {
    /// Returns what is wrong with the rules, in a sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        check_quotas(&self.quotas)?;
        check_rates(&self.rates)
    }

    /// Returns warnings about rules for paths that do not exist. `patterns` has the paths that do, with ids in braces;
    /// `nearest` suggests one of them.
    pub fn warnings(&self, patterns: &[&str], nearest: impl Fn(&str) -> Option<&'static str>) -> Vec<String> {
        warnings(&self.rates, patterns, nearest)
    }
}
