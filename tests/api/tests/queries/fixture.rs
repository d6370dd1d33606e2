//! Objects of the cases of `tests/btql`, made through the API, with the values assigned by the server: its own ids,
//! transactions and keys.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::nodes::Nodes;

/// Fields of a row that the server assigns.
const OF_SYSTEM: [&str; 9] = [
    "_pagination_key",
    "_xact_id",
    "org_id",
    "project_id",
    "experiment_id",
    "dataset_id",
    "log_id",
    "is_root",
    "audit_data",
];
/// Objects that are created first, and the others in a later second: keys of different shards rise by seconds, and the
/// cases require P1 to be older than P4 and X1 older than X2.
pub const FIRST: [&str; 4] = ["P1", "P2", "P3", "X1"];
pub const SECOND: [&str; 3] = ["P4", "X2", "DS1"];

/// An object of the fixture.
#[derive(Debug)]
struct Object {
    source: String,
    rows: Vec<Map<String, Value>>,
}

#[derive(Debug)]
pub struct Fixture {
    objects: BTreeMap<String, Object>,
    /// The server's ids by the fixture's names.
    pub ids: BTreeMap<String, String>,
    /// The server's transactions by the fixture's.
    pub xacts: BTreeMap<String, String>,
    /// Rows by their ids, as in the fixture, with the server's values for assigned fields.
    pub rows: BTreeMap<String, Map<String, Value>>,
}

pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../btql/cases")
}

fn listed() -> Result<Value> {
    let path = directory().join("fixture/objects.json");
    Ok(serde_json::from_str(&fs::read_to_string(&path).with_context(|| path.display().to_string())?)?)
}

/// Writes the fixture's prices as a server wants them.
pub fn write_prices(file: &Path) -> Result<()> {
    let table = json!({"about": "of the cases", "models": listed()?["prices"]});
    Ok(fs::write(file, table.to_string())?)
}

impl Fixture {
    /// The objects, empty.
    pub fn make(nodes: &Nodes) -> Result<Fixture> {
        let mut objects = BTreeMap::new();
        for object in listed()?["objects"].as_array().context("objects")? {
            let text = |name: &str| object[name].as_str().map(str::to_owned).context("a text");
            let file = directory().join("fixture").join(text("rows")?);
            let rows = fs::read_to_string(&file)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
            let name = object["names"][0].as_str().context("a name")?.to_owned();
            objects.insert(name, Object { source: text("source")?, rows });
        }
        let mut ids = in_order(nodes, "project", &["P1", "P2", "P3", "P4"], None)?;
        let project = ids["P1"].clone();
        ids.extend(in_order(nodes, "experiment", &["X1", "X2"], Some(&project))?);
        ids.extend(in_order(nodes, "dataset", &["DS1"], Some(&project))?);
        ensure!(objects.keys().eq(ids.keys().filter(|name| objects.contains_key(*name))), "an object has no id");
        Ok(Fixture { objects, ids, xacts: BTreeMap::new(), rows: BTreeMap::new() })
    }

    fn path(&self, name: &str) -> String {
        format!("/v1/{}/{}", self.objects[name].source, self.ids[name])
    }

    /// The rows of these objects, each object's in one request.
    pub fn insert(&self, nodes: &Nodes, names: &[&str]) -> Result<()> {
        for name in names {
            let events: Vec<Value> = self.objects[*name].rows.iter().map(logged).collect();
            nodes.call("POST", &format!("{}/insert", self.path(name)), &json!({"events": events}))?;
        }
        Ok(())
    }

    /// Rows whose last write is later than their key are written again, in that order.
    pub fn rewrite(&self, nodes: &Nodes, name: &str) -> Result<()> {
        let rows = &self.objects[name].rows;
        let xact = |row: &Map<String, Value>| row["_xact_id"].as_str().unwrap_or_default().to_owned();
        let first = rows.iter().map(xact).min().context("rows")?;
        let mut later: Vec<_> = rows.iter().filter(|row| xact(row) > first).collect();
        later.sort_by_key(|row| xact(row));
        for row in later {
            nodes.call("POST", &format!("{}/insert", self.path(name)), &json!({"events": [logged(row)]}))?;
        }
        Ok(())
    }

    /// Reads back what the server made of it, by the API of rows.
    pub fn look(&mut self, nodes: &Nodes) -> Result<()> {
        for name in FIRST.iter().chain(&SECOND) {
            let found = nodes.call("POST", &format!("{}/fetch", self.path(name)), &json!({"limit": 100}))?;
            let found = found["events"].as_array().context("events")?.clone();
            let rows = &self.objects[*name].rows;
            ensure!(found.len() == rows.len(), "{name} has {} rows, not {}", found.len(), rows.len());
            for row in rows {
                let stored = found.iter().find(|found| found["id"] == row["id"]).context("a row that was written")?;
                let mut row = row.clone();
                ensure!(stored["is_root"] == row["is_root"], "{} is no root, or is one", row["id"]);
                let xact = stored["_xact_id"].as_str().context("a transaction")?;
                let known = row["_xact_id"].as_str().context("a transaction")?.to_owned();
                self.xacts.insert(known, xact.to_owned());
                for column in OF_SYSTEM.iter().filter(|column| **column != "audit_data") {
                    if let Some(value) = row.get_mut(*column) {
                        *value = stored[*column].clone();
                    }
                }
                self.rows.insert(row["id"].as_str().context("an id")?.to_owned(), row);
            }
        }
        Ok(())
    }
}

/// Returns a row as a client sends it, without null fields.
fn logged(row: &Map<String, Value>) -> Value {
    let said = row.iter().filter(|(name, value)| !value.is_null() && !OF_SYSTEM.contains(&name.as_str()));
    Value::Object(said.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Records of a kind, whose ids rise as their names do: cases sort by ids.
fn in_order(nodes: &Nodes, kind: &str, names: &[&str], project: Option<&str>) -> Result<BTreeMap<String, String>> {
    let mut ids = Vec::new();
    for name in names {
        let mut body = json!({"name": format!("not yet {name}")});
        if let Some(project) = project {
            body["project_id"] = json!(project);
        }
        let made = nodes.call("POST", &format!("/v1/{kind}"), &body)?;
        ids.push(made["id"].as_str().context("an id")?.to_owned());
    }
    ids.sort_unstable();
    for (name, id) in names.iter().zip(&ids) {
        nodes.call("PATCH", &format!("/v1/{kind}/{id}"), &json!({"name": name}))?;
    }
    Ok(names.iter().map(|name| (*name).to_owned()).zip(ids).collect())
}

/// Waits for the next second: transactions of different shards rise by seconds.
pub fn next_second() {
    let second = |time: Duration| time.as_secs();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun = second(now());
    while second(now()) == begun {
        let left = 1_000_u64.saturating_sub(u64::from(now().subsec_millis()));
        std::thread::sleep(Duration::from_millis(left));
    }
}
