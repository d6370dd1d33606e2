//! Differences of the JSON form of OTLP from plain JSON: identifiers in hexadecimal digits, 64-bit numbers as text,
//! enumerations as numbers. Names of enumerations and `null` are accepted, too.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine as _};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::proto::any_value::Value;
use crate::proto::{AnyValue, ArrayValue, KeyValueList};

/// Base64 with optional padding, because some exporters omit it.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Deserializes a value, with the default for `null`.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Message that must be an object. Derived implementations would also accept a list of its fields.
pub(crate) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Object<T>, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields)).map(Object)
            }
        }
        from.deserialize_map(Fields(PhantomData))
    }
}

/// Deserializes a list of messages. `null` is an empty list.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let items: Option<Vec<Object<T>>> = Option::deserialize(from)?;
    Ok(items.unwrap_or_default().into_iter().map(|Object(item)| item).collect())
}

/// Deserializes hexadecimal digits.
///
/// Any other text becomes a single byte, which is not a valid id. So only this span is refused, and the others are
/// taken.
pub(crate) fn hex<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text: Option<Text> = Option::deserialize(from)?;
    Ok(text.map_or_else(Vec::new, |text| from_hex(&text.0).unwrap_or_else(|| vec![0])))
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

pub(crate) fn unsigned<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number: Option<Integer> = Option::deserialize(from)?;
    let number = number.map_or(0, |number| number.0);
    u64::try_from(number).map_err(|_| D::Error::custom(format!("{number} is not an unsigned 64-bit number")))
}

pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let number: Option<Integer> = Option::deserialize(from)?;
    let number = number.map_or(0, |number| number.0);
    u32::try_from(number).map_err(|_| D::Error::custom(format!("{number} is not an unsigned 32-bit number")))
}

/// Names of span kinds in the order of their numbers.
pub(crate) const SPAN_KINDS: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];
const STATUS_CODES: [&str; 3] = ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

pub(crate) fn span_kind<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    enumeration(from, &SPAN_KINDS)
}

pub(crate) fn status_code<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    enumeration(from, &STATUS_CODES)
}

fn enumeration<'de, D: Deserializer<'de>>(from: D, names: &[&str]) -> Result<i32, D::Error> {
    let Some(given) = Option::<EnumValue>::deserialize(from)? else { return Ok(0) };
    let number = match &given {
        EnumValue::Number(number) => i32::try_from(*number).ok(),
        EnumValue::Name(name) => {
            names.iter().position(|known| known == name).and_then(|place| i32::try_from(place).ok())
        }
    };
    number.ok_or_else(|| D::Error::custom(format!("{given} is not one of {}", names.join(", "))))
}

enum EnumValue {
    Number(i128),
    Name(String),
}

impl fmt::Display for EnumValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnumValue::Number(number) => write!(f, "{number}"),
            EnumValue::Name(name) => write!(f, "{name:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for EnumValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<EnumValue, D::Error> {
        from.deserialize_any(EnumValueVisitor)
    }
}

struct EnumValueVisitor;

impl Visitor<'_> for EnumValueVisitor {
    type Value = EnumValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a name of the enumeration")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<EnumValue, E> {
        Ok(EnumValue::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<EnumValue, E> {
        Ok(EnumValue::Number(number.into()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<EnumValue, E> {
        Ok(text.parse().map_or_else(|_| EnumValue::Name(text.to_owned()), EnumValue::Number))
    }
}

/// Text that is borrowed unless it contains escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Text<'a>, D::Error> {
        from.deserialize_str(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Whole number, as a number or as text.
struct Integer(i128);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Integer, D::Error> {
        from.deserialize_any(IntegerVisitor)
    }
}

struct IntegerVisitor;

impl Visitor<'_> for IntegerVisitor {
    type Value = Integer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or one as text")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Integer, E> {
        Ok(Integer(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Integer, E> {
        Ok(Integer(number.into()))
    }

    /// Accepts whole floats, because some writers only have floats and write nanoseconds with an exponent.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Integer, E> {
        if number.fract() != 0.0 || number.abs() > WHOLE_F64_MAX {
            return Err(E::custom(format!("{number} is not a whole number")));
        }
        Ok(Integer(number as i128))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Integer, E> {
        text.parse().map(Integer).map_err(|_| E::custom(format!("{text:?} is not a whole number")))
    }
}

/// Bound beyond which no number fits into 64 bits.
const WHOLE_F64_MAX: f64 = 18_446_744_073_709_551_615.0;

/// Floating-point number, including the named values that JSON lacks.
struct Double(f64);

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Double, D::Error> {
        from.deserialize_any(DoubleVisitor)
    }
}

struct DoubleVisitor;

impl Visitor<'_> for DoubleVisitor {
    type Value = Double;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"NaN\", \"Infinity\" or \"-Infinity\"")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Double, E> {
        Ok(Double(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Double, E> {
        Ok(Double(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Double, E> {
        Ok(Double(number as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Double, E> {
        text.parse().map(Double).map_err(|_| E::custom(format!("{text:?} is not a number")))
    }
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<AnyValue, D::Error> {
        from.deserialize_map(AnyValueVisitor)
    }
}

struct AnyValueVisitor;

impl<'de> Visitor<'de> for AnyValueVisitor {
    type Value = AnyValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of one value, such as {\"stringValue\": \"...\"}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<AnyValue, M::Error> {
        let mut value = None;
        while let Some(Text(key)) = map.next_key()? {
            let read = match key.as_ref() {
                "stringValue" | "string_value" => map.next_value::<Option<_>>()?.map(Value::String),
                "boolValue" | "bool_value" => map.next_value::<Option<_>>()?.map(Value::Bool),
                "intValue" | "int_value" => map.next_value::<Option<Integer>>()?.map(signed).transpose()?,
                "doubleValue" | "double_value" => {
                    map.next_value::<Option<Double>>()?.map(|number| Value::Double(number.0))
                }
                "arrayValue" | "array_value" => map.next_value::<Option<ArrayValue>>()?.map(Value::Array),
                "kvlistValue" | "kvlist_value" => map.next_value::<Option<KeyValueList>>()?.map(Value::List),
                "bytesValue" | "bytes_value" => map.next_value::<Option<Text>>()?.map(bytes).transpose()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    None
                }
            };
            value = read.or(value);
        }
        Ok(AnyValue { value })
    }
}

fn signed<E: Error>(Integer(number): Integer) -> Result<Value, E> {
    i64::try_from(number).map(Value::Int).map_err(|_| E::custom(format!("{number} is not a signed 64-bit number")))
}

fn bytes<E: Error>(Text(text): Text<'_>) -> Result<Value, E> {
    BASE64.decode(text.as_bytes()).map(Value::Bytes).map_err(|why| E::custom(format!("bytes are not base64: {why}")))
}
