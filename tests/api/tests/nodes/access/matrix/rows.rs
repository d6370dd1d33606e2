//! Rows, by every path that writes or reads them, and queries over them in every form.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::acts::{Act, Open, says};
use super::callers::Caller;
use super::model::{RowsAct, Rule, TargetObject};
use super::world::{Ask, MARKER, ROW, World, merged, text};

/// Time limit of an asynchronous query.
const ENDED_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// More than any object has here.
const ALL: usize = 1000;

/// Objects that rows are written to and read from by paths of their own.
struct RowObject {
    path: &'static str,
    source: &'static str,
    id: String,
    rows: RowsAct,
    /// Container of rows in `logs3`.
    named: Value,
}

/// Asynchronous queries of an owner: over a dataset and over logs.
#[derive(Clone, Debug)]
pub struct Later {
    dataset: String,
    logs: String,
    audit: String,
}

impl Later {
    pub fn new(world: &World) -> Result<Later> {
        let ask = |source: &str, id: &str| {
            let query = json!({"query": format!("SELECT * FROM {source}('{id}')")});
            let id = text(&world.call("POST", "/btql/async", query)?["id"])?;
            let begun = Instant::now();
            loop {
                let status = world.call("GET", &format!("/btql/async/{id}"), Value::Null)?;
                match status["status"].as_str() {
                    Some("queued" | "running") => ensure!(begun.elapsed() < ENDED_MAX, "{status}"),
                    Some("succeeded") => return Ok(id),
                    _ => anyhow::bail!("{status}"),
                }
                std::thread::sleep(POLL);
            }
        };
        let dataset = ask("dataset", world.id("dataset"))?;
        Ok(Later { dataset, logs: ask("project_logs", &world.project)?, audit: ask("org_audit_logs", &world.org)? })
    }
}

fn objects(world: &World) -> [RowObject; 3] {
    let own = |object, id: &str| RowsAct {
        thing: TargetObject::in_project(object, Some(id), &world.project, &world.org),
        project: None,
    };
    let (experiment, dataset) = (world.id("experiment").clone(), world.id("dataset").clone());
    [
        RowObject {
            path: "project_logs",
            source: "project_logs",
            id: world.project.clone(),
            rows: RowsAct { project: Some(project(world)), ..own("project_log", &world.project) },
            named: json!({"project_id": world.project, "log_id": "g"}),
        },
        RowObject {
            path: "experiment",
            source: "experiment",
            rows: own("experiment", &experiment),
            named: json!({"experiment_id": experiment}),
            id: experiment,
        },
        RowObject {
            path: "dataset",
            source: "dataset",
            rows: own("dataset", &dataset),
            named: json!({"dataset_id": dataset}),
            id: dataset,
        },
    ]
}

fn project(world: &World) -> TargetObject {
    TargetObject::in_organization("project", Some(&world.project), &world.org)
}

/// Returns all prompts of the project, as opposed to one of them.
fn prompts(world: &World) -> TargetObject {
    TargetObject::in_project("prompt", None, &world.project, &world.org)
}

pub fn acts(world: &World, later: &Later, caller: &Caller) -> Vec<Act> {
    let mut acts = Vec::new();
    for object in objects(world) {
        acts.extend(of_object(world, &object));
        acts.extend(asked(&object));
        if object.path != "dataset" {
            acts.push(reviews(&object));
        }
        if object.path == "experiment" {
            acts.extend(changes_after_reading(&object));
        }
    }
    acts.extend(questions(world));
    acts.extend(answered_later(world, later));
    acts.extend(restored(world));
    acts.extend(definitions(world, caller));
    acts
}

fn of_object(world: &World, object: &RowObject) -> Vec<Act> {
    let RowObject { path, id, rows, named, .. } = object;
    let base = format!("/v1/{path}/{id}");
    let fetched = format!("{base}/fetch?limit={ALL}");
    let write = |what: &str, ask: Ask, row: Option<&str>, says_row: bool| {
        let rule = Rule::Rows { needs: "update", rows: rows.clone() };
        let open = says(row.filter(|_| says_row).unwrap_or(if what == "feedback" { "success" } else { "" }));
        let act = Act::new(format!("{path} rows: {what}"), rule, ask, id, open);
        match row {
            Some(row) => act.leaves(&fetched, row),
            None => act,
        }
    };
    let read = |what: &str, ask: Ask| {
        let rule = Rule::Rows { needs: "read", rows: rows.clone() };
        Act::new(format!("{path} rows: {what}"), rule, ask, id, says(MARKER))
    };
    let new = || format!("row-{}", world.number());
    let (one, crossed, sent) = (new(), new(), new());
    let events = |row: &str| json!({"events": [{"id": row, "input": 1}]});
    let feedback = json!({"feedback": [{"id": ROW, "scores": {"good": 1}, "source": "api"}]});
    let across = json!({*path: {id: events(&crossed)}});
    let logs3 = json!({"api_version": 2, "rows": [merged(&[&json!({"id": sent, "input": 1}), named])]});
    vec![
        write("insert", Ask::new("POST", format!("{base}/insert"), events(&one)), Some(&one), true),
        write("feedback", Ask::new("POST", format!("{base}/feedback"), feedback), None, false),
        write("cross insert", Ask::new("POST", "/v1/insert", across), Some(&crossed), true),
        write("logs3", Ask::new("POST", "/logs3", logs3), Some(&sent), true),
        read("fetch", Ask::get(fetched.clone())),
        read("fetch by body", Ask::new("POST", format!("{base}/fetch"), json!({"limit": ALL}))),
    ]
}

fn reviews(object: &RowObject) -> Act {
    let RowObject { path, id, rows, .. } = object;
    let rule = Rule::Rows { needs: "read", rows: rows.clone() };
    let ask = Ask::get(format!("/v1/review/{path}/{id}/{ROW}"));
    Act::new(format!("{path} rows: reviews"), rule, ask, id, says("require_all"))
}

/// A review and a job over a query: the server reads rows before it changes them.
fn changes_after_reading(object: &RowObject) -> Vec<Act> {
    let RowObject { path, id, rows, .. } = object;
    let both = || Rule::Act { needs: &["read", "update"], on: rows.thing.clone() };
    let review =
        Ask::new("PUT", format!("/v1/review/{path}/{id}/{ROW}"), json!({"scores": {"good": 1}, "submitted": true}));
    let tag = json!({
        "object_type": path, "object_id": id, "filter": "id = 'no such row'", "action": {"kind": "tag", "add": ["x"]},
    });
    vec![
        Act::new(format!("{path} rows: review"), both(), review, id, says("submitted")),
        Act::new(format!("{path} rows: job"), both(), Ask::new("POST", "/console/jobs", tag), id, says("matched")),
    ]
}

fn query(said: impl Into<Value>) -> Ask {
    Ask::new("POST", "/btql", json!({"query": said.into(), "fmt": "json"}))
}

fn asks(label: &str, of: Vec<TargetObject>, ask: Ask, about: &str) -> Act {
    Act::new(format!("query: {label}"), Rule::Query { of }, ask, about, says(MARKER))
}

/// The same question in the three forms, and to be answered later.
fn asked(object: &RowObject) -> Vec<Act> {
    let RowObject { source, id, rows, .. } = object;
    let of = || vec![rows.thing.clone()];
    let tree = json!({
        "select": [{"op": "star"}],
        "from": {"op": "function", "name": {"op": "ident", "name": [source]}, "args": [{"op": "literal", "value": id}]},
    });
    let later = Ask::new("POST", "/btql/async", json!({"query": format!("SELECT id FROM {source}('{id}')")}));
    let later = asks(&format!("{source} later"), of(), later, id);
    let link = Ask::new(
        "POST",
        "/console/download",
        json!({"query": format!("SELECT id FROM {source}('{id}')"), "fmt": "csv"}),
    );
    let link = asks(&format!("{source} as a download"), of(), link, id);
    vec![
        asks(&format!("{source} in SQL"), of(), query(format!("SELECT * FROM {source}('{id}')")), id),
        asks(&format!("{source} in BTQL"), of(), query(format!("select: * | from: {source}('{id}')")), id),
        asks(&format!("{source} as a tree"), of(), query(tree), id),
        Act { open: says("queued"), ..later },
        Act { open: says("/console/download/"), ..link },
    ]
}

fn questions(world: &World) -> Vec<Act> {
    let in_project = |object, id: &str| TargetObject::in_project(object, Some(id), &world.project, &world.org);
    let of_org = |object| TargetObject::of_organization(object, &world.org);
    let (dataset, beside, session) = (world.id("dataset"), &world.beside, world.id("prompt_session"));
    let (project, org) = (&world.project, &world.org);
    let (prompt, function) = (&world.things["prompt"], &world.things["function"]);
    let from = |source: &str, ids: &str| query(format!("SELECT * FROM {source}({ids})"));
    let quoted = |id: &str| format!("'{id}'");
    let one = |object, id: &str| vec![in_project(object, id)];
    let two = vec![in_project("dataset", dataset), in_project("dataset", beside)];
    // One prompt of a project is not the others.
    let alone = |label, of: &super::world::KindFixture, others: &str| {
        let act = asks(label, one("prompt", &of.id), from(label, &quoted(&of.id)), &of.id);
        Act { open: Open::Says(vec![of.name.clone()], vec![others.to_owned()]), ..act }
    };
    let all_prompts = || vec![prompts(world)];
    let among = |source: &str| {
        let rule = Rule::Among { of: vec![self::project(world), prompts(world)] };
        let act = Act::new(format!("query: {source}"), rule, from(source, &quoted(org)), org, says(MARKER));
        Act { hidden: vec![MARKER.to_owned()], ..act }
    };
    let audit = asks("org_audit_logs", vec![of_org("org_audit_logs")], from("org_audit_logs", &quoted(org)), org);
    vec![
        asks("two datasets", two, from("dataset", &format!("'{dataset}', '{beside}'")), beside),
        asks("playground_logs", one("prompt_session", session), from("playground_logs", &quoted(session)), session),
        asks("project_prompts", all_prompts(), from("project_prompts", &quoted(project)), project),
        asks("project_functions", all_prompts(), from("project_functions", &quoted(project)), project),
        alone("prompt", prompt, &function.name),
        alone("function", function, &prompt.name),
        among("org_prompts"),
        among("org_functions"),
        Act { open: says("sequence"), ..audit },
    ]
}

fn answered_later(world: &World, later: &Later) -> Vec<Act> {
    let dataset = TargetObject::in_project("dataset", Some(world.id("dataset")), &world.project, &world.org);
    let logs = TargetObject::in_project("project_log", Some(&world.project), &world.project, &world.org);
    let audit = TargetObject::of_organization("org_audit_logs", &world.org);
    let mut acts = Vec::new();
    for (what, id, of, text) in [
        ("dataset", &later.dataset, dataset, MARKER),
        ("logs", &later.logs, logs, MARKER),
        ("audit", &later.audit, audit, "hash"),
    ] {
        for (path, text) in [("", "succeeded"), ("/result", text)] {
            let rule = Rule::Later { of: of.clone() };
            let label = format!("query: what was asked later of {what}{path}");
            acts.push(Act::new(label, rule, Ask::get(format!("/btql/async/{id}{path}")), id, says(text)));
        }
    }
    acts
}

fn restored(world: &World) -> Vec<Act> {
    let id = &world.restored;
    let thing = TargetObject::in_project("dataset", Some(id), &world.project, &world.org);
    let body = json!({"version": world.restored_to});
    let act = |needs, path: &str, words: &str| {
        let rule = Rule::Rows { needs, rows: RowsAct { thing: thing.clone(), project: None } };
        let ask = Ask::new("POST", format!("/v1/dataset/{id}/{path}"), body.clone());
        Act::new(format!("dataset rows: {path}"), rule, ask, id, says(words))
    };
    vec![act("read", "restore/preview", "rows_to_delete"), act("update", "restore", "rows_deleted")]
}

/// Prompts and functions that are pushed outside of their own paths.
fn definitions(world: &World, caller: &Caller) -> Vec<Act> {
    let kind = super::kinds::Kind::of("function");
    let of_project = Some(project(world));
    let (new, row) = (world.name("pushed"), world.name("row"));
    let pushed = json!({"functions": [world.body(kind, &new)]});
    let list = super::acts::list_of(world, kind);
    let make = Rule::Make { needs: "create", on: prompts(world), gate: of_project.clone() };
    let shared = &world.things["function"];
    let replaced =
        merged(&[&world.body(kind, &shared.name), &json!({"if_exists": "replace", "description": caller.name})]);
    let replace = Rule::Taken {
        needs: &["read", "update"],
        on: shared.own.clone(),
        make: ("create", prompts(world)),
        gate: of_project.clone(),
        alone: false,
    };
    let id = format!("{:08x}-0000-4000-8000-{:012x}", world.number(), 7);
    let sent = json!({"id": id, "project_id": world.project, "log_id": "p", "name": row, "slug": row,
        "prompt_data": {"prompt": {"type": "completion", "content": "x"}}});
    let logs3 = Ask::new("POST", "/logs3", json!({"api_version": 2, "rows": [sent]}));
    let rows = RowsAct { thing: prompts(world), project: of_project };
    let act = |label: &str, rule, ask| {
        let act = Act::new(label, rule, ask, &world.project, says(""));
        Act { hidden: vec![shared.id.clone(), MARKER.to_owned()], ..act }
    };
    vec![
        act("insert-functions", make, Ask::new("POST", "/insert-functions", pushed)).leaves(&list, &new),
        act(
            "insert-functions: replace",
            replace,
            Ask::new("POST", "/insert-functions", json!({"functions": [replaced]})),
        ),
        act("logs3: a prompt", Rule::Rows { needs: "update", rows }, logs3).leaves("/v1/prompt", &row),
    ]
}

/// Checks that a cursor gives a caller only rows that it could read without it.
pub fn cursors(world: &World, reader: &Caller, others: &[&Caller]) -> Result<usize> {
    let id = world.id("dataset");
    let said = |cursor: &str| {
        let sql = format!("SELECT id, input FROM dataset('{id}') LIMIT 1");
        let mut body = json!({"query": sql, "fmt": "json"});
        if !cursor.is_empty() {
            body["query"] = format!("{sql} OFFSET '{cursor}'").into();
        }
        Ask::new("POST", "/btql", body)
    };
    let native = |id: &str, cursor: &str| {
        query(format!("select: id, input | from: dataset('{id}') | limit: 1 | cursor: '{cursor}'"))
    };
    let answer = world.ask(&reader.headers, &said(""))?;
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
    let cursor = answer.header("x-bt-cursor").context("a cursor behind one row")?;
    let answer = world.ask(&reader.headers, &native(id, &cursor))?;
    ensure!(answer.status == 200, "{}: {}: {}", reader.name, answer.status, answer.text());
    let mut cells = 1;
    for other in others {
        for about in [id, &world.beside] {
            let answer = world.ask(&other.headers, &native(about, &cursor))?;
            ensure!([401, 403].contains(&answer.status), "{}: {}: {}", other.name, answer.status, answer.text());
            ensure!(!answer.text().contains(MARKER), "{}: {}", other.name, answer.text());
            cells += 1;
        }
    }
    let target = format!("/v1/dataset/{id}/fetch?limit=1");
    let page = world.ask(&reader.headers, &Ask::get(&target))?;
    let page: Value = serde_json::from_slice(&page.body)?;
    let cursor = text(&page["cursor"])?;
    for other in others {
        let ask = Ask::get(format!("{target}&cursor={}", assay_test_api::http::percent_encoded(&cursor)));
        let answer = world.ask(&other.headers, &ask)?;
        ensure!([401, 403, 404].contains(&answer.status), "{}: {}: {}", other.name, answer.status, answer.text());
        cells += 1;
    }
    Ok(cells)
}
