//! Bytes that are stored and sent between replicas: they are decoded or refused, and a decoded value survives another
//! encoding.

use arbitrary::{Result, Unstructured};
use assay_storage_model::catalog::{CatalogCommand, Record, ShardMap};
use assay_storage_model::command::{Action, Command, ConditionalWrite, ExpectedRow, RequestId, RowOp, Write};
use assay_storage_model::entry::{Entry, EntryBuilder, blob_entry};
use assay_storage_model::merge::fold;
use assay_storage_model::segment::{SEGMENT_META_BYTES_MAX, SegmentMeta};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, Xact};
use bytes::Bytes;
use uuid::Uuid;

/// The first byte chooses: 0 command, 1 entry, 2 catalog command, 3 record, 4 shard map, 5 segment, 6 a made command.
pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = crate::chosen(input, 7) else { return };
    match kind {
        0 => command(bytes),
        1 => entry(&Bytes::copy_from_slice(bytes)),
        2 => same(bytes, |bytes| CatalogCommand::decode(bytes).ok(), CatalogCommand::encode),
        3 => same(bytes, |bytes| Record::decode(bytes).ok(), Record::encode),
        4 => same(bytes, |bytes| ShardMap::decode(bytes).ok(), ShardMap::encode),
        5 => {
            same(bytes, |bytes| SegmentMeta::decode(bytes).ok(), SegmentMeta::encode);
            assert!(bytes.len() <= SEGMENT_META_BYTES_MAX || SegmentMeta::decode(bytes).is_err());
        }
        _ => drop(made(&mut Unstructured::new(bytes))),
    }
}

/// Checks that the value survives, in no more bytes: numbers may be encoded longer than necessary.
fn same<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Option<T>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let Some(value) = decode(bytes) else { return };
    let again = encode(&value);
    assert!(again.len() <= bytes.len());
    assert_eq!(decode(&again).as_ref(), Some(&value));
}

fn command(bytes: &[u8]) {
    let Ok(command) = Command::decode(bytes) else { return };
    let again = command.encode();
    assert!(again.len() <= bytes.len() && again.len() <= command.bytes_about());
    assert_eq!(Command::decode(&again).as_ref(), Ok(&command));
    assert_eq!(command.check_limits(), Ok(()), "what decodes may be proposed");
    if let Some((write, _)) = command.into_write() {
        apply(&write);
    }
}

/// Rows that no node has prepared: each folds into the one before it or is refused.
fn apply(write: &Write<'_>) {
    let mut doc: Option<Vec<u8>> = None;
    for row in &write.rows {
        let folded = fold(doc.as_deref(), row);
        assert!(folded.is_ok() || row.action != Action::Upsert, "a replacing row needs no reading");
        doc = folded.ok();
    }
}

fn entry(bytes: &Bytes) {
    match Entry::decode(bytes) {
        Err(_) => {}
        Ok(Entry::Blob { hash, length }) => assert_eq!(blob_entry(hash, length), bytes),
        Ok(Entry::Commands(commands)) => {
            let mut builder = EntryBuilder::for_lengths(commands.iter().map(Bytes::len));
            commands.iter().for_each(|command| builder.push(command));
            assert_eq!(builder.finish(), bytes);
            commands.iter().for_each(|bytes| command(bytes));
        }
    }
}

/// A command of choices: it comes back, and no part of it does.
fn made(choices: &mut Unstructured<'_>) -> Result<()> {
    let command = match choices.int_in_range(0..=5)? {
        0 => Command::Advance { to: Xact(choices.arbitrary()?) },
        1 => Command::RaiseFloor { object: object(choices)?, floor: Xact(choices.arbitrary()?) },
        2 => Command::DropObject { object: object(choices)? },
        _ => {
            let request = match choices.arbitrary()? {
                true => Some(RequestId { key: choices.arbitrary()?, content: choices.arbitrary()? }),
                false => None,
            };
            let (object, assigned) = (object(choices)?, Xact(choices.arbitrary()?));
            let count = choices.int_in_range(0..=6)?;
            let rows = (0..count).map(|_| row(choices)).collect::<Result<_>>()?;
            let write = Write { object, assigned, request, rows };
            let conditions = choices.int_in_range(0..=count)?;
            match conditions {
                0 => Command::Write(write),
                _ => {
                    let expected = (0..conditions)
                        .map(|row| Ok(ExpectedRow { row, version: Xact(choices.arbitrary()?) }))
                        .collect::<Result<_>>()?;
                    Command::ConditionalWrite(ConditionalWrite { write, expected })
                }
            }
        }
    };
    let bytes = command.encode();
    assert!(bytes.len() <= command.bytes_about());
    assert_eq!(Command::decode(&bytes).as_ref(), Ok(&command));
    let cut = choices.choose_index(bytes.len())?;
    assert!(Command::decode(&bytes[..cut]).is_err(), "cut at {cut}");
    assert!(Command::decode(&[&bytes[..], &[0]].concat()).is_err(), "a byte more");
    Ok(())
}

fn object(choices: &mut Unstructured<'_>) -> Result<ObjectKey> {
    let (org, id) = (Uuid::from_u128(choices.arbitrary()?), Uuid::from_u128(choices.arbitrary()?));
    let kind = *choices.choose(&ObjectKind::ALL)?;
    Ok(ObjectKey { lane: choices.arbitrary()?, ..ObjectKey::new(OrgId(org), kind, id) })
}

fn row<'c>(choices: &mut Unstructured<'c>) -> Result<RowOp<'c>> {
    Ok(RowOp {
        id: choices.arbitrary()?,
        action: *choices.choose(&[Action::Upsert, Action::Merge, Action::Delete, Action::Comment])?,
        span_id: choices.arbitrary()?,
        root_span_id: choices.arbitrary()?,
        is_root: choices.arbitrary()?,
        created: choices.arbitrary()?,
        doc: choices.arbitrary()?,
        rules: choices.arbitrary()?,
        audit: choices.arbitrary()?,
    })
}
