//! Numbers of cards and accounts, and social security numbers.

use std::ops::Range;

use super::scan::{goes_on, is_behind, is_within_word, is_word, template};

const CARD_DIGITS_MIN: usize = 13;
const CARD_DIGITS_MAX: usize = 19;
const IBAN_CHARS_MIN: usize = 15;
const IBAN_CHARS_MAX: usize = 34;

/// Finds a number of a card, with spaces or hyphens between its groups.
pub(super) fn credit_card(bytes: &[u8]) -> Option<Range<usize>> {
    let mut position = 0;
    while let Some(start) = bytes[position..].iter().position(u8::is_ascii_digit) {
        let start = position + start;
        position = start + 1;
        // Only the beginning of a group can begin a number.
        if is_within_word(bytes, start) || is_behind(bytes, start, |byte| byte == b'.') {
            continue;
        }
        if let Some(end) = card_end(bytes, start) {
            return Some(start..end);
        }
    }
    None
}

/// Returns the end of the longest valid number that begins here.
fn card_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut digits = [0u8; CARD_DIGITS_MAX];
    let (mut count, mut separator, mut end) = (0, None, None);
    let mut position = start;
    while count < CARD_DIGITS_MAX && goes_on(bytes, position, |byte| byte.is_ascii_digit()) {
        digits[count] = bytes[position] - b'0';
        count += 1;
        position += 1;
        let is_group_end = !goes_on(bytes, position, is_word);
        let is_fraction =
            goes_on(bytes, position, |byte| byte == b'.') && goes_on(bytes, position + 1, |byte| byte.is_ascii_digit());
        if is_group_end && !is_fraction && count >= CARD_DIGITS_MIN && is_card(&digits[..count]) {
            end = Some(position);
        }
        let next = bytes.get(position).copied().filter(|byte| matches!(byte, b' ' | b'-'));
        if let Some(next) = next.filter(|_| goes_on(bytes, position + 1, |byte| byte.is_ascii_digit())) {
            if *separator.get_or_insert(next) != next {
                break;
            }
            position += 1;
        }
    }
    end
}

/// Whether digits are those of a usual issuer, of its length, with a valid check digit.
fn is_card(digits: &[u8]) -> bool {
    let prefix = |length: usize| digits[..length].iter().fold(0u32, |number, digit| number * 10 + u32::from(*digit));
    let is_of_issuer = match digits.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(2), 36 | 38) || matches!(prefix(3), 300..=305),
        15 => matches!(prefix(2), 34 | 37),
        16 => {
            matches!(prefix(1), 4)
                || matches!(prefix(2), 51..=55 | 62 | 65)
                || matches!(prefix(3), 644..=649)
                || matches!(prefix(4), 2221..=2720 | 3528..=3589 | 6011)
        }
        19 => prefix(1) == 4 || matches!(prefix(2), 62 | 65),
        17 | 18 => prefix(2) == 62,
        _ => false,
    };
    is_of_issuer && has_check_digit(digits)
}

/// Checks the digits by the formula of Luhn.
fn has_check_digit(digits: &[u8]) -> bool {
    let sum: u32 = digits.iter().rev().enumerate().map(|(index, digit)| luhn_value(index, u32::from(*digit))).sum();
    sum.is_multiple_of(10)
}

fn luhn_value(index_from_end: usize, digit: u32) -> u32 {
    match (index_from_end % 2, digit * 2) {
        (0, _) => digit,
        (_, doubled) if doubled > 9 => doubled - 9,
        (_, doubled) => doubled,
    }
}

/// Finds an IBAN, whole or in groups of four.
pub(super) fn iban(bytes: &[u8]) -> Option<Range<usize>> {
    let mut position = 0;
    while let Some(start) = bytes[position..].windows(4).position(is_iban_start) {
        let start = position + start;
        position = start + 1;
        if is_within_word(bytes, start) {
            continue;
        }
        if let Some(end) = iban_end(bytes, start) {
            return Some(start..end);
        }
    }
    None
}

fn is_iban_start(four: &[u8]) -> bool {
    four[..2].iter().all(u8::is_ascii_alphabetic) && four[2..].iter().all(u8::is_ascii_digit)
}

fn iban_end(bytes: &[u8], start: usize) -> Option<usize> {
    let country = [bytes[start].to_ascii_uppercase(), bytes[start + 1].to_ascii_uppercase()];
    let length = iban_length(&country)?;
    let mut chars = [0u8; IBAN_CHARS_MAX];
    let (mut count, mut position) = (0, start);
    let mut is_grouped = false;
    while count < length {
        let byte = *bytes.get(position)?;
        let is_group = count > 0 && count % 4 == 0;
        if byte == b' ' && is_group && (is_grouped || count == 4) {
            is_grouped = true;
            position += 1;
            continue;
        }
        // one grouped at its beginning is grouped to its end
        if !byte.is_ascii_alphanumeric() || (is_grouped && is_group && bytes[position - 1] != b' ') {
            return None;
        }
        chars[count] = byte.to_ascii_uppercase();
        count += 1;
        position += 1;
    }
    (!goes_on(bytes, position, is_word) && has_iban_remainder(&chars[..length])).then_some(position)
}

/// Checks an IBAN: its number, with the first four characters at the end, is 1 modulo 97.
fn has_iban_remainder(chars: &[u8]) -> bool {
    let rotated = chars[4..].iter().chain(&chars[..4]);
    let remainder = rotated.fold(0u32, |remainder, byte| match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        letter => (remainder * 100 + u32::from(letter - b'A') + 10) % 97,
    });
    remainder == 1
}

/// Characters of the IBANs of a country.
fn iban_length(country: &[u8; 2]) -> Option<usize> {
    let length = match country {
        b"NO" => IBAN_CHARS_MIN,
        b"BE" => 16,
        b"DK" | b"FI" | b"FO" | b"GL" | b"NL" => 18,
        b"MK" | b"SI" => 19,
        b"AT" | b"BA" | b"EE" | b"KZ" | b"LT" | b"LU" | b"XK" => 20,
        b"CH" | b"HR" | b"LI" | b"LV" => 21,
        b"BG" | b"BH" | b"CR" | b"DE" | b"GB" | b"GE" | b"IE" | b"ME" | b"RS" | b"VA" => 22,
        b"AE" | b"GI" | b"IL" | b"IQ" => 23,
        b"AD" | b"CZ" | b"ES" | b"MD" | b"PK" | b"RO" | b"SA" | b"SE" | b"SK" | b"TN" | b"VG" => 24,
        b"PT" => 25,
        b"IS" | b"TR" => 26,
        b"FR" | b"GR" | b"IT" | b"MC" | b"MR" | b"SM" => 27,
        b"AL" | b"AZ" | b"BY" | b"CY" | b"DO" | b"GT" | b"HU" | b"LB" | b"PL" => 28,
        b"BR" | b"PS" | b"QA" | b"UA" => 29,
        b"JO" | b"KW" | b"MU" => 30,
        b"MT" => 31,
        _ => return None,
    };
    Some(length)
}

/// Finds a social security number. Numbers that were never given out are not taken for one.
pub(super) fn us_ssn(bytes: &[u8]) -> Option<Range<usize>> {
    let mut position = 0;
    while let Some(start) = bytes[position..].iter().position(u8::is_ascii_digit) {
        let start = position + start;
        position = start + 1;
        if is_within_word(bytes, start) || is_behind(bytes, start, |byte| matches!(byte, b'-' | b'.' | b'+')) {
            continue;
        }
        let Some(end) = template(bytes, start, b"ddd-dd-dddd") else { continue };
        let is_further = goes_on(bytes, end, |byte| matches!(byte, b'-' | b'.'))
            && goes_on(bytes, end + 1, |byte| byte.is_ascii_digit());
        let (area, group, serial) = (&bytes[start..start + 3], &bytes[start + 4..start + 6], &bytes[start + 7..end]);
        let is_given = area != b"000" && area != b"666" && area[0] != b'9' && group != b"00" && serial != b"0000";
        if is_given && !is_further && !goes_on(bytes, end, is_word) {
            return Some(start..end);
        }
    }
    None
}
