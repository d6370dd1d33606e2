//! Settings of rate limiting and quotas: the table `limits` of the configuration.

use serde::{Deserialize, Serialize};

use crate::quotas::{QuotaRule, check_quotas};
use crate::rate_limiting::{RateRule, check_rates, warnings};

/// Limits of requests and of storage, which the program reads once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Rate limits. A request has to be within all limits that apply to it. Without rules there are none.
    pub rates: Vec<RateRule>,
    /// Quotas of stored rows and bytes. A write has to be within all quotas of its organization.
    pub quotas: Vec<QuotaRule>,
}

impl LimitsConfig {
    /// Checks the rules. The error names the setting and the correction.
    pub fn check(&self) -> Result<(), String> {
        check_quotas(&self.quotas)?;
        check_rates(&self.rates)
    }

    /// Returns warnings about rules for paths that do not exist.
    ///
    /// `patterns` lists the existing paths, with ids in braces. `nearest` suggests one of them.
    pub fn warnings(&self, patterns: &[&str], nearest: impl Fn(&str) -> Option<&'static str>) -> Vec<String> {
        warnings(&self.rates, patterns, nearest)
    }
}
