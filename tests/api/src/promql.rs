//! Reader of expressions of Prometheus that finds the metrics and labels they use, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

/// Functions and aggregations that our boards and rules use.
const FUNCTIONS: [&str; 12] = [
    "rate",
    "increase",
    "sum",
    "max",
    "min",
    "avg",
    "count",
    "histogram_quantile",
    "time",
    "clamp_min",
    "absent",
    "changes",
];
/// Words that precede a list of labels.
const LISTS: [&str; 4] = ["by", "without", "on", "ignoring"];
const OPERATORS: [&str; 4] = ["and", "or", "unless", "bool"];

/// Metrics and labels of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedMetrics {
    /// Labels of the selectors by metric.
    pub metrics: BTreeMap<String, BTreeSet<String>>,
    /// Labels of the selectors with an exact value: metric, label, value.
    pub values: BTreeSet<(String, String, String)>,
    /// Labels of the lists, which all belong to some metric of the expression.
    pub lists: BTreeSet<String>,
}

/// Returns what an expression uses, or why it cannot be read.
pub fn used(expression: &str) -> Result<UsedMetrics, String> {
    let mut reader = ExpressionReader { rest: expression, used: UsedMetrics::default(), open: 0, whole: expression };
    reader.read()?;
    match (reader.open, reader.used.metrics.is_empty()) {
        (0, false) => Ok(reader.used),
        (0, true) => Err(format!("`{expression}` uses no metric")),
        _ => Err(format!("`{expression}` has an open parenthesis")),
    }
}

/// Metrics with their labels, as in an answer of `/metrics`.
#[derive(Clone, Debug, Default)]
pub struct ExposedMetrics(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl ExposedMetrics {
    /// Adds the values of an answer of `/metrics`.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let wrong = || format!("`{line}` is no value of a metric");
            let (name, rest) = line.split_at(line.find(['{', ' ']).ok_or_else(wrong)?);
            let metric = self.0.entry(name.to_owned()).or_default();
            let Some(labels) = rest.strip_prefix('{') else { continue };
            let (labels, _) = labels.rsplit_once("} ").ok_or_else(wrong)?;
            for pair in labels.split("\",") {
                let (label, value) = pair.split_once("=\"").ok_or_else(wrong)?;
                metric.entry(label.to_owned()).or_default().insert(value.trim_end_matches('"').to_owned());
            }
        }
        Ok(())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the problems of an expression: unknown metrics, labels and values. `free` are labels and metrics that
    /// Prometheus itself adds.
    pub fn problems(&self, expression: &str, free: &[&str]) -> Vec<String> {
        let used = match used(expression) {
            Ok(used) => used,
            Err(why) => return vec![why],
        };
        let is_free = |name: &str| free.contains(&name);
        let mut problems = Vec::new();
        let known = |metric: &str| self.0.get(metric);
        for (metric, labels) in used.metrics.iter().filter(|(metric, _)| !is_free(metric)) {
            let Some(exposed) = known(metric) else {
                problems.push(format!("`{expression}`: no node has the metric `{metric}`"));
                continue;
            };
            let missing = labels.iter().filter(|label| !is_free(label) && !exposed.contains_key(*label));
            problems.extend(missing.map(|label| format!("`{expression}`: `{metric}` has no label `{label}`")));
        }
        for (metric, label, value) in &used.values {
            if known(metric).and_then(|labels| labels.get(label)).is_some_and(|values| !values.contains(value)) {
                problems.push(format!("`{expression}`: `{metric}` has no value `{value}` of `{label}`"));
            }
        }
        for label in used.lists.iter().filter(|label| !is_free(label)) {
            let has = |metric: &String| known(metric).is_some_and(|labels| labels.contains_key(label));
            if !used.metrics.keys().any(has) {
                problems.push(format!("`{expression}`: no metric of it has the label `{label}`"));
            }
        }
        problems
    }
}

struct ExpressionReader<'e> {
    rest: &'e str,
    used: UsedMetrics,
    open: usize,
    whole: &'e str,
}

impl<'e> ExpressionReader<'e> {
    fn read(&mut self) -> Result<(), String> {
        while let Some(first) = self.rest.trim_start().chars().next() {
            self.rest = self.rest.trim_start();
            match first {
                'a'..='z' | 'A'..='Z' | '_' => self.word()?,
                '0'..='9' => {
                    self.take(|letter| letter.is_ascii_alphanumeric() || letter == '.');
                }
                '(' => {
                    self.open += 1;
                    self.skip(first);
                }
                ')' => {
                    self.open = self.open.checked_sub(1).ok_or_else(|| self.wrong("a parenthesis too many"))?;
                    self.skip(first);
                }
                '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | ',' => self.skip(first),
                _ => return Err(self.wrong("a character without a meaning")),
            }
        }
        Ok(())
    }

    fn wrong(&self, what: &str) -> String {
        format!("`{}`: {what} before `{}`", self.whole, self.rest)
    }

    fn skip(&mut self, letter: char) {
        self.rest = &self.rest[letter.len_utf8()..];
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'e str {
        let end = self.rest.find(|letter: char| !is_part(letter)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn name(&mut self) -> &'e str {
        self.take(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':')
    }

    fn word(&mut self) -> Result<(), String> {
        let name = self.name();
        let rest = self.rest.trim_start();
        if LISTS.contains(&name) {
            self.rest = rest.strip_prefix('(').ok_or_else(|| self.wrong("a list of labels is missing"))?;
            let (labels, rest) = self.rest.split_once(')').ok_or_else(|| self.wrong("a list has no end"))?;
            self.used.lists.extend(labels.split(',').map(|label| label.trim().to_owned()));
            self.rest = rest;
            return Ok(());
        }
        if OPERATORS.contains(&name) {
            return Ok(());
        }
        // An aggregation may have its list of labels before its argument.
        let is_called = rest.starts_with('(') || LISTS.iter().any(|list| rest.starts_with(&format!("{list} (")));
        if is_called {
            return match FUNCTIONS.contains(&name) {
                true => Ok(()),
                false => Err(self.wrong(&format!("an unknown function `{name}`"))),
            };
        }
        self.selector(name)
    }

    fn selector(&mut self, metric: &str) -> Result<(), String> {
        let labels = self.used.metrics.entry(metric.to_owned()).or_default();
        if let Some(inside) = self.rest.strip_prefix('{') {
            let (matchers, rest) =
                inside.split_once('}').ok_or_else(|| format!("`{}`: a selector has no end", self.whole))?;
            for matcher in matchers.split(',') {
                let at = matcher.find(['=', '!']).ok_or_else(|| format!("`{matcher}` is no matcher"))?;
                let (label, value) = matcher.split_at(at);
                labels.insert(label.trim().to_owned());
                if let Some(value) = value.strip_prefix("=\"").and_then(|value| value.strip_suffix('"')) {
                    self.used.values.insert((metric.to_owned(), label.trim().to_owned(), value.to_owned()));
                }
            }
            self.rest = rest;
        }
        if let Some(inside) = self.rest.strip_prefix('[') {
            let (range, rest) =
                inside.split_once(']').ok_or_else(|| format!("`{}`: a range has no end", self.whole))?;
            let is_variable = range.starts_with("$__");
            if !is_variable && !range.starts_with(|letter: char| letter.is_ascii_digit()) {
                return Err(format!("`{range}` is no range of time"));
            }
            self.rest = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# TYPE a_total counter\na_total{status=\"200\",kind=\"x\"} 1\nb 2\n\
                           c_bucket{le=\"0.1\"} 1\nc_bucket{le=\"+Inf\"} 1\n";

    fn problems(expression: &str) -> Vec<String> {
        let mut exposed = ExposedMetrics::default();
        exposed.add(METRICS).expect("metrics");
        exposed.problems(expression, &["instance", "up"])
    }

    #[test]
    fn an_expression_over_known_metrics_has_no_problems() {
        for expression in [
            "b",
            "up == 0",
            "sum by (status) (rate(a_total{status=~\"5..\"}[5m])) > 0.1",
            "sum(rate(a_total{kind=\"x\"}[$__rate_interval])) by (instance) / b",
            "histogram_quantile(0.99, sum by (le, instance) (rate(c_bucket[5m])))",
            "(b - time()) / 86400 < 7 and on(instance) b > 0",
        ] {
            assert_eq!(problems(expression), Vec::<String>::new(), "{expression}");
        }
    }

    #[test]
    fn unknown_names_and_broken_expressions_are_problems() {
        for (expression, problem) in [
            ("d > 0", "no node has the metric `d`"),
            ("rate(a_total{code=\"1\"}[5m])", "`a_total` has no label `code`"),
            ("a_total{kind=\"y\"}", "`a_total` has no value `y` of `kind`"),
            ("sum by (le) (b)", "no metric of it has the label `le`"),
            ("sum(b", "open parenthesis"),
            ("b)", "a parenthesis too many"),
            ("guess(b)", "an unknown function `guess`"),
            ("rate(b[x])", "no range of time"),
            ("1 + 1", "uses no metric"),
            ("b ; b", "a character without a meaning"),
        ] {
            let found = problems(expression);
            assert!(found.iter().any(|found| found.contains(problem)), "{expression}: {found:?}");
        }
    }
}
