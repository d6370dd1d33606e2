//! The stored form of guardrails.

use serde_json::{Map, Value};

use crate::detectors::Detector;
use crate::error::GuardrailError;
use crate::pattern::RulePattern;
use crate::policy::{GuardrailAction, GuardrailPolicy, GuardrailRule, RuleSubject, TokenAction};

pub const RULES_MAX: usize = 50;
/// Globs of allowed models.
pub const MODELS_MAX: usize = 200;
/// Bytes of a glob of a model.
pub const MODEL_BYTES_MAX: usize = 255;
/// Bytes of the name of a rule.
pub const NAME_BYTES_MAX: usize = 100;
/// Bytes of a pattern as it is written.
pub const PATTERN_TEXT_BYTES_MAX: usize = 1 << 10;
pub const REPLACEMENT_BYTES_MAX: usize = 100;
/// Stands for what a pattern finds, unless its rule says otherwise.
const PATTERN_PLACEHOLDER: &str = "[REDACTED]";

const POLICY_MEMBERS: &[&str] = &["allowed_models", "max_output_tokens", "rules"];
const TOKEN_MEMBERS: &[&str] = &["limit", "action"];
const RULE_MEMBERS: &[&str] = &["name", "detector", "pattern", "case_insensitive", "apply_to", "action", "replacement"];

type Parsed<T> = Result<T, GuardrailError>;

impl GuardrailPolicy {
    /// Reads the stored form. Null stands for no guardrails.
    pub fn parse(stored: &Value) -> Result<GuardrailPolicy, GuardrailError> {
        let Some(members) = JsonMembers::optional(stored, "", POLICY_MEMBERS)? else {
            return Ok(GuardrailPolicy::default());
        };
        let models = members.list("allowed_models", MODELS_MAX)?;
        let models = models.map(|globs| globs.iter().enumerate().map(read_model).collect::<Parsed<Vec<_>>>());
        let mut rules: Vec<GuardrailRule> = Vec::new();
        for (index, rule) in members.list("rules", RULES_MAX)?.unwrap_or_default().iter().enumerate() {
            let path = format!("rules[{index}]");
            let rule = read_rule(rule, &path)?;
            if rules.iter().any(|known| known.name == rule.name) {
                return Err(GuardrailError::new(format!("{path}.name"), "another rule has this name"));
            }
            rules.push(rule);
        }
        Ok(GuardrailPolicy { models: models.transpose()?, output_tokens: read_tokens(&members)?, rules })
    }
}

fn read_model((index, glob): (usize, &Value)) -> Parsed<String> {
    let glob = glob.as_str().filter(|glob| (1..=MODEL_BYTES_MAX).contains(&glob.len()));
    glob.map(str::to_owned).ok_or_else(|| {
        let problem = format!("must be a text of 1 to {MODEL_BYTES_MAX} bytes, such as `gpt-4o*`");
        GuardrailError::new(format!("allowed_models[{index}]"), problem)
    })
}

fn read_tokens(members: &JsonMembers<'_>) -> Parsed<Option<(u64, TokenAction)>> {
    let path = "max_output_tokens";
    let Some(stored) = members.get(path) else { return Ok(None) };
    let Some(members) = JsonMembers::optional(stored, path, TOKEN_MEMBERS)? else { return Ok(None) };
    let limit = members.get("limit").and_then(Value::as_u64).filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| members.wrong("limit", "must be a whole number above 0"))?;
    let action = match members.text("action")? {
        None | Some("cap") => TokenAction::Cap,
        Some("refuse") => TokenAction::Refuse,
        Some(_) => return Err(members.wrong("action", "must be `cap` or `refuse`")),
    };
    Ok(Some((limit, action)))
}

fn read_rule(stored: &Value, path: &str) -> Parsed<GuardrailRule> {
    let members = JsonMembers::optional(stored, path, RULE_MEMBERS)?;
    let members = members.ok_or_else(|| GuardrailError::new(path, "must be an object"))?;
    let name = members.text("name")?.filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len()));
    let name = name.ok_or_else(|| members.wrong("name", &format!("must be a text of 1 to {NAME_BYTES_MAX} bytes")))?;
    let (subject, placeholder) = read_subject(&members)?;
    let action = match members.text("action")? {
        Some("block") => GuardrailAction::Block,
        Some("mask") => GuardrailAction::Mask,
        Some("report") => GuardrailAction::Report,
        _ => return Err(members.wrong("action", "must be `block`, `mask` or `report`")),
    };
    let replacement = members.text("replacement")?.unwrap_or(placeholder);
    if replacement.len() > REPLACEMENT_BYTES_MAX {
        return Err(members.wrong("replacement", &format!("has more than {REPLACEMENT_BYTES_MAX} bytes")));
    }
    let finds_itself = match &subject {
        RuleSubject::Detector(detector) => detector.find(replacement, 0),
        RuleSubject::Pattern(pattern) => pattern.find(replacement, 0),
    };
    if finds_itself.is_some() {
        return Err(members.wrong("replacement", "is itself found by the rule: use another text"));
    }
    let (for_request, for_log) = read_stages(&members)?;
    let (name, replacement) = (name.to_owned(), replacement.to_owned());
    Ok(GuardrailRule { name, subject, action, for_request, for_log, replacement })
}

/// Returns what a rule looks for, and what stands for it by default.
fn read_subject(members: &JsonMembers<'_>) -> Parsed<(RuleSubject, &'static str)> {
    let case_insensitive = match members.get("case_insensitive") {
        None => None,
        Some(Value::Bool(set)) => Some(*set),
        Some(_) => return Err(members.wrong("case_insensitive", "must be true or false")),
    };
    match (members.text("detector")?, members.text("pattern")?) {
        (Some(name), None) => {
            let detector = Detector::named(name)
                .ok_or_else(|| members.wrong("detector", &format!("must be one of {}", Detector::NAMES.join(", "))))?;
            if case_insensitive.is_some() {
                return Err(members.wrong("case_insensitive", "is for patterns only"));
            }
            Ok((RuleSubject::Detector(detector), detector.placeholder()))
        }
        (None, Some(text)) => {
            if text.is_empty() || text.len() > PATTERN_TEXT_BYTES_MAX {
                let problem = format!("must have 1 to {PATTERN_TEXT_BYTES_MAX} bytes");
                return Err(members.wrong("pattern", &problem));
            }
            let pattern = RulePattern::new(text, case_insensitive.unwrap_or(false));
            let pattern = pattern.map_err(|problem| members.wrong("pattern", &problem))?;
            Ok((RuleSubject::Pattern(pattern), PATTERN_PLACEHOLDER))
        }
        _ => Err(GuardrailError::new(members.path, "needs exactly one of `detector` and `pattern`")),
    }
}

/// Returns whether a rule is for requests, and whether it is for logs.
fn read_stages(members: &JsonMembers<'_>) -> Parsed<(bool, bool)> {
    let wrong = || members.wrong("apply_to", "must be a list of `request`, `log` or both");
    let Some(stages) = members.get("apply_to") else { return Ok((true, true)) };
    let stages = stages.as_array().filter(|stages| !stages.is_empty()).ok_or_else(wrong)?;
    if !stages.iter().all(|stage| matches!(stage.as_str(), Some("request" | "log"))) {
        return Err(wrong());
    }
    Ok((stages.iter().any(|stage| stage == "request"), stages.iter().any(|stage| stage == "log")))
}

/// Members of an object at a path. One that is null counts as absent.
struct JsonMembers<'v> {
    path: &'v str,
    members: &'v Map<String, Value>,
}

impl<'v> JsonMembers<'v> {
    /// Reads an object without unknown members. Null counts as absent.
    fn optional(value: &'v Value, path: &'v str, known: &[&str]) -> Parsed<Option<JsonMembers<'v>>> {
        let members = match value {
            Value::Null => return Ok(None),
            Value::Object(members) => members,
            _ => return Err(GuardrailError::new(path, "must be an object")),
        };
        let found = JsonMembers { path, members };
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(found.wrong(unknown, &format!("is unknown; valid are {}", known.join(", ")))),
            None => Ok(Some(found)),
        }
    }

    fn wrong(&self, name: &str, problem: &str) -> GuardrailError {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        GuardrailError::new(path, problem)
    }

    fn get(&self, name: &str) -> Option<&'v Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Parsed<Option<&'v str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "must be a text")),
        }
    }

    fn list(&self, name: &str, items_max: usize) -> Parsed<Option<&'v [Value]>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) if items.len() <= items_max => Ok(Some(items)),
            Some(_) => Err(self.wrong(name, &format!("must be a list of at most {items_max}"))),
        }
    }
}
