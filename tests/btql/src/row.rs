//! Resolution of names in an expression: a row, a group, and fields that are computed if they were not logged.

use std::collections::BTreeMap;
use std::rc::Rc;

use assay_node_btql::bound::{Derived, Field};
use assay_storage_model::event::parse_created;
use serde_json::Value as Json;

use crate::data::{Fields, Price};
use crate::value::{Time, Value};

const MILLION: f64 = 1e6;

/// Context of the whole query.
#[derive(Clone, Copy, Debug)]
pub struct EvalContext<'a> {
    /// Minutes that UTC is ahead of local time.
    pub tz_offset: i32,
    pub prices: &'a BTreeMap<String, Price>,
}

#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Fields of a span, or of a summary.
    pub fields: Fields,
    /// Values of a query within FROM, or of groups that are grouped again.
    pub inner: Vec<Value>,
    pub unpivoted: Vec<(String, Value)>,
    /// Trace of the row, in the shapes traces and summary.
    pub trace: Option<Rc<TraceOf>>,
}

/// The trace that a row is of, or is.
#[derive(Debug)]
pub struct TraceOf {
    pub number: usize,
    pub root_span_id: String,
    /// Key of its root, or of its first span.
    pub key: String,
    /// The last one that changed any of its spans.
    pub xact: u64,
    /// Those that are seen.
    pub spans: Vec<Row>,
}

/// Input of an expression's evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub world: EvalContext<'a>,
    pub row: Option<&'a Row>,
    pub dimensions: &'a [Value],
    /// None of a table in which each row has several.
    pub aggregates: Option<&'a [Value]>,
    /// The columns that a pivot gave.
    pub pivoted: &'a [(String, Value)],
}

impl<'a> Scope<'a> {
    pub fn of_row(world: EvalContext<'a>, row: &'a Row) -> Scope<'a> {
        Scope { world, row: Some(row), dimensions: &[], aggregates: None, pivoted: &[] }
    }

    pub fn field(&self, field: &Field) -> Result<Value, String> {
        let row = || self.row.ok_or_else(|| format!("{field:?} is of rows, and here are none"));
        Ok(match field {
            Field::Column(name) => row()?.column(name),
            Field::Derived(derived) => row()?.derived(*derived, self.world),
            Field::Unpivoted(name) => {
                let found = row()?.unpivoted.iter().rev().find(|(unpivoted, _)| unpivoted == name);
                found.map_or(Value::Null, |(_, value)| value.clone())
            }
            Field::Inner(number) => {
                row()?.inner.get(*number).cloned().ok_or_else(|| format!("there is no inner column {number}"))?
            }
            Field::Dimension(number) => {
                self.dimensions.get(*number).cloned().ok_or_else(|| format!("there is no dimension {number} here"))?
            }
            Field::Aggregate(number) => {
                let found = self.aggregates.and_then(|aggregates| aggregates.get(*number));
                found.cloned().ok_or_else(|| format!("there is no aggregate {number} here"))?
            }
            Field::Pivoted(name) => {
                let found = self.pivoted.iter().find(|(pivoted, _)| pivoted == name);
                found.map_or(Value::Null, |(_, value)| value.clone())
            }
        })
    }
}

impl Row {
    pub fn of_span(fields: &Fields) -> Row {
        Row { fields: Rc::clone(fields), ..Row::default() }
    }

    fn json(&self, name: &str) -> &Json {
        self.fields.get(name).unwrap_or(&Json::Null)
    }

    pub fn column(&self, name: &str) -> Value {
        let json = self.json(name);
        let typed = json.as_str().and_then(|text| match name {
            "created" | "deleted_at" => {
                parse_created(text).map(|micros| Value::Time(Time { micros, stored: Some(text.to_owned()) }))
            }
            "_xact_id" => text.parse().ok().map(Value::Xact),
            _ => None,
        });
        typed.unwrap_or_else(|| Value::of_json(json))
    }

    pub fn metric(&self, name: &str) -> Value {
        self.column("metrics").member(name)
    }

    pub fn key(&self) -> &str {
        self.json("_pagination_key").as_str().unwrap_or_default()
    }

    pub fn xact(&self) -> u64 {
        self.json("_xact_id").as_str().and_then(|xact| xact.parse().ok()).unwrap_or_default()
    }

    /// Returns whether the span has this type.
    pub fn is_type(&self, wanted: &str) -> bool {
        matches!(self.column("span_attributes").member("type"), Value::Text(found) if found == wanted)
    }

    /// Section 8.2.
    pub fn derived(&self, derived: Derived, world: EvalContext<'_>) -> Value {
        let logged = |name: &str| Some(self.metric(name)).filter(|value| !value.is_null());
        let both =
            |left: &str, right: &str, of: fn(&Value, &Value) -> Value| of(&self.metric(left), &self.metric(right));
        match derived {
            Derived::Duration => logged("duration").unwrap_or_else(|| both("end", "start", minus)),
            Derived::TotalTokens => logged("total_tokens")
                .or_else(|| logged("tokens"))
                .unwrap_or_else(|| both("prompt_tokens", "completion_tokens", plus)),
            Derived::EstimatedCost => {
                logged("estimated_cost").or_else(|| self.cost(world).map(Value::float)).unwrap_or(Value::Null)
            }
        }
    }

    /// D-73. Where the cache has more tokens than the prompt, the prompt was counted without them. No number is negative.
    fn cost(&self, world: EvalContext<'_>) -> Option<f64> {
        let price = match self.column("metadata").member("model") {
            Value::Text(model) => world.prices.get(&model)?,
            _ => return None,
        };
        let tokens = |name: &str| self.metric(name).as_f64();
        let (prompt, completion) = (tokens("prompt_tokens"), tokens("completion_tokens"));
        if !self.is_type("llm") || prompt.is_none() && completion.is_none() {
            return None;
        }
        let counted = |tokens: Option<f64>| tokens.unwrap_or(0.0).max(0.0);
        let cached = counted(tokens("prompt_cached_tokens"));
        let written = counted(tokens("prompt_cache_creation_tokens"));
        let (prompt, completion) = (counted(prompt), counted(completion));
        let plain = if prompt < cached + written { prompt } else { prompt - cached - written };
        let usd = plain * price.input
            + cached * price.cached.unwrap_or(price.input)
            + written * price.cache_write.unwrap_or(price.input)
            + completion * price.output;
        Some(usd / MILLION)
    }
}

pub fn plus(left: &Value, right: &Value) -> Value {
    crate::numbers::arithmetic(&assay_node_btql::bound::Function::Add, left, right)
}

pub fn minus(left: &Value, right: &Value) -> Value {
    crate::numbers::arithmetic(&assay_node_btql::bound::Function::Sub, left, right)
}
