//! Parsing of a JSON text for a typed column. Equal values with different spellings are the same.

use std::borrow::Cow;

/// Largest integer up to which all integers are exact as 64-bit floats.
const SAFE: u64 = 1 << 53;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Finite number that is not an integer of 53 bits.
    Float(f64),
    Text(Cow<'a, str>),
    /// Object, array, number beyond both kinds of numbers, or invalid JSON.
    Other,
}

impl Scalar<'_> {
    pub fn of(text: &[u8]) -> Scalar<'_> {
        match text.first() {
            Some(b'"') => text_of(text),
            Some(b't') if text == b"true" => Scalar::Bool(true),
            Some(b'f') if text == b"false" => Scalar::Bool(false),
            Some(b'n') if text == b"null" => Scalar::Null,
            Some(b'-' | b'0'..=b'9') => number(text),
            _ => Scalar::Other,
        }
    }
}

/// Returns the float that equals an integer, if there is one.
pub(crate) fn exact_float(int: i64) -> Option<f64> {
    (int.unsigned_abs() <= SAFE).then_some(int as f64)
}

fn text_of(text: &[u8]) -> Scalar<'_> {
    let Some(inside) = text.get(1..text.len() - 1).filter(|_| text.len() > 1) else { return Scalar::Other };
    let text = match memchr::memchr(b'\\', inside) {
        None => std::str::from_utf8(inside).ok().map(Cow::Borrowed),
        Some(_) => serde_json::from_slice(text).ok().map(Cow::Owned),
    };
    text.map_or(Scalar::Other, Scalar::Text)
}

fn number(text: &[u8]) -> Scalar<'_> {
    let Ok(text) = std::str::from_utf8(text) else { return Scalar::Other };
    if !text.contains(['.', 'e', 'E']) {
        return text.parse().map_or(Scalar::Other, Scalar::Int);
    }
    match text.parse::<f64>() {
        Ok(float) if float.fract() == 0.0 && float.abs() <= SAFE as f64 => Scalar::Int(float as i64),
        Ok(float) if float.is_finite() => Scalar::Float(float),
        _ => Scalar::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_the_same() {
        let of = |text: &'static str| Scalar::of(text.as_bytes());
        assert_eq!(of("null"), Scalar::Null);
        assert_eq!((of("true"), of("false")), (Scalar::Bool(true), Scalar::Bool(false)));
        assert_eq!((of("3"), of("3.0"), of("0.3e1"), of("-0.0")), {
            (Scalar::Int(3), Scalar::Int(3), Scalar::Int(3), Scalar::Int(0))
        });
        assert_eq!((of("9223372036854775807"), of("9223372036854775808")), (Scalar::Int(i64::MAX), Scalar::Other));
        assert_eq!((of("0.5"), of("1e20"), of("1e999")), (Scalar::Float(0.5), Scalar::Float(1e20), Scalar::Other));
        assert_eq!(of(r#""a\u00e9""#), Scalar::Text("aé".into()));
        assert_eq!((of("\"\""), of("\"é\"")), (Scalar::Text("".into()), Scalar::Text("é".into())));
    }

    #[test]
    fn what_is_no_scalar_is_neither() {
        for text in ["", "{}", "[1]", "\"", "tru", "nul", "-", "\"\\x\"", "1x", "\u{fe}"] {
            assert_eq!(Scalar::of(text.as_bytes()), Scalar::Other, "{text}");
        }
        assert_eq!(Scalar::of(b"\"\xff\""), Scalar::Other);
    }

    #[test]
    fn a_float_is_exact_up_to_53_bits() {
        assert_eq!(exact_float(-(1 << 53)), Some(-9_007_199_254_740_992.0));
        assert_eq!(exact_float((1 << 53) + 1), None);
        assert_eq!(exact_float(i64::MIN), None);
    }
}
