//! Requests for a page, mainly cursors: an accepted cursor equals the issued one, and the walk from it yields the rest
//! of the rows in their order, each once, or a refusal with a reason.

use arbitrary::{Result, Unstructured};
use assay_node_objects::pure::{self, PageQuery, Cursor, Start, page};
use assay_node_objects::{FetchRequest, ReadError, RowHome};
use assay_storage_model::{ObjectKey, PaginationKey, Xact};
use bytes::Bytes;
use serde_json::Value;

use crate::json;
use crate::world::{WORLD, World};

pub fn run(input: &[u8]) {
    for home in &WORLD.homes {
        text(&String::from_utf8_lossy(input), &home.object);
    }
    let _ = request(&mut Unstructured::new(input), &WORLD);
}

/// There is one way to write a cursor.
fn text(text: &str, object: &ObjectKey) {
    if let Some(cursor) = Cursor::parse(text, object) {
        assert_eq!(cursor.to_text(object), text);
    }
    for text in [text, text.get(..16).unwrap_or_default()] {
        if let Ok(version) = Xact::parse(text) {
            assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
            assert_eq!(Xact::parse(&version.to_string()), Ok(version));
        }
    }
    if let Some(key) = PaginationKey::parse(text) {
        assert_eq!(key.to_string(), text);
    }
}

fn request(choices: &mut Unstructured<'_>, world: &World) -> Result<()> {
    let which = choices.choose_index(world.homes.len())?;
    let home = &world.homes[which];
    let limit = match choices.int_in_range(0..=3)? {
        0 => None,
        1 => Some(choices.arbitrary()?),
        _ => Some(choices.int_in_range(0..=5)?),
    };
    let cursor = match choices.int_in_range(0..=5)? {
        0 | 1 => None,
        2 => Some(choices.arbitrary::<&str>()?.to_owned()),
        other => {
            let (version, before) = (version(choices, world)?, PaginationKey(key(choices, world)?));
            let mut written = Cursor { version, before }.to_text(&home.object);
            if other == 3 {
                let at = choices.choose_index(written.len())?;
                written.replace_range(at..=at, choices.choose(&["0", "F", "g", "é", ""])?);
            }
            text(&written, &home.object);
            Some(written)
        }
    };
    let known = |choices: &mut Unstructured<'_>| {
        choices.arbitrary().and_then(|known: bool| match known {
            true => version(choices, world).map(Some),
            false => Ok(None),
        })
    };
    let (version, max_xact_id) = (known(choices)?, known(choices)?);
    let max_root_span_id = match choices.int_in_range(0..=2)? {
        0 => None,
        1 => Some(format!("trace-{}", choices.int_in_range(0..=15)?)),
        _ => Some(choices.arbitrary::<&str>()?.to_owned()),
    };
    match pure::page_query(&home.object, FetchRequest { limit, cursor, version, max_xact_id, max_root_span_id, stale: false }) {
        Ok(asked) => walk(world, home, asked),
        Err(refused) => assert!(matches!(refused, ReadError::BadRequest(_)), "{refused}"),
    }
    Ok(())
}

/// Returns an existing version, one beside it, or any number.
fn version(choices: &mut Unstructured<'_>, world: &World) -> Result<Xact> {
    let known = world.versions[choices.choose_index(world.versions.len())?].0;
    Ok(match choices.int_in_range(0..=3)? {
        0 => Xact(choices.arbitrary()?),
        1 => Xact(known + 1),
        _ => Xact(known),
    })
}

fn key(choices: &mut Unstructured<'_>, world: &World) -> Result<u64> {
    let known = PaginationKey::new(version(choices, world)?, choices.int_in_range(0..=4)?).0;
    Ok(match choices.int_in_range(0..=3)? {
        0 => choices.arbitrary()?,
        1 => known.saturating_sub(1),
        _ => known,
    })
}

fn walk(world: &World, home: &RowHome, asked: PageQuery) {
    let object = &home.object;
    let at = asked.version.unwrap_or(world.view.version());
    let read = page(&world.view, home, &asked);
    let refused = read.as_ref().err().map(|refused| match refused {
        ReadError::Gone { .. } => "gone",
        ReadError::Unavailable(_) => "not yet",
        ReadError::Past { .. } => "past",
        other => panic!("{other}"),
    });
    assert_eq!(refused, unreadable(world, object, at));
    let Ok(mut read) = read else { return };
    let mut wanted = rest(world, object, at, &asked.start);
    if asked.limit == Some(0) {
        wanted.clear();
    }
    let mut seen = Vec::new();
    loop {
        assert_eq!(read.version, at, "all pages are of one version");
        seen.extend(read.events.iter().map(place));
        assert!(seen.len() <= wanted.len(), "no row twice, none that is not there: {seen:?} {wanted:?}");
        let Some(cursor) = read.cursor else { break };
        assert!(!read.events.is_empty(), "a page that is not the last has rows");
        text(&cursor, object);
        let request = FetchRequest { cursor: Some(cursor), limit: asked.limit, ..FetchRequest::default() };
        let next = pure::page_query(object, request).expect("its own cursor");
        assert!(matches!(next.start, Start::Before(_)) && next.version == Some(at));
        read = page(&world.view, home, &next).expect("the first page was read, so the others are");
    }
    assert_eq!(seen, wanted);
}

/// Why nothing of this object can be read at this version.
fn unreadable(world: &World, object: &ObjectKey, at: Xact) -> Option<&'static str> {
    let [with_floor, _, gone] = [0, 1, 2].map(|at| world.homes[at].object);
    match *object {
        _ if at > world.view.version() => Some("not yet"),
        object if object == gone => Some("gone"),
        object if object == with_floor && at < world.floor => Some("past"),
        _ => None,
    }
}

/// Returns the traces whose newest row is below the start, newest first, and each one's rows likewise.
fn rest(world: &World, object: &ObjectKey, at: Xact, start: &Start) -> Vec<(PaginationKey, String)> {
    let all = world.view.all(object, at).expect("the version can be read");
    let newest = |root: &str| all.iter().find(|row| row.root_span_id.as_str() == root).map(|row| row.key);
    let before = match start {
        Start::Newest => None,
        Start::Before(key) => Some(*key),
        Start::After { root_span_id, otherwise } => Some(newest(root_span_id).unwrap_or(*otherwise)),
    };
    let mut rows: Vec<_> = all.iter().map(|row| (newest(row.root_span_id.as_str()).expect("its own"), row)).collect();
    rows.retain(|(newest, _)| before.is_none_or(|before| *newest < before));
    rows.sort_by_key(|(newest, row)| std::cmp::Reverse((*newest, row.key)));
    rows.into_iter().map(|(_, row)| (row.key, row.id.to_string())).collect()
}

/// Returns the position of a row, from a client's event.
fn place(event: &Bytes) -> (PaginationKey, String) {
    let read = json::read(event).unwrap_or_else(|| panic!("no JSON: {}", String::from_utf8_lossy(event)));
    assert!(!read.key_twice, "a field twice: {}", read.value);
    let text = |name: &str| read.value.get(name).and_then(Value::as_str).expect(name).to_owned();
    (PaginationKey::parse(&text("_pagination_key")).expect("a key"), text("id"))
}
