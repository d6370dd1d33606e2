//! Assay's side: rows of one value each, to several projects, over all nodes.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Runtime;

use super::putters::{Putter, Values, drive};
use super::{PeerLoad, PeerOptions, PeerSide};
use crate::cluster::nodes::Nodes;
use crate::http::client::{Connection, Target};

const NODES: usize = 3;
const SHARDS: u16 = 16;
const REFUSALS_MAX: u32 = 1000;
const REFUSED_WAIT: std::time::Duration = std::time::Duration::from_millis(20);

pub fn measure(
    runtime: &Runtime,
    options: &PeerOptions,
    rows: usize,
    load: &PeerLoad,
    dir: &Path,
) -> anyhow::Result<PeerSide> {
    let nodes = Nodes::found(&options.program, dir, NODES, SHARDS)?;
    let targets = nodes.targets();
    let paths = runtime.block_on(projects(&targets[0], options.projects))?;
    let client = |at: usize| AssayClient {
        connection: Connection::new(&targets[at % targets.len()]),
        path: paths[at % paths.len()].clone(),
        rows: rows as u64,
        values: Arc::clone(&load.values),
    };
    let processes: Vec<_> = nodes.processes().into_iter().map(|(_, process)| process).collect();
    let measured = drive(runtime, (0..load.clients).map(client).collect(), load.time, &processes)?;
    let name = if rows == 1 { "Assay, one row a request".into() } else { format!("Assay, {rows} rows a request") };
    eprintln!("{name}: {:.1} MB/s", measured.mb_per_second());
    Ok(PeerSide { name, durability: "two of three logs synced before the answer", measured })
}

#[derive(Deserialize)]
struct PeerProject {
    id: String,
}

async fn projects(target: &Target, count: usize) -> anyhow::Result<Vec<String>> {
    let mut connection = Connection::new(target);
    let mut paths = Vec::new();
    for number in 0..count.max(1) {
        let body = Bytes::from(json!({ "name": format!("values-{number}") }).to_string());
        let project: PeerProject = connection.post("/v1/project", &body).await?.json("POST /v1/project")?;
        paths.push(format!("/v1/project_logs/{}/insert", project.id));
    }
    Ok(paths)
}

struct AssayClient {
    connection: Connection,
    path: String,
    rows: u64,
    values: Arc<Values>,
}

impl Putter for AssayClient {
    async fn put(&mut self, number: u64) -> anyhow::Result<u64> {
        let body = body_of(&self.values, number * self.rows, self.rows)?;
        for _ in 0..REFUSALS_MAX {
            let answer = self.connection.post(&self.path, &body).await?;
            if matches!(answer.status, 429 | 503) {
                tokio::time::sleep(answer.retry_after.unwrap_or(REFUSED_WAIT)).await;
                continue;
            }
            answer.ok(&self.path)?;
            return Ok(self.rows);
        }
        anyhow::bail!("an insert was refused {REFUSALS_MAX} times")
    }
}

fn body_of(values: &Values, first: u64, rows: u64) -> anyhow::Result<Bytes> {
    let mut body = String::from("{\"events\":[");
    for number in first..first + rows {
        let value = std::str::from_utf8(values.value(number)).context("values are text")?;
        let comma = if number == first { "" } else { "," };
        body.push_str(&format!("{comma}{{\"id\":\"{number}\",\"input\":\"{value}\"}}"));
    }
    body.push_str("]}");
    ensure!(body.len() > value_bytes(rows), "a body holds its values");
    Ok(Bytes::from(body))
}

fn value_bytes(rows: u64) -> usize {
    rows as usize * super::putters::VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_json_with_a_row_for_each_value() {
        let values = Values::new(1);
        let body: serde_json::Value = serde_json::from_slice(&body_of(&values, 20, 3).expect("a body")).expect("JSON");
        let events = body["events"].as_array().expect("events");
        assert_eq!(events.len(), 3);
        assert_eq!(events[2]["id"], "22");
        assert_eq!(events[2]["input"].as_str().map(str::as_bytes), Some(values.value(22)));
    }
}
