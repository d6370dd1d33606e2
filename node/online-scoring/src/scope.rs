//! Scope of a rule: single spans, whole traces, or groups of traces with one value.

use serde_json::{Map, Value, json};

use crate::fields::{Fields, RuleError};

/// Seconds without a write after which a trace or group is scored, unless the rule sets another number.
pub const IDLE_SECONDS_DEFAULT: f64 = 30.0;
/// Upper bound of the seconds without a write, because the traces are held in memory so long.
pub const IDLE_SECONDS_MAX: f64 = 86_400.0;
/// Upper bound of the seconds between two runs over one group.
pub const INTERVAL_SECONDS_MAX: f64 = 604_800.0;
/// Upper bound of the traces of a group that one run reads.
pub const GROUP_TRACES_MAX: usize = 64;
/// Upper bound of the span names of a rule.
pub const SPAN_NAMES_MAX: usize = 100;
/// Bytes of a span name or of the path of a group.
const NAME_BYTES_MAX: usize = 1_024;
/// Bytes of the value of a group. Rows with longer values are in no group.
pub const GROUP_VALUE_BYTES_MAX: usize = 1_024;
/// Fields of a row that can define a group.
const GROUP_FIELDS: [&str; 5] = ["metadata", "input", "output", "expected", "span_attributes"];
const VALID_PATH: &str =
    "a path such as `metadata.session_id`, in metadata, input, output, expected or span_attributes";

/// Rows that a rule of scope `span` scores. Without root and names it scores all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanFilter {
    pub applies_to_root: bool,
    pub names: Vec<String>,
}

impl SpanFilter {
    pub(crate) fn read(online: &Fields<'_>) -> Result<SpanFilter, RuleError> {
        let mut names = Vec::new();
        for (index, name) in online.list("apply_to_span_names", SPAN_NAMES_MAX)?.into_iter().flatten().enumerate() {
            let text = name.as_str().filter(|text| !text.is_empty() && text.len() <= NAME_BYTES_MAX);
            let path = format!("{}.{index}", online.path("apply_to_span_names"));
            names.push(
                text.ok_or_else(|| RuleError::new(&path, Some(name), "a span name of 1 to 1024 bytes"))?.to_owned(),
            );
        }
        Ok(SpanFilter { applies_to_root: online.flag("apply_to_root_span")?, names })
    }

    pub fn matches(&self, row: &Map<String, Value>) -> bool {
        if !self.applies_to_root && self.names.is_empty() {
            return true;
        }
        let name = row.get("span_attributes").and_then(|attributes| attributes.get("name")).and_then(Value::as_str);
        let is_named = name.is_some_and(|name| self.names.iter().any(|wanted| wanted == name));
        (self.applies_to_root && is_root(row)) || is_named
    }
}

/// Returns whether a row is the root of its trace.
pub fn is_root(row: &Map<String, Value>) -> bool {
    match row.get("span_parents") {
        None | Some(Value::Null) => true,
        Some(parents) => parents.as_array().is_some_and(Vec::is_empty),
    }
}

/// Path of the value that the traces of a group share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPath {
    text: String,
    segments: Vec<String>,
}

impl GroupPath {
    /// Parses a path of names between dots. Names with other characters are quoted by backticks or double quotes.
    pub fn parse(text: &str) -> Option<GroupPath> {
        let (mut segments, mut rest) = (Vec::new(), text);
        loop {
            let quote = rest.chars().next().filter(|c| matches!(c, '`' | '"'));
            let (name, after) = match quote {
                Some(quote) => rest[1..].split_once(quote)?,
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '~' | '$');
            if name.is_empty() || (quote.is_none() && !name.chars().all(is_plain)) {
                return None;
            }
            segments.push(name.to_owned());
            match after.strip_prefix('.') {
                Some(next) => rest = next,
                None if after.is_empty() => break,
                None => return None,
            }
        }
        let is_known = segments.len() > 1 && GROUP_FIELDS.contains(&segments[0].as_str());
        is_known.then(|| GroupPath { text: text.to_owned(), segments })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the group of a row: a text, number or boolean at the path. Other rows are in no group.
    pub fn value(&self, row: &Map<String, Value>) -> Option<String> {
        let (first, below) = self.segments.split_first()?;
        let found = below.iter().try_fold(row.get(first)?, |value, name| value.get(name))?;
        let value = match found {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => found.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        (!value.is_empty() && value.len() <= GROUP_VALUE_BYTES_MAX).then_some(value)
    }
}

/// Rows of a group that receive its scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupPlacement {
    /// The root of the first trace.
    First,
    /// The root of each trace.
    Each,
}

/// Scope over groups of traces.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRule {
    pub group_by: GroupPath,
    pub placement: GroupPlacement,
    pub idle_ms: u64,
    /// Shortest time between two runs over one group.
    pub interval_ms: u64,
    pub traces_max: usize,
}

/// Scope of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleScope {
    Span(SpanFilter),
    Trace { idle_ms: u64 },
    Group(GroupRule),
}

#[derive(Clone, Copy)]
enum ScopeType {
    Span,
    Trace,
    Group,
}

impl RuleScope {
    /// Reads `scope` of a rule. The span filter applies to the scope `span` only; others ignore it.
    pub(crate) fn read(online: &Fields<'_>) -> Result<RuleScope, RuleError> {
        let spans = SpanFilter::read(online)?;
        let Some(value) = online.value("scope") else { return Ok(RuleScope::Span(spans)) };
        let scope = Fields::new(&online.path("scope"), Some(value))?;
        let types = [("span", ScopeType::Span), ("trace", ScopeType::Trace), ("group", ScopeType::Group)];
        let found = scope.word("type", &types)?;
        let idle_ms = millis(scope.number("idle_seconds", 0.0, IDLE_SECONDS_MAX)?.unwrap_or(IDLE_SECONDS_DEFAULT));
        match scope.required("type", found, "`span` or `trace` or `group`")? {
            ScopeType::Span => Ok(RuleScope::Span(spans)),
            ScopeType::Trace => Ok(RuleScope::Trace { idle_ms }),
            ScopeType::Group => group(&scope, idle_ms).map(RuleScope::Group),
        }
    }
}

fn group(scope: &Fields<'_>, idle_ms: u64) -> Result<GroupRule, RuleError> {
    let path = scope.text("group_by", NAME_BYTES_MAX)?.and_then(GroupPath::parse);
    let placement = scope.word("placement", &[("first", GroupPlacement::First), ("each", GroupPlacement::Each)])?;
    let traces = scope.whole("max_traces", 1, GROUP_TRACES_MAX as u64)?;
    Ok(GroupRule {
        group_by: scope.required("group_by", path, VALID_PATH)?,
        placement: scope.required("placement", placement, "`first` or `each`")?,
        idle_ms,
        interval_ms: millis(scope.number("interval_seconds", 0.0, INTERVAL_SECONDS_MAX)?.unwrap_or(0.0)),
        traces_max: traces.map_or(GROUP_TRACES_MAX, |traces| traces as usize),
    })
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// Scope of one trigger, as the state of a row has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerScope {
    Span,
    Trace,
    Group { key: String, value: String },
}

impl TriggerScope {
    /// Reads a scope; an absent one is that of a span.
    pub(crate) fn read(path: &str, value: Option<&Value>) -> Result<TriggerScope, RuleError> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(TriggerScope::Span) };
        let fields = Fields::new(path, Some(value))?;
        let types = [("span", ScopeType::Span), ("trace", ScopeType::Trace), ("group", ScopeType::Group)];
        match fields.required("type", fields.word("type", &types)?, "`span` or `trace` or `group`")? {
            ScopeType::Span => Ok(TriggerScope::Span),
            ScopeType::Trace => Ok(TriggerScope::Trace),
            ScopeType::Group => {
                let text = |name: &str, bytes_max: usize| {
                    let found = fields.text(name, bytes_max)?.map(str::to_owned);
                    fields.required(name, found, "a text")
                };
                Ok(TriggerScope::Group {
                    key: text("key", NAME_BYTES_MAX)?,
                    value: text("value", GROUP_VALUE_BYTES_MAX)?,
                })
            }
        }
    }

    pub fn to_json(&self) -> Value {
        match self {
            TriggerScope::Span => json!({"type": "span"}),
            TriggerScope::Trace => json!({"type": "trace"}),
            TriggerScope::Group { key, value } => json!({"type": "group", "key": key, "value": value}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_span_filter_takes_the_root_or_exact_names() {
        let filter = |applies_to_root, names: &[&str]| SpanFilter {
            applies_to_root,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let root = row(json!({"span_parents": null, "span_attributes": {"name": "root"}}));
        let empty_parents = row(json!({"span_parents": []}));
        let child = row(json!({"span_parents": ["p"], "span_attributes": {"name": "call"}}));
        let other = row(json!({"span_parents": ["p"], "span_attributes": {"name": "call 2"}}));
        let cases = [
            (filter(false, &[]), [true, true, true, true]),
            (filter(true, &[]), [true, true, false, false]),
            (filter(false, &["call"]), [false, false, true, false]),
            (filter(true, &["call"]), [true, true, true, false]),
        ];
        for (filter, expected) in cases {
            assert_eq!([&root, &empty_parents, &child, &other].map(|row| filter.matches(row)), expected, "{filter:?}");
        }
    }

    #[test]
    fn a_group_path_finds_texts_numbers_and_booleans() {
        let found = |path: &str, value: Value| GroupPath::parse(path).expect("a path").value(&row(value));
        assert_eq!(found("metadata.session_id", json!({"metadata": {"session_id": "s"}})), Some("s".to_owned()));
        assert_eq!(found("metadata.`a.b`.c", json!({"metadata": {"a.b": {"c": 7}}})), Some("7".to_owned()));
        assert_eq!(found("input.\"x y\"", json!({"input": {"x y": true}})), Some("true".to_owned()));
        assert_eq!(found("metadata.s", json!({"metadata": {"s": {}}})), None);
        assert_eq!(found("metadata.s", json!({"metadata": {"s": ""}})), None);
        assert_eq!(found("metadata.s", json!({"metadata": null})), None);
        assert_eq!(found("metadata.s", json!({"metadata": {"s": "x".repeat(GROUP_VALUE_BYTES_MAX + 1)}})), None);
    }

    #[test]
    fn other_group_paths_are_refused() {
        for path in
            ["", "metadata", "scores.x", "metadata.", "metadata..x", "metadata.a b", "metadata.`a", "metadata.`a`b"]
        {
            assert_eq!(GroupPath::parse(path), None, "{path}");
        }
    }

    #[test]
    fn scopes_of_triggers_survive_a_round_trip() {
        let group = TriggerScope::Group { key: "metadata.s".to_owned(), value: "v".to_owned() };
        for scope in [TriggerScope::Span, TriggerScope::Trace, group] {
            assert_eq!(TriggerScope::read("scope", Some(&scope.to_json())), Ok(scope));
        }
        assert_eq!(TriggerScope::read("scope", None), Ok(TriggerScope::Span));
        assert!(TriggerScope::read("scope", Some(&json!({"type": "group", "key": "k"}))).is_err());
    }
}
