//! Rules of rate limiting: matching of requests, choice of the bucket, and rate.

use std::collections::BTreeSet;
use std::fmt;

use assay_node_auth::Principal;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::bucket::Terms;
use super::key::BucketKey;

/// Upper bound of the number of rules, because each request is compared with every rule.
const RULES_MAX: usize = 64;
const ENDPOINT_BYTES_MAX: usize = 256;
const ORGANIZATIONS_MAX: usize = 1000;
const REQUESTS_MAX: u64 = 1_000_000_000;
const SECONDS_MAX: u64 = 86_400;
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const EVERYTHING: &str = "*";
/// Pairs of equivalent paths. A rule for one path also covers the other.
const ALIASES: [[&str; 2]; 3] =
    [["/otel/v1/traces", "/v1/traces"], ["/otel/v1/logs", "/v1/logs"], ["/otel/v1/metrics", "/v1/metrics"]];

/// Limit for each organization, project or credential separately, and for all nodes of the cluster together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateRule {
    /// Path such as `/logs3`.
    ///
    /// A `*` matches one part of a path, as in `/v1/project_logs/*/insert`. At the end it matches one or more parts, as
    /// in `/v1/*`. A single `*` matches every path.
    pub endpoint: String,
    /// Methods that the rule matches. An empty list means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    pub per: Per,
    /// Number of requests admitted in `seconds`.
    pub requests: u64,
    pub seconds: u64,
    /// Number of requests admitted at once after a pause. The default is the number for one second, and at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Names of the organizations to which the rule applies. An empty list means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub organizations: Vec<String>,
}

/// Subject whose requests a rule counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Per {
    #[serde(rename = "organization")]
    Organization,
    /// Project of the path or of the object in the path. Requests without a project are counted together per
    /// organization.
    #[serde(rename = "project")]
    Project,
    /// Project, separately for each organization of the callers.
    #[serde(rename = "organization+project")]
    OrganizationProject,
    #[serde(rename = "credential")]
    Credential,
}

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Per::Organization => "organization",
            Per::Project => "project",
            Per::OrganizationProject => "organization+project",
            Per::Credential => "credential",
        })
    }
}

/// Checks the rules. The error names the rule and the correction.
pub fn check_rates(rules: &[RateRule]) -> Result<(), String> {
    if rules.len() > RULES_MAX {
        return Err(format!("limits.rates has {} rules; the maximum is {RULES_MAX}", rules.len()));
    }
    let mut seen = BTreeSet::new();
    for (place, rule) in rules.iter().enumerate() {
        let wrong = |why: String| format!("limits.rates, rule {} (`{}`): {why}", place + 1, rule.endpoint);
        rule.check().map_err(wrong)?;
        if !seen.insert(rule.fingerprint()) {
            return Err(wrong("it repeats an earlier rule; remove one of them".into()));
        }
    }
    Ok(())
}

/// Returns warnings about rules for paths that do not exist.
///
/// `patterns` lists the existing paths, with ids in braces. `nearest` suggests one of them.
pub fn warnings(rules: &[RateRule], patterns: &[&str], nearest: impl Fn(&str) -> Option<&'static str>) -> Vec<String> {
    let is_unknown = |rule: &&RateRule| {
        Pattern::of(&rule.endpoint).is_ok_and(|pattern| !patterns.iter().any(|known| pattern.may_match(known)))
    };
    let warning = |rule: &RateRule| {
        let near = nearest(&rule.endpoint).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("limits.rates: the path `{}` does not exist{near}", rule.endpoint)
    };
    rules.iter().filter(is_unknown).map(warning).collect()
}

impl RateRule {
    fn check(&self) -> Result<(), String> {
        Pattern::of(&self.endpoint)?;
        if let Some(method) = self.methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
            return Err(format!("`{method}` in methods is not one of {}", METHODS.join(", ")));
        }
        for (name, value, max) in [
            ("requests", self.requests, REQUESTS_MAX),
            ("seconds", self.seconds, SECONDS_MAX),
            ("burst", self.burst.unwrap_or(1), REQUESTS_MAX),
        ] {
            if !(1..=max).contains(&value) {
                return Err(format!("{name} is {value}; it should be between 1 and {max}"));
            }
        }
        if self.organizations.len() > ORGANIZATIONS_MAX {
            return Err(format!("organizations has more than {ORGANIZATIONS_MAX} names"));
        }
        if self.organizations.iter().any(String::is_empty) {
            return Err("organizations has an empty name; leave the list out for all of them".into());
        }
        Ok(())
    }

    pub(super) fn terms(&self) -> Terms {
        let per_second = self.requests as f64 / self.seconds.max(1) as f64;
        Terms::new(per_second, self.burst.map_or_else(|| per_second.ceil(), |burst| burst as f64))
    }

    /// Returns a hash of the rule that is equal on every node.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut text = format!(
            "{}\n{}\n{} {} {:?}\n{}",
            self.endpoint,
            self.methods.join(" "),
            self.requests,
            self.seconds,
            self.burst,
            self.per
        );
        self.organizations.iter().for_each(|name| text.push_str(&format!("\n{} {name}", name.len())));
        let hash = blake3::hash(text.as_bytes());
        hash.as_bytes().iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
    }

    /// Returns a description of the rule for callers and operators.
    pub(super) fn description(&self) -> String {
        let methods = if self.methods.is_empty() { String::new() } else { format!("{} ", self.methods.join("|")) };
        let RateRule { endpoint, requests, seconds, per, .. } = self;
        format!("`{methods}{endpoint}`, {requests} requests in {seconds} s for each {per}")
    }
}

/// Rule prepared for comparison with requests.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub config: RateRule,
    pub terms: Terms,
    pub fingerprint: u64,
    pattern: Pattern,
}

impl CompiledRule {
    pub fn new(config: &RateRule) -> Result<CompiledRule, String> {
        Ok(CompiledRule {
            pattern: Pattern::of(&config.endpoint)?,
            terms: config.terms(),
            fingerprint: config.fingerprint(),
            config: config.clone(),
        })
    }

    pub fn is_about(&self, method: &str, path: &str, who: &Principal) -> bool {
        let has = |list: &[String], one: &str| list.is_empty() || list.iter().any(|item| item == one);
        has(&self.config.methods, method) && names_of(path).any(|path| self.pattern.matches(path)) && self.is_for(who)
    }

    /// Returns whether the rule applies to the caller's organization.
    pub fn is_for(&self, who: &Principal) -> bool {
        let organizations = &self.config.organizations;
        organizations.is_empty() || organizations.contains(&who.org_name)
    }

    /// Returns the key of the bucket for a request. `project` is called only if the rule needs it.
    pub fn key(&self, who: &Principal, project: impl FnOnce() -> Option<Uuid>) -> BucketKey {
        let org = who.org.0;
        let (first, second) = match self.config.per {
            Per::Organization => (org, Uuid::nil()),
            Per::Credential => (Uuid::nil(), who.credential.counted_as()),
            Per::Project => project().map_or((org, Uuid::nil()), |project| (Uuid::nil(), project)),
            Per::OrganizationProject => (org, project().unwrap_or_default()),
        };
        BucketKey { rule: self.fingerprint, first: first.as_u128(), second: second.as_u128() }
    }
}

/// Returns all names of a path.
fn names_of(path: &str) -> impl Iterator<Item = &str> {
    let other = ALIASES.iter().find_map(|[first, second]| match path {
        _ if path == *first => Some(*second),
        _ if path == *second => Some(*first),
        _ => None,
    });
    [path].into_iter().chain(other)
}

/// Pattern of the paths that a rule matches.
#[derive(Debug, PartialEq, Eq)]
struct Pattern {
    /// Parts of the path, with `None` for a wildcard.
    parts: Vec<Option<String>>,
    /// Whether one or more further parts are required.
    goes_on: bool,
}

impl Pattern {
    fn of(text: &str) -> Result<Pattern, String> {
        if text.len() > ENDPOINT_BYTES_MAX {
            return Err(format!("the endpoint is longer than {ENDPOINT_BYTES_MAX} bytes"));
        }
        if text == EVERYTHING {
            return Ok(Pattern { parts: Vec::new(), goes_on: true });
        }
        let example = "it should be like `/logs3`, `/v1/project_logs/*/insert`, `/v1/*` or `*`";
        let rest = text.strip_prefix('/').ok_or_else(|| format!("the endpoint does not begin with `/`; {example}"))?;
        let mut parts = Vec::new();
        for part in rest.split('/') {
            let is_word =
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
            if part != EVERYTHING && !is_word {
                return Err(format!("`{part}` is not a valid part of a path; {example}"));
            }
            parts.push(Some(part.to_owned()).filter(|part| part != EVERYTHING));
        }
        let goes_on = parts.last() == Some(&None);
        if goes_on {
            parts.pop();
        }
        Ok(Pattern { parts, goes_on })
    }

    /// Returns whether the pattern may match a known path, which has ids in braces.
    fn may_match(&self, known: &str) -> bool {
        let mut found = known.strip_prefix('/').unwrap_or(known).split('/').peekable();
        let mut last = "";
        for wanted in &self.parts {
            match found.next() {
                Some(part) if part.starts_with('{') => last = part,
                Some(part) if wanted.as_deref().is_none_or(|wanted| wanted == part) => last = part,
                // The last part may stand for several parts.
                None if last.ends_with("+}") => return true,
                _ => return false,
            }
        }
        found.peek().is_some() == self.goes_on || last.ends_with("+}")
    }

    fn matches(&self, path: &str) -> bool {
        let mut found = path.strip_prefix('/').unwrap_or(path).split('/');
        for wanted in &self.parts {
            match found.next() {
                Some(part) if wanted.as_deref().is_none_or(|wanted| wanted == part) => {}
                _ => return false,
            }
        }
        found.next().is_some() == self.goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(endpoint: &str) -> RateRule {
        RateRule {
            endpoint: endpoint.into(),
            methods: Vec::new(),
            per: Per::Organization,
            requests: 10,
            seconds: 1,
            burst: None,
            organizations: Vec::new(),
        }
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut RateRule), part: &str) {
        let mut changed = rule("/logs3");
        change(&mut changed);
        let why = check_rates(&[rule("*"), changed]).expect_err(part);
        assert!(why.contains("rule 2") && why.contains(part), "{why}");
    }

    #[test]
    fn a_path_that_is_served_at_two_places_counts_as_one() {
        let names = |path: &str| names_of(path).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names("/v1/traces"), ["/v1/traces", "/otel/v1/traces"]);
        assert_eq!(names("/otel/v1/logs"), ["/otel/v1/logs", "/v1/logs"]);
        assert_eq!(names("/logs3"), ["/logs3"]);
    }

    #[test]
    fn rules_that_say_nothing_sensible_are_refused_by_their_place() {
        refused(|rule| rule.endpoint = "logs3".into(), "does not begin with `/`");
        for wrong in ["/", "/a//b", "/a/", "/a*", "/a b", "/a%2Fb", "/é"] {
            refused(|rule| rule.endpoint = wrong.into(), "is not a valid part of a path");
        }
        refused(|rule| rule.methods = vec!["post".into()], "`post` in methods");
        refused(|rule| rule.requests = 0, "requests is 0; it should be between 1 and");
        refused(|rule| rule.seconds = 86_401, "seconds is 86401");
        refused(|rule| rule.burst = Some(0), "burst is 0");
        refused(|rule| rule.organizations = vec![String::new()], "empty name");
        refused(|rule| rule.endpoint = "*".into(), "repeats an earlier rule");
        assert!(check_rates(&vec![rule("*"); RULES_MAX + 1]).expect_err("too many").contains("65 rules"));
        assert_eq!(check_rates(&[]), Ok(()));
    }

    #[test]
    fn a_pattern_is_about_whole_paths() {
        let about = |pattern: &str, path: &str| Pattern::of(pattern).expect(pattern).matches(path);
        for (pattern, path) in [
            ("*", "/"),
            ("*", "/logs3"),
            ("/logs3", "/logs3"),
            ("/v1/*", "/v1/project"),
            ("/v1/*", "/v1/project/1"),
            ("/v1/project_logs/*/insert", "/v1/project_logs/1/insert"),
            ("/v1/*/*/fetch", "/v1/dataset/1/fetch"),
        ] {
            assert!(about(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/logs3", "/logs3/"),
            ("/logs3", "/logs"),
            ("/v1/*", "/v1"),
            ("/v1/*", "/v2/x"),
            ("/v1/project_logs/*/insert", "/v1/project_logs/1/fetch"),
            ("/v1/project_logs/*/insert", "/v1/project_logs/1/2/insert"),
            ("/btql", "/btql/async"),
        ] {
            assert!(!about(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_rule_has_a_rate_and_a_burst_and_is_told_from_others() {
        let slow = RateRule { requests: 6, seconds: 60, ..rule("*") };
        assert_eq!(slow.terms(), Terms { per_second: 0.1, burst: 1.0 });
        assert_eq!(rule("*").terms(), Terms { per_second: 10.0, burst: 10.0 });
        assert_eq!(RateRule { burst: Some(3), ..rule("*") }.terms(), Terms { per_second: 10.0, burst: 3.0 });
        let named = RateRule { organizations: vec!["a".into()], ..rule("*") };
        let all = [rule("*"), slow, rule("/logs3"), named, RateRule { methods: vec!["GET".into()], ..rule("*") }];
        let distinct: BTreeSet<u64> = all.iter().map(RateRule::fingerprint).collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(all[4].description(), "`GET *`, 10 requests in 1 s for each organization");
    }
}
