//! Prices of tokens (D-73): a built-in table, an operator's table that overrides it, and the formula of costs.
//!
//! ```json
//! {"about": "any text", "date": "2026-11-27", "models": {
//!     "some-model": {"input": 2.5, "output": 10, "cached": 1.25, "also": ["some-model-2"]},
//!     "model-without-a-price": null}}
//! ```
//! Prices are in USD per million tokens. `cached` and `cache_write` apply to tokens that are read from or written to a
//! cache. Without them, such tokens cost as much as other input. A model has exactly the name in `metadata.model`, and
//! `also` lists its other names. `prices/refresh.py` writes the built-in table.
//!
//! The prompt tokens of a span normally include those of the cache. Some clients log them without. The numbers show that
//! where the cache has more tokens than the prompt. All prompt tokens then have the price of other input. No cost is
//! negative: a negative number of tokens counts as zero.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use ahash::AHashMap;
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use assay_node_btql::values::Value;
use assay_node_expressions::Type;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Unexpected, Visitor};

use crate::groups::codes::Codes;
use assay_node_expressions::aggregates::value_at;

const MILLION: f64 = 1e6;
/// Type of spans with costs.
const PAID: &str = "llm";

static STANDARD: LazyLock<Prices> = LazyLock::new(|| {
    Prices::parse("prices.json", include_str!("../prices/prices.json")).expect("the table here is sound")
});

/// Tokens of a span: prompt, completion, prompt tokens read from a cache, and prompt tokens written to a cache.
pub type Tokens = [Option<f64>; 4];

/// Price of a model in USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cached: Option<f64>,
    pub cache_write: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// Prices by model. `None` removes the price of the table below.
    by_model: AHashMap<String, Option<Price>>,
}

/// Error of a price table.
#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    #[error("{file}: the price table cannot be read: {error}")]
    File { file: String, error: std::io::Error },
    #[error("{file}: {problem}")]
    PriceTable { file: String, problem: serde_json::Error },
}

impl Price {
    /// Returns the cost in USD, or `None` without tokens.
    pub fn cost(&self, [prompt, completion, cached, written]: Tokens) -> Option<f64> {
        if prompt.is_none() && completion.is_none() {
            return None;
        }
        let [prompt, completion, cached, written] =
            [prompt, completion, cached, written].map(|tokens| tokens.unwrap_or(0.0).max(0.0));
        let of_cache = cached + written;
        // A prompt that is smaller than its own cached part was counted without that part.
        let plain = if prompt < of_cache { prompt } else { prompt - of_cache };
        let usd = plain * self.input
            + cached * self.cached.unwrap_or(self.input)
            + written * self.cache_write.unwrap_or(self.input)
            + completion * self.output;
        Some(usd / MILLION).filter(|usd| usd.is_finite())
    }
}

impl Prices {
    /// Returns the built-in prices.
    pub fn standard() -> &'static Prices {
        &STANDARD
    }

    pub fn read(path: &Path) -> Result<Prices, PriceError> {
        let file = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Prices::parse(&file, &text),
            Err(error) => Err(PriceError::File { file, error }),
        }
    }

    /// Parses a price table. `file` is its name in errors.
    pub fn parse(file: &str, text: &str) -> Result<Prices, PriceError> {
        let table: PriceTable =
            serde_json::from_str(text).map_err(|problem| PriceError::PriceTable { file: file.into(), problem })?;
        Ok(Prices { by_model: table.models.0 })
    }

    pub fn of(prices: impl IntoIterator<Item = (String, Price)>) -> Prices {
        Prices { by_model: prices.into_iter().map(|(model, price)| (model, Some(price))).collect() }
    }

    /// Returns these prices, and those of `base` for models that this table does not name.
    #[must_use]
    pub fn over(mut self, base: &Prices) -> Prices {
        for (model, price) in &base.by_model {
            self.by_model.entry(model.clone()).or_insert(*price);
        }
        self
    }

    pub fn price(&self, model: &str) -> Option<&Price> {
        self.by_model.get(model)?.as_ref()
    }

    /// Returns the cost of a span, or `None` if its type has no costs or its price is unknown.
    pub fn cost(&self, model: &str, kind: &str, tokens: Tokens) -> Option<f64> {
        if kind != PAID {
            return None;
        }
        self.price(model)?.cost(tokens)
    }

    /// Returns the cost of a span from its stored `metadata.model`, `span_attributes.type` and metrics.
    pub fn cost_of(&self, model: &Value<'_>, kind: &Value<'_>, tokens: [&Value<'_>; 4]) -> Value<'static> {
        let (Value::Text(model), Value::Text(kind)) = (model, kind) else { return Value::Null };
        self.cost(model, kind, tokens.map(Value::as_f64)).map_or(Value::Null, Value::float)
    }

    /// Returns the costs of many spans. A logged cost takes precedence.
    ///
    /// The columns have the same length. Each distinct model and type is looked up once.
    pub fn costs(
        &self,
        [models, types]: [(&ArrayRef, Type); 2],
        tokens: [&Float64Array; 4],
        logged: Option<&Float64Array>,
    ) -> Float64Array {
        let said = |(array, ty): (&ArrayRef, Type), codes: &Codes| -> Vec<Value<'static>> {
            codes.first.iter().map(|row| value_at(array, ty, *row as usize).into_owned()).collect()
        };
        let (of_models, of_types) = (Codes::of(models.0, models.1), Codes::of(types.0, types.1));
        let price = |model: &Value<'_>| match model {
            Value::Text(model) => self.price(model),
            _ => None,
        };
        let prices: Vec<Option<&Price>> = said(models, &of_models).iter().map(price).collect();
        let is_paid = |kind: &Value<'_>| matches!(kind, Value::Text(kind) if *kind == PAID);
        let paid: Vec<bool> = said(types, &of_types).iter().map(is_paid).collect();
        let at = |of: &Float64Array, row: usize| of.is_valid(row).then(|| of.value(row));
        let cost = |row: usize| {
            let price = prices[of_models.of_rows[row] as usize].filter(|_| paid[of_types.of_rows[row] as usize])?;
            price.cost(tokens.map(|of| at(of, row)))
        };
        let mut costs = vec![0.0; of_models.of_rows.len()];
        let is_known = BooleanBuffer::collect_bool(costs.len(), |row| {
            let found = logged.and_then(|logged| at(logged, row)).or_else(|| cost(row));
            costs[row] = found.unwrap_or_default();
            found.is_some()
        });
        Float64Array::new(costs.into(), Some(NullBuffer::new(is_known)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    /// Source of the prices.
    #[serde(default, rename = "about")]
    _about: Option<String>,
    /// Date of the prices.
    #[serde(default, rename = "date")]
    _date: Option<String>,
    models: Models,
}

struct Models(AHashMap<String, Option<Price>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    input: Usd,
    output: Usd,
    #[serde(default)]
    cached: Option<Usd>,
    #[serde(default)]
    cache_write: Option<Usd>,
    #[serde(default)]
    also: Vec<String>,
}

struct Usd(f64);

impl<'de> Deserialize<'de> for Models {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Models, D::Error> {
        from.deserialize_map(ModelsVisitor)
    }
}

struct ModelsVisitor;

impl<'de> Visitor<'de> for ModelsVisitor {
    type Value = Models;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with the prices of each model")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Models, A::Error> {
        let mut found = AHashMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let model: Option<Model> =
                map.next_value().map_err(|error| A::Error::custom(format_args!("model `{name}`: {error}")))?;
            let price = model.as_ref().map(|model| Price {
                input: model.input.0,
                output: model.output.0,
                cached: model.cached.as_ref().map(|usd| usd.0),
                cache_write: model.cache_write.as_ref().map(|usd| usd.0),
            });
            for name in [name].into_iter().chain(model.map(|model| model.also).unwrap_or_default()) {
                if found.contains_key(&name) {
                    return Err(A::Error::custom(format_args!("model `{name}` is there twice: it has one price")));
                }
                found.insert(name, price);
            }
        }
        Ok(Models(found))
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Usd, D::Error> {
        from.deserialize_any(UsdVisitor)
    }
}

struct UsdVisitor;

impl Visitor<'_> for UsdVisitor {
    type Value = Usd;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("USD per million tokens, a number that is zero or more")
    }

    fn visit_f64<E: serde::de::Error>(self, usd: f64) -> Result<Usd, E> {
        if usd >= 0.0 { Ok(Usd(usd)) } else { Err(E::invalid_value(Unexpected::Float(usd), &self)) }
    }

    fn visit_i64<E: serde::de::Error>(self, usd: i64) -> Result<Usd, E> {
        if usd >= 0 { Ok(Usd(usd as f64)) } else { Err(E::invalid_value(Unexpected::Signed(usd), &self)) }
    }

    fn visit_u64<E: serde::de::Error>(self, usd: u64) -> Result<Usd, E> {
        Ok(Usd(usd as f64))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;

    fn table() -> Prices {
        let text = r#"{"about":"a test","models":{
            "a": {"input": 2, "output": 10.0, "cached": 0.5, "cache_write": 3, "also": ["a-1", "a-2"]},
            "b": {"input": 1, "output": 0, "cached": null}}}"#;
        Prices::parse("t.json", text).expect("a table")
    }

    #[test]
    fn the_formula_is_that_of_the_contract() {
        let a = |tokens| table().cost("a-2", "llm", tokens);
        assert_eq!(a([Some(1e6), Some(1e6), None, None]), Some(12.0));
        assert_eq!(a([Some(1e6), None, Some(4e5), Some(1e5)]), Some((1.0 + 0.2 + 0.3) * 1.0));
        assert_eq!(a([None, Some(5e5), None, None]), Some(5.0));
        assert_eq!(a([Some(0.0), None, None, None]), Some(0.0));
        assert_eq!(a([None, None, Some(1.0), Some(1.0)]), None);
        assert_eq!(a([Some(f64::MAX), Some(f64::MAX), None, None]), None, "what is not finite is null");
        // Without a special price, the price of input applies.
        assert_eq!(table().cost("b", "llm", [Some(1e6), None, Some(5e5), Some(5e5)]), Some(1.0));
        assert_eq!(table().cost("a", "tool", [Some(1.0); 4]), None);
        assert_eq!(table().cost("c", "llm", [Some(1.0); 4]), None);
    }

    #[test]
    fn no_cost_is_negative() {
        let a = |tokens| table().cost("a", "llm", tokens);
        // The prompt was counted without the 400,000 cached tokens, or without the 100,000 written ones too.
        assert_eq!(a([Some(1e5), None, Some(4e5), None]), Some(0.2 + 0.2));
        assert_eq!(a([Some(4e5), None, Some(4e5), Some(1e5)]), Some(0.8 + 0.2 + 0.3));
        assert_eq!(a([None, Some(1e5), Some(4e5), None]), Some(0.2 + 1.0));
        // A prompt that was read from the cache completely has no other tokens.
        assert_eq!(a([Some(4e5), None, Some(4e5), None]), Some(0.2));
        assert_eq!(a([Some(-1e6), Some(-1e6), Some(-1e6), Some(-1e6)]), Some(0.0));
        assert_eq!(a([Some(1e6), Some(-1e6), Some(-1e6), None]), Some(2.0));
    }

    #[test]
    fn the_fixture_costs_what_it_is_said_to() {
        for (model, tokens, expected) in [
            ("gpt-4o", [Some(100.0), Some(50.0), None, None], 0.00075),
            ("gpt-4o-mini", [Some(200.0), Some(20.0), None, None], 0.000042),
            ("gpt-4o", [Some(1000.0), Some(300.0), Some(400.0), None], 0.005),
            ("gpt-4o-mini", [Some(10.0), Some(5.0), None, None], 0.0000045),
        ] {
            let cost = Prices::standard().cost(model, "llm", tokens).expect("a cost");
            assert!((cost - expected).abs() < 1e-12, "{model} {cost}");
        }
        assert_eq!(Prices::standard().cost("claude-sonnet", "llm", [Some(500.0), Some(100.0), None, None]), None);
    }

    #[test]
    fn an_operators_table_is_over_the_built_in_one_model_by_model() {
        let text =
            r#"{"date": "2026-11-27", "models": {"gpt-4o": {"input": 1, "output": 2, "also": ["ours"]}, "o3": null}}"#;
        let prices = Prices::parse("own.json", text).expect("a table").over(Prices::standard());
        let own = Price { input: 1.0, output: 2.0, cached: None, cache_write: None };
        assert_eq!((prices.price("gpt-4o"), prices.price("ours")), (Some(&own), Some(&own)));
        assert_eq!(prices.price("o3"), None, "its price was taken away");
        let kept = "gpt-4o-2024-08-06";
        assert!(prices.price(kept).is_some() && prices.price(kept) == Prices::standard().price(kept), "another name");
    }

    #[test]
    fn the_built_in_table_has_a_day_and_a_line_for_each_model() {
        let table: serde_json::Value = serde_json::from_str(include_str!("../prices/prices.json")).expect("JSON");
        let date = table["date"].as_str().expect("a text");
        let is_date =
            |(place, byte): (usize, u8)| if matches!(place, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
        assert!(date.len() == 10 && date.bytes().enumerate().all(is_date), "{date}");
        let models = table["models"].as_object().expect("an object");
        assert!(
            models.len() > 100 && models.values().all(|model| model.get("also").is_none()),
            "as refresh.py writes it"
        );
    }

    #[test]
    fn values_cost_as_far_as_they_are_numbers() {
        let read = |json: &'static str| Value::read(json);
        let cost = |model, kind, tokens: [&'static str; 4]| {
            let tokens = tokens.map(read);
            table().cost_of(&read(model), &read(kind), tokens.each_ref())
        };
        assert_eq!(cost("\"a\"", "\"llm\"", ["1000000", "\"5\"", "null", "true"]), Value::Float(2.000001));
        assert_eq!(cost("\"a\"", "\"llm\"", ["\"5\"", "null", "1", "1"]), Value::Null);
        assert_eq!(cost("1", "\"llm\"", ["1", "1", "1", "1"]), Value::Null);
        assert_eq!(cost("\"a\"", "null", ["1", "1", "1", "1"]), Value::Null);
    }

    #[test]
    fn columns_cost_what_rows_cost() {
        let models = [Some("a"), Some("a"), None, Some("b"), Some("c"), Some("a")];
        let types = [Some("llm"), Some("tool"), Some("llm"), Some("llm"), Some("llm"), None];
        let prompt = [Some(10.0), Some(10.0), Some(10.0), None, Some(1.0), Some(1.0)];
        let completion = [None, Some(1.0), Some(1.0), Some(7.0), Some(1.0), Some(1.0)];
        let cached = [Some(2.0), None, None, Some(1.0), None, None];
        let written = [Some(1.0), None, None, None, None, None];
        let tokens = [prompt, completion, cached, written].map(|of| Float64Array::from(of.to_vec()));
        let (models, types) = (StringArray::from(models.to_vec()), StringArray::from(types.to_vec()));
        let columns = [&models, &types].map(|of| Arc::new(of.clone()) as ArrayRef);
        let costs = table().costs(columns.each_ref().map(|of| (of, Type::Text)), tokens.each_ref(), None);
        assert_eq!(costs.len(), models.len());
        for row in 0..models.len() {
            let text = |of: &StringArray| if of.is_null(row) { String::new() } else { of.value(row).to_owned() };
            let of_row = tokens.each_ref().map(|of| of.is_valid(row).then(|| of.value(row)));
            let expected = table().cost(&text(&models), &text(&types), of_row);
            assert_eq!(costs.is_valid(row).then(|| costs.value(row)), expected, "{row}");
        }
        assert_eq!(costs.null_count(), 4);
    }

    #[test]
    fn an_error_says_where_and_what_would_be_right() {
        let expected_names = "expected one of `input`, `output`, `cached`, `cache_write`, `also`";
        let expected_price = "expected USD per million tokens, a number that is zero or more";
        for (text, said) in [
            (r#"{"models":{"m":{"inptu":1}}}"#, vec!["unknown field `inptu`", expected_names]),
            ("{\"models\":{\n\"m\":{\"input\":-1,\"output\":1}}}", vec!["integer `-1`", expected_price, "line 2"]),
            (r#"{"models":{"m":{"input":-0.5,"output":1}}}"#, vec!["floating point `-0.5`", expected_price]),
            (r#"{"models":{"m":{"input":"2.5","output":1}}}"#, vec!["string \"2.5\"", expected_price]),
            (r#"{"models":{"m":{"input":1}}}"#, vec!["missing field `output`"]),
            (r#"{"models":{"m":{"input":1e999,"output":1}}}"#, vec!["number out of range"]),
            (r#"{"models":{"m":{"input":1,"output":1,"also":["m"]}}}"#, vec!["`m` is there twice"]),
            (r#"{"models":{"m":1}}"#, vec!["model `m`", "integer `1`"]),
            (r#"{"models":[]}"#, vec!["expected an object with the prices of each model"]),
            (r#"{"model":{}}"#, vec!["unknown field `model`", "`models`"]),
            (r#"{"models":{}"#, vec!["line 1"]),
        ] {
            let error = Prices::parse("p.json", text).expect_err(text).to_string();
            let also = if text.contains("\"m\":{") && !text.contains("also") { "model `m`: " } else { "" };
            assert!(error.starts_with(&format!("p.json: {also}")) && error.contains("column"), "{error}");
            assert_eq!(error.matches("line").count(), 1, "{error}");
            said.iter().for_each(|said| assert!(error.contains(said), "{error}\nhas no {said}"));
        }
    }

    #[test]
    fn a_file_is_read_and_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("own.json");
        let error = Prices::read(&path).expect_err("there is no file").to_string();
        assert!(error.contains("own.json") && error.contains("cannot be read"), "{error}");
        fs::write(&path, r#"{"models":{"m":{"input":1,"output":2}}}"#).expect("a file");
        let prices = Prices::read(&path).expect("a table");
        assert_eq!(prices.price("m"), Some(&Price { input: 1.0, output: 2.0, cached: None, cache_write: None }));
    }
}
