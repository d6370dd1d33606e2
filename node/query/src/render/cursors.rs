//! Texts of cursors (btql.md, section 12.2; D-76), which contain the position where a page of rows ended.
//!
//! The short form is the key of the last row of one object. The long form contains more:
//!
//! ```text
//! version 1 | transaction 8 | key 8 | kind of object 1 | object 8 or 16 | id, to the end | signature 16
//! ```
//!
//! Numbers are big-endian. Both forms are base64 without padding. A text longer than a short cursor is a long one. The
//! signature is a keyed hash of everything before it, so that clients cannot forge cursors. A cursor does not identify
//! its query. A caller that needs that derives the secret from the query.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use thiserror::Error;

const VERSION: u8 = 1;
const SHORT_CHARS: usize = 11;
const SIGNATURE_BYTES: usize = 16;
const NUMBERED: u8 = 0;
const IDENTIFIED: u8 = 1;

/// Key for the signatures of cursors.
pub type CursorSecret = [u8; 32];

/// Parsed cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The number of a pagination key.
    Short(u64),
    Long(CursorPosition),
}

/// Position of a row among those of several objects, or in the order of transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorPosition {
    pub xact: u64,
    pub key: u64,
    pub object: CursorObject,
    pub id: String,
}

/// Object, identified by its number in the query or by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorObject {
    Number(u64),
    Id([u8; 16]),
}

/// Error for any malformed or forged cursor. Clients get the same text in all cases.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("Invalid cursor")]
pub struct InvalidCursor;

/// Returns the short form for the number of a pagination key.
pub fn short(key: u64) -> String {
    STANDARD_NO_PAD.encode(key.to_be_bytes())
}

pub fn parse_short(text: &str) -> Result<u64, InvalidCursor> {
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| InvalidCursor)?;
    Ok(u64::from_be_bytes(bytes.try_into().map_err(|_| InvalidCursor)?))
}

pub fn long(position: &CursorPosition, secret: &CursorSecret) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend(position.xact.to_be_bytes());
    bytes.extend(position.key.to_be_bytes());
    match position.object {
        CursorObject::Number(number) => {
            bytes.push(NUMBERED);
            bytes.extend(number.to_be_bytes());
        }
        CursorObject::Id(id) => {
            bytes.push(IDENTIFIED);
            bytes.extend(id);
        }
    }
    bytes.extend(position.id.as_bytes());
    let signature = sign(&bytes, secret);
    bytes.extend(signature);
    STANDARD_NO_PAD.encode(bytes)
}

pub fn parse_long(text: &str, secret: &CursorSecret) -> Result<CursorPosition, InvalidCursor> {
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| InvalidCursor)?;
    let (said, signature) = bytes.split_last_chunk().ok_or(InvalidCursor)?;
    if !same(signature, &sign(said, secret)) {
        return Err(InvalidCursor);
    }
    position(said).ok_or(InvalidCursor)
}

/// Parses either form.
pub fn parse(text: &str, secret: &CursorSecret) -> Result<Cursor, InvalidCursor> {
    if text.len() <= SHORT_CHARS {
        parse_short(text).map(Cursor::Short)
    } else {
        parse_long(text, secret).map(Cursor::Long)
    }
}

fn sign(said: &[u8], secret: &CursorSecret) -> [u8; SIGNATURE_BYTES] {
    let mut signature = [0; SIGNATURE_BYTES];
    signature.copy_from_slice(&blake3::keyed_hash(secret, said).as_bytes()[..SIGNATURE_BYTES]);
    signature
}

/// Compares signatures in constant time.
fn same(one: &[u8; SIGNATURE_BYTES], other: &[u8; SIGNATURE_BYTES]) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// Decodes the signed bytes. Returns `None` if another version wrote them.
fn position(said: &[u8]) -> Option<CursorPosition> {
    let rest = said.strip_prefix(&[VERSION])?;
    let (xact, rest) = rest.split_first_chunk()?;
    let (key, rest) = rest.split_first_chunk()?;
    let (object, id) = match rest.split_first()? {
        (&NUMBERED, rest) => {
            let (number, id) = rest.split_first_chunk()?;
            (CursorObject::Number(u64::from_be_bytes(*number)), id)
        }
        (&IDENTIFIED, rest) => {
            let (object, id) = rest.split_first_chunk()?;
            (CursorObject::Id(*object), id)
        }
        _ => return None,
    };
    let id = String::from_utf8(id.to_vec()).ok()?;
    Some(CursorPosition { xact: u64::from_be_bytes(*xact), key: u64::from_be_bytes(*key), object, id })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: CursorSecret = [7; 32];

    fn positions() -> impl Strategy<Value = CursorPosition> {
        let object =
            prop_oneof![any::<u64>().prop_map(CursorObject::Number), any::<[u8; 16]>().prop_map(CursorObject::Id)];
        (any::<u64>(), any::<u64>(), object, any::<String>()).prop_map(|(xact, key, object, id)| CursorPosition {
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

    /// Cursors of earlier releases must stay valid.
    #[test]
    fn the_long_form_stays_what_it_is() {
        let position = CursorPosition { xact: 1, key: 2, object: CursorObject::Number(3), id: "row".into() };
        let text = long(&position, &SECRET);
        assert_eq!(text, "AQAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAANyb3dRy15SXsYuNBox3IB3Yfeq");
        assert_eq!(parse(&text, &SECRET), Ok(Cursor::Long(position)));
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let padded = format!("{}=", short(1));
        for text in ["", "a", "aPuWzSlJAA", "aPuWzSlJAAN", "aPuWzSlJAA!", "aPuWzSlJAAMA", padded.as_str(), "éPuWzSlJAA"]
        {
            assert_eq!(parse(text, &SECRET), Err(InvalidCursor), "{text}");
        }
    }

    #[test]
    fn what_another_version_signed_is_refused() {
        for said in [[9].as_slice(), &[], &[VERSION; 20]] {
            let text = STANDARD_NO_PAD.encode([said, &sign(said, &SECRET)].concat());
            assert_eq!(parse(&text, &SECRET), Err(InvalidCursor), "{said:?}");
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
            prop_assert_eq!(parse(&damaged, &SECRET), Err(InvalidCursor));
        }

        /// The text is cut only to lengths above that of a short cursor, since a shorter rest may be a valid one.
        #[test]
        fn a_long_one_cut_or_continued_is_refused(position in positions(), at: prop::sample::Index, more in "[A-Za-z0-9+/]{1,5}") {
            let text = long(&position, &SECRET);
            let end = SHORT_CHARS + 1 + at.index(text.len() - SHORT_CHARS - 1);
            prop_assert_eq!(parse(&text[..end], &SECRET), Err(InvalidCursor));
            prop_assert_eq!(parse(&(text + &more), &SECRET), Err(InvalidCursor));
        }

        #[test]
        fn another_secret_refuses_it(position in positions(), other: CursorSecret) {
            prop_assume!(other != SECRET);
            prop_assert_eq!(parse(&long(&position, &SECRET), &other), Err(InvalidCursor));
        }

        #[test]
        fn no_text_is_too_odd(text: String) {
            if let Ok(Cursor::Short(key)) = parse(&text, &SECRET) {
                prop_assert_eq!(short(key), text);
            }
        }
    }
}
