//! A second JSON parser, a plain implementation of RFC 8259. Shares nothing with the product's parser but the values.

use serde_json::{Map, Number, Value};

#[derive(Clone, Debug)]
pub struct Read {
    pub value: Value,
    /// An object had a key twice. The last one counts, in the place of the first.
    pub key_twice: bool,
}

/// Parses JSON. None if the text is invalid, or has a number beyond the range of a float.
pub fn read(text: &[u8]) -> Option<Read> {
    let mut reader = Reader { text: std::str::from_utf8(text).ok()?, key_twice: false };
    let value = reader.value()?;
    reader.space();
    reader.text.is_empty().then_some(Read { value, key_twice: reader.key_twice })
}

struct Reader<'t> {
    text: &'t str,
    key_twice: bool,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.text = self.text.trim_start_matches([' ', '\n', '\r', '\t']);
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        self.text = self.text.strip_prefix(literal)?;
        Some(())
    }

    fn value(&mut self) -> Option<Value> {
        self.space();
        match self.text.as_bytes().first()? {
            b'n' => self.literal("null").map(|()| Value::Null),
            b't' => self.literal("true").map(|()| Value::Bool(true)),
            b'f' => self.literal("false").map(|()| Value::Bool(false)),
            b'"' => self.string().map(Value::String),
            b'[' => self.array(),
            b'{' => self.object(),
            _ => self.number(),
        }
    }

    fn array(&mut self) -> Option<Value> {
        self.literal("[")?;
        let mut items = Vec::new();
        self.space();
        if self.literal("]").is_some() {
            return Some(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.space();
            if self.literal("]").is_some() {
                return Some(Value::Array(items));
            }
            self.literal(",")?;
        }
    }

    fn object(&mut self) -> Option<Value> {
        self.literal("{")?;
        let mut members = Map::new();
        self.space();
        if self.literal("}").is_some() {
            return Some(Value::Object(members));
        }
        loop {
            self.space();
            let name = self.string()?;
            self.space();
            self.literal(":")?;
            let value = self.value()?;
            self.key_twice |= members.insert(name, value).is_some();
            self.space();
            if self.literal("}").is_some() {
                return Some(Value::Object(members));
            }
            self.literal(",")?;
        }
    }

    fn string(&mut self) -> Option<String> {
        self.literal("\"")?;
        let mut out = String::new();
        loop {
            let next = self.text.chars().next()?;
            self.text = &self.text[next.len_utf8()..];
            match next {
                '"' => return Some(out),
                '\\' => out.push(self.escaped()?),
                '\0'..' ' => return None,
                other => out.push(other),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let next = self.text.chars().next()?;
        self.text = &self.text[next.len_utf8()..];
        Some(match next {
            '"' | '\\' | '/' => next,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.unit()?;
                if !(0xD800..0xDC00).contains(&first) {
                    return char::from_u32(first);
                }
                self.literal("\\u")?;
                let second = self.unit().filter(|second| (0xDC00..0xE000).contains(second))?;
                return char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00));
            }
            _ => return None,
        })
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.text = &self.text[4..];
        u32::from_str_radix(digits, 16).ok()
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.text;
        let negative = self.literal("-").is_some();
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with('0') {
            return None;
        }
        let mut is_whole = true;
        if self.literal(".").is_some() {
            is_whole = false;
            self.digits()?;
        }
        if self.literal("e").or_else(|| self.literal("E")).is_some() {
            is_whole = false;
            let _ = self.literal("+").or_else(|| self.literal("-"));
            self.digits()?;
        }
        let text = &start[..start.len() - self.text.len()];
        let integer = match negative {
            _ if !is_whole => None,
            true => text.parse::<i64>().ok().filter(|number| *number != 0).map(Number::from),
            false => text.parse::<u64>().ok().map(Number::from),
        };
        let number = match integer {
            Some(integer) => integer,
            None => Number::from_f64(text.parse().ok()?)?,
        };
        Some(Value::Number(number))
    }

    fn digits(&mut self) -> Option<String> {
        let rest = self.text.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = self.text[..self.text.len() - rest.len()].to_owned();
        self.text = rest;
        (!digits.is_empty()).then_some(digits)
    }
}
