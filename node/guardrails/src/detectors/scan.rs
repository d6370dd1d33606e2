//! Small steps of detectors over the bytes of a text. All that detectors look for is ASCII.

/// Length of the run of bytes from a position, at most `max`.
pub(super) fn run(bytes: &[u8], from: usize, max: usize, is_in: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().take(max).take_while(|byte| is_in(**byte)).count()
}

/// Whether the byte before a position is one of these. There is none before the first.
pub(super) fn is_behind(bytes: &[u8], position: usize, is_in: impl Fn(u8) -> bool) -> bool {
    position > 0 && is_in(bytes[position - 1])
}

/// Whether a position is within a word of letters, digits and `_`, which is continued before it.
pub(super) fn is_within_word(bytes: &[u8], position: usize) -> bool {
    is_behind(bytes, position, is_word)
}

/// Whether a byte belongs to a word. Letters beyond ASCII do.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Whether a text goes on with a byte of this kind at a position.
pub(super) fn goes_on(bytes: &[u8], position: usize, is_in: impl Fn(u8) -> bool) -> bool {
    bytes.get(position).is_some_and(|byte| is_in(*byte))
}

/// Matches a template, and returns the end of the match. `d` stands for a digit, `P` for one of 1 to 9, `N` for one of 2
/// to 9; other bytes stand for themselves.
pub(super) fn template(bytes: &[u8], from: usize, template: &[u8]) -> Option<usize> {
    let found = bytes.get(from..from + template.len())?;
    let is_match = template.iter().zip(found).all(|(wanted, byte)| match wanted {
        b'd' => byte.is_ascii_digit(),
        b'P' => (b'1'..=b'9').contains(byte),
        b'N' => (b'2'..=b'9').contains(byte),
        wanted => wanted == byte,
    });
    is_match.then_some(from + template.len())
}
