//! Selection of a unit's rows by a filter.
//!
//! Terms are evaluated one by one, the cheapest first. Each term reads only the rows that the previous terms left.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use assay_node_btql::bound::{BoundExpr, Datum, Derived, Field, Function};
use assay_node_btql::values::Words;
use assay_node_expressions::Env;
use assay_storage_segments::WORD_BYTES_MAX;
use assay_storage_shard::Unit;
use memchr::memmem;

use crate::EngineError;
use crate::scan::ScanContext;
use crate::scan::blind;
use crate::scan::inputs::{Compiled, Rows};
use crate::scan::source::{ScanUnit, Source};

/// Number of letters in an escape such as `\u00e9`, after the backslash.
const ESCAPE_LETTERS_MAX: usize = 5;
/// Upper bound of the bytes of the letter at which a word was cut off.
const LETTER_BYTES_MAX: usize = 4;
/// Lower bound of the letters of a part. Shorter parts are in too many words.
const PART_LETTERS_MIN: usize = 3;
/// Cost of reading a long column, which exceeds all other costs.
const WIDE_COST: u32 = 1_000;
/// Upper bound of the rows whose long columns are read in one step.
pub(crate) const WIDE_ROWS: usize = 2048;
/// Bytes of long columns in one step while other queries wait, estimated by the mean row size.
const WIDE_BYTES: usize = 2 << 20;
/// Bytes of long columns in one step while no query waits. Each step reads its first and last pages whole, so short
/// steps repeat reads.
const WIDE_BYTES_ALONE: usize = 6 << 20;
/// Prefix of cache names of conditions.
const NAMED: &str = "condition";
/// Upper bound of a cache name. A longer condition is not cached.
const NAME_BYTES_MAX: usize = 4096;
/// Divisor of the rows below which only the remaining rows are read.
const SPARSE_ONE_IN: usize = 4;

/// Term of a conjunction.
#[derive(Clone, Debug)]
struct Term {
    expr: BoundExpr,
    /// Cache name of the selected rows. It is `None` if caching is not worthwhile, or if the term depends on more than
    /// the rows.
    name: Option<String>,
    sieve: Option<Sieve>,
}

/// Words that the word index must have for the rows that a condition selects.
#[derive(Clone, Debug)]
enum Sieve {
    /// Each row has all words of one of these sets.
    Words(Words),
    /// Each row has a word that contains this part.
    Part(String),
}

/// Filter, split into the terms of its conjunction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Terms of the conjunction, the cheapest first.
    terms: Vec<Term>,
}

impl Filter {
    pub fn of(condition: Option<&BoundExpr>, env: &Env) -> Filter {
        let mut terms = Vec::new();
        condition.into_iter().for_each(|condition| take_apart(condition, &mut terms));
        terms.sort_by_key(cost);
        let sieve = |expr: &BoundExpr| {
            let words = needed_words(expr).map(Sieve::Words);
            words.or_else(|| needed_part(expr).map(Sieve::Part))
        };
        let term = |expr: BoundExpr| Term { name: lasting_name(&expr, env), sieve: sieve(&expr), expr };
        Filter { terms: terms.into_iter().map(term).collect() }
    }

    /// Returns the visible rows of a unit that the filter selects.
    pub fn select(
        &self,
        context: &ScanContext<'_>,
        unit: &Unit,
        source: &Source,
    ) -> Result<BooleanBuffer, EngineError> {
        let (selected, rest) = self.narrow(context, unit, source)?;
        match rest {
            Some(rest) => rest.select(context, selected),
            None => Ok(selected),
        }
    }

    /// Returns the rows left by the terms on short columns, and the remaining terms. The latter are `None` if all are
    /// decided.
    pub fn narrow<'u>(
        &self,
        context: &ScanContext<'u>,
        unit: &'u Unit,
        source: &'u Source,
    ) -> Result<(BooleanBuffer, Option<Rest<'u>>), EngineError> {
        let mut selected = self.possible(context, unit, source)?;
        for (number, term) in self.terms.iter().enumerate() {
            let left = selected.count_set_bits();
            if left == 0 {
                break;
            }
            context.watch.check()?;
            let ready = |term: &Term| {
                let compiled = Compiled::filter(unit, source, context.shared, left, &term.expr, &context.env)?;
                // Results for a blind reader must not be cached for other readers.
                let name = term.name.clone().filter(|_| source.blind.is_none());
                Ok::<_, EngineError>(ReadyTerm { compiled, name })
            };
            let ReadyTerm { compiled, name } = ready(term)?;
            if compiled.is_wide() {
                let others = self.terms[number + 1..].iter().map(ready);
                let all = std::iter::once(Ok(ReadyTerm { compiled, name })).chain(others).collect::<Result<_, _>>()?;
                return Ok((selected, Some(Rest(all))));
            }
            selected = narrowed(&compiled, &selected, left)?;
        }
        Ok((selected, None))
    }

    /// Returns the visible rows, without those that the cache or an index excludes.
    fn possible(&self, context: &ScanContext<'_>, unit: &Unit, source: &Source) -> Result<BooleanBuffer, EngineError> {
        let mut selected = blind::visible(unit, source, context.shared)?;
        for term in &self.terms {
            if selected.count_set_bits() == 0 {
                break;
            }
            let name = term.name.as_ref().filter(|_| source.blind.is_none());
            let judged = name.and_then(|name| recalled(context, unit, name));
            if let Some(Judged { known, found }) = judged {
                selected = &selected & &(&found | &!&known);
            } else if let Some(sieve) = &term.sieve
                && let Some(may) = sieve.of(unit)?
            {
                selected = &selected & &may;
                if let Some(name) = name {
                    // The result is cached, so the index is queried only once.
                    Judged { known: !&may, found: BooleanBuffer::new_unset(unit.rows()) }.remember(context, unit, name);
                }
            }
        }
        Ok(selected)
    }
}

impl Sieve {
    /// Returns the rows that may satisfy the condition, or `None` if they are unknown.
    fn of(&self, unit: &Unit) -> Result<Option<BooleanBuffer>, EngineError> {
        match self {
            Sieve::Words(words) => with_words(unit, words),
            // A truncated word may continue with the part.
            Sieve::Part(part) => Ok(unit.with_a_word(&|word: &[u8]| {
                word.len() + LETTER_BYTES_MAX > WORD_BYTES_MAX || memmem::find(word, part.as_bytes()).is_some()
            })?),
        }
    }
}

/// Cached result of a condition over a unit: the rows for which it is known, and those that satisfy it.
struct Judged {
    known: BooleanBuffer,
    found: BooleanBuffer,
}

impl Judged {
    fn remember(self, context: &ScanContext<'_>, unit: &Unit, name: &str) {
        let judged: ArrayRef = Arc::new(BooleanArray::new(self.found, Some(NullBuffer::new(self.known))));
        unit.remember(&context.shared.cache, name, &judged);
    }
}

fn recalled(context: &ScanContext<'_>, unit: &Unit, name: &str) -> Option<Judged> {
    let judged = unit.recall(&context.shared.cache, name)?;
    let judged = judged.as_boolean();
    let all = || BooleanBuffer::new_set(judged.len());
    let known = judged.nulls().map_or_else(all, |nulls| nulls.inner().clone());
    Some(Judged { known, found: judged.values().clone() })
}

/// Term that is compiled for a unit.
struct ReadyTerm<'u> {
    compiled: Compiled<'u>,
    name: Option<String>,
}

/// Remaining terms. The first of them reads a long column.
pub(crate) struct Rest<'u>(Vec<ReadyTerm<'u>>);

/// Rows with a cached result that satisfy all terms, and rows that still have to be read.
pub(crate) struct KnownRows {
    pub found: BooleanBuffer,
    pub open: BooleanBuffer,
}

impl Rest<'_> {
    /// Returns the cached results for rows, without reading any.
    pub fn known(&self, context: &ScanContext<'_>, rows: &BooleanBuffer) -> KnownRows {
        let mut known_rows = KnownRows { found: rows.clone(), open: BooleanBuffer::new_unset(rows.len()) };
        for ready in &self.0 {
            let judged = ready.name.as_ref().and_then(|name| recalled(context, ready.compiled.unit(), name));
            let Some(Judged { known, found }) = judged else {
                return KnownRows { found: BooleanBuffer::new_unset(rows.len()), open: rows.clone() };
            };
            known_rows.open = &known_rows.open | &(&known_rows.found & &!&known);
            known_rows.found = &(&known_rows.found & &found) & &known;
        }
        known_rows
    }

    /// Returns the rows that satisfy all terms.
    pub fn select(&self, context: &ScanContext<'_>, mut rows: BooleanBuffer) -> Result<BooleanBuffer, EngineError> {
        for ready in &self.0 {
            if rows.count_set_bits() == 0 {
                break;
            }
            rows = ready.select(context, &rows)?;
        }
        Ok(rows)
    }
}

impl ReadyTerm<'_> {
    /// Returns the rows that satisfy the term, and caches new results.
    fn select(&self, context: &ScanContext<'_>, rows: &BooleanBuffer) -> Result<BooleanBuffer, EngineError> {
        let Some(name) = &self.name else { return by_parts(context, &self.compiled, rows) };
        let unit = self.compiled.unit();
        let none = || BooleanBuffer::new_unset(unit.rows());
        let judged = recalled(context, unit, name).unwrap_or_else(|| Judged { known: none(), found: none() });
        let Judged { known, found } = judged;
        let open = rows & &!&known;
        if open.count_set_bits() == 0 {
            return Ok(rows & &found);
        }
        let found = &found | &by_parts(context, &self.compiled, &open)?;
        Judged { known: &known | &open, found: found.clone() }.remember(context, unit, name);
        Ok(rows & &found)
    }
}

/// Returns whether an expression reads a long column.
pub(crate) fn is_wide(expr: &BoundExpr) -> bool {
    cost(expr) >= WIDE_COST
}

/// Narrows the selected rows to those that satisfy one more condition, which reads no long column.
pub(crate) fn narrow(
    context: &ScanContext<'_>,
    piece: &ScanUnit,
    selected: &BooleanBuffer,
    condition: &BoundExpr,
) -> Result<BooleanBuffer, EngineError> {
    let left = selected.count_set_bits();
    let source = &context.sources[piece.source];
    let compiled = Compiled::filter(&piece.unit, source, context.shared, left, condition, &context.env)?;
    narrowed(&compiled, selected, left)
}

/// Narrows the selected rows of a whole unit in one step.
fn narrowed(compiled: &Compiled<'_>, selected: &BooleanBuffer, left: usize) -> Result<BooleanBuffer, EngineError> {
    let range = 0..selected.len();
    if left * SPARSE_ONE_IN > selected.len() {
        let found = compiled.run_filter(&Rows { range, keep: None })?;
        return Ok(selected & &found);
    }
    let found = compiled.run_filter(&Rows { range, keep: Some(selected) })?;
    Ok(spread(selected, &found))
}

/// Applies a filter part by part, to bound the memory of long columns.
fn by_parts(
    context: &ScanContext<'_>,
    compiled: &Compiled<'_>,
    selected: &BooleanBuffer,
) -> Result<BooleanBuffer, EngineError> {
    let mut all = BooleanBufferBuilder::new(selected.len());
    let mut parts = Parts::of(selected);
    while let Some(range) = parts.next(rows_at_once(context, compiled.unit())) {
        let keep = selected.slice(range.start, range.len());
        if keep.count_set_bits() == 0 {
            all.append_n(range.len(), false);
            continue;
        }
        context.watch.check()?;
        let found = compiled.run_filter(&Rows { range, keep: Some(&keep) })?;
        all.append_buffer(&spread(&keep, &found));
    }
    Ok(all.finish())
}

/// Returns the number of rows whose long columns are read in the next step. Other queries may take their turns between
/// two steps.
pub(crate) fn rows_at_once(context: &ScanContext<'_>, unit: &Unit) -> usize {
    let bytes = if context.shared.workers.waiting() > 0 { WIDE_BYTES } else { WIDE_BYTES_ALONE };
    (bytes / unit.row_bytes().max(1)).clamp(1, WIDE_ROWS)
}

/// Iterator over consecutive ranges that cover all rows.
pub(crate) struct Parts<'s> {
    selected: &'s BooleanBuffer,
    start: usize,
}

impl Parts<'_> {
    pub fn of(selected: &BooleanBuffer) -> Parts<'_> {
        Parts { selected, start: 0 }
    }

    /// Returns the next range, with at most `most` selected rows.
    pub fn next(&mut self, most: usize) -> Option<Range<usize>> {
        let (start, all) = (self.start, self.selected.len());
        if start == all {
            return None;
        }
        let (mut wanted, mut end) = (0, all);
        if most >= all - start {
            self.start = all;
            return Some(start..all);
        }
        for (from, to) in self.selected.slice(start, all - start).set_slices() {
            if wanted + (to - from) >= most {
                end = start + from + (most - wanted);
                break;
            }
            wanted += to - from;
        }
        self.start = end;
        Some(start..end)
    }
}

/// Maps results over kept rows back to positions among all rows.
fn spread(kept: &BooleanBuffer, found: &BooleanBuffer) -> BooleanBuffer {
    let mut all = BooleanBufferBuilder::new(kept.len());
    all.append_n(kept.len(), false);
    for (number, place) in kept.set_indices().enumerate() {
        if found.value(number) {
            all.set_bit(place, true);
        }
    }
    all.finish()
}

/// Returns the cache name of a condition on a long column, if the condition depends only on the rows.
fn lasting_name(expr: &BoundExpr, env: &Env) -> Option<String> {
    if !is_wide(expr) || !is_of_rows(expr) {
        return None;
    }
    let name = format!("{NAMED} {} {expr:?}", env.tz_offset);
    (name.len() <= NAME_BYTES_MAX).then_some(name)
}

fn is_of_rows(expr: &BoundExpr) -> bool {
    match expr {
        BoundExpr::Const(_) => true,
        BoundExpr::Field(Field::Column(name), _) => !matches!(*name, "comments" | "audit_data"),
        BoundExpr::Field(Field::Derived(derived), _) => *derived != Derived::EstimatedCost,
        BoundExpr::Field(..) => false,
        BoundExpr::Call(_, of) => of.iter().all(is_of_rows),
        BoundExpr::If(cases, otherwise) => {
            cases.iter().all(|(condition, then)| is_of_rows(condition) && is_of_rows(then)) && is_of_rows(otherwise)
        }
    }
}

fn take_apart(condition: &BoundExpr, terms: &mut Vec<BoundExpr>) {
    match condition {
        BoundExpr::Call(Function::And, of) => of.iter().for_each(|of| take_apart(of, terms)),
        other => terms.push(other.clone()),
    }
}

/// Returns the approximate cost of a term. Long columns cost most, then terms that are evaluated text by text.
fn cost(term: &BoundExpr) -> u32 {
    match term {
        BoundExpr::Const(_) => 0,
        BoundExpr::Field(Field::Column(name), steps) if steps.is_empty() => match *name {
            "id" | "span_id" | "root_span_id" => 4,
            "_pagination_key" | "_xact_id" | "is_root" | "created" => 1,
            "comments" | "audit_data" => 10 * WIDE_COST,
            _ => WIDE_COST,
        },
        BoundExpr::Field(..) => 8,
        BoundExpr::Call(function, of) => {
            let itself = match function {
                Function::Like { .. } | Function::Match | Function::Regex { .. } => 16,
                _ => 1,
            };
            of.iter().map(cost).sum::<u32>() + itself
        }
        BoundExpr::If(cases, otherwise) => {
            cases.iter().map(|(condition, then)| cost(condition) + cost(then)).sum::<u32>() + cost(otherwise)
        }
    }
}

/// Returns the words that a row needs to satisfy the term, if the word index can have them.
fn needed_words(term: &BoundExpr) -> Option<Words> {
    match term {
        BoundExpr::Call(Function::Match, args) => match args.as_slice() {
            [BoundExpr::Field(Field::Column(column), _), BoundExpr::Const(query)] if is_indexed(column) => {
                words_of(query)
            }
            _ => None,
        },
        // `search()` looks for the same words in several fields.
        BoundExpr::Call(Function::Or, of) => {
            let mut all = of.iter().map(needed_words);
            let first = all.next()??;
            all.all(|other| other.as_ref() == Some(&first)).then_some(first)
        }
        _ => None,
    }
}

/// Returns a part of a word, in lower case, that is in every text matching a pattern.
fn needed_part(term: &BoundExpr) -> Option<String> {
    let BoundExpr::Call(Function::Like { .. }, args) = term else { return None };
    match args.as_slice() {
        [BoundExpr::Field(Field::Column(column), _), BoundExpr::Const(Datum::Text(pattern))] if is_indexed(column) => {
            longest_part(pattern)
        }
        _ => None,
    }
}

/// Returns the longest run of letters and digits without wildcards in a pattern.
///
/// The beginning of a run may be the end of a JSON escape, which is no part of a word.
fn longest_part(pattern: &str) -> Option<String> {
    let runs = pattern.split(|letter: char| !letter.is_ascii_alphanumeric());
    let after_escapes = |run: &str| {
        let may_end_one = |letter: char| letter.is_ascii_hexdigit() || "nrtu".contains(letter);
        let end = run.char_indices().take(ESCAPE_LETTERS_MAX).find(|(_, letter)| !may_end_one(*letter));
        let end = end.map_or(run.len().min(ESCAPE_LETTERS_MAX), |(place, _)| place);
        run[end..].to_ascii_lowercase()
    };
    let longest = runs.map(after_escapes).max_by_key(String::len)?;
    (longest.len() >= PART_LETTERS_MIN).then_some(longest)
}

fn words_of(query: &Datum) -> Option<Words> {
    let words = Words::of(&query.to_value());
    (!words.queries().is_empty()).then_some(words)
}

fn is_indexed(column: &str) -> bool {
    assay_storage_segments::INDEXED_FIELDS.contains(&column)
}

/// Returns the rows that may have all words of one of the queries, or `None` if they are unknown.
fn with_words(unit: &Unit, words: &Words) -> Result<Option<BooleanBuffer>, EngineError> {
    let mut all: Option<BooleanBuffer> = None;
    for query in words.queries() {
        let query: Vec<&str> = query.iter().map(String::as_str).collect();
        let Some(found) = unit.with_words(&query)? else { return Ok(None) };
        all = Some(match all {
            Some(all) => &all | &found,
            None => found,
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_rows_and_none_has_too_many() {
        let bits = |of: &dyn Fn(usize) -> bool, rows: usize| BooleanBuffer::collect_bool(rows, of);
        for selected in [
            bits(&|_| true, 10 * WIDE_ROWS + 7),
            bits(&|row| row % 3 == 0, 50_000),
            bits(&|row| row > 49_000, 50_000),
            bits(&|_| false, 5000),
            bits(&|_| true, WIDE_ROWS),
            bits(&|_| true, 0),
        ] {
            let (mut parts, mut next) = (Parts::of(&selected), 0);
            for most in [WIDE_ROWS, 1, WIDE_ROWS / 2].into_iter().cycle() {
                let Some(part) = parts.next(most) else { break };
                assert!(part.start == next && part.end > next, "{part:?} behind {next}");
                next = part.end;
                assert!(selected.slice(part.start, part.len()).count_set_bits() <= most);
            }
            assert_eq!(next, selected.len());
        }
    }

    #[test]
    fn what_was_found_of_some_rows_is_found_among_all() {
        let kept = BooleanBuffer::from(vec![false, true, true, false, true]);
        let found = BooleanBuffer::from(vec![true, false, true]);
        assert_eq!(spread(&kept, &found), BooleanBuffer::from(vec![false, true, false, false, true]));
    }
}
