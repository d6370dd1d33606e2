//! Price table of queries, `{"models": {"<name>": {"input": 2.5, "output": 10}}}`, as a source of the catalog.
//!
//! `node/engine/src/price.rs` describes the format.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use super::CatalogError;
use super::price::{PriceFields, PriceHistory};

/// Prices by model. `None` removes a price.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceTable {
    #[serde(default, rename = "about")]
    _about: Option<String>,
    #[serde(default, rename = "date")]
    _date: Option<String>,
    models: BTreeMap<String, Option<TablePrice>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TablePrice {
    input: f64,
    output: f64,
    #[serde(default)]
    cached: Option<f64>,
    #[serde(default)]
    cache_write: Option<f64>,
    #[serde(default)]
    also: Vec<String>,
}

impl PriceTable {
    pub(super) fn parse(file: &'static str, text: &str) -> Result<PriceTable, CatalogError> {
        let bad = |problem: String| CatalogError::Json { file, problem };
        let table: PriceTable = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        for (name, price) in &table.models {
            let Some(price) = price else { continue };
            let fields = [Some(price.input), Some(price.output), price.cached, price.cache_write];
            if fields.into_iter().flatten().any(|usd| usd < 0.0) {
                return Err(bad(format!("model `{name}`: a price is negative")));
            }
        }
        Ok(table)
    }

    /// Merges these prices over existing ones.
    pub(super) fn apply(self, prices: &mut HashMap<String, PriceHistory>) {
        for (name, price) in self.models {
            let Some(price) = price else {
                prices.remove(&name);
                continue;
            };
            let fields = PriceFields {
                input: Some(price.input),
                output: Some(price.output),
                cache_read: price.cached,
                cache_write: price.cache_write,
                ..PriceFields::default()
            };
            for name in [name].into_iter().chain(price.also) {
                prices.insert(name, PriceHistory::constant(fields));
            }
        }
    }
}
