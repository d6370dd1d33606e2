//! Bodies: parsed, split, routed, prepared, assigned an id and encoded as commands, like the HTTP routes do it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use assay_node_api::pure::{Kind, Refusal};
use assay_node_api::pure::{
    Logs3, RowsAt, cross_parts, feedback_items, fetch_body, fetch_query, logs3_rows, object, parse, memory_of, rows,
};
use assay_node_objects::pure::{Reservations, Prepared, ReservationRequest, page_query, prepare_all};
use assay_node_objects::{FetchRequest, ObjectLimits, ObjectWrite, WriteError, feedback, ingest};
use assay_storage_model::command::{COMMAND_BYTES_MAX, Command, ROWS_PER_WRITE_MAX, RequestId};
use assay_storage_model::event::{PrepareContext, PreparedRow, SentItem, prepare, values_within};
use assay_storage_model::{ObjectKey, ObjectKind, OrgId, ShardId, Xact};
use bytes::Bytes;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::rows::{check, check_sent, comments, meaning};
use crate::{NOW_MICROS, chosen, json};

const KINDS: [ObjectKind; 3] = [ObjectKind::ProjectLogs, ObjectKind::Experiment, ObjectKind::Dataset];
/// The deepest body that is read.
const BODY_DEPTH_MAX: usize = 68;
/// Maximum length of a refusal, which goes into a response and a log: it may repeat only a little of the request.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The first byte chooses: 0 to 2 insert, 3 to 5 feedback, 6 insert into several, 7 logs3, 8 fetch, 9 fetch by query.
pub fn run(input: &[u8]) {
    let Some((operation, text)) = chosen(input, 10) else { return };
    let outcome = match operation {
        9 => fetch_query(&pairs(text)).map(fetch),
        _ => body(operation, text),
    };
    if let Err(refusal) = outcome {
        let known = [Kind::BadRequest, Kind::TooLarge, Kind::NotImplemented].contains(&refusal.kind);
        assert!(known && refusal.message.len() <= MESSAGE_BYTES_MAX, "{:?}: {}", refusal.kind, refusal.message);
    }
}

fn body(operation: u8, text: &[u8]) -> Result<(), Refusal> {
    let rows_at = match operation {
        6 => RowsAt::ListsByObject,
        8.. => RowsAt::Nowhere,
        _ => RowsAt::List,
    };
    let room = memory_of(text, rows_at)?.bytes;
    let value = parse(text);
    compare(text, value.as_ref().ok(), room);
    match operation {
        0..3 => {
            let said = said(value.ok(), "events");
            let sent = compared(rows(text, "events"), said.as_deref())?;
            written(vec![to(KINDS[usize::from(operation)], Uuid::from_u128(1), sent, said.unwrap_or_default())])
        }
        3..6 => {
            let items = compared(feedback_items(text), said(value.ok(), "feedback").as_deref())?;
            let (count, rows) = (items.len(), feedback::rows(items, NOW_MICROS)?);
            assert!(rows.len() <= 2 * count, "an item is a merge, a comment, both or nothing");
            let outcome = written(vec![to_made(KINDS[usize::from(operation - 3)], Uuid::from_u128(1), rows)]);
            let too_large = outcome.as_ref().is_err_and(|refusal| refusal.kind == Kind::TooLarge);
            assert!(outcome.is_ok() || too_large, "what is wrong with an item is said with the item's place");
            outcome
        }
        6 => several(&mut object(value?)?),
        7 => {
            let said = said(value.ok(), "rows");
            let rows = match logs3_rows(text) {
                // It names a file that was uploaded before, and has no rows of its own.
                Ok(Logs3::Uploaded(_)) => return Ok(()),
                Ok(Logs3::Rows(rows)) => Ok(rows),
                Err(refusal) => Err(refusal),
            };
            let sent = compared(rows, said.as_deref())?;
            logs3(sent, &said.unwrap_or_default())
        }
        _ => fetch_body(&object(value?)?).map(fetch),
    }
}

/// Returns the list under a name, as its sender meant it.
fn said(body: Option<Value>, name: &str) -> Option<Vec<Value>> {
    match body?.get_mut(name)?.take() {
        Value::Array(rows) => Some(rows),
        _ => None,
    }
}

/// Lists are read from their text without a tree around them: as many items as there are in the tree, and whenever there
/// is one. Only of too many none is read.
fn compared<T>(read: Result<Vec<T>, Refusal>, said: Option<&[Value]>) -> Result<Vec<T>, Refusal> {
    if read.as_ref().is_err_and(|refusal| refusal.kind == Kind::TooLarge) {
        assert!(said.is_none_or(|said| said.len() > ROWS_PER_WRITE_MAX));
        return read;
    }
    assert_eq!(read.as_ref().ok().map(Vec::len), said.map(<[Value]>::len));
    read
}

/// Both readers take the same texts and read the same values, as many as were counted or a few less.
fn compare(text: &[u8], ours: Option<&Value>, room: usize) {
    let theirs = json::read(text).map(|read| read.value.to_string());
    assert_eq!(ours.map(Value::to_string), theirs, "{}", String::from_utf8_lossy(text));
    if let Some(value) = ours {
        let (values, counted) = (values_of(value), values_within(text, BODY_DEPTH_MAX).expect("it has room"));
        assert!(values <= counted && room >= text.len() + counted, "{values} values, {counted} counted, room {room}");
    }
}

fn values_of(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values_of).sum(),
        Value::Object(members) => members.values().map(values_of).sum(),
        _ => 0,
    }
}

fn several(fields: &mut Map<String, Value>) -> Result<(), Refusal> {
    let mut writes = Vec::new();
    for part in cross_parts(fields)? {
        let mut rows = part.events.unwrap_or_default();
        rows.extend(feedback::rows(part.feedback.unwrap_or_default(), NOW_MICROS)?);
        writes.push(to_made(part.kind, part.id, rows));
    }
    written(writes)
}

fn logs3(sent: Vec<SentItem>, said: &[Value]) -> Result<(), Refusal> {
    let count = sent.len();
    let groups = ingest::group(sent)?;
    let mut places: Vec<usize> = groups.iter().flat_map(|group| group.indexes.clone()).collect();
    places.sort_unstable();
    assert!(places.into_iter().eq(0..count), "every row is in one group, once");
    assert!(groups.len() <= ingest::GROUPS_MAX);
    let served = groups.into_iter().filter(|group| KINDS.contains(&group.kind));
    let said = |at: Vec<usize>| at.into_iter().map(|at| said[at].clone()).collect();
    written(served.map(|group| to(group.kind, group.id, group.rows, said(group.indexes))).collect())
}

/// A write, and its rows as sent.
type Spoken = (ObjectWrite, Vec<Value>);

/// Returns a keyed write, so that generated ids are the same every time.
fn to(kind: ObjectKind, id: Uuid, rows: Vec<SentItem>, said: Vec<Value>) -> Spoken {
    let request = Some(RequestId { key: [1; 16], content: *id.as_bytes() });
    (ObjectWrite { object: ObjectKey::new(OrgId(Uuid::from_u128(7)), kind, id), rows, request }, said)
}

fn to_made(kind: ObjectKind, id: Uuid, rows: Vec<Value>) -> Spoken {
    to(kind, id, rows.iter().cloned().map(SentItem::from).collect(), rows)
}

fn written(spoken: Vec<Spoken>) -> Result<(), Refusal> {
    let spoken: Vec<Spoken> = spoken.into_iter().filter(|(write, _)| !write.rows.is_empty()).collect();
    let writes: Vec<ObjectWrite> = spoken.iter().map(|(write, _)| write.clone()).collect();
    let of_trees = |(write, said): &Spoken| {
        let rows = said.iter().cloned().map(SentItem::from).collect();
        ObjectWrite { rows, ..write.clone() }
    };
    let prepared = ready(prepare_all(writes, NOW_MICROS));
    let again = ready(prepare_all(spoken.iter().map(of_trees).collect(), NOW_MICROS));
    let prepared = match (prepared, again) {
        (Ok(prepared), Ok(again)) => {
            assert!(
                commands(&prepared) == commands(&again),
                "as text or as a tree, the same request makes the same commands"
            );
            prepared
        }
        (Err(refused), Err(again)) => {
            assert_eq!(refused, again);
            let promised = matches!(refused, WriteError::Row { .. } | WriteError::TooLarge { .. });
            assert!(promised, "nothing but rows and sizes is looked at: {refused}");
            return Err(refused.into());
        }
        _ => panic!("the same request is taken or refused"),
    };
    let mut book: Reservations<()> = Reservations::new(ObjectLimits::default().reservation_limits());
    let wanted: Vec<ReservationRequest> = prepared.iter().map(|(write, _)| wanted(write)).collect();
    assert!(book.reserve(&wanted, |_| ()).is_ok(), "where nothing waits there is a place");
    wanted.iter().for_each(|given| book.release(given));
    assert!(book.is_idle());
    spoken.iter().zip(&prepared).for_each(|(spoken, (write, row_ids))| check_write(spoken, write, row_ids));
    Ok(())
}

fn wanted(write: &Prepared) -> ReservationRequest {
    ReservationRequest { object: write.object, lane: ShardId(0), bytes: write.bytes }
}

fn commands(prepared: &[(Prepared, Vec<String>)]) -> Vec<Bytes> {
    prepared.iter().map(|(write, _)| write.command(Xact::new(1, 2))).collect()
}

fn check_write((sent, said): &Spoken, write: &Prepared, row_ids: &[String]) {
    assert_eq!(row_ids.len(), said.len());
    let command = write.command(Xact::MAX);
    assert!(command.len() <= write.bytes && command.len() <= COMMAND_BYTES_MAX);
    let Ok(Command::Write(decoded)) = Command::decode(&command) else { panic!("a write reads back") };
    assert!(decoded.rows.len() <= ROWS_PER_WRITE_MAX);
    assert!(decoded.rows.iter().eq(write.rows.iter().map(PreparedRow::as_op).collect::<Vec<_>>().iter()));
    assert_eq!((decoded.object, decoded.request, decoded.assigned), (sent.object, sent.request, Xact::MAX));
    write.rows.iter().for_each(check);
    let alone: Vec<PreparedRow> = said.iter().zip(row_ids).map(|(row, id)| prepared_alone(sent, row, id)).collect();
    for base in [None, Some(&br#"{"id":"base","tags":["w"],"input":{"a":{"b":1}}}"#[..])] {
        assert_eq!(meaning(base, &write.rows), meaning(base, &alone), "together they mean what each means");
    }
    assert_eq!(comments(&write.rows), comments(&alone));
}

/// The row as if it were sent by itself, with the id that it got.
fn prepared_alone(write: &ObjectWrite, row: &Value, id: &str) -> PreparedRow {
    let mut sent = row.clone();
    sent["id"] = Value::from(id);
    let context = &mut PrepareContext { now_micros: NOW_MICROS, new_id: &mut || panic!("it has an id") };
    let prepared = prepare(write.object.kind, 0, sent.clone(), context).expect("it was let through");
    assert_eq!(prepared.row_id, id);
    check(&prepared);
    check_sent(write.object.kind, &sent, &prepared);
    prepared
}

fn fetch(request: FetchRequest) {
    let object = ObjectKey::new(OrgId(Uuid::from_u128(7)), KINDS[0], Uuid::from_u128(1));
    let limit = request.limit;
    if let Ok(asked) = page_query(&object, request) {
        assert_eq!(asked.limit, limit);
    }
}

/// Returns the pairs of a query, without its escapes.
fn pairs(text: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(text);
    let pairs = text.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Runs what never waits for anything but its turn.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}
