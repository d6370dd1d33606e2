//! Requests about a rule: scoring of older rows, and tests of a configuration.

use serde_json::Value;
use uuid::Uuid;

use crate::fields::{Fields, RuleError};
use crate::rule::{OnlineConfig, filter};
use crate::timestamps::parse_timestamp;

/// Rows that a backfill scores, unless the request sets another number.
pub const BACKFILL_ROWS_DEFAULT: u64 = 50;
/// Upper bound of the rows that one backfill scores.
pub const BACKFILL_ROWS_MAX: u64 = 10_000;
/// Upper bound of the rows that a test scores.
pub const RULE_TEST_ROWS_MAX: u64 = 10;
const VALID_TIME: &str = "a date or a time such as `2025-05-12T10:00:00Z`";

/// Body of a backfill: older rows that a rule scores, newest first.
#[derive(Clone, Debug, PartialEq)]
pub struct BackfillRequest {
    /// Filter beside that of the rule.
    pub filter: Option<String>,
    /// Earliest creation of a row, in milliseconds since the epoch.
    pub from_ms: Option<u64>,
    /// Creation before which rows are scored, in milliseconds since the epoch.
    pub to_ms: Option<u64>,
    pub limit: u64,
    /// Whether rows are scored again that the rule has scored with the same input.
    pub is_forced: bool,
}

impl BackfillRequest {
    pub fn read(body: &Value) -> Result<BackfillRequest, RuleError> {
        let fields = Fields::new("", Some(body))?;
        let time = |name: &str| fields.read(name, VALID_TIME, |value| parse_timestamp(value.as_str()?));
        let (from_ms, to_ms) = (time("from")?, time("to")?);
        if let (Some(from), Some(to)) = (from_ms, to_ms)
            && from >= to
        {
            return Err(fields.error("to", "a time after `from`"));
        }
        Ok(BackfillRequest {
            filter: filter(&fields, "filter")?,
            from_ms,
            to_ms,
            limit: fields.whole("limit", 1, BACKFILL_ROWS_MAX)?.unwrap_or(BACKFILL_ROWS_DEFAULT),
            is_forced: fields.flag("force")?,
        })
    }
}

/// Body of a test: a configuration that is applied to recent rows without any write.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleTestRequest {
    /// Project whose rows are scored, where the path of the request names none.
    pub project_id: Option<Uuid>,
    pub config: OnlineConfig,
    pub limit: u64,
}

impl RuleTestRequest {
    pub fn read(body: &Value) -> Result<RuleTestRequest, RuleError> {
        let fields = Fields::new("", Some(body))?;
        let read_id = |value: &Value| Uuid::parse_str(value.as_str()?).ok();
        Ok(RuleTestRequest {
            project_id: fields.read("project_id", "a UUID", read_id)?,
            config: OnlineConfig::of_config("config", fields.value("config"))?,
            limit: fields.whole("limit", 1, RULE_TEST_ROWS_MAX)?.unwrap_or(RULE_TEST_ROWS_MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_backfill_has_defaults_and_bounds() {
        let read = |body| BackfillRequest::read(&body).map_err(|error| error.to_string());
        let empty = read(json!({})).expect("valid");
        assert_eq!((empty.limit, empty.is_forced, empty.filter, empty.from_ms), (50, false, None, None));
        let full = json!({"filter": "scores.x IS NULL", "from": "1970-01-02", "to": "1970-01-03T00:00:00Z", "limit": 7,
            "force": true});
        let expected = BackfillRequest {
            filter: Some("scores.x IS NULL".to_owned()),
            from_ms: Some(86_400_000),
            to_ms: Some(172_800_000),
            limit: 7,
            is_forced: true,
        };
        assert_eq!(read(full), Ok(expected));
        let cases = [
            (json!([]), "`body` is an array of 0 elements; it must be an object"),
            (json!({"limit": 0}), "`limit` is 0; it must be a whole number from 1 to 10000"),
            (json!({"from": "yesterday"}), "`from` is \"yesterday\"; it must be a date or a time such as"),
            (
                json!({"from": "2025-01-02", "to": "2025-01-02"}),
                "`to` is \"2025-01-02\"; it must be a time after `from`",
            ),
            (json!({"force": 1}), "`force` is 1; it must be true or false"),
        ];
        for (body, begin) in cases {
            let error = read(body).expect_err("not valid");
            assert!(error.starts_with(begin), "{error}");
        }
    }

    #[test]
    fn a_test_takes_a_configuration_and_at_most_ten_rows() {
        let body = |limit: Value| json!({"config": {"online": {"sampling_rate": 1, "scorers": []}}, "limit": limit});
        assert_eq!(RuleTestRequest::read(&body(json!(null))).expect("valid").limit, 10);
        let error = RuleTestRequest::read(&body(json!(11))).expect_err("too many").to_string();
        assert_eq!(error, "`limit` is 11; it must be a whole number from 1 to 10");
        let error = RuleTestRequest::read(&json!({"config": {}})).expect_err("no rule").to_string();
        assert_eq!(error, "`config.online` is missing; it must be an object");
    }
}
