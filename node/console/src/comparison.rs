//! Handler of `POST /console/compare`, which pairs the rows of experiments by the comparison key of their project.
//!
//! The comparison reads all rows without their contents. Contents are read only for the rows of the requested page.

use std::collections::HashMap;
use std::sync::Arc;

use assay_node_comparison::{
    ComparedRow, ComparisonSummary, GroupSummary, Kind, METRIC_PREFIX, Measured, Order, Pair, Pairing, Selection,
    groups, summary_of,
};
use assay_node_http::requests::caller::{Call, Caller};
use assay_node_http::requests::error_texts::{kind_of, shortened};
use assay_node_http::responses::refusal::Refusal;
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_limits::Reservation;
use assay_node_query_http::{QueryOptions, rows_of};
use assay_node_records::kinds;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::query_trees::select_from;

const EXPERIMENTS_MAX: usize = 8;
/// Upper bound of the number of compared rows of one experiment.
const ROWS_MAX: usize = 20_000;
/// Upper bound of the size of one experiment's rows without their contents, in bytes.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// Upper bound of the size of one page, in bytes.
const PAGE_BYTES_MAX: usize = 64 << 20;
const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 1000;
const PREVIEW_DEFAULT: u64 = 400;
const GROUPS_MAX: usize = 200;
/// Comparison key of projects that define none.
const KEY_DEFAULT: &str = "input";

/// Validated request.
#[derive(Clone, Debug, PartialEq)]
struct CompareRequest {
    experiments: Vec<Uuid>,
    /// Index of the base among `experiments`, or `None` without a base.
    base: Option<usize>,
    filter: Option<String>,
    group: Option<String>,
    selection: Selection,
    limit: usize,
    offset: usize,
    preview: u64,
    version: Option<String>,
}

/// Experiment of the request, read from its record.
struct Compared {
    id: Uuid,
    name: Value,
    project: Uuid,
}

/// Handles `POST /console/compare`.
pub async fn compare(call: Call, payload: Payload) -> HandlerResult {
    let body = call.small_body(payload).await?.object().await?;
    json(&compared(&call, &body).await?)
}

/// Compares experiments for a request, with the rights of the caller.
pub async fn compared(call: &Caller, body: &Map<String, Value>) -> Result<Value, Refusal> {
    let request = CompareRequest::read(body)?;
    let compared = experiments(call, &request).await?;
    let key = comparison_key(call, compared[0].project).await?;
    let ReadRows { rows, truncated, held } = read_rows(call, &request, &compared, &key).await?;
    // Pairing many rows would block the other requests of this thread.
    let (compared, request) = (Arc::new(compared), Arc::new(request));
    let paired = {
        let (compared, request) = (Arc::clone(&compared), Arc::clone(&request));
        let pair = move || {
            let paired = PairedPage::of(&compared, &request, &rows);
            drop((rows, held));
            paired
        };
        tokio::task::spawn_blocking(pair).await.map_err(Refusal::internal)?
    };
    let page: Vec<Pair<'_>> = paired.page.iter().map(OwnedPair::pair).collect();
    let contents = contents(call, &request, &compared, &page).await?;
    let base = request.base.unwrap_or(0);
    let end = request.offset + page.len();
    let cursor = (end < paired.total).then(|| end.to_string());
    Ok(json!({
        "key": key,
        "base": request.base.map(|index| compared[index].id),
        "score": paired.score,
        "experiments": paired.experiments,
        "comparisons": paired.comparisons,
        "groups": paired.groups,
        "rows": page.iter().map(|pair| row(&compared, pair, base, &contents)).collect::<Vec<_>>(),
        "total": paired.total,
        "cursor": cursor,
        "truncated": truncated,
    }))
}

/// Summaries of all rows, and the pairs of the requested page.
struct PairedPage {
    score: Option<String>,
    experiments: Vec<Value>,
    comparisons: Vec<Value>,
    groups: Vec<Value>,
    total: usize,
    page: Vec<OwnedPair>,
}

/// Pair that owns its rows, so it outlives the pairing.
struct OwnedPair {
    key: String,
    cells: Vec<Vec<ComparedRow>>,
}

impl OwnedPair {
    fn pair(&self) -> Pair<'_> {
        Pair { key: &self.key, cells: self.cells.iter().map(|trials| trials.iter().collect()).collect() }
    }
}

impl PairedPage {
    fn of(compared: &[Compared], request: &CompareRequest, rows: &[ComparedRow]) -> PairedPage {
        let pairing = Pairing::of(rows, compared.len());
        let mut selection = request.selection.clone();
        selection.score = selection.score.or_else(|| first_score(rows));
        let selected = pairing.selected(request.base.unwrap_or(0), &selection);
        let owned = |pair: &&Pair<'_>| OwnedPair {
            key: pair.key.to_owned(),
            cells: pair.cells.iter().map(|trials| trials.iter().map(|row| (*row).clone()).collect()).collect(),
        };
        PairedPage {
            experiments: summaries(compared, rows),
            comparisons: comparisons(compared, &pairing, request.base),
            groups: grouped(compared, rows, request.group.is_some()),
            total: selected.len(),
            page: selected.iter().skip(request.offset).take(request.limit).map(owned).collect(),
            score: selection.score,
        }
    }
}

impl CompareRequest {
    fn read(body: &Map<String, Value>) -> Result<CompareRequest, Refusal> {
        let experiments = ids(body)?;
        let base = match text(body, "base")? {
            None => (experiments.len() > 1).then_some(1),
            Some(id) => {
                let named = Uuid::parse_str(&id).ok();
                let index = experiments.iter().position(|experiment| Some(*experiment) == named);
                Some(index.ok_or_else(|| Refusal::bad("`base` has to be one of `experiments`"))?)
            }
        };
        let only = choice(body, "only", &Kind::ALL.map(|kind| (kind.name(), kind)))?;
        let order = choice(body, "sort", &Order::ALL.map(|order| (order.name(), order)))?;
        let is_descending = choice(body, "order", &[("asc", false), ("desc", true)])?;
        let natural = |name: &str, default: u64, max: u64| match body.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => value.as_u64().filter(|value| (1..=max).contains(value)).ok_or_else(|| {
                let value = shortened(&value.to_string());
                Refusal::bad(format!("`{name}` is {value}; it should be an integer from 1 to {max}"))
            }),
        };
        let invalid = |_| Refusal::bad("Invalid cursor: pass the cursor of the previous page, with the same request");
        Ok(CompareRequest {
            experiments,
            base,
            filter: text(body, "filter")?,
            group: text(body, "group")?,
            selection: Selection {
                score: text(body, "score")?,
                only,
                order: order.unwrap_or(Order::Delta),
                is_descending: is_descending.unwrap_or(false),
            },
            limit: natural("limit", PAGE_DEFAULT as u64, PAGE_MAX as u64)? as usize,
            offset: text(body, "cursor")?.map_or(Ok(0), |cursor| cursor.parse().map_err(invalid))?,
            preview: natural("preview_length", PREVIEW_DEFAULT, 1 << 20)?,
            version: text(body, "version")?,
        })
    }
}

fn ids(body: &Map<String, Value>) -> Result<Vec<Uuid>, Refusal> {
    let wrong = || Refusal::bad(format!("`experiments` has to be a list of 1 to {EXPERIMENTS_MAX} ids, each once"));
    let listed = body.get("experiments").and_then(Value::as_array).ok_or_else(wrong)?;
    let mut ids = Vec::new();
    for id in listed {
        let id = id.as_str().and_then(|id| Uuid::parse_str(id).ok()).ok_or_else(wrong)?;
        if ids.contains(&id) {
            return Err(wrong());
        }
        ids.push(id);
    }
    match (1..=EXPERIMENTS_MAX).contains(&ids.len()) {
        true => Ok(ids),
        false => Err(wrong()),
    }
}

fn text(body: &Map<String, Value>, name: &str) -> Result<Option<String>, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(other) => Err(Refusal::bad(format!("`{name}` is {}; it should be a string", kind_of(other)))),
    }
}

fn choice<T: Copy>(body: &Map<String, Value>, name: &str, known: &[(&str, T)]) -> Result<Option<T>, Refusal> {
    let Some(word) = text(body, name)? else { return Ok(None) };
    let found = known.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    let names = || known.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    let wrong = || Refusal::bad(format!("`{name}` is `{}`; it must be one of {}", shortened(&word), names()));
    found.map(Some).ok_or_else(wrong)
}

async fn experiments(call: &Caller, request: &CompareRequest) -> Result<Vec<Compared>, Refusal> {
    let mut compared = Vec::new();
    for id in &request.experiments {
        let record = call.edge.records.get(&call.principal, &kinds::EXPERIMENT, *id).await?;
        let project = record["project_id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
        let project = project.ok_or_else(|| Refusal::internal("an experiment has no project"))?;
        compared.push(Compared { id: *id, name: record["name"].clone(), project });
    }
    Ok(compared)
}

/// Returns the comparison key of a project, or the default if the caller may not read the project.
async fn comparison_key(call: &Caller, project: Uuid) -> Result<String, Refusal> {
    let may_read = call.edge.records.get(&call.principal, &kinds::PROJECT, project).await.ok();
    let key = may_read.as_ref().and_then(|project| project.pointer("/settings/comparison_key")?.as_str());
    Ok(key.filter(|key| !key.trim().is_empty()).unwrap_or(KEY_DEFAULT).to_owned())
}

/// Rows of all experiments, with the reservation of their memory.
struct ReadRows {
    rows: Vec<ComparedRow>,
    /// Whether an experiment has more rows than are compared.
    truncated: bool,
    held: Reservation,
}

/// Reads the rows of all experiments. The reservation grows with every experiment.
///
/// It belongs to another budget than the responses of the queries, which would otherwise wait for it.
async fn read_rows(
    call: &Caller,
    request: &CompareRequest,
    compared: &[Compared],
    key: &str,
) -> Result<ReadRows, Refusal> {
    let (applicant, budget) = (call.applicant(), &call.edge.budgets.parsed);
    let held = applicant.reserve(budget, 0).await?;
    let mut read = ReadRows { rows: Vec::new(), truncated: false, held };
    for (index, experiment) in compared.iter().enumerate() {
        let found = light_rows(call, request, experiment.id, key).await?;
        read.truncated |= found.len() > ROWS_MAX;
        let begin = read.rows.len();
        read.rows.extend(found.iter().take(ROWS_MAX).map(|row| ComparedRow::read(index, row)));
        let more: usize = read.rows[begin..].iter().map(ComparedRow::bytes).sum();
        applicant.grow(budget, &mut read.held, more as u64).await?;
    }
    Ok(read)
}

/// Returns the traces of an experiment without their contents.
///
/// The limit is one more than the compared rows, which reveals a truncation.
async fn light_rows(
    call: &Caller,
    request: &CompareRequest,
    experiment: Uuid,
    key: &str,
) -> Result<Vec<Value>, Refusal> {
    let mut select = vec![
        ("root_span_id", "root_span_id"),
        ("scores", "scores"),
        ("metrics", "metrics"),
        ("failed", "error is not null"),
        ("comparison_key", "comparison_key"),
    ];
    if let Some(group) = &request.group {
        select.push(("grouped", group));
    }
    let mut query = select_from("experiment", &[experiment], "summary", &select);
    query["comparison_key"] = json!({"btql": key});
    query["limit"] = (ROWS_MAX + 1).into();
    if let Some(filter) = &request.filter {
        query["filter"] = json!({"btql": filter});
    }
    rows_of(call, query, &QueryOptions { version: request.version.clone(), ..QueryOptions::newest(ROWS_BYTES_MAX) })
        .await
}

/// Returns the contents of a page's traces, by experiment and root span.
async fn contents(
    call: &Caller,
    request: &CompareRequest,
    compared: &[Compared],
    page: &[Pair<'_>],
) -> Result<HashMap<(Uuid, String), Value>, Refusal> {
    const FIELDS: [&str; 10] = [
        "experiment_id",
        "id",
        "span_id",
        "root_span_id",
        "created",
        "input",
        "output",
        "expected",
        "error",
        "metadata",
    ];
    let mut found = HashMap::new();
    let trials = page.iter().flat_map(|pair| pair.cells.iter().flatten());
    let roots: Vec<Value> = trials.map(|row| row.root_span_id.as_str().into()).collect();
    if roots.is_empty() {
        return Ok(found);
    }
    let ids: Vec<Uuid> = compared.iter().map(|experiment| experiment.id).collect();
    let mut query = select_from("experiment", &ids, "summary", &FIELDS.map(|field| (field, field)));
    query["limit"] = roots.len().into();
    query["filter"] = json!({
        "op": "in", "left": {"op": "ident", "name": ["root_span_id"]}, "right": {"op": "literal", "value": roots},
    });
    query["preview_length"] = request.preview.into();
    let options = QueryOptions { version: request.version.clone(), ..QueryOptions::newest(PAGE_BYTES_MAX) };
    for row in rows_of(call, query, &options).await? {
        let id = row["experiment_id"].as_str().and_then(|id| Uuid::parse_str(id).ok());
        if let (Some(id), Some(root)) = (id, row["root_span_id"].as_str()) {
            found.insert((id, root.to_owned()), row);
        }
    }
    Ok(found)
}

fn first_score(rows: &[ComparedRow]) -> Option<String> {
    rows.iter().filter_map(|row| row.scores.keys().next()).min().cloned()
}

fn summaries(compared: &[Compared], rows: &[ComparedRow]) -> Vec<Value> {
    let one = |(index, experiment): (usize, &Compared)| {
        let mut summary = json!(summary_of(rows.iter().filter(|row| row.experiment == index)));
        summary["id"] = json!(experiment.id);
        summary["name"] = experiment.name.clone();
        summary
    };
    compared.iter().enumerate().map(one).collect()
}

fn comparisons(compared: &[Compared], pairing: &Pairing<'_>, base: Option<usize>) -> Vec<Value> {
    let Some(base) = base else { return Vec::new() };
    let others = compared.iter().enumerate().filter(|(index, _)| *index != base);
    others
        .map(|(index, experiment)| {
            let mut comparison = json!(ComparisonSummary::of(pairing, index, base));
            comparison["experiment"] = json!(experiment.id);
            comparison
        })
        .collect()
}

fn grouped(compared: &[Compared], rows: &[ComparedRow], is_asked: bool) -> Vec<Value> {
    if !is_asked {
        return Vec::new();
    }
    let one = |group: GroupSummary<'_>| {
        let experiments = compared
            .iter()
            .zip(group.experiments)
            .map(|(experiment, summary)| json!({"id": experiment.id, "rows": summary.rows, "scores": summary.scores}));
        let value: Value = serde_json::from_str(group.value).unwrap_or_default();
        json!({"value": value, "experiments": experiments.collect::<Vec<_>>()})
    };
    groups(rows, compared.len(), GROUPS_MAX).into_iter().map(one).collect()
}

/// Returns a pair as JSON.
///
/// The input and the expected output come from its first trial with contents. The cells hold all trials of each
/// experiment.
fn row(compared: &[Compared], pair: &Pair<'_>, base: usize, contents: &HashMap<(Uuid, String), Value>) -> Value {
    let content = |experiment: usize, root: &str| contents.get(&(compared[experiment].id, root.to_owned()));
    let first = pair.cells.iter().flatten().find_map(|row| content(row.experiment, &row.root_span_id));
    let cells = pair.cells.iter().enumerate().map(|(index, trials)| {
        let trials = trials.iter().map(|trial| {
            let mut shown = content(index, &trial.root_span_id).cloned().unwrap_or_else(|| json!({}));
            for hidden in ["experiment_id", "input", "expected"] {
                shown.as_object_mut().map(|shown| shown.remove(hidden));
            }
            shown["scores"] = json!(trial.scores);
            shown["metrics"] = json!(trial.metrics);
            shown["root_span_id"] = json!(trial.root_span_id);
            shown
        });
        let trials: Vec<Value> = trials.collect();
        json!({
            "experiment": compared[index].id, "trials": trials, "scores": means(pair, index),
            "deltas": if index == base { Measured::new() } else { deltas(pair, index, base) },
        })
    });
    let field = |name: &str| first.map_or(Value::Null, |row| row[name].clone());
    json!({
        "key": pair.key, "input": field("input"), "expected": field("expected"), "cells": cells.collect::<Vec<_>>(),
    })
}

/// Returns the names of all scores and metrics of a cell.
fn names(pair: &Pair<'_>, index: usize) -> Vec<String> {
    let of = |row: &&ComparedRow| {
        let metrics = row.metrics.keys().map(|name| format!("{METRIC_PREFIX}{name}"));
        row.scores.keys().cloned().chain(metrics).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = pair.cells[index].iter().flat_map(of).collect();
    names.sort();
    names.dedup();
    names
}

fn means(pair: &Pair<'_>, index: usize) -> Measured {
    names(pair, index).into_iter().filter_map(|name| Some((name.clone(), pair.mean(index, &name)?))).collect()
}

fn deltas(pair: &Pair<'_>, index: usize, base: usize) -> Measured {
    names(pair, index).into_iter().filter_map(|name| Some((name.clone(), pair.delta(index, base, &name)?))).collect()
}
