//! Encoding of parts of answers for other nodes: little-endian numbers, lengths before contents, and a tag byte before each
//! value. Decoding trusts nothing: it reserves no memory for more items than the remaining bytes can hold.

use std::borrow::Cow;

use assay_node_btql::ast::{DEPTH_MAX, Interval, Unit};
use assay_node_btql::level;
use assay_node_btql::values::Value;

use crate::aggregates::Damaged;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const UNSIGNED: u8 = 4;
const FLOAT: u8 = 5;
const TEXT: u8 = 6;
const TIME: u8 = 7;
const STORED: u8 = 8;
const XACT: u8 = 9;
const INTERVAL: u8 = 10;
const ARRAY: u8 = 11;
const OBJECT: u8 = 12;
const LIST: u8 = 13;
const MEMBERS: u8 = 14;

const UNITS: [Unit; 9] = [
    Unit::Microsecond,
    Unit::Millisecond,
    Unit::Second,
    Unit::Minute,
    Unit::Hour,
    Unit::Day,
    Unit::Week,
    Unit::Month,
    Unit::Year,
];

pub fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub fn put_u128(out: &mut Vec<u8>, number: u128) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub fn put_f64(out: &mut Vec<u8>, number: f64) {
    put_u64(out, number.to_bits());
}

pub fn put_count(out: &mut Vec<u8>, count: usize) {
    put_u64(out, count as u64);
}

fn put_text(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    put_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

pub fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
    let mut number = |kind: u8, bits: u64| {
        out.push(kind);
        put_u64(out, bits);
    };
    match value {
        Value::Null => out.push(NULL),
        Value::Boolean(boolean) => out.push(if *boolean { TRUE } else { FALSE }),
        Value::Integer(of) => number(INTEGER, of.cast_unsigned()),
        Value::Unsigned(of) => number(UNSIGNED, *of),
        Value::Float(of) => number(FLOAT, of.to_bits()),
        Value::Time(of) => number(TIME, of.cast_unsigned()),
        Value::Stored(of) => number(STORED, of.cast_unsigned()),
        Value::Xact(of) => number(XACT, *of),
        Value::Interval(of) => {
            number(INTERVAL, of.value.cast_unsigned());
            out.push(UNITS.iter().position(|unit| *unit == of.unit).unwrap_or_default() as u8);
        }
        Value::Text(text) => put_text(out, TEXT, text),
        Value::Array(json) => put_text(out, ARRAY, json),
        Value::Object(json) => put_text(out, OBJECT, json),
        Value::List(of) => {
            out.push(LIST);
            put_count(out, of.len());
            level(|| of.iter().for_each(|element| put_value(out, element)));
        }
        Value::Members(of) => {
            out.push(MEMBERS);
            put_count(out, of.len());
            level(|| {
                for (key, member) in of {
                    put_text(out, TEXT, key);
                    put_value(out, member);
                }
            });
        }
    }
}

/// Reader of the remaining bytes.
#[derive(Debug)]
pub struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader(bytes)
    }

    pub fn rest(&self) -> &'b [u8] {
        self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'b [u8], Damaged> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn byte(&mut self) -> Result<u8, Damaged> {
        Ok(self.array::<1>()?[0])
    }

    pub fn flag(&mut self) -> Result<bool, Damaged> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }

    pub fn u32(&mut self) -> Result<u32, Damaged> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Damaged> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn u128(&mut self) -> Result<u128, Damaged> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub fn f64(&mut self) -> Result<f64, Damaged> {
        Ok(f64::from_bits(self.u64()?))
    }

    pub fn finite(&mut self) -> Result<f64, Damaged> {
        let number = self.f64()?;
        if number.is_finite() { Ok(number) } else { Err(Damaged) }
    }

    /// Reads a number of items that take at least `bytes` each.
    pub fn count(&mut self, each: usize) -> Result<usize, Damaged> {
        let count = usize::try_from(self.u64()?).map_err(|_| Damaged)?;
        if count > self.0.len() / each { Err(Damaged) } else { Ok(count) }
    }

    fn text(&mut self) -> Result<&'b str, Damaged> {
        let length = self.count(1)?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| Damaged)
    }

    pub fn value(&mut self) -> Result<Value<'static>, Damaged> {
        self.value_within(DEPTH_MAX as usize)
    }

    fn value_within(&mut self, depth: usize) -> Result<Value<'static>, Damaged> {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        Ok(match self.byte()? {
            NULL => Value::Null,
            FALSE => Value::Boolean(false),
            TRUE => Value::Boolean(true),
            INTEGER => Value::Integer(self.u64()?.cast_signed()),
            UNSIGNED => Value::whole(self.u64()?.into()),
            FLOAT => Value::float(self.finite()?),
            TIME => Value::Time(self.u64()?.cast_signed()),
            STORED => Value::Stored(self.u64()?.cast_signed()),
            XACT => Value::Xact(self.u64()?),
            INTERVAL => {
                let value = self.u64()?.cast_signed();
                let unit = *UNITS.get(usize::from(self.byte()?)).ok_or(Damaged)?;
                Value::Interval(Interval { value, unit })
            }
            TEXT => Value::Text(owned(self.text()?)),
            ARRAY => Value::Array(owned(self.text()?)),
            OBJECT => Value::Object(owned(self.text()?)),
            LIST => {
                let inside = depth.checked_sub(1).ok_or(Damaged)?;
                let count = self.count(1)?;
                Value::List(level(|| (0..count).map(|_| self.value_within(inside)).collect::<Result<_, _>>())?)
            }
            MEMBERS => {
                let inside = depth.checked_sub(1).ok_or(Damaged)?;
                let count = self.count(1)?;
                Value::Members(level(|| (0..count).map(|_| self.member(inside)).collect::<Result<_, _>>())?)
            }
            _ => return Err(Damaged),
        })
    }

    fn member(&mut self, depth: usize) -> Result<(String, Value<'static>), Damaged> {
        match self.byte()? {
            TEXT => Ok((self.text()?.to_owned(), self.value_within(depth)?)),
            _ => Err(Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_and_damage_is_noticed() {
        let values = vec![
            Value::Null,
            Value::Boolean(true),
            Value::Boolean(false),
            Value::Integer(i64::MIN),
            Value::Unsigned(u64::MAX),
            Value::Float(0.1),
            Value::Text("é\"".into()),
            Value::Time(-1),
            Value::Stored(7),
            Value::Xact(9),
            Value::Interval(Interval { value: -7, unit: Unit::Month }),
            Value::Array("[1, 2]".into()),
            Value::Object("{}".into()),
            Value::List(vec![Value::Time(1), Value::Members(vec![("a".into(), Value::Null)])]),
        ];
        for value in &values {
            let mut bytes = Vec::new();
            put_value(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.value().as_ref(), Ok(value));
            assert!(reader.is_empty());
            for end in 0..bytes.len() {
                assert_eq!(Reader::new(&bytes[..end]).value(), Err(Damaged), "{value:?} cut at {end}");
            }
        }
        assert_eq!(Reader::new(&[200]).value(), Err(Damaged));
        assert_eq!(Reader::new(&[[TEXT].as_slice(), &[u8::MAX; 8]].concat()).value(), Err(Damaged));
        assert_eq!(Reader::new(&[[FLOAT].as_slice(), &f64::NAN.to_le_bytes()].concat()).value(), Err(Damaged));
    }

    #[test]
    fn lists_in_lists_have_an_end() {
        let one_in_another = |depth: usize| {
            let mut bytes = [[LIST].as_slice(), &1_u64.to_le_bytes()].concat().repeat(depth);
            bytes.push(NULL);
            Reader::new(&bytes).value().is_ok()
        };
        assert!(one_in_another(DEPTH_MAX as usize));
        assert!(!one_in_another(DEPTH_MAX as usize + 1));
        assert!(!one_in_another(1_000_000));
    }
}
