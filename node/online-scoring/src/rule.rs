//! Rules: records of kind `project_score` with a checked `config.online`.

mod filter;
mod rule_record;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::fields::{Fields, RuleError};
use crate::function_key::OnlineFunction;
use crate::run_caps::CapLimits;
use crate::sampling::SamplingRate;
use crate::scope::RuleScope;
use rule_record::{ACTIVE_SINCE, RUN_AS};

pub use filter::{FilterError, RuleFilter};
pub use rule_record::{changes_rule, check_rule, is_active_rule, is_online_rule, sign_rule};

/// Upper bound of the functions of one rule, each of which runs for every sampled row.
pub const RULE_FUNCTIONS_MAX: usize = 100;
/// Bytes of the filter of a rule.
pub const FILTER_BYTES_MAX: usize = 64 << 10;
/// Bytes of the name of a rule.
const NAME_BYTES_MAX: usize = 4_096;
/// Value of `score_type` of rules.
pub(crate) const SCORE_TYPE: &str = "online";
/// Upper bound of the runs per minute that a rule can allow itself.
pub const RUNS_PER_MINUTE_MAX: u64 = 1_000_000;
/// Upper bound of the daily costs in US dollars that a rule can allow itself.
pub const COST_PER_DAY_MAX: f64 = 1_000_000.0;
const NANOS_PER_USD: f64 = 1e9;

/// Status of a rule. An absent status is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlineRuleStatus {
    Active,
    Paused,
}

/// Checked `config.online`.
#[derive(Clone, Debug, PartialEq)]
pub struct OnlineConfig {
    pub status: OnlineRuleStatus,
    pub sampling_rate: SamplingRate,
    /// Functions to run, each once. Empty in drafts.
    pub functions: Vec<OnlineFunction>,
    /// Filter in the query language, which the executor evaluates.
    pub filter: Option<String>,
    pub scope: RuleScope,
    /// Whether no spans of scorers are written.
    pub skips_logging: bool,
    pub caps: CapLimits,
}

/// Rule of online scoring.
#[derive(Clone, Debug, PartialEq)]
pub struct OnlineRule {
    pub id: Uuid,
    pub project_id: Uuid,
    /// User with whose rights the functions run: the author of the configuration.
    pub run_as: Option<Uuid>,
    /// Last write to the log before the creation of the rule, or before its last activation.
    pub active_since_xact: u64,
    pub name: String,
    pub config: OnlineConfig,
}

impl OnlineRule {
    /// Reads a rule from its record.
    pub fn read(record: &Map<String, Value>) -> Result<OnlineRule, RuleError> {
        let fields = Fields::of_record(record);
        let score_type = fields.word("score_type", &[(SCORE_TYPE, ())])?;
        fields.required("score_type", score_type, "`online`")?;
        let id = |name: &str| fields.read(name, "a UUID", |value| Uuid::parse_str(value.as_str()?).ok());
        let name = fields.text("name", NAME_BYTES_MAX)?;
        Ok(OnlineRule {
            id: fields.required("id", id("id")?, "a UUID")?,
            project_id: fields.required("project_id", id("project_id")?, "a UUID")?,
            run_as: id(RUN_AS)?,
            active_since_xact: record.get(ACTIVE_SINCE).and_then(Value::as_u64).unwrap_or(u64::MAX),
            name: fields.required("name", name, "a text")?.to_owned(),
            config: OnlineConfig::of_config("config", fields.value("config"))?,
        })
    }

    pub fn is_active(&self) -> bool {
        self.config.status == OnlineRuleStatus::Active
    }
}

impl OnlineConfig {
    /// Reads the member `online` of `config`.
    pub fn of_config(path: &str, config: Option<&Value>) -> Result<OnlineConfig, RuleError> {
        let config = Fields::new(path, config)?;
        OnlineConfig::read(&Fields::new(&config.path("online"), config.value("online"))?)
    }

    fn read(online: &Fields<'_>) -> Result<OnlineConfig, RuleError> {
        let statuses = [("active", OnlineRuleStatus::Active), ("paused", OnlineRuleStatus::Paused)];
        let rate = online.number("sampling_rate", 0.0, 1.0)?.and_then(SamplingRate::new);
        Ok(OnlineConfig {
            status: online.word("status", &statuses)?.unwrap_or(OnlineRuleStatus::Active),
            sampling_rate: online.required("sampling_rate", rate, "a number from 0 to 1")?,
            functions: functions(online)?,
            filter: filter(online, "btql_filter")?,
            scope: RuleScope::read(online)?,
            skips_logging: online.flag("skip_logging")?,
            caps: caps(online)?,
        })
    }
}

/// Returns the text of a filter. A blank one is no filter.
pub(crate) fn filter(fields: &Fields<'_>, name: &str) -> Result<Option<String>, RuleError> {
    let valid = format!("a filter of at most {FILTER_BYTES_MAX} bytes");
    let text = fields.read(name, &valid, |value| value.as_str().filter(|text| text.len() <= FILTER_BYTES_MAX))?;
    Ok(text.filter(|text| !text.trim().is_empty()).map(str::to_owned))
}

fn functions(online: &Fields<'_>) -> Result<Vec<OnlineFunction>, RuleError> {
    let listed = online.list("scorers", RULE_FUNCTIONS_MAX)?;
    let listed = online.required("scorers", listed, "an array of functions")?;
    let mut functions = Vec::with_capacity(listed.len());
    for (index, value) in listed.iter().enumerate() {
        let function = OnlineFunction::read(&format!("{}.{index}", online.path("scorers")), value)?;
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    Ok(functions)
}

fn caps(online: &Fields<'_>) -> Result<CapLimits, RuleError> {
    let cost = online.number("max_cost_per_day", 0.0, COST_PER_DAY_MAX)?;
    Ok(CapLimits {
        runs_per_minute: online.whole("max_runs_per_minute", 1, RUNS_PER_MINUTE_MAX)?,
        nano_usd_per_day: cost.map(|usd| (usd * NANOS_PER_USD).round() as u64),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scope::{GroupPlacement, SpanFilter};

    const ID: &str = "00000000-0000-0000-0000-0000000000a1";

    fn read(online: Value) -> Result<OnlineRule, RuleError> {
        let record = json!({
            "id": ID, "project_id": ID, "user_id": null, "name": "Helpful (online)", "score_type": "online",
            "config": {"online": online},
        });
        OnlineRule::read(record.as_object().expect("an object"))
    }

    #[test]
    fn the_rule_of_the_contract_is_read() {
        let rule = read(json!({
            "sampling_rate": 0.1,
            "scorers": [{"type": "function", "id": "7b6c"},
                {"type": "global", "name": "Factuality", "function_type": "scorer"}, {"type": "function", "id": "7b6c"}],
            "btql_filter": "metadata.env = 'prod'", "scope": {"type": "trace", "idle_seconds": 2.5},
            "max_runs_per_minute": 10.0, "max_cost_per_day": 1.25, "skip_logging": true, "of_a_later_version": 1,
        }))
        .expect("a valid rule");
        assert!(rule.is_active() && rule.config.skips_logging);
        let keys: Vec<String> = rule.config.functions.iter().map(OnlineFunction::key).collect();
        assert_eq!(keys, ["function_id:7b6c", "global:scorer:Factuality"]);
        assert_eq!(rule.config.filter.as_deref(), Some("metadata.env = 'prod'"));
        assert_eq!(rule.config.scope, RuleScope::Trace { idle_ms: 2500 });
        let caps = CapLimits { runs_per_minute: Some(10), nano_usd_per_day: Some(1_250_000_000) };
        assert_eq!(rule.config.caps, caps);
    }

    #[test]
    fn absent_members_have_the_defaults_of_the_api() {
        let rule = read(json!({"sampling_rate": 1, "scorers": [], "btql_filter": " ", "status": null})).expect("valid");
        assert!(rule.is_active() && !rule.config.skips_logging);
        assert_eq!((rule.run_as, rule.config.filter), (None, None));
        assert_eq!(rule.config.scope, RuleScope::Span(SpanFilter::default()));
        assert_eq!(rule.config.caps, CapLimits::default());
        let scope = json!({"type": "group", "group_by": "metadata.session_id", "placement": "each"});
        let rule = read(json!({"sampling_rate": 1, "scorers": [], "scope": scope, "status": "paused"})).expect("valid");
        let RuleScope::Group(group) = &rule.config.scope else { panic!("{rule:?}") };
        assert!(!rule.is_active() && group.placement == GroupPlacement::Each);
        assert_eq!((group.idle_ms, group.interval_ms, group.traces_max), (30_000, 0, 64));
    }

    #[test]
    fn values_that_are_not_valid_are_refused_with_path_and_valid_values() {
        let cases = [
            ("sampling_rate", json!(null), "`config.online.sampling_rate` is missing; it must be a number from 0 to 1"),
            ("sampling_rate", json!(1.5), "`config.online.sampling_rate` is 1.5; it must be a number from 0 to 1"),
            ("status", json!("on"), "`config.online.status` is \"on\"; it must be `active` or `paused`"),
            ("scorers", json!(3), "`config.online.scorers` is 3; it must be an array of at most 100 elements"),
            ("scorers", json!([{}]), "`config.online.scorers.0.type` is missing; it must be `function` or `global`"),
            ("btql_filter", json!([]), "`config.online.btql_filter` is an array of 0 elements; it must be a filter of"),
            ("skip_logging", json!("no"), "`config.online.skip_logging` is \"no\"; it must be true or false"),
            ("apply_to_span_names", json!([1]), "`config.online.apply_to_span_names.0` is 1; it must be a span name"),
            ("scope", json!({"type": "row"}), "`config.online.scope.type` is \"row\"; it must be `span` or `trace` or"),
            ("scope", json!({"type": "group"}), "`config.online.scope.group_by` is missing; it must be a path such as"),
            (
                "scope",
                json!({"type": "group", "group_by": "metadata.s", "placement": "last"}),
                "`config.online.scope.placement` is \"last\"; it must be `first` or `each`",
            ),
            (
                "scope",
                json!({"type": "trace", "idle_seconds": -1}),
                "`config.online.scope.idle_seconds` is -1; it must",
            ),
            ("max_runs_per_minute", json!(0), "`config.online.max_runs_per_minute` is 0; it must be a whole number"),
            ("max_cost_per_day", json!(-1), "`config.online.max_cost_per_day` is -1; it must be a number from 0 to"),
        ];
        for (name, value, begin) in cases {
            let mut online = json!({"sampling_rate": 1, "scorers": []});
            online[name] = value;
            let error = read(online).expect_err("not valid").to_string();
            assert!(error.starts_with(begin), "{error}");
        }
        let record = json!({"id": ID, "project_id": ID, "name": "n", "score_type": "slider"});
        let error = OnlineRule::read(record.as_object().expect("an object")).expect_err("no rule").to_string();
        assert_eq!(error, "`score_type` is \"slider\"; it must be `online`");
    }
}
