//! Records of rules: their checks, and two hidden members that tell who runs a rule and since when it is active.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::fields::{Fields, RuleError};
use crate::rule::{OnlineConfig, OnlineRuleStatus, RuleFilter, SCORE_TYPE};

/// Hidden member with the user who wrote the configuration. Functions run with the rights of this user.
pub(crate) const RUN_AS: &str = "run_as";
/// Hidden member with the last write to the project's log before the rule was created or activated.
pub(crate) const ACTIVE_SINCE: &str = "active_since_xact";
/// Members that make up the configuration.
const CONFIGURATION: [&str; 2] = ["score_type", "config"];

/// Returns whether a record of a score is a rule.
pub fn is_online_rule(record: &Map<String, Value>) -> bool {
    record.get("score_type").and_then(Value::as_str) == Some(SCORE_TYPE)
}

/// Returns whether a record is a rule with the status `active`.
pub fn is_active_rule(record: &Map<String, Value>) -> bool {
    let config = is_online_rule(record).then(|| OnlineConfig::of_config("config", record.get("config")));
    config.and_then(Result::ok).is_some_and(|config| config.status == OnlineRuleStatus::Active)
}

/// Returns whether a change of a record affects the configuration of a rule.
pub fn changes_rule(before: Option<&Map<String, Value>>, record: &Map<String, Value>) -> bool {
    let is_same = |before: &Map<String, Value>| CONFIGURATION.iter().all(|name| before.get(*name) == record.get(*name));
    is_online_rule(record) && !before.is_some_and(is_same)
}

/// Checks the configuration of a record. A configuration of rules is valid only in a rule.
pub fn check_rule(record: &Map<String, Value>) -> Result<(), RuleError> {
    let fields = Fields::of_record(record);
    if !is_online_rule(record) {
        let config = record.get("config").and_then(Value::as_object);
        let online = config.and_then(|config| config.get("online")).filter(|online| !online.is_null());
        return match online {
            None => Ok(()),
            Some(_) => Err(fields.error("score_type", "`online`, as `config.online` is set")),
        };
    }
    let config = OnlineConfig::of_config("config", record.get("config"))?;
    if let Some(filter) = &config.filter {
        RuleFilter::parse(filter).map_err(|why| {
            let valid = format!("a filter of the query language ({why})");
            RuleError::new("config.online.btql_filter", Some(&Value::from(filter.as_str())), valid)
        })?;
    }
    Ok(())
}

/// Sets the hidden members of a record that `user` writes. `before` is the record that it replaces.
///
/// `last_xact` is the last write to the project's log.
pub fn sign_rule(user: Uuid, before: Option<&Map<String, Value>>, last_xact: u64, record: &mut Map<String, Value>) {
    if !is_online_rule(record) {
        record.retain(|name, _| name != RUN_AS && name != ACTIVE_SINCE);
        return;
    }
    let known = |name: &str| before.and_then(|before| before.get(name)).cloned();
    let run_as = known(RUN_AS).filter(|_| !changes_rule(before, record));
    let was_active = before.is_some_and(is_active_rule);
    record.insert(RUN_AS.to_owned(), run_as.unwrap_or_else(|| user.to_string().into()));
    let since = known(ACTIVE_SINCE).filter(|_| was_active || !is_active_rule(record));
    record.insert(ACTIVE_SINCE.to_owned(), since.unwrap_or_else(|| last_xact.into()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIRST: Uuid = Uuid::from_u128(1);
    const SECOND: Uuid = Uuid::from_u128(2);

    fn record(status: &str, rate: f64) -> Map<String, Value> {
        let online = json!({"sampling_rate": rate, "scorers": [], "status": status});
        let record = json!({"name": "n", "score_type": "online", "config": {"online": online}});
        record.as_object().cloned().expect("an object")
    }

    fn signed(
        user: Uuid,
        before: Option<&Map<String, Value>>,
        at: u64,
        mut record: Map<String, Value>,
    ) -> Map<String, Value> {
        sign_rule(user, before, at, &mut record);
        record
    }

    fn hidden(record: &Map<String, Value>) -> (Value, Value) {
        (record[RUN_AS].clone(), record[ACTIVE_SINCE].clone())
    }

    #[test]
    fn a_rule_runs_as_the_author_of_its_configuration() {
        let first = signed(FIRST, None, 10, record("active", 1.0));
        assert_eq!(hidden(&first), (json!(FIRST), json!(10)));
        let mut renamed = record("active", 1.0);
        renamed.insert("name".to_owned(), "m".into());
        let renamed = signed(SECOND, Some(&first), 20, renamed);
        assert_eq!(hidden(&renamed), (json!(FIRST), json!(10)));
        let changed = signed(SECOND, Some(&renamed), 30, record("active", 0.5));
        assert_eq!(hidden(&changed), (json!(SECOND), json!(10)));
    }

    #[test]
    fn an_activation_begins_a_rule_again() {
        let active = signed(FIRST, None, 10, record("active", 1.0));
        let paused = signed(FIRST, Some(&active), 20, record("paused", 1.0));
        assert!(is_active_rule(&active) && !is_active_rule(&paused));
        assert_eq!(hidden(&paused).1, json!(10));
        let again = signed(FIRST, Some(&paused), 30, record("active", 1.0));
        assert_eq!(hidden(&again).1, json!(30));
        let slider = json!({"score_type": "slider", "run_as": "x", "active_since_xact": 1});
        let slider = signed(FIRST, Some(&again), 40, slider.as_object().cloned().expect("an object"));
        assert_eq!(Value::Object(slider), json!({"score_type": "slider"}));
    }

    #[test]
    fn records_without_a_valid_configuration_are_refused() {
        let check = |value: Value| check_rule(value.as_object().expect("an object")).map_err(|why| why.to_string());
        assert_eq!(check(json!({"score_type": "slider", "config": {"online": null}})), Ok(()));
        let error = check(json!({"score_type": "slider", "config": {"online": {}}})).expect_err("no rule");
        assert_eq!(error, "`score_type` is \"slider\"; it must be `online`, as `config.online` is set");
        let error = check(json!({"score_type": "online", "config": null})).expect_err("no rule");
        assert_eq!(error, "`config` is null; it must be an object");
        let online = |filter: &str| json!({"sampling_rate": 1, "scorers": [], "btql_filter": filter});
        assert_eq!(
            check(json!({"score_type": "online", "config": {"online": online("metadata.env = 'prod'")}})),
            Ok(())
        );
        for filter in
            ["metadata.env = ", "nothing(1)", "estimated_cost() > 1", "sum(metrics.tokens) > 1", "true) or (true"]
        {
            let error = check(json!({"score_type": "online", "config": {"online": online(filter)}}));
            let error = error.expect_err(filter);
            assert!(error.starts_with("`config.online.btql_filter` is "), "{error}");
        }
    }
}
