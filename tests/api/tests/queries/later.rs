//! `/btql/async` from outside: accepted jobs survive any restart, read the original version, and are visible on any
//! node.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_test_api::dev::NODES;
use assay_test_api::http::{HttpResponse, Request, percent_encoded, send};
use assay_test_api::server::TEST_KEY;
use serde_json::{Value, json};

use crate::nodes::{Nodes, asked, held, insert};

const ROWS: usize = 9_000;
const ROWS_AT_ONCE: usize = 3_000;
/// Rows of a page.
const PAGE: usize = 700;
const PAGES_MAX: usize = 2_000;
/// A debug build on a machine that does other things, and shards that elect their leaders meanwhile.
const ENDED_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

fn get(url: &str, target: &str) -> Result<HttpResponse> {
    let headers = vec![("authorization".into(), format!("Bearer {TEST_KEY}"))];
    send(url, &Request { method: "GET".into(), target: target.into(), headers, ..Request::default() })
}

fn got(url: &str, target: &str) -> Result<Value> {
    let answer = get(url, target)?;
    ensure!(answer.status == 200, "{target} at {url}: {} {}", answer.status, answer.text());
    serde_json::from_slice(&answer.body).context("no JSON")
}

fn make(nodes: &Nodes, body: &Value) -> Result<String> {
    let made = nodes.call("POST", "/btql/async", body)?;
    ensure!(made["status"] == "queued", "{made}");
    Ok(made["id"].as_str().context("an id")?.to_owned())
}

fn ended(nodes: &Nodes, id: &str) -> Result<Value> {
    let begun = Instant::now();
    loop {
        let status = got(nodes.url(), &format!("/btql/async/{id}"))?;
        match status["status"].as_str() {
            Some("queued" | "running") => ensure!(begun.elapsed() < ENDED_MAX, "{id} is still {status}"),
            _ => return Ok(status),
        }
        std::thread::sleep(POLL);
    }
}

/// A reader who goes from page to page, whichever node answers.
#[derive(Debug, Default)]
struct Reader {
    rows: Vec<Value>,
    cursor: String,
}

impl Reader {
    /// The status of the next page, and whether it was the last.
    fn page(&mut self, nodes: &Nodes, id: &str) -> Result<(String, bool)> {
        let target = format!("/btql/async/{id}/result?limit={PAGE}&cursor={}", percent_encoded(&self.cursor));
        let page = got(nodes.url(), &target)?;
        self.rows.extend(page["rows"].as_array().context("rows")?.iter().cloned());
        self.cursor = page["cursor"].as_str().unwrap_or_default().to_owned();
        let status = page["status"].as_str().context("a status")?;
        ensure!(status != "failed", "{page}");
        Ok((status.to_owned(), page["cursor"].is_null()))
    }

    fn rest(mut self, nodes: &Nodes, id: &str) -> Result<Vec<Value>> {
        let begun = Instant::now();
        for _ in 0..PAGES_MAX {
            if self.page(nodes, id)?.1 {
                return Ok(self.rows);
            }
            ensure!(begun.elapsed() < ENDED_MAX, "{} rows of {id} after {ENDED_MAX:?}", self.rows.len());
        }
        bail!("pages of {id} without an end")
    }
}

fn read(nodes: &Nodes, id: &str) -> Result<Vec<Value>> {
    Reader::default().rest(nodes, id)
}

fn write(nodes: &Nodes, project: &str, begin: usize, count: usize) -> Result<()> {
    let row = |n: usize| json!({"id": format!("r{n}"), "metadata": {"n": n, "g": n % 5}, "input": {"said": n}});
    for begin in (begin..begin + count).step_by(ROWS_AT_ONCE) {
        let rows: Vec<Value> = (begin..begin + count.min(ROWS_AT_ONCE)).map(row).collect();
        insert(nodes.url(), project, &rows)?;
    }
    Ok(())
}

fn queries(projects: &[String]) -> Vec<Value> {
    let all = projects.iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(", ");
    let first = &projects[0];
    vec![
        json!({"query": format!("SELECT * FROM project_logs('{first}')"), "disable_limit": true}),
        json!({"query": format!("SELECT id, metadata.n AS n FROM project_logs({all}) ORDER BY n, id LIMIT 2500")}),
        json!({"query": format!("SELECT metadata.g AS g, count(1) AS n, sum(metadata.n) AS s FROM project_logs({all}) \
                GROUP BY g ORDER BY g")}),
        json!({"query": format!("select: id | from: project_logs({all}) traces | limit: 40")}),
    ]
}

/// Returns the rows of each query, run synchronously.
fn at_once(nodes: &Nodes, projects: &[String]) -> Result<Vec<Value>> {
    queries(projects).iter().map(|body| Ok(asked(nodes.url(), body)?["data"].take())).collect()
}

/// Each query, its name, and its rows.
type MadeJobs = Vec<(String, Value)>;

fn all_made(nodes: &Nodes, projects: &[String]) -> Result<MadeJobs> {
    let rows = at_once(nodes, projects)?;
    let made = queries(projects).into_iter().map(|body| make(nodes, &body)).collect::<Result<Vec<_>>>()?;
    Ok(made.into_iter().zip(rows).collect())
}

/// Checks the jobs on each node.
fn are_there(nodes: &Nodes, made: &MadeJobs) -> Result<()> {
    for (id, rows) in made {
        let status = ended(nodes, id)?;
        ensure!(status == json!({"status": "succeeded"}), "{id}: {status}");
        for _ in &nodes.dev.urls {
            let found = read(nodes, id)?;
            ensure!(json!(found) == *rows, "{id}: {} rows, not {}", found.len(), rows.as_array().map_or(0, Vec::len));
        }
    }
    Ok(())
}

fn projects(nodes: &Nodes) -> Result<Vec<String>> {
    let projects = vec![nodes.project("first")?, nodes.project("second")?];
    write(nodes, &projects[0], 0, ROWS)?;
    write(nodes, &projects[1], ROWS, 1_000)?;
    Ok(projects)
}

/// One at a time, so that others wait while it is killed.
const ONE_RUNS: [(&str, &str); 1] = [("ASSAY_QUERIES_LATER_RUNNING_MAX", "1")];

/// A reader has some of the rows when the node is killed and other jobs wait; new rows are added before everything is
/// read again.
#[test]
fn what_was_promised_is_there_behind_any_new_start() {
    let nodes = Nodes::start(1, &ONE_RUNS).unwrap_or_else(|error| panic!("{error:#}"));
    let begin = || -> Result<(Vec<String>, MadeJobs, Reader)> {
        let projects = projects(&nodes)?;
        let (made, mut reader) = (all_made(&nodes, &projects)?, Reader::default());
        let begun = Instant::now();
        while reader.rows.is_empty() {
            reader.page(&nodes, &made[0].0)?;
            ensure!(begun.elapsed() < ENDED_MAX, "no row of the first");
        }
        write(&nodes, &projects[0], 100_000, 500)?;
        let statuses = made.iter().map(|(id, _)| Ok(got(nodes.url(), &format!("/btql/async/{id}"))?["status"].take()));
        println!("killed at {} rows, {:?}", reader.rows.len(), statuses.collect::<Result<Vec<_>>>()?);
        Ok((projects, made, reader))
    };
    let (projects, made, reader) = begin().unwrap_or_else(|error| panic!("{error:#}\n{}", nodes.dev.log()));
    let nodes = nodes.again_after_a_kill(&ONE_RUNS).unwrap_or_else(|error| panic!("{error:#}"));
    let go_on = || -> Result<()> {
        write(&nodes, &projects[0], 200_000, 500)?;
        // Those that had not begun see what was written meanwhile; the one that was read has what it had.
        let found = reader.rest(&nodes, &made[0].0)?;
        ensure!(json!(found) == made[0].1, "{} rows of {ROWS}", found.len());
        for (id, _) in &made {
            ensure!(ended(&nodes, id)?["status"] == "succeeded", "{id}");
        }
        Ok(())
    };
    go_on().unwrap_or_else(|error| panic!("{error:#}\n{}", nodes.dev.log()));
    let later = all_made(&nodes, &projects).unwrap_or_else(|error| panic!("{error:#}"));
    // Some wait and one runs when it is asked to stop.
    let nodes = nodes.again(&[]).unwrap_or_else(|error| panic!("{error:#}"));
    are_there(&nodes, &later).unwrap_or_else(|error| panic!("{error:#}\n{}", nodes.dev.log()));
    let nodes = nodes.again(&[]).unwrap_or_else(|error| panic!("{error:#}"));
    held(&nodes, are_there(&nodes, &later).and_then(|()| others_are_unknown(&nodes)));
}

fn others_are_unknown(nodes: &Nodes) -> Result<()> {
    let missing = get(nodes.url(), "/btql/async/00000000-0000-8000-8000-000000000001")?;
    ensure!(missing.status == 404, "{} {}", missing.status, missing.text());
    let stranger = get(nodes.url(), "/btql/async/00000000-0000-8000-8000-0000000000ff/result")?;
    ensure!(stranger.status == 404, "{} {}", stranger.status, stranger.text());
    Ok(())
}

/// Small enough for all but the largest of the queries.
const SMALL: [(&str, &str); 2] =
    [("ASSAY_QUERIES_LATER_JOB_BYTES_MAX", "100000"), ("ASSAY_QUERIES_LATER_WAITING_MAX", "3")];

#[test]
fn what_would_be_too_much_is_refused_or_fails_with_words() {
    let nodes = Nodes::start(1, &SMALL).unwrap_or_else(|error| panic!("{error:#}"));
    let all = || -> Result<()> {
        let projects = projects(&nodes)?;
        let queries = queries(&projects);
        let status = ended(&nodes, &make(&nodes, &queries[0])?)?;
        ensure!(status["status"] == "failed", "{status}");
        ensure!(status["error"].as_str().is_some_and(|why| why.contains("exceed the maximum of a query")), "{status}");
        ensure!(ended(&nodes, &make(&nodes, &queries[2])?)? == json!({"status": "succeeded"}));
        let request = |body: &Value| Request { target: "/btql/async".into(), ..crate::nodes::request(body) };
        let answers: Vec<HttpResponse> =
            (0..40).map(|_| send(nodes.url(), &request(&queries[1]))).collect::<Result<_>>()?;
        let busy = answers.iter().find(|answer| answer.status == 429).context("none is refused")?;
        ensure!(busy.header("retry-after").is_some() && busy.text().contains("are waiting"), "{}", busy.text());
        ensure!(answers.iter().all(|answer| [200, 429].contains(&answer.status)), "{answers:?}");
        Ok(())
    };
    held(&nodes, all());
}

#[test]
fn any_node_tells_of_it_and_one_that_is_gone_is_named() {
    let nodes = Nodes::start(NODES, &[]).unwrap_or_else(|error| panic!("{error:#}"));
    let all = || -> Result<()> {
        let projects = projects(&nodes)?;
        let made = all_made(&nodes, &projects)?;
        are_there(&nodes, &made)?;
        nodes.dev.kill(3)?;
        let mut gone = 0;
        for (id, _) in &made {
            let is_of_third = id.ends_with("000000000003");
            for target in [format!("/btql/async/{id}"), format!("/btql/async/{id}/result")] {
                let answer = get(&nodes.dev.urls[0], &target)?;
                let text = answer.text();
                if is_of_third {
                    gone += 1;
                    ensure!(answer.status == 503 && text.contains("on node 3"), "{} {text}", answer.status);
                    ensure!(answer.header("retry-after").is_some(), "no word on when to come again");
                } else {
                    // Who reads is asked for of the majority, which may elect a leader just now.
                    ensure!([200, 503].contains(&answer.status) && !text.contains("on node"), "{text}");
                }
            }
        }
        ensure!(gone > 0, "no query was on node 3: {made:?}");
        Ok(())
    };
    held(&nodes, all());
}
