//! Fuzz targets with their checks, one file each; `fuzz_targets` only calls them.
//!
//! | target | what comes in | what it is held against |
//! |---|---|---|
//! | `body` | a digit for the operation, then the body as a client sends it | a second reader of JSON; rows as sent, one by one |
//! | `merge` | choices that make a history of writes of two rows | the naive model of merging |
//! | `fold` | a document, a patch and rules as texts, apart by zero bytes | the naive model, and what merging can never do |
//! | `cursor` | a request for a page | all rows of the version, and the walk over every page |
//! | `query` | a digit for the form, then an expression, a query as text, or a tree | itself, said again and read again |
//! | `command` | a digit for the kind, then bytes of a command, an entry, a record | what it decodes to, encoded again |
//!
//! A fact that does not hold is a panic: the fuzzer keeps its input.

pub mod body;
pub mod command;
pub mod cursor;
pub mod fold;
pub mod json;
pub mod merge;
pub mod query;
mod naive_row;
mod rows;
mod world;

/// The reference of the model's own property tests, so that both use one naive model.
#[path = "../../../storage/model/tests/suite/naive.rs"]
mod naive;

/// 2026-11-21T05:44:00.123456Z
const NOW_MICROS: i64 = 1_795_239_840_123_456;
const NOW_TEXT: &str = "2026-11-21T05:44:00.123Z";

/// The digit that an input begins with, as a choice of `choices`, and the rest.
fn chosen(input: &[u8], choices: u8) -> Option<(u8, &[u8])> {
    let (first, rest) = input.split_first()?;
    Some((first.wrapping_sub(b'0') % choices, rest))
}

fn parsed(doc: &[u8]) -> serde_json::Value {
    json::read(doc).map(|read| read.value).unwrap_or_else(|| panic!("no JSON: {}", String::from_utf8_lossy(doc)))
}
