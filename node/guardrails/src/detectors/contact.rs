//! E-mail addresses and phone numbers.

use std::ops::Range;

use super::scan::{goes_on, is_behind, is_within_word, is_word, run, template};

/// Bytes of the part before the `@`: more are taken than are valid, so that nothing of it stays.
const LOCAL_BYTES_MAX: usize = 256;
const DOMAIN_BYTES_MAX: usize = 253;
const TOP_DOMAIN_CHARS_MIN: usize = 2;

/// Finds an address with a domain of two labels or more.
pub(super) fn email(bytes: &[u8]) -> Option<Range<usize>> {
    let mut position = 0;
    while let Some(at) = bytes[position..].iter().position(|byte| *byte == b'@') {
        let at = position + at;
        position = at + 1;
        let local = bytes[..at].iter().rev().take(LOCAL_BYTES_MAX).take_while(|byte| is_local(**byte)).count();
        // Dots, quotes and slashes in front belong to the sentence.
        let edge = run(bytes, at - local, local, |byte| byte.is_ascii_punctuation() && byte != b'_');
        let domain = domain_length(bytes, at + 1);
        if local > edge && domain > 0 {
            return Some(at - local + edge..at + 1 + domain);
        }
    }
    None
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte)
}

/// Length of the domain at a position; 0 if there is none. What follows its last valid label does not belong to it.
fn domain_length(bytes: &[u8], start: usize) -> usize {
    let length =
        run(bytes, start, DOMAIN_BYTES_MAX, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    let (mut begin, mut labels, mut valid) = (0, 0, 0);
    let domain = &bytes[start..start + length];
    for label in domain.split(|byte| *byte == b'.') {
        let clean = label.iter().rposition(|byte| *byte != b'-').map_or(0, |last| last + 1);
        if clean == 0 || label[0] == b'-' {
            break;
        }
        labels += 1;
        let is_top = clean >= TOP_DOMAIN_CHARS_MIN && label[..clean].iter().all(u8::is_ascii_alphabetic);
        let is_punycode = label.starts_with(b"xn--");
        if labels >= 2 && (is_top || is_punycode) {
            valid = begin + clean;
        }
        if clean < label.len() {
            break;
        }
        begin += label.len() + 1;
    }
    valid
}

/// National forms: those of North America, then of France, of Britain.
const NATIONAL_FORMS: [&[u8]; 14] = [
    b"Ndd-Ndd-dddd",
    b"Ndd.Ndd.dddd",
    b"(Ndd) Ndd-dddd",
    b"(Ndd)Ndd-dddd",
    b"(Ndd) Ndd dddd",
    b"1-Ndd-Ndd-dddd",
    b"1 (Ndd) Ndd-dddd",
    b"0P dd dd dd dd",
    b"0P.dd.dd.dd.dd",
    b"0P-dd-dd-dd-dd",
    b"0PPd dddd dddd",
    b"0Pd dddd dddd",
    b"0Pdd ddd dddd",
    b"0Pddd dddddd",
];
/// German area codes before a slash.
const AREA_FORMS: [&[u8]; 3] = [b"0Pd/", b"0Pdd/", b"0Pddd/"];
const SUBSCRIBER_DIGITS_MIN: usize = 5;
const SUBSCRIBER_DIGITS_MAX: usize = 9;
/// Digits of a number with its country code (E.164).
const INTERNATIONAL_DIGITS_MIN: usize = 8;
const INTERNATIONAL_DIGITS_MAX: usize = 15;
/// Bytes of such a number with separators.
const INTERNATIONAL_BYTES_MAX: usize = 32;

/// Finds a phone number.
pub(super) fn phone(bytes: &[u8]) -> Option<Range<usize>> {
    let mut position = 0;
    while let Some(start) = bytes[position..].iter().position(|byte| matches!(byte, b'+' | b'(' | b'0'..=b'9')) {
        let start = position + start;
        position = start + 1;
        // A number in the middle of another, of an address or a word is none.
        if is_within_word(bytes, start) || is_behind(bytes, start, |byte| b"+-./@#&%$\\".contains(&byte)) {
            // The rest of the digits is in the middle too.
            position += run(bytes, position, usize::MAX, |byte| byte.is_ascii_digit());
            continue;
        }
        let end = if bytes[start] == b'+' { international(bytes, start) } else { national(bytes, start) };
        if let Some(end) = end {
            return Some(start..end);
        }
        if bytes[start].is_ascii_digit() {
            position += run(bytes, position, usize::MAX, |byte| byte.is_ascii_digit());
        }
    }
    None
}

/// Whether nothing at the end of a number says that it is something else.
fn ends_there(bytes: &[u8], end: usize) -> bool {
    let is_number_further =
        goes_on(bytes, end, |byte| b"-./:".contains(&byte)) && goes_on(bytes, end + 1, |byte| byte.is_ascii_digit());
    !goes_on(bytes, end, |byte| is_word(byte) || byte == b'@') && !is_number_further
}

fn national(bytes: &[u8], start: usize) -> Option<usize> {
    let by_form = NATIONAL_FORMS.iter().filter_map(|form| template(bytes, start, form));
    let by_area = AREA_FORMS.iter().filter_map(|form| {
        let area = template(bytes, start, form)?;
        let digits = run(bytes, area, SUBSCRIBER_DIGITS_MAX + 1, |byte| byte.is_ascii_digit());
        (SUBSCRIBER_DIGITS_MIN..=SUBSCRIBER_DIGITS_MAX).contains(&digits).then_some(area + digits)
    });
    by_form.chain(by_area).find(|end| ends_there(bytes, *end))
}

/// Reads a number behind a `+`: digits, with one separator between them at most, or one in parentheses. Groups of digits
/// with which it would be too long, or go on as a word, belong to something else.
fn international(bytes: &[u8], start: usize) -> Option<usize> {
    let limit = bytes.len().min(start + INTERNATIONAL_BYTES_MAX);
    if !goes_on(bytes, start + 1, |byte| (b'1'..=b'9').contains(&byte)) {
        return None;
    }
    let (mut digits, mut end, mut separators) = (0, start + 1, 0);
    let (mut shorter, mut is_open) = (None, false);
    let is_full = |digits| (INTERNATIONAL_DIGITS_MIN..=INTERNATIONAL_DIGITS_MAX).contains(&digits);
    for (offset, byte) in bytes[start + 1..limit].iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == INTERNATIONAL_DIGITS_MAX {
                    break;
                }
                if separators > 0 && is_full(digits) {
                    shorter = Some(end);
                }
                digits += 1;
                end = start + 1 + offset + 1;
                separators = 0;
            }
            b' ' | b'-' | b'.' | b'/' if separators == 0 => separators = 1,
            b'(' if separators < 2 && !is_open => (separators, is_open) = (separators + 1, true),
            b')' if separators < 2 && is_open => (separators, is_open) = (separators + 1, false),
            // a space beside a parenthesis
            b' ' if separators == 1 && matches!(bytes[start + offset], b')') => separators = 2,
            _ => break,
        }
    }
    (is_full(digits) && !goes_on(bytes, end, is_word)).then_some(end).or(shorter)
}
