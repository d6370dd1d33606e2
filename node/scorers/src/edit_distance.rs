//! Edit distance of two texts, 64 positions at a time, within a bound on the work of one score.

use std::collections::HashMap;

use crate::error::ScorerError;
use crate::texts::AutoevalsPackage;

/// Pairs of characters that one score may compare: two texts of 65,536 characters.
pub const EDIT_PAIRS_MAX: u64 = 1 << 32;
/// Pairs that every comparison costs at the least.
const EDIT_PAIRS_MIN: u64 = 64;
/// Positions of the shorter text in one word.
const WORD_BITS: usize = 64;

/// Work that is left for one score.
#[derive(Debug)]
pub(crate) struct EditBudget {
    scorer: &'static str,
    pairs_left: u64,
}

impl EditBudget {
    pub(crate) fn new(scorer: &'static str) -> EditBudget {
        EditBudget { scorer, pairs_left: EDIT_PAIRS_MAX }
    }

    fn take(&mut self, left: usize, right: usize) -> Result<(), ScorerError> {
        let pairs = (left as u64).saturating_mul(right as u64).max(EDIT_PAIRS_MIN);
        let exceeded =
            ScorerError::LimitExceeded { scorer: self.scorer, subject: "compared text", max: EDIT_PAIRS_MAX };
        self.pairs_left = self.pairs_left.checked_sub(pairs).ok_or(exceeded)?;
        Ok(())
    }
}

/// Returns how similar two texts are, from 0 to 1: one less the part of characters that have to be edited.
pub(crate) fn similarity(
    left: &str,
    right: &str,
    package: AutoevalsPackage,
    budget: &mut EditBudget,
) -> Result<f64, ScorerError> {
    budget.take(left.len().max(right.len()), 1)?;
    if left == right {
        return Ok(1.0);
    }
    let (left, right) = (symbols(left, package), symbols(right, package));
    budget.take(left.len(), right.len())?;
    let length_max = left.len().max(right.len());
    Ok(1.0 - distance(&left, &right) as f64 / length_max as f64)
}

/// Returns the units that the package's language counts: UTF-16 units, or characters in Python.
fn symbols(text: &str, package: AutoevalsPackage) -> Vec<u32> {
    match package {
        AutoevalsPackage::TypeScript => text.encode_utf16().map(u32::from).collect(),
        AutoevalsPackage::Python => text.chars().map(u32::from).collect(),
    }
}

/// Positions of a symbol in the shorter text: words of bits, and where they belong.
type SymbolPositions = HashMap<u32, Vec<(usize, u64)>>;

/// Returns the number of insertions, deletions and replacements between two texts.
///
/// Computes a column of the classic table at once, as differences between its rows in bits: Myers 1999, in the form for
/// long texts of Hyyrö 2003.
fn distance(left: &[u32], right: &[u32]) -> usize {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    if short.is_empty() {
        return long.len();
    }
    let positions = positions(short);
    let words = short.len().div_ceil(WORD_BITS);
    let last_row = 1_u64 << ((short.len() - 1) % WORD_BITS);
    let (mut increases, mut decreases) = (vec![u64::MAX; words], vec![0_u64; words]);
    let mut equal = vec![0_u64; words];
    let mut distance = short.len();
    for symbol in long {
        let found = positions.get(symbol).map(Vec::as_slice).unwrap_or_default();
        for (word, bits) in found {
            equal[*word] = *bits;
        }
        let (mut carried_up, mut carried_down) = (1, 0);
        for word in 0..words {
            let (up, down) = (increases[word], decreases[word]);
            let vertical = equal[word] | down;
            let matching = equal[word] | carried_down;
            let diagonal = ((matching & up).wrapping_add(up) ^ up) | matching;
            let mut across_up = down | !(diagonal | up);
            let mut across_down = up & diagonal;
            if word + 1 == words {
                distance += usize::from(across_up & last_row != 0);
                distance -= usize::from(across_down & last_row != 0);
            }
            let (next_up, next_down) = (across_up >> (WORD_BITS - 1), across_down >> (WORD_BITS - 1));
            across_up = (across_up << 1) | carried_up;
            across_down = (across_down << 1) | carried_down;
            (carried_up, carried_down) = (next_up, next_down);
            increases[word] = across_down | !(vertical | across_up);
            decreases[word] = across_up & vertical;
        }
        for (word, _) in found {
            equal[*word] = 0;
        }
    }
    distance
}

fn positions(text: &[u32]) -> SymbolPositions {
    let mut positions = SymbolPositions::new();
    for (position, symbol) in text.iter().enumerate() {
        let (word, bit) = (position / WORD_BITS, 1 << (position % WORD_BITS));
        let of_symbol = positions.entry(*symbol).or_default();
        match of_symbol.last_mut() {
            Some((last, bits)) if *last == word => *bits |= bit,
            _ => of_symbol.push((word, bit)),
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chars(text: &str) -> Vec<u32> {
        symbols(text, AutoevalsPackage::Python)
    }

    proptest! {
        #[test]
        fn distances_are_those_of_the_classic_table(left in "[abc\u{e9}]{0,150}", right in "[abc\u{e9}]{0,150}") {
            prop_assert_eq!(distance(&chars(&left), &chars(&right)), strsim::levenshtein(&left, &right));
        }

        #[test]
        fn distances_of_long_texts_with_few_edits_are_exact(text in "[a-e]{100,300}", at in 0_usize..100) {
            let edited = format!("{}xyz{}", &text[..at], &text[at + 1..]);
            prop_assert_eq!(distance(&chars(&text), &chars(&edited)), strsim::levenshtein(&text, &edited));
        }
    }

    #[test]
    fn an_emoji_is_two_units_in_typescript_and_one_in_python() {
        let scores = [AutoevalsPackage::TypeScript, AutoevalsPackage::Python]
            .map(|package| similarity("a\u{1f600}", "a", package, &mut EditBudget::new("Levenshtein")).expect("short"));
        assert_eq!(scores, [1.0 - 2.0 / 3.0, 0.5]);
    }

    #[test]
    fn compared_text_is_bounded() {
        let (long, other) = ("a".repeat(70_000), "b".repeat(70_000));
        let mut budget = EditBudget::new("Levenshtein");
        let found = similarity(&long, &other, AutoevalsPackage::Python, &mut budget);
        let text = found.expect_err("too long").to_string();
        assert_eq!(text, "Levenshtein: compared text exceeds the limit of 4294967296");
    }
}
