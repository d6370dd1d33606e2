//! Rows in every format: one path with all six JSON types, in objects that three nodes have, reads the same in each.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::ipc::reader::StreamReader;
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

const EXPERIMENTS: usize = 12;
/// Time until the leaders of a new cluster are spread.
const SPREAD_MAX: Duration = Duration::from_secs(60);
const SPREAD_POLL: Duration = Duration::from_millis(100);
const FORMATS: [&str; 6] = ["json", "jsonl", "csv", "parquet", "arrow", "columns"];

/// Values at the path, each of another JSON type; the last one is a text that reads as a number.
fn values() -> [Value; 7] {
    [
        json!(null),
        json!(true),
        json!(1.5),
        json!("tëxt, \"quoted\""),
        json!([1, "a"]),
        json!({"deep": null}),
        json!("7"),
    ]
}

struct FormatClient<'d> {
    dev: &'d Dev,
    node: usize,
}

impl FormatClient<'_> {
    fn post(&mut self, target: &str, body: &Value) -> Result<HttpResponse> {
        self.node += 1;
        let headers = vec![("authorization".into(), format!("Bearer {}", self.dev.key))];
        let body = Some(body.to_string().into_bytes());
        let request = Request { method: "POST".into(), target: target.into(), headers, body, declared_length: None };
        let answer = send(&self.dev.urls[self.node % self.dev.urls.len()], &request)?;
        ensure!(answer.status == 200, "POST {target}: {}: {}", answer.status, answer.text());
        Ok(answer)
    }

    fn json(&mut self, target: &str, body: &Value) -> Result<Value> {
        serde_json::from_str(&self.post(target, body)?.text()).with_context(|| target.to_owned())
    }

    fn experiments(&mut self) -> Result<Vec<String>> {
        let project = self.json("/v1/project", &json!({"name": "formats"}))?["id"].clone();
        let mut ids = Vec::new();
        for number in 0..EXPERIMENTS {
            let name = format!("e{number:02}");
            let made = self.json("/v1/experiment", &json!({"project_id": project, "name": name}))?;
            let id = made["id"].as_str().context("an id")?.to_owned();
            let values = values().into_iter().enumerate();
            let event = |(row, x): (usize, Value)| json!({"id": format!("{name}-{row}"), "metadata": {"x": x}});
            let events: Vec<Value> = values.map(event).collect();
            self.post(&format!("/v1/experiment/{id}/insert"), &json!({ "events": events }))?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Waits until three nodes lead shards of the query: a new cluster spreads its leaders.
    fn wait_for_three_nodes(&mut self, query: &str) -> Result<()> {
        let until = Instant::now() + SPREAD_MAX;
        loop {
            let plan = self.json("/btql", &json!({"query": query, "include_plan": true}))?["plan"].to_string();
            if (1..=3).all(|node| plan.contains(&format!("node {node}:"))) {
                return Ok(());
            }
            ensure!(Instant::now() < until, "three nodes have the rows after {SPREAD_MAX:?}: {plan}");
            std::thread::sleep(SPREAD_POLL);
        }
    }

    /// Returns the rows of a query, as pairs of id and JSON text, in the order of the response.
    fn rows(&mut self, query: &str, format: &str) -> Result<Vec<(String, String)>> {
        let answer = self.post("/btql", &json!({"query": query, "fmt": format}))?;
        let rows = match format {
            "json" => of_objects(serde_json::from_str::<Value>(&answer.text())?["data"].as_array().context("rows")?),
            "jsonl" => of_objects(&answer.text().lines().map(serde_json::from_str).collect::<Result<Vec<_>, _>>()?),
            "columns" => of_blocks(&serde_json::from_str::<Value>(&answer.text())?["data"]),
            "csv" => of_records(&answer.text()),
            "parquet" => {
                of_batches(ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(answer.body))?.build()?)
            }
            _ => of_batches(StreamReader::try_new(answer.body.as_slice(), None)?),
        };
        rows.with_context(|| format!("{query} as {format}"))
    }
}

fn pair(id: &Value, x: &Value) -> Result<(String, String)> {
    Ok((id.as_str().context("an id that is a text")?.to_owned(), x.to_string()))
}

fn of_objects(rows: &[Value]) -> Result<Vec<(String, String)>> {
    rows.iter().map(|row| pair(&row["id"], &row["x"])).collect()
}

/// Cells of a column of a block, which may be a dictionary.
fn cells(column: &Value) -> Result<Vec<Value>> {
    if let Some(values) = column["values"].as_array() {
        return Ok(values.clone());
    }
    let indexes = column["indexes"].as_array().context("values or indexes")?.iter();
    indexes.map(|index| Ok(column["dictionary"][index.as_u64().context("an index")? as usize].clone())).collect()
}

fn of_blocks(blocks: &Value) -> Result<Vec<(String, String)>> {
    let mut rows = Vec::new();
    for block in blocks.as_array().context("blocks")? {
        let (ids, values) = (cells(&block["columns"]["id"])?, cells(&block["columns"]["x"])?);
        ensure!(
            block["rows"] == ids.len() && ids.len() == values.len(),
            "columns of other lengths than {}",
            block["rows"]
        );
        rows.extend(ids.iter().zip(&values).map(|(id, x)| pair(id, x)).collect::<Result<Vec<_>>>()?);
    }
    Ok(rows)
}

/// A record a row. Texts stand as they are, so the text of a number reads as a number.
fn of_records(text: &str) -> Result<Vec<(String, String)>> {
    let record = |line: &str| {
        let (id, x) = line.split_once(',').context("two fields")?;
        let quoted = x.strip_prefix('"').and_then(|x| x.strip_suffix('"'));
        Ok((id.to_owned(), quoted.map_or_else(|| x.to_owned(), |x| x.replace("\"\"", "\""))))
    };
    text.split_terminator("\r\n").skip(1).map(record).collect()
}

/// The field that CSV has for a JSON text.
fn as_field(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::Null) => String::new(),
        Ok(Value::String(text)) => text,
        _ => json.to_owned(),
    }
}

fn of_batches<E: std::error::Error + Send + Sync + 'static>(
    batches: impl Iterator<Item = Result<RecordBatch, E>>,
) -> Result<Vec<(String, String)>> {
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch?;
        let ids = batch.column_by_name("id").context("ids")?.as_string::<i32>().clone();
        let values = batch.column_by_name("x").context("values")?;
        for row in 0..batch.num_rows() {
            let x = match (values.as_string_opt::<i32>(), values.as_binary_opt::<i32>()) {
                _ if values.is_null(row) => "null".to_owned(),
                (Some(texts), _) => texts.value(row).to_owned(),
                (None, Some(bytes)) => std::str::from_utf8(bytes.value(row))?.to_owned(),
                (None, None) => anyhow::bail!("values of type {}", values.data_type()),
            };
            rows.push((ids.value(row).to_owned(), x));
        }
    }
    Ok(rows)
}

#[test]
fn a_path_of_all_json_types_is_the_same_in_every_format() {
    let dir = tempfile::tempdir().expect("a directory");
    let dev = Dev::start(&dir.path().join("data")).unwrap_or_else(|error| panic!("{error:#}"));
    let mut client = FormatClient { dev: &dev, node: 0 };
    checked(&mut client).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
    assert!(dev.stop().unwrap_or_else(|error| panic!("{error:#}")).success());
}

fn checked(client: &mut FormatClient<'_>) -> Result<()> {
    let experiments: Vec<String> = client.experiments()?.iter().map(|id| format!("'{id}'")).collect();
    let from = format!("SELECT id, metadata.x AS x FROM experiment({})", experiments.join(", "));
    client.wait_for_three_nodes(&from)?;
    for query in [from.clone(), format!("{from} ORDER BY x DESC, id"), format!("{from} WHERE x IS NOT NULL LIMIT 50")] {
        let mut expected = client.rows(&query, "json")?;
        let most = if query.ends_with("50") { 50 } else { EXPERIMENTS * values().len() };
        ensure!(expected.len() == most, "{query}: {} rows", expected.len());
        for format in FORMATS {
            let found = client.rows(&query, format)?;
            if format == "csv" {
                expected.iter_mut().for_each(|(_, x)| *x = as_field(x));
            }
            ensure!(found == expected, "{query} as {format}: {found:?} instead of {expected:?}");
            if format == "csv" {
                expected = client.rows(&query, "json")?;
            }
        }
    }
    Ok(())
}
