//! Tools of the MCP server, which read what the same caller reads over the API.
//!
//! A tool that may not read answers with an error in a result of status 200, like for an object that does not exist.

use serde_json::{Value, json};

use super::acts::{Act, Open, says};
use super::callers::Caller;
use super::model::{Rule, TargetObject};
use super::world::{Ask, MARKER, ROW, World};

fn call(tool: &str, arguments: Value) -> Ask {
    let params = json!({"name": tool, "arguments": arguments});
    Ask::new("POST", "/mcp", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
}

/// A call that needs to read these objects, and then says a text.
fn reads(tool: &str, what: &str, of: Vec<TargetObject>, arguments: Value, about: &str, text: &str) -> Act {
    Act::new(format!("mcp: {tool} of {what}"), Rule::Tool { of }, call(tool, arguments), about, says(text))
}

/// Acts of callers who send a credential in a header. A session of the console opens no tool.
pub fn acts(world: &World, caller: &Caller) -> Vec<Act> {
    if caller.headers.iter().any(|(name, _)| name == "cookie") {
        return Vec::new();
    }
    let in_project = |object, id: &str| TargetObject::in_project(object, Some(id), &world.project, &world.org);
    let (dataset, experiment) = (world.id("dataset"), world.id("experiment"));
    let own = |object, id: &str| vec![in_project(object, id)];
    let mut acts = vec![
        reads(
            "infer_schema",
            "a dataset",
            own("dataset", dataset),
            json!({"object_type": "dataset", "object": dataset}),
            dataset,
            MARKER,
        ),
        reads(
            "summarize_experiment",
            "an experiment",
            own("experiment", experiment),
            json!({"experiment": experiment}),
            experiment,
            "statistics",
        ),
        reads(
            "generate_permalink",
            "a dataset",
            own("dataset", dataset),
            json!({"object_type": "dataset", "object": dataset}),
            dataset,
            "/app/",
        ),
    ];
    let logs = ("project_logs", &world.project, in_project("project_log", &world.project));
    let rows = ("experiment", experiment, in_project("experiment", experiment));
    for (source, id, thing) in [logs, rows] {
        let query = format!("SELECT * FROM {source}('{id}')");
        acts.push(reads("sql_query", source, vec![thing.clone()], json!({ "query": query }), id, MARKER));
        let arguments = json!({"object_type": source, "object": id, "trace_id": ROW});
        acts.push(reads("get_trace", source, vec![thing], arguments, id, MARKER));
    }
    for kind in ["prompt", "function"] {
        let fixture = &world.things[kind];
        let of = vec![fixture.own.clone()];
        acts.push(reads("get_prompt", kind, of, json!({"prompt": fixture.id}), &fixture.id, &fixture.name));
    }
    for kind in ["dataset", "experiment", "prompt"] {
        acts.push(resolved(world, kind));
    }
    acts
}

/// The name of an object, which is found if it may be read.
fn resolved(world: &World, kind: &str) -> Act {
    let fixture = &world.things[kind];
    // Prompts are found by their slug, which is their name here.
    let arguments = json!({"object_type": kind, "object": fixture.name});
    let act = reads("resolve_object", kind, vec![fixture.own.clone()], arguments, &fixture.name, &fixture.id);
    Act { hidden: vec![fixture.id.clone()], open: Open::Says(vec![fixture.id.clone()], Vec::new()), ..act }
}
