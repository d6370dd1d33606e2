//! Cursors (btql.md, section 12.2): base64 of the eight bytes of a pagination key, without padding.

use assay_storage_model::PaginationKey;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the cursor of a row's key.
pub fn of_key(key: &str) -> Option<String> {
    let bytes = PaginationKey::parse(key)?.0.to_be_bytes();
    // 64 bits are ten digits of six bits and four bits more, which stand above two zeros.
    let bits = u128::from(u64::from_be_bytes(bytes)) << 2;
    let digit = |place: u32| char::from(DIGITS[(bits >> (6 * place)) as usize % 64]);
    Some((0..11).rev().map(digit).collect())
}

/// The key as rows have it.
pub fn key_of(cursor: &str) -> Result<String, String> {
    let invalid = || format!("Invalid cursor `{cursor}`");
    let mut bits: u128 = 0;
    for byte in cursor.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == byte).ok_or_else(invalid)?;
        bits = bits << 6 | digit as u128;
    }
    if cursor.len() != 11 || !bits.is_multiple_of(4) {
        return Err(invalid());
    }
    let key = u64::try_from(bits >> 2).map_err(|_| invalid())?;
    Ok(PaginationKey(key).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_cursor_is_that_of_its_row() {
        let (key, cursor) = ("p07564805807003992067", "aPuWzSlJAAM");
        assert_eq!(of_key(key).as_deref(), Some(cursor));
        assert_eq!(key_of(cursor).as_deref(), Ok(key));
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for cursor in ["", "aPuWzSlJAA", "aPuWzSlJAAMA", "aPuWzSlJAAN", "aPuWzSlJAA=", "aPuWz-lJAAM"] {
            assert!(key_of(cursor).is_err(), "{cursor}");
        }
    }
}
