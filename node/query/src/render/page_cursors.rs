//! Cursors of pages: conversion between positions of the engine and the texts that clients hand back.

use super::cursors::{self, Cursor, CursorObject, CursorPosition, CursorSecret, InvalidCursor};
use crate::Position;

/// Returns the cursor of a page that ended at `end`. The short form is for one object in the order of its keys.
pub fn page_cursor(end: &Position, is_short: bool, secret: &CursorSecret) -> String {
    if is_short {
        return cursors::short(end.place);
    }
    let object = CursorObject::Number(end.object.unwrap_or_default().into());
    let id = end.write.map(|write| write.to_string()).unwrap_or_default();
    let position = CursorPosition { xact: end.xact, key: end.place, object, id };
    cursors::long(&position, secret)
}

/// Parses the cursor of the previous page, signed with any of `secrets`.
pub fn page_position<'s>(
    text: &str,
    is_short: bool,
    mut secrets: impl Iterator<Item = &'s CursorSecret>,
) -> Result<Position, InvalidCursor> {
    let read = secrets.find_map(|secret| cursors::parse(text, secret).ok());
    Ok(match read.ok_or(InvalidCursor)? {
        Cursor::Short(key) if is_short => Position { place: key, xact: 0, object: None, write: None },
        Cursor::Long(CursorPosition { xact, key, object: CursorObject::Number(object), id }) if !is_short => {
            // The write distinguishes rows of the audit log that are otherwise equal.
            let write = if id.is_empty() { None } else { Some(id.parse().map_err(|_| InvalidCursor)?) };
            Position { place: key, xact, object: Some(u32::try_from(object).map_err(|_| InvalidCursor)?), write }
        }
        Cursor::Short(_) | Cursor::Long(_) => return Err(InvalidCursor),
    })
}
