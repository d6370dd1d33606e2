//! Paging while rows are written: of the rows at the first page, none is missing and none comes twice, whichever node
//! returns the next page, and also after a restart.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::nodes::{Nodes, held, insert, logs};

/// Rows of all objects together, on one node and on three.
const ROWS_ON_ONE: usize = 50_000;
const ROWS_ON_THREE: usize = 3_000;
/// The first object has most of the rows; the others share the rest.
const OBJECTS: usize = 3;
const FIRST_SHARE: (usize, usize) = (3, 5);
const SPANS_A_TRACE: usize = 5;
/// Rows of one request; traces are not split.
const ROWS_AT_ONCE: usize = 500;
const WRITERS: usize = 2;
const PAGES_MAX: usize = 60;
/// The one whose cursor is taken elsewhere.
const PAGE: usize = 3;
/// Sealed often, so that pages run into seals.
const SETTINGS: [(&str, &str); 1] = [("ASSAY_STORE_SEAL_AGE_SECONDS", "1")];

/// A shape, the name of its rows, and the page size for `FEW_ROWS`.
const FEW_ROWS: usize = 5_000;
const SHAPES: [(&str, &str, usize); 3] =
    [("spans", "id", 450), ("traces", "id", 90), ("summary", "root_span_id AS id", 90)];
const ORDERS: [&str; 3] = ["", " ORDER BY _pagination_key", " ORDER BY _pagination_key DESC"];

/// Objects with the rows that they had at first.
struct PagedRows {
    objects: Vec<String>,
    /// Rows of each object.
    counts: Vec<usize>,
}

fn row(object: usize, number: usize, word: &str) -> Value {
    let root = number - number % SPANS_A_TRACE;
    let (id, root) = (format!("{object}-{number}"), format!("{object}-{root}"));
    let mut row = json!({
        "id": id, "span_id": id, "root_span_id": root, "input": {"said": word}, "metadata": {"n": number},
        "span_attributes": {"name": "step", "type": "llm"}, "metrics": {"tokens": number % 100},
    });
    if id != root {
        row["span_parents"] = json!([root]);
    }
    row
}

impl PagedRows {
    fn write(nodes: &Nodes, count: usize) -> Result<PagedRows> {
        let objects: Vec<String> = (0..OBJECTS).map(|n| nodes.project(&format!("paged {n}"))).collect::<Result<_>>()?;
        let first = count * FIRST_SHARE.0 / FIRST_SHARE.1;
        let rest = (count - first) / (OBJECTS - 1);
        let counts: Vec<usize> = (0..OBJECTS).map(|object| if object == 0 { first } else { rest }).collect();
        for (object, project) in objects.iter().enumerate() {
            let rows: Vec<Value> = (0..counts[object]).map(|number| row(object, number, "first")).collect();
            rows.chunks(ROWS_AT_ONCE).try_for_each(|rows| nodes.insert(project, rows))?;
        }
        Ok(PagedRows { objects, counts })
    }

    /// The ids that pages over so many objects have to show, each once.
    fn ids(&self, objects: usize, shape: &str) -> Vec<String> {
        let step = if shape == "summary" { SPANS_A_TRACE } else { 1 };
        let of = |object: usize| (0..self.counts[object]).step_by(step).map(move |number| format!("{object}-{number}"));
        (0..objects).flat_map(of).collect()
    }

    /// Inserts traces, adds spans to existing traces and merges into existing rows, until it is stopped.
    fn change(&self, nodes: &Nodes, writer: usize, stop: &AtomicBool, written: &AtomicUsize) -> Result<()> {
        for turn in 0_usize.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let object = (turn + writer) % OBJECTS;
            // Far from each other, and not in the order of pages.
            let known = (turn * 997 + writer * 499) % self.counts[object];
            let root = format!("{object}-{}", known - known % SPANS_A_TRACE);
            let new = format!("new-{writer}-{turn}");
            let rows = [
                json!({"id": new, "span_id": new, "root_span_id": new, "input": "new"}),
                json!({"id": format!("{new}-child"), "root_span_id": root, "span_parents": [root], "output": turn}),
                json!({"id": format!("{object}-{known}"), "_is_merge": true, "metadata": {"touched": turn}}),
            ];
            insert(nodes.url(), &self.objects[object], &rows)?;
            written.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn query(&self, objects: usize, (shape, id, limit): (&str, &str, usize), order: &str) -> Value {
        let source = logs(&self.objects[..objects], shape);
        let limit = limit * (self.counts.iter().sum::<usize>() / FEW_ROWS).max(1);
        json!({"query": format!("SELECT {id} FROM {source}{order} LIMIT {limit}")})
    }
}

/// Count of each id, and number of pages.
#[derive(Debug, Default)]
struct PagesRead {
    ids: BTreeMap<String, usize>,
    pages: usize,
}

impl PagesRead {
    /// Reads on from `cursor`, so many pages; the cursor of the last, or none where there are no more.
    fn read(&mut self, nodes: &Nodes, body: &Value, cursor: Option<String>, pages: usize) -> Result<Option<String>> {
        let mut body = body.clone();
        let mut cursor = cursor;
        for _ in 0..pages {
            body["cursor"] = json!(cursor);
            let page = nodes.asked(&body)?;
            let rows = page["data"].as_array().context("data")?;
            for row in rows {
                *self.ids.entry(row["id"].as_str().unwrap_or("none").to_owned()).or_default() += 1;
            }
            self.pages += 1;
            cursor = page["cursor"].as_str().map(str::to_owned);
            ensure!(cursor.is_some() != rows.is_empty(), "{} rows and the cursor {cursor:?}", rows.len());
            if cursor.is_none() {
                break;
            }
        }
        Ok(cursor)
    }

    fn has_each_once(&self, wanted: &[String]) -> Result<()> {
        let count = |id: &String| self.ids.get(id).copied().unwrap_or(0);
        let missed: Vec<_> = wanted.iter().filter(|id| count(id) == 0).take(10).collect();
        let twice: Vec<_> = wanted.iter().filter(|id| count(id) > 1).take(10).collect();
        ensure!(missed.is_empty() && twice.is_empty(), "of {}: missed {missed:?}, twice {twice:?}", wanted.len());
        Ok(())
    }
}

/// All pages in every shape, over one object and over all, while rows are written.
fn every_shape(nodes: &Nodes, rows: &PagedRows) -> Result<()> {
    let all = SHAPES.iter().flat_map(|shape| ORDERS.map(|order| (shape, order)));
    // A sort of whole traces is one of their spans, and has no pages (D-36).
    for (shape, order) in all.filter(|(shape, order)| shape.0 != "traces" || order.is_empty()) {
        for objects in [1, OBJECTS] {
            let body = rows.query(objects, *shape, order);
            let mut seen = PagesRead::default();
            // Where new rows come last there may always be one more page.
            let read = seen.read(nodes, &body, None, PAGES_MAX).and_then(|_| {
                ensure!(seen.pages > PAGE, "only {} pages", seen.pages);
                seen.has_each_once(&rows.ids(objects, shape.0))
            });
            read.with_context(|| body.to_string())?;
        }
    }
    Ok(())
}

fn while_rows_are_written(nodes: &Nodes, rows: &PagedRows) -> Result<()> {
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let change = |writer: usize| {
            let (stop, written) = (&stop, &written);
            scope.spawn(move || rows.change(nodes, writer, stop, written))
        };
        let writers: Vec<_> = (0..WRITERS).map(change).collect();
        let read = every_shape(nodes, rows);
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        read
    })?;
    println!("{} writes meanwhile", written.load(Ordering::Relaxed));
    ensure!(written.load(Ordering::Relaxed) > WRITERS, "nothing was written meanwhile");
    Ok(())
}

/// The first pages, and their cursors, of one object and of several.
fn begun(nodes: &Nodes, rows: &PagedRows) -> Result<Vec<(Value, PagesRead, Option<String>)>> {
    let all = SHAPES.iter().flat_map(|shape| [1, OBJECTS].map(|objects| (shape, objects)));
    all.map(|(shape, objects)| {
        let body = rows.query(objects, *shape, "");
        let mut seen = PagesRead::default();
        let cursor = seen.read(nodes, &body, None, PAGE)?;
        ensure!(cursor.is_some(), "{body}: page {PAGE} has no cursor");
        Ok((body, seen, cursor))
    })
    .collect()
}

fn ended(nodes: &Nodes, rows: &PagedRows, begun: Vec<(Value, PagesRead, Option<String>)>) -> Result<()> {
    let all = SHAPES.iter().flat_map(|shape| [1, OBJECTS].map(|objects| (shape, objects)));
    for ((shape, objects), (body, mut seen, cursor)) in all.zip(begun) {
        let read = seen.read(nodes, &body, cursor, PAGES_MAX);
        read.and_then(|_| seen.has_each_once(&rows.ids(objects, shape.0))).with_context(|| body.to_string())?;
    }
    Ok(())
}

#[test]
fn pages_of_one_node_miss_nothing_while_rows_are_written_and_go_on_behind_a_new_start() {
    let nodes = Nodes::start(1, &SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    let first = || -> Result<_> {
        let rows = PagedRows::write(&nodes, ROWS_ON_ONE)?;
        while_rows_are_written(&nodes, &rows)?;
        let begun = begun(&nodes, &rows)?;
        Ok((rows, begun))
    };
    let (rows, begun) = first().unwrap_or_else(|error| panic!("{error:#}\nthe node said:\n{}", nodes.dev.log()));
    let nodes = nodes.again(&SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    held(&nodes, ended(&nodes, &rows, begun));
}

#[test]
fn pages_of_three_nodes_in_turn_miss_nothing_while_rows_are_written() {
    let nodes = Nodes::start(3, &SETTINGS).unwrap_or_else(|error| panic!("{error:#}"));
    let all = || -> Result<()> {
        let rows = PagedRows::write(&nodes, ROWS_ON_THREE)?;
        while_rows_are_written(&nodes, &rows)
    };
    held(&nodes, all());
}
