//! API keys of usual providers, JWTs, and private keys.

use std::ops::Range;

use super::scan::{goes_on, is_behind, is_word, run};

/// Characters behind the prefix of a key.
#[derive(Clone, Copy)]
enum KeyChars {
    /// Letters and digits.
    Plain,
    /// Capital letters and digits.
    Capital,
    Hexadecimal,
    /// Letters, digits, `_` and `-`.
    Dashed,
    /// Those, and dots.
    Dotted,
}

/// Form of the keys of a provider.
struct KeyForm {
    prefix: &'static str,
    chars: KeyChars,
    chars_min: usize,
    chars_max: usize,
}

/// Characters of a key that no provider exceeds.
const KEY_CHARS_MAX: usize = 512;

const fn form(prefix: &'static str, chars: KeyChars, chars_min: usize) -> KeyForm {
    KeyForm { prefix, chars, chars_min, chars_max: KEY_CHARS_MAX }
}

const fn exact(prefix: &'static str, chars: KeyChars, count: usize) -> KeyForm {
    KeyForm { prefix, chars, chars_min: count, chars_max: count }
}

const KEY_FORMS: [KeyForm; 37] = [
    // OpenAI, Anthropic, Braintrust and their kin
    form("sk-", KeyChars::Dashed, 20),
    form("bt-st-", KeyChars::Plain, 20),
    // Stripe
    form("sk_live_", KeyChars::Plain, 16),
    form("sk_test_", KeyChars::Plain, 16),
    form("rk_live_", KeyChars::Plain, 16),
    form("rk_test_", KeyChars::Plain, 16),
    // AWS
    exact("AKIA", KeyChars::Capital, 16),
    exact("ASIA", KeyChars::Capital, 16),
    // GitHub, GitLab
    form("ghp_", KeyChars::Plain, 36),
    form("gho_", KeyChars::Plain, 36),
    form("ghu_", KeyChars::Plain, 36),
    form("ghs_", KeyChars::Plain, 36),
    form("ghr_", KeyChars::Plain, 36),
    form("github_pat_", KeyChars::Dashed, 22),
    form("glpat-", KeyChars::Dotted, 20),
    // Slack
    form("xoxb-", KeyChars::Dashed, 20),
    form("xoxp-", KeyChars::Dashed, 20),
    form("xoxa-", KeyChars::Dashed, 20),
    form("xoxr-", KeyChars::Dashed, 20),
    form("xoxs-", KeyChars::Dashed, 20),
    form("xapp-", KeyChars::Dashed, 20),
    // Google
    exact("AIza", KeyChars::Dashed, 35),
    form("ya29.", KeyChars::Dotted, 20),
    form("GOCSPX-", KeyChars::Dashed, 20),
    // servers of models
    form("hf_", KeyChars::Plain, 30),
    form("gsk_", KeyChars::Plain, 40),
    form("xai-", KeyChars::Plain, 40),
    form("pplx-", KeyChars::Plain, 40),
    form("r8_", KeyChars::Plain, 30),
    form("fw_", KeyChars::Plain, 20),
    // registries of packages
    form("npm_", KeyChars::Plain, 36),
    form("pypi-", KeyChars::Dashed, 40),
    // others
    form("SG.", KeyChars::Dotted, 40),
    form("dop_v1_", KeyChars::Hexadecimal, 64),
    form("shpat_", KeyChars::Hexadecimal, 32),
    form("lin_api_", KeyChars::Plain, 30),
    form("dckr_pat_", KeyChars::Dashed, 20),
];

impl KeyChars {
    fn contains(self, byte: u8) -> bool {
        match self {
            KeyChars::Plain => byte.is_ascii_alphanumeric(),
            KeyChars::Capital => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            KeyChars::Hexadecimal => byte.is_ascii_hexdigit(),
            KeyChars::Dashed => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            KeyChars::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        }
    }
}

/// Finds a key by its prefix.
pub(super) fn api_key(bytes: &[u8]) -> Option<Range<usize>> {
    let mut position = 0;
    while let Some(start) = bytes[position..].iter().position(u8::is_ascii_alphabetic) {
        let start = position + start;
        if !is_behind(bytes, start, |byte| is_word(byte) || byte == b'-') {
            let end = KEY_FORMS.iter().find_map(|form| key_end(bytes, start, form));
            if let Some(end) = end {
                return Some(start..end);
            }
        }
        // Only the beginning of a word can begin a key.
        position = start + run(bytes, start, usize::MAX, is_word);
    }
    None
}

fn key_end(bytes: &[u8], start: usize, form: &KeyForm) -> Option<usize> {
    let begin = start + form.prefix.len();
    if !bytes[start..].starts_with(form.prefix.as_bytes()) {
        return None;
    }
    let mut length = run(bytes, begin, form.chars_max, |byte| form.chars.contains(byte));
    // A dot or a hyphen at the end belongs to the sentence.
    length -= bytes[begin..begin + length].iter().rev().take_while(|byte| matches!(byte, b'.' | b'-')).count();
    let key = &bytes[begin..begin + length];
    // Words with hyphens between them have no digits.
    let is_random = key.iter().any(u8::is_ascii_digit) && key.iter().any(u8::is_ascii_alphabetic);
    // A key without an upper bound may be longer than any known: what follows is left then.
    let is_whole = length == KEY_CHARS_MAX || !goes_on(bytes, begin + length, is_word);
    (length >= form.chars_min && is_random && is_whole).then_some(begin + length)
}

/// Beginning of a JSON object in base64.
const OBJECT_START: &[u8] = b"eyJ";
/// Characters of each part of a token, with its beginning.
const JWT_PART_CHARS_MIN: usize = 8;

/// Finds a signed token: a header and claims that are objects, and a signature.
pub(super) fn jwt(bytes: &[u8]) -> Option<Range<usize>> {
    let is_part = |byte: u8| KeyChars::Dashed.contains(byte);
    let mut position = 0;
    while let Some(start) = bytes[position..].windows(OBJECT_START.len()).position(|three| three == OBJECT_START) {
        let start = position + start;
        let header = run(bytes, start, usize::MAX, is_part);
        position = start + header;
        if is_behind(bytes, start, is_part) {
            continue;
        }
        let claims_start = start + header + 1;
        if header < JWT_PART_CHARS_MIN
            || !goes_on(bytes, start + header, |byte| byte == b'.')
            || !bytes[claims_start..].starts_with(OBJECT_START)
        {
            continue;
        }
        let claims = run(bytes, claims_start, usize::MAX, is_part);
        let signature_start = claims_start + claims + 1;
        if claims < JWT_PART_CHARS_MIN || !goes_on(bytes, claims_start + claims, |byte| byte == b'.') {
            continue;
        }
        let signature = run(bytes, signature_start, usize::MAX, is_part);
        if signature >= JWT_PART_CHARS_MIN {
            return Some(start..signature_start + signature);
        }
    }
    None
}

const PEM_BEGIN: &str = "-----BEGIN ";
const PEM_END: &str = "-----END ";
const PEM_DASHES: &str = "-----";
/// Bytes of the label of a PEM block.
const PEM_LABEL_BYTES_MAX: usize = 64;

/// Finds a private key in PEM. One without its end reaches to the end of the text: the rest of the key may be there.
pub(super) fn private_key(text: &str) -> Option<Range<usize>> {
    let mut position = 0;
    while let Some(start) = text[position..].find(PEM_BEGIN) {
        let start = position + start;
        position = start + PEM_BEGIN.len();
        let Some(behind_label) = label_end(text, position) else { continue };
        if !text[position..behind_label].contains("PRIVATE KEY") {
            continue;
        }
        let end = text[behind_label..].find(PEM_END).map(|end| behind_label + end + PEM_END.len());
        let end = end.and_then(|end| label_end(text, end));
        return Some(start..end.unwrap_or(text.len()));
    }
    None
}

/// Returns the end of a label with the dashes behind it.
fn label_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let length = run(bytes, start, PEM_LABEL_BYTES_MAX, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    text[start + length..].starts_with(PEM_DASHES).then_some(start + length + PEM_DASHES.len())
}
