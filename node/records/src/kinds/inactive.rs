//! Checks of automations. New ones that this version does not execute are refused; stored ones are shown as inactive.

use assay_storage_model::catalog::RecordKind;
use serde_json::Value;

use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::Checked;

/// Response field that tells whether the automation is executed. It is not stored.
const STATUS: &str = "status";
const ACTIVE: &str = "active";
const INACTIVE: &str = "inactive";

/// Only type of automation that is executed.
const RETENTION: &str = "retention";
/// Retention from which a rule needs no confirmation: an hour, which is the default interval of retention.
const UNCONFIRMED_DAYS_MIN: f64 = 1.0 / 24.0;

/// Returns whether requests of this kind can be refused with 501 as not implemented.
pub(crate) fn refuses_some(kind: RecordKind) -> bool {
    kind == RecordKind::AUTOMATION
}

/// Refuses a rule that deletes rows soon after they are written, unless it is confirmed (G-61).
pub(super) fn check_retention(checked: &Checked<'_>) -> Result<(), RecordsError> {
    let value = |name: &str| checked.body.get("config").and_then(|config| config.get(name));
    let is_short = value("retention_days").and_then(Value::as_f64).is_some_and(|days| days < UNCONFIRMED_DAYS_MIN);
    if is_short && value("confirm") != Some(&Value::Bool(true)) && changes(checked, "config") {
        let said = "`config.retention_days` is less than an hour, so rows are deleted soon after they are written. Confirm \
                    it with `config.confirm`: true, or set at least 0.042";
        return Err(RecordsError::BadRequest(said.into()));
    }
    Ok(())
}

/// Refuses an automation of a project that this version does not execute.
pub(super) fn check_automation(checked: &Checked<'_>) -> Result<(), RecordsError> {
    match event_type(checked.body) {
        Some(event) if event != RETENTION && changes(checked, "config") => Err(RecordsError::NotServed(format!(
            "`config.event_type`: automations of the type `{event}` are not supported yet, so none is stored; only \
             `{RETENTION}` is supported"
        ))),
        _ => check_retention(checked),
    }
}

pub(super) fn say_of_automation(object: &mut Body) {
    say(object, event_type(object).is_none_or(|event| event == RETENTION));
}

/// Adds the field that tells whether a record is executed.
pub(super) fn say(object: &mut Body, active: bool) {
    object.insert(STATUS.into(), if active { ACTIVE } else { INACTIVE }.into());
}

fn event_type(body: &Body) -> Option<&str> {
    body.get("config")?.get("event_type")?.as_str()
}

/// Returns whether the change affects a field. A stored automation can be changed in other fields, such as its name.
fn changes(checked: &Checked<'_>, field: &str) -> bool {
    checked.before.is_none_or(|before| before.get(field) != checked.body.get(field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn what_nothing_carries_out_says_inactive() {
        let status = |say: fn(&mut Body), value: Value| {
            let mut object = body(value);
            say(&mut object);
            object[STATUS].clone()
        };
        assert_eq!(status(say_of_automation, json!({"config": {"event_type": "logs"}})), INACTIVE);
        assert_eq!(status(say_of_automation, json!({"config": {"event_type": "retention"}})), ACTIVE);
    }
}
