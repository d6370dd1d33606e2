//! Monitoring of three nodes: the board, the alert rules and the guide name metrics that the nodes have; slow queries
//! are logged, and a running query is listed and cancelled from any node.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::agent_data::key_without_rights;
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use assay_test_api::process::run;
use assay_test_api::promql::ExposedMetrics;
use assay_test_api::rows::{call, knock};
use assay_test_api::server::TEST_KEY;
use assay_tests_tidy::workspace::Workspace;
use serde_json::{Value, json};

/// Labels that Prometheus adds to each target, and a metric of its own.
const OF_PROMETHEUS: [&str; 3] = ["instance", "job", "up"];
/// Refuses the second of two requests, so that there are refusals by a rule.
const RULES: &str = "[{endpoint = \"/ping\", per = \"organization\", requests = 1, seconds = 600}]";
/// Members of an alert in the file of rules.
const ALERT_MEMBERS: [&str; 5] = ["expr:", "labels: { severity: ", "annotations:", "summary: ", "description: "];
const SOON: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// Length and number of texts whose edits a processor counts for longer than a query may run.
const LONG_TEXT: usize = 200_000;
const LONG_ROWS: usize = 24;
const ROWS_AT_ONCE: usize = 4;
/// Literal of a query, which must not be in the log or in a list.
const LITERAL: &str = "secret-of-a-customer";
const PROJECT: &str = "project-with-a-name";

fn get(url: &str, key: &str, method: &str, target: &str, body: Option<&Value>) -> Result<HttpResponse> {
    let headers = vec![("authorization".into(), format!("Bearer {key}"))];
    let body = body.map(|body| body.to_string().into_bytes());
    send(url, &Request { method: method.into(), target: target.into(), headers, body, declared_length: None })
}

fn metrics(url: &str) -> Result<String> {
    let (status, text) = knock(url, "/metrics")?;
    ensure!(status == 200, "{status}: {text}");
    Ok(text)
}

/// Repeats a step until it has a value.
fn soon<T>(what: &str, mut step: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let until = Instant::now() + SOON;
    loop {
        if let Some(found) = step()? {
            return Ok(found);
        }
        ensure!(Instant::now() < until, "{what} did not happen within {SOON:?}");
        std::thread::sleep(POLL);
    }
}

/// Writes rows, queries them, and is refused once, so that every family has values.
fn work(dev: &Dev) -> Result<String> {
    let url = &dev.urls[0];
    let project = call(url, "POST", "/v1/project", &json!({ "name": PROJECT }))?;
    let project = project["id"].as_str().context("an id")?.to_owned();
    for url in &dev.urls {
        let events = json!({"events": [{"id": "short", "input": "a", "output": "b"}]});
        call(url, "POST", &format!("/v1/project_logs/{project}/insert"), &events)?;
        let query = json!({"query": format!("SELECT id FROM project_logs('{project}')")});
        call(url, "POST", "/btql", &query)?;
    }
    let answers = [1, 2].map(|_| get(url, TEST_KEY, "GET", "/ping", None));
    let [first, second] = answers.map(|answer| answer.map_or(0, |answer| answer.status));
    ensure!((first, second) == (200, 429), "{first}, {second}");
    Ok(project)
}

/// Returns the metrics of all nodes, once the backup has made its first point.
fn exposed(dev: &Dev) -> Result<(ExposedMetrics, Vec<String>)> {
    let texts = soon("a point of the backup", || {
        let texts = dev.urls.iter().map(|url| metrics(url)).collect::<Result<Vec<_>>>()?;
        let has_point = texts.iter().any(|text| text.contains("\nassay_backup_point_age_seconds "));
        Ok(has_point.then_some(texts))
    })?;
    let mut exposed = ExposedMetrics::default();
    for text in &texts {
        exposed.add(text).map_err(anyhow::Error::msg)?;
    }
    Ok((exposed, texts))
}

fn every_family_is_described_once(texts: &[String]) -> Result<()> {
    for text in texts {
        let mut families = BTreeSet::new();
        for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
            ensure!(families.insert(family), "{family} is described twice");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let of_histogram = ["_bucket", "_sum", "_count"].iter().filter_map(|end| name.strip_suffix(end));
            let is_described = of_histogram.chain([name]).any(|name| families.contains(name));
            ensure!(is_described, "{name} has no type");
        }
    }
    Ok(())
}

/// Strangers must not learn what organizations are called, or what they have.
fn no_name_is_exposed(texts: &[String], project: &str) -> Result<()> {
    for text in texts {
        for name in ["\"default\"", PROJECT, project, "owner@localhost"] {
            ensure!(!text.contains(name), "the metrics name {name}");
        }
    }
    Ok(())
}

fn file(name: &str) -> String {
    Workspace::this().read_text(name)
}

/// Returns the expressions of the board.
fn of_board() -> Result<Vec<String>> {
    let board: Value = serde_json::from_str(&file("docker/monitoring/assay.json"))?;
    let panels = board["panels"].as_array().context("panels")?;
    let mut expressions = Vec::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let targets = panel["targets"].as_array().with_context(|| format!("{panel} has no targets"))?;
        ensure!(panel["title"].is_string() && panel["description"].is_string() && !targets.is_empty(), "{panel}");
        for target in targets {
            expressions.push(target["expr"].as_str().context("an expression")?.to_owned());
        }
    }
    ensure!(expressions.len() > 40, "only {} expressions", expressions.len());
    Ok(expressions)
}

/// Returns the expressions of the alert rules, each of which has all of its members.
fn of_rules() -> Result<Vec<String>> {
    let text = file("docker/monitoring/alerts.yaml");
    let rules: Vec<&str> = text.split("      - alert: ").skip(1).collect();
    let mut names = BTreeSet::new();
    let mut expressions = Vec::new();
    for rule in rules {
        let name = rule.lines().next().unwrap_or_default();
        ensure!(name.starts_with("Assay") && names.insert(name.to_owned()), "{name} is no name of a new alert");
        for member in ALERT_MEMBERS {
            let is_there = rule.lines().any(|line| line.trim_start().starts_with(member));
            ensure!(is_there, "{name} has no {member}");
        }
        let expression = rule.lines().find_map(|line| line.trim_start().strip_prefix("expr: "));
        expressions.push(expression.context("an expression")?.to_owned());
    }
    ensure!(expressions.len() > 10, "only {} rules", expressions.len());
    Ok(expressions)
}

/// Returns the metrics that the guide names.
fn of_guide() -> Vec<String> {
    let text = ["monitoring", "operations", "backups", "limits"].map(|page| file(&format!("node/guide/{page}.md")));
    let quoted = text.iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    let is_metric = |name: &&str| {
        let begins = ["assay_", "process_"].iter().any(|prefix| name.starts_with(prefix));
        begins && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    quoted.filter(is_metric).map(str::to_owned).collect()
}

fn names_are_those_of_the_nodes(exposed: &ExposedMetrics) -> Result<()> {
    let expressions = of_board()?.into_iter().chain(of_rules()?);
    let mut problems: Vec<String> =
        expressions.flat_map(|expression| exposed.problems(&expression, &OF_PROMETHEUS)).collect();
    let known: BTreeSet<&str> = exposed.names().collect();
    let named = of_guide();
    ensure!(named.len() > 30, "the guide names only {named:?}");
    for name in named {
        if !known.contains(name.as_str()) && !known.contains(format!("{name}_bucket").as_str()) {
            problems.push(format!("the guide: no node has the metric `{name}`"));
        }
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

/// The owner sees the usage of a key over all nodes, and nobody else does.
fn usage_is_counted(dev: &Dev, other: &str) -> Result<()> {
    let refused = get(&dev.urls[1], other, "GET", "/v1/usage", None)?;
    ensure!(refused.status == 403 && refused.text().contains("role Owner"), "{}", refused.text());
    let usage = call(&dev.urls[2], "GET", "/v1/usage", &Value::Null)?;
    let entries = usage["usage"].as_array().context("entries")?;
    let by_key: Vec<&Value> = entries.iter().filter(|entry| entry["credential_id"].is_string()).collect();
    let sum = |name: &str| by_key.iter().filter_map(|entry| entry[name].as_u64()).sum::<u64>();
    // Each node took one row and one query.
    let nodes = dev.urls.len() as u64;
    ensure!(sum("queries") == nodes && sum("rows") == nodes && sum("bytes") > 0, "{usage}");
    ensure!(usage["silent_nodes"] == json!([]), "{usage}");
    let wrong = get(&dev.urls[0], TEST_KEY, "GET", "/v1/usage?from=today", None)?;
    ensure!(wrong.status == 400 && wrong.text().contains("`from` is today"), "{}", wrong.text());
    Ok(())
}

/// Writes rows whose edits take long to count.
fn long_rows(url: &str, project: &str) -> Result<()> {
    for first in (0..LONG_ROWS).step_by(ROWS_AT_ONCE) {
        let row = |number: usize| {
            let (input, output) =
                (format!("a{}", "xy".repeat(LONG_TEXT / 2)), format!("b{}", "yz".repeat(LONG_TEXT / 2)));
            json!({"id": format!("long-{number}"), "input": input, "output": output})
        };
        let events: Vec<Value> = (first..first + ROWS_AT_ONCE).map(row).collect();
        call(url, "POST", &format!("/v1/project_logs/{project}/insert"), &json!({ "events": events }))?;
    }
    Ok(())
}

fn running(url: &str, key: &str) -> Result<Vec<Value>> {
    let answer = get(url, key, "GET", "/v1/query/running", None)?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
    let list: Value = serde_json::from_slice(&answer.body)?;
    ensure!(list["silent_nodes"] == json!([]), "{list}");
    Ok(list["queries"].as_array().context("queries")?.clone())
}

/// A query on one node is listed on another, and cancelled by its user on a third.
fn cancelled(dev: &Dev, data: &Path, project: &str) -> Result<()> {
    let other = key_without_rights(&dev.urls[0], &data.join("node-1"))?;
    usage_is_counted(dev, &other)?;
    long_rows(&dev.urls[0], project)?;
    let query = format!(
        "SELECT sum(levenshtein(input, output)) AS edits FROM project_logs('{project}') WHERE input != '{LITERAL}'"
    );
    std::thread::scope(|scope| -> Result<()> {
        let asked = scope.spawn(|| get(&dev.urls[0], TEST_KEY, "POST", "/btql", Some(&json!({ "query": query }))));
        let found = soon("the query runs", || {
            let all = running(&dev.urls[1], TEST_KEY)?;
            Ok(all.into_iter().find(|query| query["phase"] == "running" && query["seconds"].as_f64() > Some(2.5)))
        })?;
        let said = found.to_string();
        ensure!(found["kind"] == "direct" && said.contains("SELECT sum(levenshtein(input, output))"), "{said}");
        ensure!(said.contains(project) && !said.contains(LITERAL), "{said}");
        let cancel = format!("/v1/query/{}/cancel", found["id"].as_str().context("an id")?);

        ensure!(running(&dev.urls[1], &other)?.is_empty(), "somebody else sees the query");
        let refused = get(&dev.urls[2], &other, "POST", &cancel, None)?;
        ensure!(refused.status == 404, "{}: {}", refused.status, refused.text());
        ensure!(!asked.is_finished(), "it goes on");

        let begun = Instant::now();
        let answer = get(&dev.urls[2], TEST_KEY, "POST", &cancel, None)?;
        ensure!(answer.status == 200 && answer.text().contains("\"is_cancelled\":true"), "{}", answer.text());
        let ended = asked.join().map_err(|_| anyhow::anyhow!("the request panicked"))??;
        ensure!(ended.status == 409 && ended.text().contains("the query was cancelled"), "{}", ended.text());
        ensure!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
        let again = soon("the query leaves the list", || {
            let again = get(&dev.urls[2], TEST_KEY, "POST", &cancel, None)?;
            Ok((again.status != 200).then_some(again))
        })?;
        ensure!(again.status == 404, "{}: {}", again.status, again.text());
        Ok(())
    })?;
    let text = metrics(&dev.urls[0])?;
    let counted = "assay_query_ended_total{kind=\"direct\",outcome=\"cancelled\"} 1";
    ensure!(text.lines().any(|line| line == counted), "{counted} in\n{text}");
    Ok(())
}

fn slow_query_is_logged(dev: &Dev, project: &str) -> Result<()> {
    let line = soon("a line about the slow query", || {
        Ok(dev.log().lines().find(|line| line.contains("a query was slow")).map(str::to_owned))
    })?;
    for part in ["organization=", "user=", "kind=\"direct\"", "outcome=\"cancelled\"", "rows_scanned=", project] {
        ensure!(line.contains(part), "{part} in {line}");
    }
    let text = "SELECT sum(levenshtein(input, output)) AS edits FROM project_logs(?) WHERE input != ?";
    ensure!(line.contains(text) && !line.contains(LITERAL), "{line}");
    ensure!(!dev.log().contains(LITERAL), "the log has data of a customer");
    Ok(())
}

fn watched(dev: &Dev, data: &Path) -> Result<()> {
    let project = work(dev)?;
    let (exposed, texts) = exposed(dev)?;
    every_family_is_described_once(&texts)?;
    no_name_is_exposed(&texts, &project)?;
    names_are_those_of_the_nodes(&exposed)?;
    cancelled(dev, data, &project)?;
    slow_query_is_logged(dev, &project)
}

#[test]
fn operators_watch_a_cluster_by_metrics_that_exist_and_end_a_query() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, key) = (dir.path().join("data"), dir.path().join("backup.key"));
    let key = key.to_str().expect("a path");
    let store = dir.path().join("store");
    let store = store.to_str().expect("a path");
    assert!(run(&["backup", "key", key], &[], "").is_ok_and(|made| made.success));
    let environment = [
        ("ASSAY_BACKUP_LOCATION", store),
        ("ASSAY_BACKUP_KEY_FILE", key),
        ("ASSAY_LIMITS_RATES", RULES),
        ("ASSAY_QUERIES_SLOW_SECONDS", "1"),
    ];
    let dev = Dev::start_with(&data, &environment).unwrap_or_else(|error| panic!("{error:#}"));
    watched(&dev, &data).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
}
