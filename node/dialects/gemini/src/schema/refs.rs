//! References within a schema.

use std::borrow::Cow;

use serde_json::Value;

/// Upper bound of bytes of a reference.
const REFERENCE_BYTES_MAX: usize = 4_096;

/// Returns the schema that a reference such as `#/$defs/Step` leads to. None if it is not in this schema.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#').filter(|_| reference.len() <= REFERENCE_BYTES_MAX)?;
    root.pointer(&percent_decoded(pointer)?)
}

/// The text of a fragment of a URI. None if an escape is broken.
fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
