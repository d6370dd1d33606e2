//! `catalog`: a hundred thousand experiments and twice as many other records. Measures the time of a page of a list, of
//! a record by its id and of a new record, the server's memory, and its restart after a kill.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use assay_bench::generate::dice::Dice;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Connection, Target};
use super::client_runtime;
use super::restart::ready;
use super::server_process::ServerProcess;
use crate::report::{Report, Threshold, median, percentile};

/// Projects that the records are in.
const PROJECTS: usize = 10;
/// Other kinds, as in paths, with their required fields besides a name and a project.
const OTHERS: [&str; 4] = ["dataset", "project_tag", "span_iframe", "project_score"];
const PAGE: usize = 100;
const PAGES: usize = 400;
const GETS: usize = 4000;
const CREATES: usize = 400;
const KILLS: usize = 3;
/// Records between two words about how far it is.
const MARK: usize = 20_000;

#[derive(Clone, Debug)]
pub struct CatalogOptions {
    pub program: PathBuf,
    pub experiments: usize,
    pub connections: usize,
    pub seed: u64,
}

pub fn run(options: &CatalogOptions, dir: &Path, json_file: Option<&Path>) -> anyhow::Result<()> {
    let data_dir = dir.join("assay");
    let runtime = client_runtime()?;
    let mut server = ServerProcess::assay(&options.program, &data_dir)?;
    let mut report = Report::new("catalog");
    let began = Instant::now();
    let made = runtime.block_on(make(server.target(), options))?;
    let all = made.experiments.len() + made.others;
    report.figure("experiments", made.experiments.len() as f64, "");
    report.figure("other records", made.others as f64, "");
    let connections = options.connections;
    let rate = all as f64 / began.elapsed().as_secs_f64();
    report.figure(format!("made by {connections} connections"), rate, "records/s");
    server.quiet()?;
    let mut dice = Dice::new(options.seed);
    runtime.block_on(measure(server.target(), &made, &mut dice, &mut report))?;
    let resident = server.process().memory()?;
    report.promised(
        "resident, peak",
        resident.peak_bytes as f64 / f64::from(1 << 20),
        "MiB",
        Threshold::AtMost(1024.0),
    );
    report.figure("resident, at rest", resident.resident_bytes as f64 / f64::from(1 << 20), "MiB");
    let mut seconds = Vec::new();
    for kill in 1..=KILLS {
        server.kill()?;
        let began = Instant::now();
        server = ServerProcess::assay(&options.program, &data_dir)?;
        seconds.push(runtime.block_on(ready(server.target(), began))?);
        eprintln!("kill {kill}: ready after {:.2} s", seconds[kill - 1]);
        runtime.block_on(is_all_there(server.target(), &made, &mut dice))?;
    }
    let again = server.process().memory()?;
    report.promised(
        "resident after a start, peak",
        again.peak_bytes as f64 / f64::from(1 << 20),
        "MiB",
        Threshold::AtMost(1024.0),
    );
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    report.promised("ready after kill -9, longest", longest, "s", Threshold::AtMost(5.0));
    report.finish(json_file)
}

/// Created record.
struct CreatedRecord {
    projects: Vec<String>,
    experiments: Vec<String>,
    others: usize,
}

/// Returns a body about as large as an SDK's experiment.
fn body(kind: &str, project: &str, number: usize) -> Value {
    let mut body = json!({"project_id": project, "name": format!("{kind} {number}")});
    match kind {
        "experiment" => {
            body["metadata"] = json!({"model": "gpt-5", "temperature": 0.2, "run": number, "owner": "a team of ours"});
            body["repo_info"] = json!({
                "commit": format!("{number:040x}"), "branch": "main", "dirty": false,
                "author_name": "Ann Author", "author_email": "ann@example.com", "commit_message": "Make it better",
            });
            body["ensure_new"] = false.into();
        }
        "project_tag" => body["color"] = "#336699".into(),
        "span_iframe" => body["url"] = "https://example.com/shows/a/span".into(),
        "project_score" => {
            body["score_type"] = "slider".into();
            body["description"] = "How well it went".into();
        }
        _ => body["description"] = "Rows that a model is asked about".into(),
    }
    body
}

async fn made(connection: &mut Connection, kind: &str, body: &Value) -> anyhow::Result<String> {
    let path = format!("/v1/{kind}");
    let answer: Value = connection.post(&path, &Bytes::from(body.to_string())).await?.json(&path)?;
    answer["id"].as_str().map(str::to_owned).context("a new record has an id")
}

async fn make(target: &Target, options: &CatalogOptions) -> anyhow::Result<CreatedRecord> {
    let mut connection = Connection::new(target);
    let mut projects = Vec::new();
    for number in 0..PROJECTS {
        projects.push(made(&mut connection, "project", &json!({"name": format!("project {number}")})).await?);
    }
    let (each, connections) = (options.experiments, options.connections.max(1));
    let mut lanes = JoinSet::new();
    for lane in 0..connections {
        let (target, projects) = (target.clone(), projects.clone());
        lanes.spawn(async move {
            let mut connection = Connection::new(&target);
            let (mut experiments, mut others) = (Vec::new(), 0);
            for number in (lane..each * 3).step_by(connections) {
                let project = &projects[number % PROJECTS];
                let kind = if number < each { "experiment" } else { OTHERS[number / PROJECTS % OTHERS.len()] };
                let id = made(&mut connection, kind, &body(kind, project, number)).await?;
                if number < each {
                    experiments.push(id);
                } else {
                    others += 1;
                }
                if number % MARK == 0 {
                    eprintln!("{number} of {} records", each * 3);
                }
            }
            Ok::<_, anyhow::Error>((experiments, others))
        });
    }
    let mut all = CreatedRecord { projects, experiments: Vec::new(), others: 0 };
    while let Some(lane) = lanes.join_next().await {
        let (experiments, others) = lane.context("a lane")??;
        all.experiments.extend(experiments);
        all.others += others;
    }
    Ok(all)
}

/// Milliseconds of a request to the last byte of its answer, and the answer.
async fn timed(connection: &mut Connection, path: &str) -> anyhow::Result<(f64, Vec<u8>)> {
    let began = Instant::now();
    let answer = connection.get(path).await?;
    let spent = began.elapsed().as_secs_f64() * 1e3;
    Ok((spent, answer.ok(path)?))
}

async fn measure(target: &Target, made: &CreatedRecord, dice: &mut Dice, report: &mut Report) -> anyhow::Result<()> {
    let mut connection = Connection::new(target);
    let anywhere = |dice: &mut Dice| dice.below(made.experiments.len() as u64) as usize;
    let mut pages = [const { Vec::new() }; 3];
    for _ in 0..PAGES {
        let project = &made.projects[dice.below(PROJECTS as u64) as usize];
        let from = &made.experiments[anywhere(dice)];
        let paths = [
            format!("/v1/experiment?limit={PAGE}"),
            format!("/v1/experiment?limit={PAGE}&starting_after={from}"),
            format!("/v1/experiment?limit={PAGE}&project_id={project}"),
        ];
        for (path, times) in paths.iter().zip(&mut pages) {
            let (spent, body) = timed(&mut connection, path).await?;
            times.push(spent);
            let page: Value = serde_json::from_slice(&body).context(path.clone())?;
            ensure!(page["objects"].as_array().is_some_and(|page| !page.is_empty()), "{path}: nothing is there");
        }
    }
    let names = ["the newest", "from anywhere", "the newest of a project"];
    for (name, times) in names.into_iter().zip(&pages) {
        let p50 = median(times.iter().copied());
        report.promised(format!("a page of {PAGE}, {name}, p50"), p50, "ms", Threshold::AtMost(20.0));
    }
    let mut gets = Vec::new();
    for _ in 0..GETS {
        let id = &made.experiments[anywhere(dice)];
        let (spent, body) = timed(&mut connection, &format!("/v1/experiment/{id}")).await?;
        ensure!(String::from_utf8_lossy(&body).contains(id.as_str()), "another record came for {id}");
        gets.push(spent);
    }
    report.promised("a record by its id, p50", median(gets.iter().copied()), "ms", Threshold::AtMost(2.0));
    report.figure("a record by its id, p99", percentile(gets.iter().copied(), 0.99), "ms");
    let mut creates = Vec::new();
    for number in 0..CREATES {
        let body = body("experiment", &made.projects[number % PROJECTS], made.experiments.len() * 3 + number);
        let began = Instant::now();
        self::made(&mut connection, "experiment", &body).await?;
        creates.push(began.elapsed().as_secs_f64() * 1e3);
    }
    report.promised("a new one, durable, p50", median(creates.iter().copied()), "ms", Threshold::AtMost(30.0));
    report.figure("a new one, durable, p99", percentile(creates.iter().copied(), 0.99), "ms");
    Ok(())
}

/// Some of them, after a start.
async fn is_all_there(target: &Target, made: &CreatedRecord, dice: &mut Dice) -> anyhow::Result<()> {
    let mut connection = Connection::new(target);
    for _ in 0..PAGE {
        let id = &made.experiments[dice.below(made.experiments.len() as u64) as usize];
        timed(&mut connection, &format!("/v1/experiment/{id}")).await?;
    }
    Ok(())
}
