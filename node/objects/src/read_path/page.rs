//! Pages of a fetch: the cursor, the size of reads, and the end of a page. Pure.

use assay_storage_model::{ObjectKey, PaginationKey, Xact};

/// Upper bound and default of the number of traces in a page.
pub const TRACES_PER_PAGE_MAX: u64 = 1000;
/// Size at which a page ends. The trace that reaches it is included. It also bounds each read.
pub const PAGE_BYTES_MAX: usize = 16 << 20;
/// Number of traces in the first read, before their size is known.
const TRACES_READ_FIRST: usize = 8;
/// Upper bound of the traces in one read.
const TRACES_READ_MAX: usize = 256;
/// Intended size of one read.
const READ_BYTES: usize = 2 << 20;

/// Start of the next page. A cursor is valid on every node and after restarts. It is not secret and grants nothing,
/// since every page is authorized again.
///
/// The text form has lower-case hexadecimal digits of the version, the key, and a checksum of both and the object.
/// Equal cursors have equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Version of the first page. All pages are read at it, so that no row is missing or repeated.
    pub version: Xact,
    pub before: PaginationKey,
}

impl Cursor {
    const DIGITS: usize = 40;

    pub fn to_text(self, object: &ObjectKey) -> String {
        format!("{:016x}{:016x}{:08x}", self.version.0, self.before.0, self.check(object))
    }

    pub fn parse(text: &str, object: &ObjectKey) -> Option<Cursor> {
        if text.len() != Self::DIGITS || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let cursor = Cursor { version: Xact(number(&text[..16])?), before: PaginationKey(number(&text[16..32])?) };
        (number(&text[32..])? == u64::from(cursor.check(object))).then_some(cursor)
    }

    /// Returns an FNV-1a checksum, which detects truncated cursors and those of other objects. It does not protect
    /// against forgery.
    fn check(self, object: &ObjectKey) -> u32 {
        let bytes =
            object.to_bytes().into_iter().chain(self.version.0.to_be_bytes()).chain(self.before.0.to_be_bytes());
        bytes.fold(0x811C_9DC5, |sum: u32, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }
}

/// Progress of a page.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    traces_left: u64,
    traces: usize,
    bytes: usize,
}

impl Progress {
    /// Starts a page of at most this many traces.
    pub fn new(limit: Option<u64>) -> Progress {
        let traces_left = limit.unwrap_or(TRACES_PER_PAGE_MAX).min(TRACES_PER_PAGE_MAX);
        Progress { traces_left, traces: 0, bytes: 0 }
    }

    /// Returns the number of traces to read next, or `None` if the page is full.
    pub fn next(&self) -> Option<usize> {
        if self.traces_left == 0 || self.bytes >= PAGE_BYTES_MAX {
            return None;
        }
        let fitting = match self.traces {
            0 => TRACES_READ_FIRST,
            traces => READ_BYTES.min(PAGE_BYTES_MAX - self.bytes) / (self.bytes / traces).max(1),
        };
        let left = usize::try_from(self.traces_left).unwrap_or(usize::MAX);
        Some(fitting.clamp(1, TRACES_READ_MAX).min(left))
    }

    pub fn read(&mut self, traces: usize, bytes: usize) {
        self.traces_left = self.traces_left.saturating_sub(traces as u64);
        self.traces += traces;
        self.bytes += bytes;
    }
}

/// Returns the start for a deprecated cursor without a known trace: above all rows first written up to `max`.
pub fn before_of(max: Xact) -> PaginationKey {
    PaginationKey::new(max.next(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_storage_model::{ObjectKind, OrgId};
    use uuid::Uuid;

    fn object(n: u128) -> ObjectKey {
        ObjectKey::new(OrgId(Uuid::from_u128(1)), ObjectKind::ProjectLogs, Uuid::from_u128(n))
    }

    #[test]
    fn a_cursor_reads_back_and_a_foreign_or_damaged_one_does_not() {
        let cursor = Cursor { version: Xact::new(7, 9), before: PaginationKey::new(Xact::new(6, 1), 3) };
        let text = cursor.to_text(&object(1));
        assert_eq!(Cursor::parse(&text, &object(1)), Some(cursor));
        assert_eq!(Cursor::parse(&text, &object(2)), None);
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] = if damaged[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(Cursor::parse(std::str::from_utf8(&damaged).expect("text"), &object(1)), None, "at {at}");
        }
        for wrong in ["", "x", &text[1..], &format!("{text}0"), &"é".repeat(20), &text.to_uppercase()] {
            assert_eq!(Cursor::parse(wrong, &object(1)), None, "{wrong}");
        }
    }

    #[test]
    fn a_page_ends_at_its_limit_of_traces_or_of_bytes() {
        assert_eq!(Progress::new(Some(0)).next(), None);
        assert_eq!(Progress::new(Some(3)).next(), Some(3));
        let mut page = Progress::new(None);
        assert_eq!(page.next(), Some(TRACES_READ_FIRST));
        page.read(8, 8 * 1024);
        assert_eq!(page.next(), Some(TRACES_READ_MAX), "small traces are read many at a time");
        page.read(256, 12 << 20);
        assert!(page.next().is_some_and(|traces| (1..60).contains(&traces)), "large ones few at a time");
        page.read(1, 4 << 20);
        assert_eq!(page.next(), None);
        let mut page = Progress::new(Some(u64::MAX));
        page.read(TRACES_PER_PAGE_MAX as usize, 1);
        assert_eq!(page.next(), None);
    }
}
