//! Export of the whole state in one byte string, for followers that cannot use the log and for backups.
//!
//! ```text
//! "assay catalog 1\n", (name length u8, name, value length u32, value)*, hash of all before it u128
//! ```

use assay_storage_model::Applied;
use bytes::Bytes;

use crate::error::CatalogError;
use crate::hash::Hash128;
use crate::state::State;
use crate::stored::{Header, Name, load_state};

/// Upper bound of the size of an export. A catalog of the intended size has a hundred thousand records of ten
/// kilobytes.
pub const EXPORT_BYTES_MAX: usize = 1 << 30;

const MAGIC: &[u8] = b"assay catalog 1\n";
const HASH_BYTES: usize = 16;

#[derive(Clone, Debug)]
pub struct Export {
    /// Position of the state in the log, which the bytes contain too.
    pub applied: Applied,
    pub bytes: Bytes,
}

pub fn export(state: &State) -> Result<Export, CatalogError> {
    let mut bytes = MAGIC.to_vec();
    push(&mut bytes, Name::Header, &Header::of(state).encode())?;
    push(&mut bytes, Name::Membership, &state.membership)?;
    for name in state.names() {
        if let Some(value) = state.value(&name) {
            push(&mut bytes, name, &value)?;
        }
    }
    let mut hash = Hash128::default();
    hash.update(&bytes);
    bytes.extend_from_slice(&hash.finish().to_le_bytes());
    let applied = Applied { position: state.applied, membership: state.membership.clone() };
    Ok(Export { applied, bytes: Bytes::from(bytes) })
}

fn push(bytes: &mut Vec<u8>, name: Name, value: &[u8]) -> Result<(), CatalogError> {
    let name = name.to_bytes();
    let grown = bytes.len() + 1 + name.len() + 4 + value.len() + HASH_BYTES;
    if grown > EXPORT_BYTES_MAX {
        return Err(CatalogError::ExportTooLarge { bytes: grown, max: EXPORT_BYTES_MAX });
    }
    bytes.push(name.len() as u8);
    bytes.extend_from_slice(&name);
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
    Ok(())
}

/// Content of an export, verified as a whole and value by value.
pub struct Import {
    pub state: State,
    pub header: Header,
    pub values: Vec<(Name, Vec<u8>)>,
}

pub fn import(bytes: &[u8]) -> Result<Import, CatalogError> {
    let values = values(bytes).map_err(|what| CatalogError::BadExport(what.into()))?;
    let (state, header) = load_state(values.clone()).map_err(CatalogError::BadExport)?;
    Ok(Import { state, header, values })
}

fn values(bytes: &[u8]) -> Result<Vec<(Name, Vec<u8>)>, &'static str> {
    let (covered, hash) = bytes.split_last_chunk::<HASH_BYTES>().ok_or("it is truncated")?;
    let mut found = Hash128::default();
    found.update(covered);
    if found.finish() != u128::from_le_bytes(*hash) {
        return Err("its bytes do not match the hash sent with them");
    }
    let mut rest = covered.strip_prefix(MAGIC).ok_or("it is not an export, or has another version")?;
    let mut values = Vec::new();
    while !rest.is_empty() {
        let (name, value) = value(&mut rest).ok_or("a value is truncated")?;
        values.push((Name::from_bytes(name).ok_or("a value has an unknown kind")?, value.to_vec()));
    }
    Ok(values)
}

fn value<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (length, tail) = rest.split_first()?;
    let (name, tail) = tail.split_at_checked(usize::from(*length))?;
    let (length, tail) = tail.split_first_chunk::<4>()?;
    let (value, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = tail;
    Some((name, value))
}
