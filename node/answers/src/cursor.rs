//! The texts of cursors (btql.md, section 12.2; D-76): where a page of rows ended, for the next to go on behind it.
//!
//! The short form is the key of the last row of one object. What else must be known stands in the long one:
//!
//! ```text
//! version 1 | transaction 8 | key 8 | kind of object 1 | object 8 or 16 | id, to the end | signature 16
//! ```
//!
//! Numbers are big-endian, both forms are base64 without padding, and a text that is longer than a short one is a long
//! one. The signature is a keyed hash of all before it: clients hand cursors back, they do not make them. That a cursor
//! belongs to the query it comes with is not said here; whoever wants that derives its secret from the query.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use thiserror::Error;

const VERSION: u8 = 1;
const SHORT_CHARS: usize = 11;
const SIGNATURE_BYTES: usize = 16;
const NUMBERED: u8 = 0;
const IDENTIFIED: u8 = 1;

/// What cursors are signed with.
pub type Secret = [u8; 32];

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The number of a pagination key.
    Short(u64),
    Long(Position),
}

/// A row among those of several objects, or in the order of transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub xact: u64,
    pub key: u64,
    pub object: Object,
    pub id: String,
}

/// By its number, or by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Number(u64),
    Id([u8; 16]),
}

/// The same for all that is wrong with one, as clients have always been told.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("Invalid cursor")]
pub struct Invalid;

/// Of a pagination key's number.
pub fn short(key: u64) -> String {
    STANDARD_NO_PAD.encode(key.to_be_bytes())
}

pub fn parse_short(text: &str) -> Result<u64, Invalid> {
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| Invalid)?;
    Ok(u64::from_be_bytes(bytes.try_into().map_err(|_| Invalid)?))
}

pub fn long(position: &Position, secret: &Secret) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend(position.xact.to_be_bytes());
    bytes.extend(position.key.to_be_bytes());
    match position.object {
        Object::Number(number) => {
            bytes.push(NUMBERED);
            bytes.extend(number.to_be_bytes());
        }
        Object::Id(id) => {
            bytes.push(IDENTIFIED);
            bytes.extend(id);
        }
    }
    bytes.extend(position.id.as_bytes());
    let signature = sign(&bytes, secret);
    bytes.extend(signature);
    STANDARD_NO_PAD.encode(bytes)
}

pub fn parse_long(text: &str, secret: &Secret) -> Result<Position, Invalid> {
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| Invalid)?;
    let (said, signature) = bytes.split_last_chunk().ok_or(Invalid)?;
    if !same(signature, &sign(said, secret)) {
        return Err(Invalid);
    }
    position(said).ok_or(Invalid)
}

/// Of either form.
pub fn parse(text: &str, secret: &Secret) -> Result<Cursor, Invalid> {
    if text.len() <= SHORT_CHARS {
        parse_short(text).map(Cursor::Short)
    } else {
        parse_long(text, secret).map(Cursor::Long)
    }
}

fn sign(said: &[u8], secret: &Secret) -> [u8; SIGNATURE_BYTES] {
    let mut signature = [0; SIGNATURE_BYTES];
    signature.copy_from_slice(&blake3::keyed_hash(secret, said).as_bytes()[..SIGNATURE_BYTES]);
    signature
}

/// In a time that does not tell how much of it is the same.
fn same(one: &[u8; SIGNATURE_BYTES], other: &[u8; SIGNATURE_BYTES]) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// What was signed, by this version or by another.
fn position(said: &[u8]) -> Option<Position> {
    let rest = said.strip_prefix(&[VERSION])?;
    let (xact, rest) = rest.split_first_chunk()?;
    let (key, rest) = rest.split_first_chunk()?;
    let (object, id) = match rest.split_first()? {
        (&NUMBERED, rest) => {
            let (number, id) = rest.split_first_chunk()?;
            (Object::Number(u64::from_be_bytes(*number)), id)
        }
        (&IDENTIFIED, rest) => {
            let (object, id) = rest.split_first_chunk()?;
            (Object::Id(*object), id)
        }
        _ => return None,
    };
    let id = String::from_utf8(id.to_vec()).ok()?;
    Some(Position { xact: u64::from_be_bytes(*xact), key: u64::from_be_bytes(*key), object, id })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: Secret = [7; 32];

    fn positions() -> impl Strategy<Value = Position> {
        let object = prop_oneof![any::<u64>().prop_map(Object::Number), any::<[u8; 16]>().prop_map(Object::Id)];
        (any::<u64>(), any::<u64>(), object, any::<String>()).prop_map(|(xact, key, object, id)| Position {
            xact,
            key,
            object,
            id,
        })
    }

    #[test]
    fn the_short_form_is_the_one_that_was_recorded() {
        assert_eq!(short(7_564_805_807_003_992_067), "aPuWzSlJAAM");
        assert_eq!(parse("aPuWzSlJAAM", &SECRET), Ok(Cursor::Short(7_564_805_807_003_992_067)));
    }

    /// A text that is handed out today must be understood tomorrow.
    #[test]
    fn the_long_form_stays_what_it_is() {
        let position = Position { xact: 1, key: 2, object: Object::Number(3), id: "row".into() };
        let text = long(&position, &SECRET);
        assert_eq!(text, "AQAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAANyb3dRy15SXsYuNBox3IB3Yfeq");
        assert_eq!(parse(&text, &SECRET), Ok(Cursor::Long(position)));
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let padded = format!("{}=", short(1));
        for text in ["", "a", "aPuWzSlJAA", "aPuWzSlJAAN", "aPuWzSlJAA!", "aPuWzSlJAAMA", padded.as_str(), "éPuWzSlJAA"]
        {
            assert_eq!(parse(text, &SECRET), Err(Invalid), "{text}");
        }
    }

    #[test]
    fn what_another_version_signed_is_refused() {
        for said in [[9].as_slice(), &[], &[VERSION; 20]] {
            let text = STANDARD_NO_PAD.encode([said, &sign(said, &SECRET)].concat());
            assert_eq!(parse(&text, &SECRET), Err(Invalid), "{said:?}");
        }
    }

    proptest! {
        #[test]
        fn a_short_one_reads_back(key: u64) {
            let text = short(key);
            prop_assert_eq!(text.len(), SHORT_CHARS);
            prop_assert_eq!(parse(&text, &SECRET), Ok(Cursor::Short(key)));
        }

        #[test]
        fn a_long_one_reads_back_and_is_longer(position in positions()) {
            let text = long(&position, &SECRET);
            prop_assert!(text.len() > SHORT_CHARS);
            prop_assert_eq!(parse(&text, &SECRET), Ok(Cursor::Long(position)));
        }

        #[test]
        fn a_long_one_with_another_character_is_refused(position in positions(), at: prop::sample::Index, to in "[A-Za-z0-9+/]") {
            let text = long(&position, &SECRET);
            let at = at.index(text.len());
            let damaged = format!("{}{to}{}", &text[..at], &text[at + 1..]);
            prop_assume!(damaged != text);
            prop_assert_eq!(parse(&damaged, &SECRET), Err(Invalid));
        }

        /// Down to the length of a short one: what is left of one may well be one.
        #[test]
        fn a_long_one_cut_or_continued_is_refused(position in positions(), at: prop::sample::Index, more in "[A-Za-z0-9+/]{1,5}") {
            let text = long(&position, &SECRET);
            let end = SHORT_CHARS + 1 + at.index(text.len() - SHORT_CHARS - 1);
            prop_assert_eq!(parse(&text[..end], &SECRET), Err(Invalid));
            prop_assert_eq!(parse(&(text + &more), &SECRET), Err(Invalid));
        }

        #[test]
        fn another_secret_refuses_it(position in positions(), other: Secret) {
            prop_assume!(other != SECRET);
            prop_assert_eq!(parse(&long(&position, &SECRET), &other), Err(Invalid));
        }

        #[test]
        fn no_text_is_too_odd(text: String) {
            if let Ok(Cursor::Short(key)) = parse(&text, &SECRET) {
                prop_assert_eq!(short(key), text);
            }
        }
    }
}
