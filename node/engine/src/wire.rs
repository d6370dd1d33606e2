//! How parts of answers are written for other nodes: numbers little-endian, texts behind their lengths, values behind a
//! byte that says what they are. Nothing is believed that is read.

use std::borrow::Cow;

use assay_node_btql::ast::{Interval, Unit};
use assay_node_btql::values::Value;

use crate::EngineError;

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

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    put_u64(out, count as u64);
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
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
            let unit = UNITS.iter().position(|unit| *unit == of.unit).unwrap_or_default();
            out.push(unit as u8);
        }
        Value::Text(text) => {
            out.push(TEXT);
            put_text(out, text);
        }
        Value::Array(json) => {
            out.push(ARRAY);
            put_text(out, json);
        }
        Value::List(_) => {
            out.push(ARRAY);
            put_text(out, &value.to_json());
        }
        Value::Object(json) => {
            out.push(OBJECT);
            put_text(out, json);
        }
        Value::Members(_) => {
            out.push(OBJECT);
            put_text(out, &value.to_json());
        }
    }
}

/// What is left to be read.
#[derive(Debug)]
pub(crate) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader(bytes)
    }

    /// For who reads on by itself.
    pub fn rest(&mut self) -> &mut &'b [u8] {
        &mut self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> Result<u8, EngineError> {
        let (byte, rest) = self.0.split_first().ok_or(EngineError::Damaged)?;
        self.0 = rest;
        Ok(*byte)
    }

    pub fn u64(&mut self) -> Result<u64, EngineError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(EngineError::Damaged)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Of things that take at least a byte each.
    pub fn count(&mut self) -> Result<usize, EngineError> {
        let count = usize::try_from(self.u64()?).map_err(|_| EngineError::Damaged)?;
        if count > self.0.len() { Err(EngineError::Damaged) } else { Ok(count) }
    }

    pub fn text(&mut self) -> Result<&'b str, EngineError> {
        let length = self.count()?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| EngineError::Damaged)
    }

    pub fn value(&mut self) -> Result<Value<'static>, EngineError> {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        Ok(match self.byte()? {
            NULL => Value::Null,
            FALSE => Value::Boolean(false),
            TRUE => Value::Boolean(true),
            INTEGER => Value::Integer(self.u64()?.cast_signed()),
            UNSIGNED => Value::Unsigned(self.u64()?),
            FLOAT => Value::float(f64::from_bits(self.u64()?)),
            TIME => Value::Time(self.u64()?.cast_signed()),
            STORED => Value::Stored(self.u64()?.cast_signed()),
            XACT => Value::Xact(self.u64()?),
            INTERVAL => {
                let value = self.u64()?.cast_signed();
                let unit = *UNITS.get(usize::from(self.byte()?)).ok_or(EngineError::Damaged)?;
                Value::Interval(Interval { value, unit })
            }
            TEXT => Value::Text(owned(self.text()?)),
            ARRAY => Value::Array(owned(self.text()?)),
            OBJECT => Value::Object(owned(self.text()?)),
            _ => return Err(EngineError::Damaged),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_and_damage_is_noticed() {
        let interval = Value::Interval(Interval { value: -7, unit: Unit::Month });
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
            interval,
            Value::Array("[1, 2]".into()),
            Value::Object("{}".into()),
        ];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| put_value(&mut bytes, value));
        let mut reader = Reader::new(&bytes);
        for value in &values {
            assert_eq!(reader.value().expect("it reads"), *value);
        }
        assert!(reader.is_empty());
        for end in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..end]);
            assert!((0..values.len()).any(|_| reader.value().is_err()), "cut at {end}");
        }
        assert!(Reader::new(&[200]).value().is_err());
    }
}
