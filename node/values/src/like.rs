//! LIKE: `%` matches any run, `_` one character, and a backslash escapes either (D-55). The whole value must match.

use std::cell::Cell;

use memchr::memchr2;
use memchr::memmem::Finder;

use super::{PATTERN_BYTES_MAX, PatternError};

/// Letters that are compared before the caller is asked whether to go on.
const LETTERS_AT_ONCE: usize = 1 << 16;
/// Cost of comparing a letter, in bytes that are only scanned.
const LETTER_WORK: usize = 8;

/// The only letter beyond ASCII whose lower case is one of ASCII, a k: where it is missing, case is a matter of bytes.
const KELVIN: char = '\u{212a}';

/// A pattern, ready to be held against many values.
#[derive(Clone, Debug)]
pub struct Like {
    /// Pieces between the `%`, at least one.
    pieces: Vec<Vec<Piece>>,
    any_case: bool,
    plain: Option<Box<Plain>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Piece {
    Char(char),
    Any,
}

/// Common kind of pattern: one text, and whether anything may come before and after it.
#[derive(Clone, Debug)]
struct Plain {
    /// ASCII text, compared without regard to case if the pattern says so.
    text: String,
    has_k: bool,
    before: bool,
    behind: bool,
    finder: Finder<'static>,
}

/// Counter that asks the caller of a match from time to time whether to go on.
struct Work<'w> {
    goes_on: &'w dyn Fn(usize) -> bool,
    /// Letters that were compared since the last question.
    letters: Cell<usize>,
}

impl Work<'_> {
    /// Whether to go on, so many letters being compared next.
    fn compares(&self, letters: usize) -> bool {
        let letters = self.letters.get().saturating_add(letters);
        if letters < LETTERS_AT_ONCE {
            self.letters.set(letters);
            return true;
        }
        self.letters.set(0);
        (self.goes_on)(letters.saturating_mul(LETTER_WORK))
    }
}

impl Like {
    /// Compiles a pattern; an error where it takes more than [`PATTERN_BYTES_MAX`].
    pub fn new(pattern: &str, any_case: bool) -> Result<Like, PatternError> {
        let mut pieces = vec![Vec::new()];
        let mut chars = pattern.chars();
        while let Some(next) = chars.next() {
            let piece = match next {
                '%' => {
                    pieces.push(Vec::new());
                    continue;
                }
                '_' => Piece::Any,
                '\\' => Piece::Char(chars.next().unwrap_or('\\')),
                other => Piece::Char(other),
            };
            if let Some(last) = pieces.last_mut() {
                last.push(piece);
            }
        }
        let letters: usize = pieces.iter().map(Vec::len).sum();
        if letters * size_of::<Piece>() + pieces.len() * size_of::<Vec<Piece>>() > PATTERN_BYTES_MAX {
            return Err(PatternError::TooLarge);
        }
        let plain = Plain::of(&pieces, any_case).map(Box::new);
        Ok(Like { pieces, any_case, plain })
    }

    /// Whether the whole value fits. `goes_on` is told now and then how much work lies ahead, in bytes that might be
    /// looked at meanwhile. Once it answers false the result says nothing.
    pub fn fits(&self, value: &str, goes_on: &dyn Fn(usize) -> bool) -> bool {
        let work = Work { goes_on, letters: Cell::new(0) };
        if !goes_on(value.len()) {
            return false;
        }
        match &self.plain {
            Some(plain) if !self.any_case => plain.fits(value),
            Some(plain) if !plain.has_k || !value.contains(KELVIN) => plain.fits_any_case(value.as_bytes(), &work),
            _ => self.fits_anyhow(value, &work),
        }
    }

    fn fits_anyhow(&self, value: &str, work: &Work<'_>) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return value.is_empty() };
        let Some(mut value) = self.behind(value, first) else { return false };
        let Some((last, middle)) = rest.split_last() else { return value.is_empty() };
        for piece in middle {
            // The first place where it fits is as good as any.
            let places = value.char_indices().map(|(place, _)| place).chain([value.len()]);
            let mut found = None;
            for place in places {
                if !work.compares(piece.len()) {
                    return false;
                }
                found = self.behind(&value[place..], piece);
                if found.is_some() {
                    break;
                }
            }
            let Some(behind) = found else { return false };
            value = behind;
        }
        let start = match last.len() {
            0 => return true,
            count => value.char_indices().rev().nth(count - 1),
        };
        start.is_some_and(|(start, _)| self.behind(&value[start..], last).is_some())
    }

    /// Returns the rest after the piece, if the value begins with it.
    fn behind<'v>(&self, value: &'v str, piece: &[Piece]) -> Option<&'v str> {
        let mut chars = value.chars();
        let fits = |wanted: char, found: char| {
            wanted == found || self.any_case && wanted.to_lowercase().eq(found.to_lowercase())
        };
        for wanted in piece {
            let found = chars.next()?;
            if matches!(wanted, Piece::Char(wanted) if !fits(*wanted, found)) {
                return None;
            }
        }
        Some(chars.as_str())
    }
}

impl Plain {
    fn of(pieces: &[Vec<Piece>], any_case: bool) -> Option<Plain> {
        let (only, before, behind) = match pieces {
            [only] => (only, false, false),
            [only, last] if last.is_empty() => (only, false, true),
            [first, only] if first.is_empty() => (only, true, false),
            [first, only, last] if first.is_empty() && last.is_empty() => (only, true, true),
            _ => return None,
        };
        let chars = only.iter().map(|piece| match piece {
            Piece::Char(char) if char.is_ascii() || !any_case => Some(*char),
            _ => None,
        });
        let text: String = chars.collect::<Option<_>>()?;
        let finder = Finder::new(text.as_bytes()).into_owned();
        let has_k = text.contains(['k', 'K']);
        Some(Plain { text, has_k, before, behind, finder })
    }

    fn fits(&self, value: &str) -> bool {
        match (self.before, self.behind) {
            (false, false) => value == self.text,
            (false, true) => value.starts_with(&self.text),
            (true, false) => value.ends_with(&self.text),
            (true, true) => self.finder.find(value.as_bytes()).is_some(),
        }
    }

    /// Matches without regard to case a text that lacks the only non-ASCII letter with an ASCII equivalent.
    fn fits_any_case(&self, value: &[u8], work: &Work<'_>) -> bool {
        let text = self.text.as_bytes();
        let Some(spare) = value.len().checked_sub(text.len()) else { return false };
        match (self.before, self.behind) {
            (false, false) => value.eq_ignore_ascii_case(text),
            (false, true) => value[..text.len()].eq_ignore_ascii_case(text),
            (true, false) => value[spare..].eq_ignore_ascii_case(text),
            (true, true) => {
                let Some(first) = text.first() else { return true };
                let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
                let mut from = 0;
                // Beyond the last place where all of it has room nothing is looked for.
                while let Some(step) = memchr2(lower, upper, &value[from..=spare]) {
                    let at = from + step;
                    if !work.compares(text.len()) {
                        return false;
                    }
                    if value[at..at + text.len()].eq_ignore_ascii_case(text) {
                        return true;
                    }
                    from = at + 1;
                    if from > spare {
                        break;
                    }
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(pattern: &str, any_case: bool) -> Like {
        Like::new(pattern, any_case).expect("a pattern of a few letters")
    }

    fn fits_anyhow(pattern: &str, value: &str) -> bool {
        like(pattern, false).fits_anyhow(value, &Work { goes_on: &|_| true, letters: Cell::new(0) })
    }

    fn fits(pattern: &str, any_case: bool, value: &str) -> bool {
        like(pattern, any_case).fits(value, &|_| true)
    }

    #[test]
    fn a_pattern_has_a_size_and_a_match_an_end() {
        let letters = PATTERN_BYTES_MAX / size_of::<Piece>();
        assert!(Like::new(&"a".repeat(letters - 6), false).is_ok());
        assert_eq!(Like::new(&"a".repeat(letters), false).err(), Some(PatternError::TooLarge));
        assert_eq!(Like::new(&"%".repeat(letters), false).err(), Some(PatternError::TooLarge));
        let value = "a".repeat(1 << 20);
        for (pattern, any_case) in [("%a_b%c", false), ("%B%", true)] {
            let pattern = pattern
                .replace('_', &format!("_{}", "a".repeat(10_000)))
                .replace('B', &format!("{}b", "a".repeat(10_000)));
            let asked = Cell::new(0);
            let goes_on = |work: usize| {
                asked.set(asked.get() + 1);
                assert!(work <= 1 << 20, "{work} bytes of work at once");
                asked.get() < 100
            };
            assert!(!like(&pattern, any_case).fits(&value, &goes_on));
            assert_eq!(asked.get(), 100, "it ends where it is told to");
        }
    }

    #[test]
    fn patterns_fit_what_they_say() {
        for (value, pattern, expected) in [
            ("Cancel my order, it was 50% off", r"%50\% off%", true),
            ("it was 50 off", r"%50\% off%", false),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "a_c", true),
            ("ac", "a_c", false),
            ("a_c", r"a\_c", true),
            ("abc", r"a\_c", false),
            ("é", "_", true),
            ("", "%", true),
            ("", "", true),
            ("aab", "%ab", true),
            ("abab", "ab%ab", true),
            ("ab", "ab%ab", false),
            ("a\\", r"a\", true),
            ("xaxbx", "%a%b%", true),
            ("xbxax", "%a%b%", false),
        ] {
            assert_eq!(fits(pattern, false, value), expected, "{value} like {pattern}");
            assert_eq!(fits_anyhow(pattern, value), expected, "{value} like {pattern}");
        }
        assert!(fits("%REFUND%", true, "Where is my refund?"));
        // As many characters as before, whatever their lower case is made of.
        assert!(fits("_", true, "İ"));
        for like in ["%k", "k%", "%k%", "K"].map(|pattern| like(pattern, true)) {
            assert!(like.fits("\u{212a}", &|_| true));
        }
        let is_ascii_below = |letter: &char| letter.to_lowercase().all(|lower| lower.is_ascii());
        assert!(('\u{80}'..=char::MAX).filter(is_ascii_below).eq([KELVIN]));
        for (value, pattern, expected) in [
            ("ABCabd", "%ABD", true),
            ("ABCabd", "aBc%", true),
            ("ABCabd", "%cA%", true),
            ("ABCabd", "%bde%", false),
            ("ABCabd", "abcABD", true),
            ("ABC", "%", true),
            ("", "%", true),
            ("", "%a%", false),
            ("ab", "%b%", true),
            ("aé", "%É", true),
            ("é Refund ü", "%reFUND%", true),
            ("é Refund", "%reFUND", true),
            ("éRefund", "refund", false),
        ] {
            assert_eq!(fits(pattern, true, value), expected, "{value} ilike {pattern}");
        }
        assert!(fits("straße", true, "STRAßE"));
        assert!(!fits("%REFUND%", false, "Where is my refund?"));
    }
}
