//! Metrics of a trace: counts, sums and means over its spans, in one pass that reads only the needed metrics.

use std::cmp::Ordering;

use ahash::AHashMap;
use assay_node_btql::values::{Value, in_order};

use super::{Mean, Span};
use crate::groups::object_members;
use crate::price::Prices;

/// Metrics with a special rule, in the order of a summary. Any other number is summed.
const RULED: [&str; 16] = [
    "prompt_tokens",
    "completion_tokens",
    "prompt_cached_tokens",
    "prompt_cache_creation_tokens",
    "total_tokens",
    "estimated_cost",
    "llm_calls",
    "tool_calls",
    "llm_errors",
    "tool_errors",
    "errors",
    "duration",
    "start",
    "end",
    "llm_duration",
    "time_to_first_token",
];

/// Metrics of spans that these are computed from. The first four are tokens.
const READ: [&str; 9] = [
    "prompt_tokens",
    "completion_tokens",
    "prompt_cached_tokens",
    "prompt_cache_creation_tokens",
    "estimated_cost",
    "start",
    "end",
    "duration",
    "time_to_first_token",
];
const COST: usize = 4;
const START: usize = 5;
const END: usize = 6;
const DURATION: usize = 7;
const FIRST_TOKEN: usize = 8;

/// Inputs that some metrics need of each span.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    read: [bool; READ.len()],
    kind: bool,
    error: bool,
    cost: bool,
}

/// Kind of a span, as far as metrics depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricKind {
    Llm,
    Tool,
    Other,
}

/// Values read of one span.
struct OfSpan<'v> {
    kind: MetricKind,
    has_error: bool,
    read: [Value<'v>; READ.len()],
    /// Logged or computed cost.
    cost: Value<'v>,
}

/// Totals over all spans.
#[derive(Debug, Default)]
struct Tally {
    tokens: [CountedOnce; 4],
    cost: CountedOnce,
    llm_calls: i64,
    tool_calls: i64,
    llm_errors: i64,
    tool_errors: i64,
    start: Option<Value<'static>>,
    end: Option<Value<'static>>,
    llm_duration: Sum,
    first_token: Mean,
}

/// Sum of numbers. It is whole for whole numbers within 64 bits, and null without numbers.
#[derive(Clone, Debug, Default)]
struct Sum {
    count: u64,
    has_fraction: bool,
    whole: i128,
    float: f64,
}

/// Sum over LLM spans alone if one of them has the metric, since parents repeat it (D-40).
#[derive(Clone, Debug, Default)]
struct CountedOnce {
    llm: Sum,
    all: Sum,
}

/// Metric without a special rule.
#[derive(Debug, Default)]
struct Custom {
    sum: CountedOnce,
    /// Whether some span has a number, and not only booleans.
    is_number: bool,
}

/// Returns the columns of spans that all metrics need in addition to `metrics`.
pub(super) fn reads_beside() -> Vec<(&'static str, Option<String>)> {
    let needs = RULED.iter().fold(Needs::default(), |needs, name| needs.and(name));
    needs.beside()
}

/// Returns the columns of spans that one metric needs.
pub(super) fn reads(name: &str) -> Vec<(&'static str, Option<String>)> {
    let needs = Needs::default().and(name);
    let logged = READ.iter().zip(needs.read).filter(|(_, read)| *read).map(|(name, _)| *name);
    let custom = Some(name).filter(|name| !RULED.contains(name));
    let own = logged.chain(custom).map(|name| ("metrics", Some(name.to_owned())));
    own.chain(needs.beside()).collect()
}

/// Computes all metrics. Those with special rules come first.
pub(super) fn all<S: Span>(spans: &[S], prices: &Prices) -> Value<'static> {
    let needs = RULED.iter().fold(Needs::default(), |needs, name| needs.and(name));
    let mut tally = Tally::default();
    let mut places: AHashMap<String, usize> = AHashMap::new();
    let mut customs: Vec<(String, Custom)> = Vec::new();
    for span in spans {
        let kind = kind_of(span);
        let logged = span.column("metrics");
        let mut read = std::array::from_fn(|_| Value::Null);
        object_members::each(&logged, |name, value| {
            if let Some(place) = READ.iter().position(|known| *known == name) {
                read[place] = value;
            } else if !RULED.contains(&name) {
                let place = places.get(name).copied().unwrap_or_else(|| {
                    places.insert(name.to_owned(), customs.len());
                    customs.push((name.to_owned(), Custom::default()));
                    customs.len() - 1
                });
                customs[place].1.add(&value, kind);
            }
        });
        tally.add(&OfSpan::of(span, kind, read, needs, prices));
    }
    let ruled = RULED.iter().map(|name| ((*name).to_owned(), tally.value(name)));
    let customs = customs.into_iter().filter(|(_, custom)| custom.is_number);
    Value::Members(ruled.chain(customs.map(|(name, custom)| (name, custom.sum.value()))).collect())
}

/// Computes the named metrics in one pass.
pub(super) fn some<S: Span>(spans: &[S], names: &[&str], prices: &Prices) -> Vec<Value<'static>> {
    let needs = names.iter().fold(Needs::default(), |needs, name| needs.and(name));
    let mut tally = Tally::default();
    let mut customs: Vec<Custom> = names.iter().map(|_| Custom::default()).collect();
    for span in spans {
        let kind = if needs.kind { kind_of(span) } else { MetricKind::Other };
        let member = |place: usize| if needs.read[place] { span.member("metrics", READ[place]) } else { Value::Null };
        let of_span = OfSpan::of(span, kind, std::array::from_fn(member), needs, prices);
        tally.add(&of_span);
        for (name, custom) in names.iter().zip(&mut customs).filter(|(name, _)| !RULED.contains(name)) {
            custom.add(&span.member("metrics", name), kind);
        }
    }
    let value = |(name, custom): (&&str, Custom)| match custom {
        custom if custom.is_number => custom.sum.value(),
        _ => tally.value(name),
    };
    names.iter().zip(customs).map(value).collect()
}

pub(super) fn is_type(span: &impl Span, wanted: &str) -> bool {
    matches!(span.member("span_attributes", "type"), Value::Text(found) if found == wanted)
}

fn kind_of(span: &impl Span) -> MetricKind {
    match span.member("span_attributes", "type") {
        Value::Text(kind) if kind == "llm" => MetricKind::Llm,
        Value::Text(kind) if kind == "tool" => MetricKind::Tool,
        _ => MetricKind::Other,
    }
}

impl Needs {
    fn and(mut self, name: &str) -> Needs {
        let mut read = |places: &[usize]| places.iter().for_each(|place| self.read[*place] = true);
        match name {
            "total_tokens" => read(&[0, 1]),
            "estimated_cost" => read(&[0, 1, 2, 3, COST]),
            "start" => read(&[START]),
            "end" => read(&[END]),
            "duration" => read(&[START, END]),
            "llm_duration" => read(&[START, END, DURATION]),
            "time_to_first_token" => read(&[FIRST_TOKEN]),
            name => READ[..COST].iter().position(|known| *known == name).into_iter().for_each(|place| read(&[place])),
        }
        self.kind |= !matches!(name, "start" | "end" | "duration");
        self.error |= matches!(name, "llm_errors" | "tool_errors" | "errors");
        self.cost |= name == "estimated_cost";
        self
    }

    fn beside(self) -> Vec<(&'static str, Option<String>)> {
        let kind = self.kind.then(|| ("span_attributes", Some("type".to_owned())));
        let error = self.error.then_some(("error", None));
        let model = self.cost.then(|| ("metadata", Some("model".to_owned())));
        [kind, error, model].into_iter().flatten().collect()
    }
}

impl<'v> OfSpan<'v> {
    fn of<S: Span>(
        span: &'v S,
        kind: MetricKind,
        read: [Value<'v>; READ.len()],
        needs: Needs,
        prices: &Prices,
    ) -> OfSpan<'v> {
        let has_error = needs.error && kind != MetricKind::Other && !span.column("error").is_null();
        let cost = if !read[COST].is_null() {
            read[COST].clone()
        } else if needs.cost && kind == MetricKind::Llm {
            cost_of(span, &read, prices)
        } else {
            Value::Null
        };
        OfSpan { kind, has_error, read, cost }
    }

    /// Returns the logged duration, or the time from start to end.
    fn duration(&self) -> Value<'_> {
        let logged = &self.read[DURATION];
        if logged.is_null() { minus(&self.read[END], &self.read[START]) } else { logged.view() }
    }
}

fn cost_of(span: &impl Span, read: &[Value<'_>; READ.len()], prices: &Prices) -> Value<'static> {
    let [prompt, completion, cached, written, ..] = read;
    let tokens = [prompt, completion, cached, written].map(Value::as_f64);
    if tokens[0].is_none() && tokens[1].is_none() {
        return Value::Null;
    }
    let Value::Text(model) = span.member("metadata", "model") else { return Value::Null };
    prices.cost(&model, "llm", tokens).map_or(Value::Null, Value::float)
}

impl Tally {
    fn add(&mut self, span: &OfSpan<'_>) {
        let kind = span.kind;
        for (sum, value) in self.tokens.iter_mut().zip(&span.read) {
            sum.add(value, kind);
        }
        self.cost.add(&span.cost, kind);
        keep(&mut self.start, &span.read[START], Ordering::is_lt);
        keep(&mut self.end, &span.read[END], Ordering::is_ge);
        let error = i64::from(span.has_error);
        match kind {
            MetricKind::Llm => {
                self.llm_calls += 1;
                self.llm_errors += error;
                self.llm_duration.add(&span.duration());
                self.first_token.add(&span.read[FIRST_TOKEN]);
            }
            MetricKind::Tool => {
                self.tool_calls += 1;
                self.tool_errors += error;
            }
            MetricKind::Other => {}
        }
    }

    fn value(&self, name: &str) -> Value<'static> {
        let or_null = |value: &Option<Value<'static>>| value.clone().unwrap_or(Value::Null);
        match name {
            "prompt_tokens" => self.tokens[0].value(),
            "completion_tokens" => self.tokens[1].value(),
            "prompt_cached_tokens" => self.tokens[2].value(),
            "prompt_cache_creation_tokens" => self.tokens[3].value(),
            "total_tokens" => plus(&self.tokens[0].value(), &self.tokens[1].value()),
            "estimated_cost" => self.cost.value(),
            "llm_calls" => Value::Integer(self.llm_calls),
            "tool_calls" => Value::Integer(self.tool_calls),
            "llm_errors" => Value::Integer(self.llm_errors),
            "tool_errors" => Value::Integer(self.tool_errors),
            "errors" => Value::Integer(self.llm_errors + self.tool_errors),
            "start" => or_null(&self.start),
            "end" => or_null(&self.end),
            "duration" => minus(&or_null(&self.end), &or_null(&self.start)),
            "llm_duration" => self.llm_duration.value(),
            "time_to_first_token" => self.first_token.value(),
            _ => Value::Null,
        }
    }
}

/// Keeps the better of two numbers or booleans.
fn keep(kept: &mut Option<Value<'static>>, value: &Value<'_>, is_better: fn(Ordering) -> bool) {
    if value.as_number().is_some() && kept.as_ref().is_none_or(|kept| is_better(in_order(value, kept))) {
        *kept = Some(value.clone().into_owned());
    }
}

impl Sum {
    fn add(&mut self, value: &Value<'_>) {
        let Some(float) = value.as_f64() else { return };
        self.count += 1;
        self.float += float;
        match value.as_whole() {
            Some(whole) => self.whole += whole,
            None => self.has_fraction = true,
        }
    }

    fn value(&self) -> Value<'static> {
        match (self.count, self.has_fraction) {
            (0, _) => Value::Null,
            (_, false) => Value::whole(self.whole),
            (_, true) => Value::float(self.float),
        }
    }
}

impl CountedOnce {
    fn add(&mut self, value: &Value<'_>, kind: MetricKind) {
        self.all.add(value);
        if kind == MetricKind::Llm {
            self.llm.add(value);
        }
    }

    fn value(&self) -> Value<'static> {
        if self.llm.count > 0 { self.llm.value() } else { self.all.value() }
    }
}

impl Custom {
    fn add(&mut self, value: &Value<'_>, kind: MetricKind) {
        self.sum.add(value, kind);
        self.is_number |= value.is_number();
    }
}

fn plus(left: &Value<'_>, right: &Value<'_>) -> Value<'static> {
    of_two(left, right, |left, right| left + right, |left, right| left + right)
}

fn minus(left: &Value<'_>, right: &Value<'_>) -> Value<'static> {
    of_two(left, right, |left, right| left - right, |left, right| left - right)
}

/// Returns a whole number if both values are whole, and null if one is not a number.
fn of_two(
    left: &Value<'_>,
    right: &Value<'_>,
    of_wholes: fn(i128, i128) -> i128,
    of_floats: fn(f64, f64) -> f64,
) -> Value<'static> {
    if let (Some(left), Some(right)) = (left.as_whole(), right.as_whole()) {
        return Value::whole(of_wholes(left, right));
    }
    let (Some(left), Some(right)) = (left.as_f64(), right.as_f64()) else { return Value::Null };
    Value::float(of_floats(left, right))
}
