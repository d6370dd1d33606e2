//! Dated prices of tokens, and the cost of a call (D-73, G-13).

use serde_json::{Map, Value};

use crate::calendar::parse_date;
use crate::complaint::{FieldReader, MetadataComplaint};

const MILLION: f64 = 1e6;
/// Upper bound of a price in USD per million tokens. A larger price is a mistake.
const USD_MAX: f64 = 1e9;
/// Upper bound of the dated prices of one model.
const DATED_PRICES_MAX: usize = 256;

const INPUT: &str = "input_cost_per_mil_tokens";
const OUTPUT: &str = "output_cost_per_mil_tokens";
const CACHE_READ: &str = "input_cache_read_cost_per_mil_tokens";
const CACHE_WRITE: &str = "input_cache_write_cost_per_mil_tokens";
const CACHE_WRITE_5M: &str = "input_cache_write_5m_cost_per_mil_tokens";
const CACHE_WRITE_1H: &str = "input_cache_write_1h_cost_per_mil_tokens";
/// Older member names, in USD per token.
const INPUT_PER_TOKEN: &str = "input_cost_per_token";
const OUTPUT_PER_TOKEN: &str = "output_cost_per_token";
const PRICES: &str = "prices";
const VALID_FROM: &str = "valid_from";
/// Member with the model whose price applies.
pub(super) const PRICE_AS: &str = "price_as";

/// Price members of one object, in USD per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PriceFields {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    pub cache_write_5m: Option<f64>,
    pub cache_write_1h: Option<f64>,
}

/// Price of a model, in USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrice {
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    /// Price of tokens that stay in a cache for five minutes.
    pub cache_write_5m: Option<f64>,
    /// Price of tokens that stay in a cache for an hour.
    pub cache_write_1h: Option<f64>,
}

/// Prices of a model over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceHistory {
    /// Undated price, which applies before the first dated one.
    undated: PriceFields,
    /// Prices by their first millisecond, in order. Each one replaces its predecessor entirely.
    dated: Vec<(u64, PriceFields)>,
    /// Whether a missing output price means zero, as for embeddings.
    output_is_free: bool,
}

/// Token usage of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// All tokens of the prompt, including tokens read from or written to a cache.
    pub prompt: u64,
    pub completion: u64,
    pub cache_read: u64,
    /// All tokens written to a cache.
    pub cache_write: u64,
    /// Part of `cache_write` with a lifetime of five minutes, if the provider reports it.
    pub cache_write_5m: u64,
    /// Part of `cache_write` with a lifetime of an hour, if the provider reports it.
    pub cache_write_1h: u64,
}

impl ModelPrice {
    /// Returns the cost in USD. Cached tokens without their own price cost as much as other input.
    pub fn cost(&self, usage: &TokenUsage) -> f64 {
        let split = usage.cache_write_5m.saturating_add(usage.cache_write_1h);
        let written = usage.cache_write.max(split);
        let plain = usage.prompt.saturating_sub(usage.cache_read).saturating_sub(written);
        let write = self.cache_write.unwrap_or(self.input);
        let parts = [
            (plain, self.input),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (written - split, write),
            (usage.cache_write_5m, self.cache_write_5m.unwrap_or(write)),
            (usage.cache_write_1h, self.cache_write_1h.unwrap_or(write)),
            (usage.completion, self.output),
        ];
        parts.iter().map(|(tokens, usd)| *tokens as f64 * usd).sum::<f64>() / MILLION
    }

    /// Returns the highest possible price of an input token.
    pub fn input_at_most(&self) -> f64 {
        let others = [self.cache_read, self.cache_write, self.cache_write_5m, self.cache_write_1h];
        others.into_iter().flatten().fold(self.input, f64::max)
    }

    /// Returns the price as members of a catalog entry.
    pub fn to_members(&self) -> impl Iterator<Item = (String, Value)> {
        let members = [
            (INPUT, Some(self.input)),
            (OUTPUT, Some(self.output)),
            (CACHE_READ, self.cache_read),
            (CACHE_WRITE, self.cache_write),
            (CACHE_WRITE_5M, self.cache_write_5m),
            (CACHE_WRITE_1H, self.cache_write_1h),
        ];
        members.into_iter().filter_map(|(name, usd)| Some((name.to_owned(), Value::from(usd?))))
    }
}

impl PriceFields {
    /// Returns whether a member of a catalog entry is a price.
    pub fn is_price_member(name: &str) -> bool {
        let known = [INPUT, OUTPUT, CACHE_READ, CACHE_WRITE, CACHE_WRITE_5M, CACHE_WRITE_1H];
        known.contains(&name) || [INPUT_PER_TOKEN, OUTPUT_PER_TOKEN, PRICES, PRICE_AS].contains(&name)
    }

    fn parse(reader: &mut FieldReader<'_>) -> PriceFields {
        let mut usd = |name: &str| reader.number(name, 0.0, USD_MAX);
        let per_token = |usd: Option<f64>| usd.map(|usd| usd * MILLION);
        let (old_input, old_output) = (per_token(usd(INPUT_PER_TOKEN)), per_token(usd(OUTPUT_PER_TOKEN)));
        PriceFields {
            input: usd(INPUT).or(old_input),
            output: usd(OUTPUT).or(old_output),
            cache_read: usd(CACHE_READ),
            cache_write: usd(CACHE_WRITE),
            cache_write_5m: usd(CACHE_WRITE_5M),
            cache_write_1h: usd(CACHE_WRITE_1H),
        }
    }

    fn or(self, other: PriceFields) -> PriceFields {
        PriceFields {
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            cache_read: self.cache_read.or(other.cache_read),
            cache_write: self.cache_write.or(other.cache_write),
            cache_write_5m: self.cache_write_5m.or(other.cache_write_5m),
            cache_write_1h: self.cache_write_1h.or(other.cache_write_1h),
        }
    }
}

impl PriceHistory {
    /// Returns a history with one price that always applies.
    pub fn constant(fields: PriceFields) -> PriceHistory {
        PriceHistory { undated: fields, ..PriceHistory::default() }
    }

    /// Reads the price members of a catalog entry and its list `prices`.
    pub(super) fn parse(path: &str, reader: &mut FieldReader<'_>, output_is_free: bool) -> PriceHistory {
        let undated = PriceFields::parse(reader);
        let mut dated: Vec<(u64, PriceFields)> = Vec::new();
        for (index, value) in reader.list(PRICES).into_iter().flatten().enumerate() {
            let name = format!("{PRICES}[{index}]");
            if index == DATED_PRICES_MAX {
                reader.complain(&name, format!("at most {DATED_PRICES_MAX} prices are allowed"));
                break;
            }
            match dated_price(&format!("{path}.{name}"), value) {
                Ok((begin, fields)) if dated.iter().all(|(other, _)| *other != begin) => dated.push((begin, fields)),
                Ok(_) => reader.complain(&name, "an other price is valid from the same day"),
                Err(complaints) if complaints.is_empty() => {
                    reader.complain(&name, "an object with `valid_from` as `YYYY-MM-DD` and prices was expected");
                }
                Err(complaints) => reader.add(complaints),
            }
        }
        dated.sort_by_key(|(begin, _)| *begin);
        PriceHistory { undated, dated, output_is_free }
    }

    /// Sets whether a missing output price means zero.
    pub(super) fn set_output_is_free(&mut self, is_free: bool) {
        self.output_is_free = is_free;
    }

    pub fn is_empty(&self) -> bool {
        self.undated == PriceFields::default() && self.dated.is_empty()
    }

    /// Merges another history over this one.
    ///
    /// A history with an input price replaces this one. Otherwise, only its own members are added.
    pub(super) fn overlay(&mut self, above: PriceHistory) {
        if above.undated.input.is_some() || !above.dated.is_empty() {
            *self = above;
            return;
        }
        self.undated = above.undated.or(self.undated);
        for (_, fields) in &mut self.dated {
            *fields = above.undated.or(*fields);
        }
    }

    /// Returns the price at a time, or `None` if the price of input or output is unknown.
    pub fn price_at(&self, now_ms: u64) -> Option<ModelPrice> {
        let begun = self.dated.partition_point(|(begin, _)| *begin <= now_ms);
        let fields = begun.checked_sub(1).map_or(&self.undated, |last| &self.dated[last].1);
        let output = fields.output.or(self.output_is_free.then_some(0.0));
        Some(ModelPrice {
            input: fields.input?,
            output: output?,
            cache_read: fields.cache_read,
            cache_write: fields.cache_write,
            cache_write_5m: fields.cache_write_5m,
            cache_write_1h: fields.cache_write_1h,
        })
    }
}

/// Reads an element of `prices`. An error without complaints means that its form is invalid.
fn dated_price(path: &str, value: &Value) -> Result<(u64, PriceFields), Vec<MetadataComplaint>> {
    let no_members = Map::new();
    let members = value.as_object().unwrap_or(&no_members);
    let begin = members.get(VALID_FROM).and_then(Value::as_str).and_then(parse_date);
    let begin = begin.and_then(|begin| u64::try_from(begin).ok()).ok_or_else(Vec::new)?;
    let mut reader = FieldReader::new(path, members);
    let fields = PriceFields::parse(&mut reader);
    let complaints = reader.into_complaints();
    if complaints.is_empty() { Ok((begin, fields)) } else { Err(complaints) }
}
