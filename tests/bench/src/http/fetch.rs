//! `fetch`: pages of whole traces and single traces, read back over HTTP at the given size.
//!
//! A row by its id has no request of its own before the query endpoint: what is measured in its place is `limit: 1`
//! from a cursor that leads to a trace somewhere in the project, the row's whole trace in the answer.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use assay_bench::generate::dice::Dice;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::client::Connection;
use super::client_runtime;
use super::row_loader::{Loader, RowLoaderOptions};
use super::server_process::ServerProcess;
use crate::process::Memory;
use crate::report::{Report, Threshold, percentile};

const TRACES_PER_PAGE: u64 = 100;
const NEWEST_PAGES: usize = 200;
const ANY_PAGES: usize = 200;
const ANY_TRACES: usize = 1000;
/// One in this many of the traces read alone is compared with what was sent.
const CHECK_EVERY: usize = 10;
const PAGE_MS_P50_MAX: f64 = 15.0;
const TRACE_MS_P50_MAX: f64 = 5.0;
const RESIDENT_MIB_MAX: f64 = 1024.0;

/// One answer, and how long its last byte took.
struct FetchPage {
    ms: f64,
    bytes: usize,
    events: Vec<Value>,
    cursor: Option<String>,
}

/// A cursor, and the trace that the page behind it begins with.
struct PagePosition {
    cursor: String,
    root_span_id: String,
}

#[derive(Debug, Default, Serialize)]
struct FetchMeasurement {
    rows: u64,
    pages: u64,
    page_bytes_max: usize,
    /// Milliseconds of each: one page after another from the newest to the oldest, then from anywhere.
    walk_ms: Vec<f64>,
    newest_page_ms: Vec<f64>,
    any_page_ms: Vec<f64>,
    trace_ms: Vec<f64>,
}

/// Fetches from one project over one connection.
struct PageReader<'a> {
    connection: Connection,
    path: String,
    loader: &'a Loader,
    dice: Dice,
}

pub fn run(options: &RowLoaderOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let server = ServerProcess::assay(&options.program, &dir.join("assay"))?;
    let runtime = client_runtime()?;
    let mut loader = runtime.block_on(Loader::new(server.target(), options))?;
    let seconds = runtime.block_on(loader.load(options.rows))?;
    let loaded = server.process().memory()?;
    server.quiet()?;
    let dice = Dice::new(options.seed ^ 1);
    let mut reader =
        PageReader { connection: Connection::new(server.target()), path: loader.fetch_path(), loader: &loader, dice };
    let measured = runtime.block_on(reader.measure(TRACES_PER_PAGE))?;
    ensure!(measured.rows == loader.rows(), "{} rows were sent and {} read", loader.rows(), measured.rows);
    let mut report = Report::new("fetch");
    report.figure("rows", loader.rows() as f64, "");
    report.figure("loaded at", loader.rows() as f64 / seconds, "rows/s");
    figures(&mut report, &measured);
    memory_figures(&mut report, &loaded, &server.process().memory()?);
    report.detail("measured", &measured)?;
    report.finish(json_file)
}

fn figures(report: &mut Report, measured: &FetchMeasurement) {
    let p = |times: &[f64], share| percentile(times.iter().copied(), share);
    report.figure("pages", measured.pages as f64, "");
    report.figure("a page of 100 traces, most", measured.page_bytes_max as f64 / 1e6, "MB");
    let pages = [
        ("newest page of 100 traces", &measured.newest_page_ms),
        ("any page of 100 traces, by its cursor", &measured.any_page_ms),
    ];
    for (name, times) in pages {
        report.promised(format!("{name}, p50"), p(times, 0.5), "ms", Threshold::AtMost(PAGE_MS_P50_MAX));
        report.figure(format!("{name}, p99"), p(times, 0.99), "ms");
    }
    report.figure("page after page, first reading, p50", p(&measured.walk_ms, 0.5), "ms");
    report.figure("page after page, first reading, p99", p(&measured.walk_ms, 0.99), "ms");
    let name = "a row with its trace, by a cursor, p50";
    report.promised(name, p(&measured.trace_ms, 0.5), "ms", Threshold::AtMost(TRACE_MS_P50_MAX));
    report.figure("a row with its trace, by a cursor, p99", p(&measured.trace_ms, 0.99), "ms");
}

fn memory_figures(report: &mut Report, loaded: &Memory, read: &Memory) {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report.promised("resident while loading, peak", mib(loaded.peak_bytes), "MiB", Threshold::AtMost(RESIDENT_MIB_MAX));
    report.promised("resident, peak of all", mib(read.peak_bytes), "MiB", Threshold::AtMost(RESIDENT_MIB_MAX));
}

impl PageReader<'_> {
    async fn measure(&mut self, limit: u64) -> anyhow::Result<FetchMeasurement> {
        let mut measured = FetchMeasurement::default();
        let places = self.walk(limit, &mut measured).await?;
        ensure!(!places.is_empty(), "all rows fit one page: ask for more rows");
        for _ in 0..NEWEST_PAGES {
            let page = self.page(limit, None).await?;
            ensure!(traces_of(&page) == limit as usize, "the newest page has {} traces", traces_of(&page));
            measured.newest_page_ms.push(page.ms);
        }
        for _ in 0..ANY_PAGES {
            let place = self.any(&places);
            measured.any_page_ms.push(self.page_at(limit, place).await?.ms);
        }
        for number in 0..ANY_TRACES {
            let place = self.any(&places);
            let page = self.page_at(1, place).await?;
            ensure!(traces_of(&page) == 1, "limit 1 was answered with {} traces", traces_of(&page));
            if number.is_multiple_of(CHECK_EVERY) {
                page.events.iter().try_for_each(|event| self.loader.check(event))?;
            }
            measured.trace_ms.push(page.ms);
        }
        Ok(measured)
    }

    /// Reads from the newest page to the oldest.
    async fn walk(&mut self, limit: u64, measured: &mut FetchMeasurement) -> anyhow::Result<Vec<PagePosition>> {
        let (mut places, mut cursor): (Vec<PagePosition>, Option<String>) = (Vec::new(), None);
        loop {
            let page = self.page(limit, cursor.as_deref()).await?;
            let Some(first) = page.events.first() else { return Ok(places) };
            ensure!(traces_of(&page) <= limit as usize, "a page of {} traces", traces_of(&page));
            measured.pages += 1;
            measured.rows += page.events.len() as u64;
            ensure!(measured.rows <= self.loader.rows(), "the pages hold more rows than were sent: rows come twice");
            measured.page_bytes_max = measured.page_bytes_max.max(page.bytes);
            measured.walk_ms.push(page.ms);
            if let Some(cursor) = cursor {
                places.push(PagePosition { cursor, root_span_id: root_of(first)?.to_owned() });
            }
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(places);
            }
        }
    }

    fn any<'p>(&mut self, places: &'p [PagePosition]) -> &'p PagePosition {
        &places[self.dice.below(places.len() as u64) as usize]
    }

    /// The page behind a cursor, which must begin where it did before.
    async fn page_at(&mut self, limit: u64, place: &PagePosition) -> anyhow::Result<FetchPage> {
        let page = self.page(limit, Some(&place.cursor)).await?;
        match page.events.first() {
            Some(first) if root_of(first)? == place.root_span_id => Ok(page),
            _ => bail!("a cursor leads elsewhere than before"),
        }
    }

    async fn page(&mut self, limit: u64, cursor: Option<&str>) -> anyhow::Result<FetchPage> {
        let mut asked = json!({ "limit": limit });
        if let Some(cursor) = cursor {
            asked["cursor"] = cursor.into();
        }
        let asked = Bytes::from(asked.to_string());
        let began = Instant::now();
        let answer = self.connection.post(&self.path, &asked).await?;
        let (ms, bytes) = (began.elapsed().as_secs_f64() * 1e3, answer.body.len());
        let mut answer: Value = answer.json(&self.path)?;
        let Value::Array(events) = answer["events"].take() else { bail!("a page without events") };
        // An empty cursor ends the pages as well as none.
        let cursor = answer["cursor"].as_str().filter(|cursor| !cursor.is_empty()).map(str::to_owned);
        Ok(FetchPage { ms, bytes, events, cursor })
    }
}

fn root_of(event: &Value) -> anyhow::Result<&str> {
    event["root_span_id"].as_str().context("an event without root_span_id")
}

fn traces_of(page: &FetchPage) -> usize {
    page.events.iter().filter_map(|event| event["root_span_id"].as_str()).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    use actix_web::{App, HttpResponse, HttpServer, web};

    use super::super::client::Target;
    use super::*;
    use crate::client_threads::spawn;

    /// Response of a server that keeps its rows in a list; the cursor is the number of traces before it.
    #[derive(Default)]
    struct Rows {
        events: Mutex<Vec<Value>>,
        /// Answers every page after the first with the first one's cursor.
        goes_round: bool,
    }

    impl Rows {
        fn insert(&self, body: &Value) -> Value {
            let events = body["events"].as_array().expect("events").clone();
            let row_ids: Vec<Value> = events.iter().map(|event| event["id"].clone()).collect();
            self.events.lock().expect("a lock").extend(events);
            json!({ "row_ids": row_ids })
        }

        fn fetch(&self, body: &Value) -> Value {
            let events = self.events.lock().expect("a lock");
            let from: usize = body["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("a number"));
            let limit = body["limit"].as_u64().expect("a limit") as usize;
            // A body holds whole traces of ten spans.
            let traces: Vec<&[Value]> = events.chunks(10).rev().skip(from).take(limit).collect();
            let next = if self.goes_round { 1 } else { from + traces.len() };
            let cursor = (!traces.is_empty()).then(|| next.to_string());
            json!({ "events": traces.concat(), "cursor": cursor })
        }
    }

    fn started(rows: Rows) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let rows = web::Data::from(Arc::new(rows));
        let server = move || {
            let answer = |answer: Value| async { HttpResponse::Ok().json(answer) };
            let app = App::new().app_data(rows.clone()).app_data(web::JsonConfig::default().limit(1 << 24));
            app.route("/v1/project", web::post().to(move || answer(json!({ "id": "p" }))))
                .route(
                    "/v1/project_logs/p/insert",
                    web::post().to(move |rows: web::Data<Rows>, body: web::Json<Value>| answer(rows.insert(&body))),
                )
                .route(
                    "/v1/project_logs/p/fetch",
                    web::post().to(move |rows: web::Data<Rows>, body: web::Json<Value>| answer(rows.fetch(&body))),
                )
        };
        spawn("fake", move || {
            let serve = async { HttpServer::new(server).workers(1).listen(listener)?.run().await };
            Ok(actix_web::rt::System::new().block_on(serve)?)
        })
        .expect("a thread");
        Target { address, key: None }
    }

    async fn measured(rows: Rows) -> anyhow::Result<FetchMeasurement> {
        let target = started(rows);
        let options = RowLoaderOptions { program: "assay".into(), rows: 900, connections: 3, seed: 5 };
        let mut loader = Loader::new(&target, &options).await?;
        loader.load(options.rows).await?;
        let (connection, path) = (Connection::new(&target), loader.fetch_path());
        let mut reader = PageReader { connection, path, loader: &loader, dice: Dice::new(1) };
        let measured = reader.measure(7).await?;
        assert_eq!(measured.rows, loader.rows());
        Ok(measured)
    }

    #[tokio::test]
    async fn every_page_is_walked_and_looked_up_again() {
        let measured = measured(Rows::default()).await.expect("pages that agree");
        assert_eq!(measured.pages, (measured.rows / 10).div_ceil(7));
        assert_eq!((measured.newest_page_ms.len(), measured.trace_ms.len()), (NEWEST_PAGES, ANY_TRACES));
    }

    #[tokio::test]
    async fn cursors_that_lead_in_a_circle_are_an_error() {
        let error = measured(Rows { goes_round: true, ..Rows::default() }).await.expect_err("no end");
        assert!(error.to_string().contains("twice"), "{error}");
    }

    #[tokio::test]
    async fn an_event_that_says_something_else_is_an_error() {
        let target = started(Rows::default());
        let options = RowLoaderOptions { program: "assay".into(), rows: 10, connections: 1, seed: 5 };
        let mut loader = Loader::new(&target, &options).await.expect("a project");
        loader.load(options.rows).await.expect("rows");
        let body = Bytes::from_static(b"{\"limit\":1}");
        let page = Connection::new(&target).post(&loader.fetch_path(), &body).await.expect("a page");
        let page: Value = page.json("it").expect("JSON");
        let mut event = page["events"][0].clone();
        loader.check(&event).expect("as it was sent");
        event["metadata"]["model"] = "another".into();
        assert!(loader.check(&event).is_err());
        event["id"] = "nobody's".into();
        assert!(loader.check(&event).is_err());
    }
}
