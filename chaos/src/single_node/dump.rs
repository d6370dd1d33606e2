//! Dump of everything that can be read from a directory, as lines: a process opens it, prints, and ends with a line
//! that marks completeness. Without that line the dump is invalid.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use assay_storage_model::command::Action;
use assay_storage_model::{ObjectKey, Xact};
use assay_storage_shard::{Row, View};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::single_node::documents::condensed;
use crate::single_node::store::{OBJECTS, Store};

/// Number of traces read at once.
const TRACE_PAGE: usize = 7;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum DumpLine {
    /// An object at a version: how many rows follow, and the digest of all.
    At {
        object: u8,
        version: u64,
        newest: bool,
        rows: usize,
        digest: String,
    },
    Row {
        id: String,
        key: u64,
        xact: u64,
        root: String,
        doc: Value,
    },
    /// Writes to an id of the object last named, newest first.
    Written {
        id: String,
        xact: u64,
        action: Action,
        own: String,
        write: String,
    },
    /// Number of `written` lines of the object.
    Past {
        object: u8,
        written: usize,
    },
    End {
        objects: u8,
    },
}

/// One row as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct DumpRow {
    pub key: u64,
    pub xact: u64,
    pub root: String,
    pub doc: Value,
}

/// An object as of a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectDump {
    pub digest: String,
    pub rows: BTreeMap<String, DumpRow>,
}

/// One operation that left a trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DumpedTrace {
    pub id: String,
    pub xact: u64,
    pub action: u8,
    pub own: String,
    /// The write it came with.
    pub write: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// The version of each object when it was read without naming one.
    pub newest: BTreeMap<u8, u64>,
    pub pictures: BTreeMap<(u8, u64), ObjectDump>,
    pub traces: BTreeMap<u8, Vec<DumpedTrace>>,
}

impl Dump {
    /// Puts lines together again; refuses what is not complete.
    pub fn parse(text: &str) -> anyhow::Result<Dump> {
        let mut dump = Dump::default();
        let mut at = (0, 0);
        let mut expected = 0;
        let mut pending: Vec<DumpedTrace> = Vec::new();
        let mut ended = false;
        for line in text.lines() {
            ensure!(!ended, "lines after the end");
            let line: DumpLine =
                serde_json::from_str(line).with_context(|| format!("cannot decode the line: {line}"))?;
            if !matches!(line, DumpLine::Row { .. }) {
                let found = dump.pictures.get(&at).map_or(0, |picture| picture.rows.len());
                ensure!(
                    found == expected,
                    "object {} at {} has {found} rows of {expected}: an id came twice",
                    at.0,
                    at.1
                );
                expected = 0;
                at = (u8::MAX, 0);
            }
            match line {
                DumpLine::At { object, version, newest, rows, digest } => {
                    at = (object, version);
                    expected = rows;
                    if newest {
                        dump.newest.insert(object, version);
                    }
                    dump.pictures.insert(at, ObjectDump { digest, rows: BTreeMap::new() });
                }
                DumpLine::Row { id, key, xact, root, doc } => {
                    let picture = dump.pictures.get_mut(&at).context("a row of no object")?;
                    picture.rows.insert(id, DumpRow { key, xact, root, doc });
                }
                DumpLine::Written { id, xact, action, own, write } => {
                    pending.push(DumpedTrace { id, xact, action: action as u8, own, write });
                }
                DumpLine::Past { object, written } => {
                    ensure!(
                        pending.len() == written,
                        "object {object}: {} of {written} lines of its past",
                        pending.len()
                    );
                    dump.traces.insert(object, std::mem::take(&mut pending));
                }
                DumpLine::End { objects } => {
                    ensure!(dump.newest.len() == usize::from(objects), "{} of {objects} objects", dump.newest.len());
                    ended = true;
                }
            }
        }
        ensure!(ended, "the dump is cut short");
        Ok(dump)
    }
}

/// The digest of rows in the order they were read: equal bytes, equal digest.
pub fn digest(rows: &[Row]) -> String {
    let mut hasher = DefaultHasher::new();
    for row in rows {
        (row.id.as_str(), row.key.0, row.xact.0, row.is_root, row.created).hash(&mut hasher);
        (row.span_id.as_str(), row.root_span_id.as_str(), &row.doc[..]).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

/// Opens `dir` and prints it: each object at its newest version and at those of `versions`, and its past.
pub async fn print(dir: &Path, versions: &[(u8, u64)], out: &mut impl Write) -> anyhow::Result<()> {
    let store = Store::open(dir).await?;
    for object in 0..OBJECTS {
        let versions: Vec<u64> = versions.iter().filter(|(of, _)| *of == object).map(|(_, version)| *version).collect();
        print_object(&store.view(object)?, &store.key(object), object, &versions, &[], out)?;
    }
    print_end(OBJECTS, out)?;
    out.flush()?;
    store.close().await
}

/// One object at its newest version and at these, and its past; `others` are ids that no workload thinks of.
pub fn print_object(
    view: &View,
    key: &ObjectKey,
    object: u8,
    versions: &[u64],
    others: &[String],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let newest = view.version();
    let mut ids = print_at(key, view, object, newest, true, out)?;
    for version in versions.iter().copied().map(Xact).filter(|version| *version != newest) {
        if version > newest {
            bail!("object {object} was read at {version} before; now its shard's last id is {newest}");
        }
        ids.extend(print_at(key, view, object, version, false, out)?);
    }
    ids.extend((0..crate::single_node::documents::ids()).map(|number| format!("row-{number}")));
    ids.extend_from_slice(others);
    ids.sort();
    ids.dedup();
    print_past(key, view, object, &ids, out)
}

/// Prints the line that marks completeness.
pub fn print_end(objects: u8, out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "{}", serde_json::to_string(&DumpLine::End { objects })?)?;
    Ok(())
}

fn print_at(
    key: &ObjectKey,
    view: &View,
    object: u8,
    version: Xact,
    newest: bool,
    out: &mut impl Write,
) -> anyhow::Result<Vec<String>> {
    let rows = view.all(key, version)?;
    check_other_ways(view, key, version, &rows)?;
    let at = DumpLine::At { object, version: version.0, newest, rows: rows.len(), digest: digest(&rows) };
    writeln!(out, "{}", serde_json::to_string(&at)?)?;
    for row in &rows {
        let doc =
            serde_json::from_slice(&row.doc).with_context(|| format!("the document of {} does not parse", row.id))?;
        let line = DumpLine::Row {
            id: row.id.to_string(),
            key: row.key.0,
            xact: row.xact.0,
            root: row.root_span_id.to_string(),
            doc: condensed(doc),
        };
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    Ok(rows.iter().map(|row| row.id.to_string()).collect())
}

/// Checks that lookups by id and by trace find the same rows: the sidecars agree with the rows.
fn check_other_ways(view: &View, key: &ObjectKey, version: Xact, rows: &[Row]) -> anyhow::Result<()> {
    let mut known: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
    for number in 0..crate::single_node::documents::ids() {
        let id = format!("row-{number}");
        let found = view.get(key, &id, version)?;
        let scanned = known.remove(id.as_str());
        ensure!(found.as_ref() == scanned, "WRONG: {key} {id} at {version}: by id {found:?}, by scan {scanned:?}");
    }
    let mut before = None;
    let mut traced = Vec::new();
    loop {
        let page = view.traces(key, version, before, TRACE_PAGE)?;
        traced.extend(page.traces.into_iter().flat_map(|trace| trace.rows));
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    traced.sort_by_key(|row| std::cmp::Reverse(row.key));
    ensure!(
        traced == rows,
        "WRONG: {key} at {version}: {} rows by trace, {} by scan, or not the same",
        traced.len(),
        rows.len()
    );
    Ok(())
}

fn print_past(key: &ObjectKey, view: &View, object: u8, ids: &[String], out: &mut impl Write) -> anyhow::Result<()> {
    let mut written = 0;
    for id in ids {
        for event in view.events(key, id, view.version())? {
            let line = DumpLine::Written {
                id: id.clone(),
                xact: event.xact.0,
                action: event.action,
                own: event.own_id.to_string(),
                write: write_of(&event.audit)?,
            };
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
            written += 1;
        }
    }
    writeln!(out, "{}", serde_json::to_string(&DumpLine::Past { object, written })?)?;
    Ok(())
}

/// The write that an audit record names.
fn write_of(audit: &[u8]) -> anyhow::Result<String> {
    let audit: Value = serde_json::from_slice(audit).context("an audit record that does not parse")?;
    let name = audit["metadata"]["write"].as_str().context("an audit record without its write")?;
    Ok(name.to_owned())
}
