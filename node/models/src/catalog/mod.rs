//! Catalog of models with specs and dated prices by model name (1.5, G-13).
//!
//! Later sources take precedence over earlier ones:
//!
//! 1. the built-in price table, which queries also use
//! 2. the built-in models of `data/models.json`
//! 3. the operator's price table `queries.prices`
//! 4. the operator's models, where each entry changes only its own members, and `null` removes a model
//!
//! Custom models of provider secrets take precedence over all of them, see `resolution`.

mod price;
mod price_table;
mod reservation;
mod spec;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::complaint::MetadataComplaint;

pub use price::{ModelPrice, PriceFields, PriceHistory, TokenUsage};
pub use reservation::{CallReservation, OUTPUT_TOKENS_DEFAULT, OUTPUT_TOKENS_MAX, estimate_tokens, reserve};
pub use spec::{ModelFlavor, ModelSpec, WireFormat};

use price_table::PriceTable;

/// Upper bound of the models of one catalog.
pub const CATALOG_MODELS_MAX: usize = 100_000;
/// Upper bound of the other names of one model.
pub const EQUIVALENTS_MAX: usize = 32;
/// Upper bound of the suffixes that are removed from one name.
const CUTS_MAX: usize = 8;
/// Name suffixes that state the reasoning effort.
const REASONING_SUFFIXES: [&str; 7] = ["-thinking", "-none", "-low", "-medium", "-high", "-xhigh", "-max"];

const BUILT_IN_MODELS: &str = include_str!("../../data/models.json");
/// Price table of queries, which is the single source of these prices.
const BUILT_IN_PRICES: &str = include_str!("../../../engine/prices/prices.json");

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| {
    let sources = CatalogSources { operator_prices: None, operator_models: None };
    Catalog::new(sources).expect("the built-in files are valid: a test reads them")
});

/// Contents of an operator's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct CatalogSources<'a> {
    /// Price table in the format of `queries.prices`.
    pub operator_prices: Option<&'a str>,
    /// Models in the format of the built-in file.
    pub operator_models: Option<&'a str>,
}

/// Error of a catalog file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    #[error("{file}: no JSON: {problem}")]
    Json { file: &'static str, problem: String },
    #[error("{file}: an object with a member for each model was expected")]
    NoObject { file: &'static str },
    #[error("{file}: model `{model}`: an object, or null to remove the model, was expected")]
    NoModel { file: &'static str, model: String },
    #[error("{file}: {complaint}")]
    Member { file: &'static str, complaint: MetadataComplaint },
    #[error("{file}: more than {CATALOG_MODELS_MAX} models")]
    TooMany { file: &'static str },
}

/// Models by name. A catalog is immutable, so a changed file requires a new catalog.
#[derive(Clone, Debug)]
pub struct Catalog {
    models: BTreeMap<String, Arc<ModelSpec>>,
    /// Prices by model, merged from all sources in their order.
    prices: HashMap<String, PriceHistory>,
    /// Other names of a model, nearest first. Models without other names are missing.
    equivalents: HashMap<String, Vec<String>>,
}

impl Catalog {
    /// Returns the built-in catalog of the program.
    pub fn built_in() -> &'static Catalog {
        &BUILT_IN
    }

    pub fn new(sources: CatalogSources<'_>) -> Result<Catalog, CatalogError> {
        let mut entries = BTreeMap::new();
        let mut prices = HashMap::new();
        PriceTable::parse("prices.json", BUILT_IN_PRICES)?.apply(&mut prices);
        overlay("models.json", BUILT_IN_MODELS, &mut entries, &mut prices)?;
        if let Some(text) = sources.operator_prices {
            PriceTable::parse("the operator's price table", text)?.apply(&mut prices);
        }
        if let Some(text) = sources.operator_models {
            overlay("the operator's models", text, &mut entries, &mut prices)?;
        }
        let mut models = BTreeMap::new();
        for (name, members) in entries {
            let (spec, _) = ModelSpec::parse(&name, &members);
            // Only the complete entry has the flavor, because an overlay may omit it.
            if let Some(history) = prices.get_mut(&name) {
                history.set_output_is_free(spec.flavor == ModelFlavor::Embedding);
            }
            models.insert(name, Arc::new(spec));
        }
        borrow_prices(&models, &mut prices);
        let equivalents = equivalents(&models);
        Ok(Catalog { models, prices, equivalents })
    }

    /// Returns the spec of exactly this name.
    pub fn exact(&self, model: &str) -> Option<&Arc<ModelSpec>> {
        self.models.get(model)
    }

    /// Returns the spec of this name, or of its lower-case form without suffixes such as `-high`.
    pub fn find(&self, model: &str) -> Option<&Arc<ModelSpec>> {
        look_up(model, |name| self.models.get(name))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// Returns the other names of a model, nearest first (1.4, fact 6).
    pub fn equivalents(&self, model: &str) -> &[String] {
        self.equivalents.get(model).map_or(&[], Vec::as_slice)
    }

    /// Returns the price at a time, or `None` if the model has no price then.
    pub fn price_at(&self, model: &str, now_ms: u64) -> Option<ModelPrice> {
        look_up(model, |name| self.prices.get(name))?.price_at(now_ms)
    }

    /// Returns the price of a call from its custom spec, or from the catalog if there is none.
    pub fn call_price(&self, custom: Option<&ModelSpec>, model: &str, now_ms: u64) -> Option<ModelPrice> {
        match custom {
            Some(spec) => spec.prices.price_at(now_ms),
            None => self.price_at(model, now_ms),
        }
    }

    /// Returns the catalog in the form for clients, with the prices of the given time.
    pub fn to_json(&self, now_ms: u64) -> Map<String, Value> {
        let entry = |(name, spec): (&String, &Arc<ModelSpec>)| {
            let mut members = spec.members.clone();
            members.retain(|member, _| !PriceFields::is_price_member(member));
            if let Some(price) = self.price_at(name, now_ms) {
                members.extend(price.to_members());
            }
            (name.clone(), Value::Object(members))
        };
        self.models.iter().map(entry).collect()
    }
}

/// Looks up the exact name, then its lower-case form, then that form without suffixes.
fn look_up<'a, T>(model: &str, get: impl Fn(&str) -> Option<&'a T>) -> Option<&'a T> {
    if let Some(found) = get(model) {
        return Some(found);
    }
    let lower = model.to_ascii_lowercase();
    let mut name = lower.as_str();
    for _ in 0..=CUTS_MAX {
        if let Some(found) = get(name) {
            return Some(found);
        }
        name = REASONING_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix))?;
    }
    None
}

/// Merges the models of a file and their prices into the existing ones.
fn overlay(
    file: &'static str,
    text: &str,
    entries: &mut BTreeMap<String, Map<String, Value>>,
    prices: &mut HashMap<String, PriceHistory>,
) -> Result<(), CatalogError> {
    let parsed: Value =
        serde_json::from_str(text).map_err(|problem| CatalogError::Json { file, problem: problem.to_string() })?;
    let Value::Object(models) = parsed else { return Err(CatalogError::NoObject { file }) };
    for (name, value) in models {
        let members = match value {
            Value::Null => {
                entries.remove(&name);
                prices.remove(&name);
                continue;
            }
            Value::Object(members) => members,
            _ => return Err(CatalogError::NoModel { file, model: name }),
        };
        let priced = ModelSpec::parse(&name, &members).0.prices;
        if !priced.is_empty() {
            prices.entry(name.clone()).or_default().overlay(priced);
        }
        let entry = entries.entry(name.clone()).or_default();
        entry.extend(members);
        // The complete entry is checked, because an overlay may omit existing members.
        if let Some(complaint) = ModelSpec::parse(&name, entry).1.into_iter().next() {
            return Err(CatalogError::Member { file, complaint });
        }
        if entries.len() > CATALOG_MODELS_MAX {
            return Err(CatalogError::TooMany { file });
        }
    }
    Ok(())
}

/// Copies prices to models without a price that name another model in `price_as`.
fn borrow_prices(models: &BTreeMap<String, Arc<ModelSpec>>, prices: &mut HashMap<String, PriceHistory>) {
    let mut borrowed = Vec::new();
    for (name, spec) in models.iter().filter(|(name, _)| !prices.contains_key(*name)) {
        if let Some(found) = spec.price_as.as_ref().and_then(|other| prices.get(other)) {
            borrowed.push((name.clone(), found.clone()));
        }
    }
    prices.extend(borrowed);
}

/// Returns the names connected by `fallback_models`, in both directions and over several steps.
fn equivalents(models: &BTreeMap<String, Arc<ModelSpec>>) -> HashMap<String, Vec<String>> {
    let mut links: HashMap<&str, Vec<&str>> = HashMap::new();
    for (name, spec) in models {
        for other in spec.fallback_models.iter().filter(|other| models.contains_key(*other) && *other != name) {
            links.entry(name).or_default().push(other);
            links.entry(other).or_default().push(name);
        }
    }
    let mut found = HashMap::new();
    for start in links.keys() {
        let (mut reached, mut queue) = (BTreeSet::from([*start]), VecDeque::from([*start]));
        let mut names = Vec::new();
        while let Some(name) = queue.pop_front() {
            for other in links.get(name).into_iter().flatten() {
                if names.len() < EQUIVALENTS_MAX && reached.insert(other) {
                    names.push((*other).to_owned());
                    queue.push_back(other);
                }
            }
        }
        found.insert((*start).to_owned(), names);
    }
    found
}

#[cfg(test)]
mod tests;
