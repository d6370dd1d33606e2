//! Read-back of acknowledged rows: every row of every writer, from every node.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::writers::Written;
use crate::http::client::{Connection, Target};

const PAGE_TRACES: u64 = 1000;
/// Number of retries after a refusal.
const REFUSALS_MAX: u32 = 50;
const REFUSED_WAIT: std::time::Duration = std::time::Duration::from_millis(200);
/// Missing rows that are named.
const NAMED_MAX: usize = 20;

/// Rows returned by one node.
#[derive(Debug, Default, Serialize)]
pub struct ReadBack {
    pub node: usize,
    pub rows: u64,
    /// Acknowledged and not there, or with other content.
    pub missing: u64,
    /// Rows that were never sent, or duplicates.
    pub strange: u64,
    pub named: Vec<String>,
}

#[derive(Deserialize)]
struct ReadbackPage {
    events: Vec<ReadbackEvent>,
    cursor: Option<String>,
}

#[derive(Deserialize)]
struct ReadbackEvent {
    id: String,
    input: Option<String>,
}

/// Reads all rows from each node in turn.
pub async fn read_back(targets: &[Target], written: &[Written]) -> anyhow::Result<Vec<ReadBack>> {
    let mut all = Vec::new();
    for (place, target) in targets.iter().enumerate() {
        let mut connection = Connection::new(target);
        let mut found = ReadBack { node: place + 1, ..ReadBack::default() };
        for of_writer in written {
            compare(&mut connection, of_writer, &mut found).await.with_context(|| format!("node {}", place + 1))?;
        }
        all.push(found);
    }
    Ok(all)
}

async fn compare(connection: &mut Connection, written: &Written, found: &mut ReadBack) -> anyhow::Result<()> {
    let object = &written.object;
    let path = object.path("fetch");
    let rows = 0..written.rows.len() as u64;
    let mut expected: BTreeMap<String, u64> = rows.map(|row| (object.row_id(row), row)).collect();
    let mut cursor: Option<String> = None;
    loop {
        let page: ReadbackPage = page(connection, &path, cursor.as_deref()).await?;
        for event in &page.events {
            found.rows += 1;
            match expected.remove(&event.id) {
                Some(row) if event.input.as_deref() == Some(&object.row_input(row)) => {}
                Some(_) => found.name(true, format!("{} has another content", event.id)),
                None => found.name(false, format!("{} was sent by nobody, or comes twice", event.id)),
            }
        }
        cursor = page.cursor.filter(|cursor| !cursor.is_empty());
        if cursor.is_none() || page.events.is_empty() {
            break;
        }
    }
    expected.keys().for_each(|id| found.name(true, format!("{id} is not there")));
    Ok(())
}

impl ReadBack {
    fn name(&mut self, missing: bool, what: String) {
        if missing {
            self.missing += 1;
        } else {
            self.strange += 1;
        }
        if self.named.len() < NAMED_MAX {
            self.named.push(what);
        }
    }
}

/// Reads one page, in the caller's format; with the maximum number of traces of a page.
pub async fn page<T: DeserializeOwned>(
    connection: &mut Connection,
    path: &str,
    cursor: Option<&str>,
) -> anyhow::Result<T> {
    let mut asked = json!({ "limit": PAGE_TRACES });
    if let Some(cursor) = cursor {
        asked["cursor"] = cursor.into();
    }
    let asked = Bytes::from(asked.to_string());
    for _ in 0..REFUSALS_MAX {
        let answer = connection.post(path, &asked).await?;
        if !matches!(answer.status, 429 | 503) {
            return answer.json(path);
        }
        tokio::time::sleep(answer.retry_after.unwrap_or(REFUSED_WAIT)).await;
    }
    bail!("{path} was refused {REFUSALS_MAX} times")
}
