//! Automations that this version stores but does not execute. New ones are refused; existing ones have the field
//! `inactive`.

use assay_storage_model::catalog::RecordKind;
use serde_json::Value;

use crate::draft::Body;
use crate::error::RecordsError;
use crate::kind::Checked;

/// Field of an answer that says whether the automation is carried out. It is not stored.
const STATUS: &str = "status";
const ACTIVE: &str = "active";
const INACTIVE: &str = "inactive";

/// The type of automation that is carried out.
const RETENTION: &str = "retention";

/// Whether bodies of this kind can ask for what is not carried out, which is answered 501.
pub(crate) fn refuses_some(kind: RecordKind) -> bool {
    [RecordKind::AUTOMATION, RecordKind::PROJECT_SCORE].contains(&kind)
}

/// Refuses an automation of a project that nothing would carry out.
pub(super) fn check_automation(checked: &Checked<'_>) -> Result<(), RecordsError> {
    match event_type(checked.body) {
        Some(event) if event != RETENTION && changes(checked, "config") => Err(RecordsError::NotServed(format!(
            "`config.event_type`: automations of the type `{event}` are not supported yet, so none is stored; only \
             `{RETENTION}` is supported"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a score that online scoring would have to give.
pub(super) fn check_score(checked: &Checked<'_>) -> Result<(), RecordsError> {
    match scores_online(checked.body) {
        Some(path) if changes(checked, "config") || changes(checked, "score_type") => Err(RecordsError::NotServed(
            format!("`{path}`: online scoring is not supported yet, so no rule for it is stored"),
        )),
        _ => Ok(()),
    }
}

pub(super) fn say_of_automation(object: &mut Body) {
    say(object, event_type(object).is_none_or(|event| event == RETENTION));
}

pub(super) fn say_of_score(object: &mut Body) {
    say(object, scores_online(object).is_none());
}

fn say(object: &mut Body, active: bool) {
    object.insert(STATUS.into(), if active { ACTIVE } else { INACTIVE }.into());
}

fn event_type(body: &Body) -> Option<&str> {
    body.get("config")?.get("event_type")?.as_str()
}

/// The path of the field that asks for online scoring.
fn scores_online(body: &Body) -> Option<&'static str> {
    let of_config = body.get("config").and_then(|config| config.get("online")).is_some_and(|online| !online.is_null());
    let of_type = body.get("score_type").and_then(Value::as_str) == Some("online");
    match (of_type, of_config) {
        (true, _) => Some("score_type"),
        (false, true) => Some("config.online"),
        (false, false) => None,
    }
}

/// A change of other fields, such as the name, leaves a stored automation as inactive as it is.
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
        assert_eq!(status(say_of_score, json!({"score_type": "slider", "config": {"online": {}}})), INACTIVE);
        assert_eq!(status(say_of_score, json!({"score_type": "slider", "config": {"online": null}})), ACTIVE);
    }
}
