//! Transaction ids and pagination keys: the two numbers that order rows.
//!
//! ```text
//! xact            0x0DE1 | 32 bits of unix seconds | 16 bits of counter     19 decimal digits, fits an i64
//! pagination key  the low 48 bits of the row's first xact | 16 bits of the row's place in that write
//! ```
//! A busy allocator borrows from the clock: when the counter is used up the seconds go up by one.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

const TAG: u64 = 0x0DE1 << 48;
const LOW: u64 = (1 << 48) - 1;
/// Both factors are public facts of the wire format; each undoes the other modulo 2^64.
const PRETTY_FACTOR: u64 = 205_891_132_094_649;
const PRETTY_INVERSE: u64 = 1_522_336_535_492_693_385;

/// The id of one write; a version when reading.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Xact(pub u64);

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a version: it should be a transaction id of decimal digits, or its 16 hexadecimal digits")]
pub struct NotAnXact(pub String);

impl Xact {
    /// Before every write.
    pub const ZERO: Xact = Xact(0);
    /// Above every write that can exist.
    pub const MAX: Xact = Xact(TAG | LOW);

    pub fn new(seconds: u32, counter: u16) -> Xact {
        Xact(TAG | u64::from(seconds) << 16 | u64::from(counter))
    }

    /// The first id of the second that `micros` since the epoch falls into.
    pub fn at_micros(micros: u64) -> Xact {
        Xact::new(u32::try_from(micros / 1_000_000).unwrap_or(u32::MAX), 0)
    }

    pub fn seconds(self) -> u32 {
        ((self.0 & LOW) >> 16) as u32
    }

    pub fn counter(self) -> u16 {
        (self.0 & 0xFFFF) as u16
    }

    /// The next id; carries from the counter into the seconds.
    pub fn next(self) -> Xact {
        Xact(TAG | ((self.0 & LOW) + 1).min(LOW))
    }

    pub fn low48(self) -> u64 {
        self.0 & LOW
    }

    pub fn pretty(self) -> String {
        format!("{:016x}", self.0.wrapping_mul(PRETTY_FACTOR))
    }

    /// Reads the decimal or the pretty form; "0" is the version of what is empty.
    pub fn parse(text: &str) -> Result<Xact, NotAnXact> {
        let refuse = || NotAnXact(text.chars().take(64).collect());
        if text.len() == 16
            && text.bytes().all(|b| b.is_ascii_hexdigit())
            && let Ok(pretty) = u64::from_str_radix(text, 16)
        {
            return Ok(Xact(TAG | (pretty.wrapping_mul(PRETTY_INVERSE) & LOW)));
        }
        if text.is_empty() || text.len() > 19 || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refuse());
        }
        text.parse().map(Xact).map_err(|_| refuse())
    }
}

impl fmt::Display for Xact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Xact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Xact({})", self.0)
    }
}

/// Position of a row in time order. Assigned by the write that made the row; kept while the row lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PaginationKey(pub u64);

impl PaginationKey {
    pub const MAX: PaginationKey = PaginationKey(u64::MAX);

    pub fn new(first: Xact, row: u16) -> PaginationKey {
        PaginationKey(first.low48() << 16 | u64::from(row))
    }

    /// The write that made the row.
    pub fn first(self) -> Xact {
        Xact(TAG | self.0 >> 16)
    }

    /// `p` and twenty digits; the order of texts equals the order of numbers.
    pub fn parse(text: &str) -> Option<PaginationKey> {
        let digits = text.strip_prefix('p')?;
        if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().map(PaginationKey)
    }
}

impl fmt::Display for PaginationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{:020}", self.0)
    }
}

impl fmt::Debug for PaginationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vector_holds_in_both_directions() {
        let xact = Xact(1_000_192_656_880_881_099);
        assert_eq!(PaginationKey::new(xact, 7).first(), xact);
        assert_eq!((xact.seconds(), xact.counter()), (1_709_970_518, 52_683));
        assert_eq!(xact.pretty(), "81cd05ee665fdfb3");
        assert_eq!(Xact::parse("81cd05ee665fdfb3"), Ok(xact));
        assert_eq!(Xact::parse("1000192656880881099"), Ok(xact));
        assert_eq!(Xact::new(1_709_970_518, 52_683), xact);
    }

    #[test]
    fn every_id_has_nineteen_digits_and_fits_an_i64() {
        for xact in [Xact::new(0, 0), Xact::MAX] {
            assert_eq!(xact.to_string().len(), 19);
            assert!(i64::try_from(xact.0).is_ok());
        }
    }

    #[test]
    fn a_used_up_second_borrows_from_the_next() {
        assert_eq!(Xact::new(7, u16::MAX).next(), Xact::new(8, 0));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "-1", "1e3", "99999999999999999999", "zzzzzzzzzzzzzzzz", "+1cd05ee665fdfb3", "12 "] {
            assert!(Xact::parse(text).is_err(), "{text}");
        }
        assert_eq!(Xact::parse("0"), Ok(Xact::ZERO));
    }

    #[test]
    fn a_pagination_key_reads_back_and_sorts_as_text() {
        let key = PaginationKey::new(Xact::new(1_761_000_000, 3), 41);
        assert_eq!(PaginationKey::parse(&key.to_string()), Some(key));
        let later = PaginationKey::new(Xact::new(1_761_000_000, 4), 0);
        assert!(key < later && key.to_string() < later.to_string());
        assert_eq!(PaginationKey::parse("p1"), None);
    }
}
