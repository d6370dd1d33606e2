//! Description of registration for the OpenAPI document, as older SDKs ask for it.

use assay_node_http::openapi::{Operation, pascal, reference, some_text, text, uuid, version};
use assay_node_http::responses::refusal::ErrorKind;
use assay_node_records::{IDS_MAX, Kind, describe_organization, kinds};
use serde_json::{Map, Value, json};

const TAG: &str = "Registration";

pub fn operations() -> Vec<Operation> {
    let mut all = projects();
    all.extend(experiments());
    all.extend(datasets());
    all.extend(snapshots());
    all.extend(automations());
    all.push(organization());
    all.push(object_info());
    all
}

fn of(method: &'static str, path: &str, summary: &str) -> Operation {
    Operation::new(method, path, TAG, summary)
}

fn object(needed: &[&str], fields: Value) -> Value {
    json!({"type": "object", "required": needed, "properties": fields})
}

fn maybe(mut schema: Value) -> Value {
    schema["nullable"] = true.into();
    schema
}

fn maybe_text() -> Value {
    maybe(text())
}

/// Empty says nothing, as null does.
fn maybe_id() -> Value {
    json!({"anyOf": [maybe(uuid()), {"type": "string", "maxLength": 0}]})
}

fn one_or_several() -> Value {
    json!({"anyOf": [maybe_id(), {"type": "array", "items": uuid(), "maxItems": IDS_MAX}]})
}

/// Returns the fields of the project, by id or name, and of the organization.
fn placed() -> Map<String, Value> {
    let fields = json!({
        "project_name": maybe_text(), "project_id": maybe_id(), "org_id": maybe_id(), "org_name": maybe_text(),
    });
    fields.as_object().cloned().unwrap_or_default()
}

/// Some fields of what a create takes.
fn of_create(kind: &Kind, names: &[&str]) -> Map<String, Value> {
    let create = kind.describe().create;
    names.iter().map(|name| ((*name).to_owned(), create["properties"][name].clone())).collect()
}

fn with(mut fields: Map<String, Value>, more: Value) -> Value {
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    Value::Object(fields)
}

/// The record, under the name of its kind, and the project where it has one.
fn registered(operation: Operation, kind: &Kind, has_project: bool) -> Operation {
    let (name, type_name) = (kind.name(), pascal(kind.name()));
    let mut fields = json!({"found_existing": {"type": "boolean"}});
    fields[name] = reference(&type_name);
    let mut needed = vec!["found_existing", name];
    if has_project {
        fields["project"] = object(&["id", "name"], json!({"id": uuid(), "name": text()}));
        needed.push("project");
    }
    operation.with(&type_name, kind.describe().answer).answers(object(&needed, fields))
}

/// Adds a list of the records found.
fn found(operation: Operation, kind: &Kind) -> Operation {
    let type_name = pascal(kind.name());
    let list = json!({"type": "array", "items": reference(&type_name)});
    operation.with(&type_name, kind.describe().answer).answers(list)
}

fn shown(operation: Operation, kind: &Kind) -> Operation {
    let type_name = pascal(kind.name());
    operation.with(&type_name, kind.describe().answer).answers(reference(&type_name))
}

fn projects() -> Vec<Operation> {
    let mut wanted = placed();
    wanted.remove("project_id");
    let asked = object(
        &[],
        json!({"id": one_or_several(), "project_name": maybe_text(), "name": maybe_text(), "org_name": maybe_text()}),
    );
    let one = of("get", "/api/project", "Get a project by its id or its name");
    let one = one.asks("id", uuid()).asks("name", text()).asks("project_name", text());
    let register = of("post", "/api/project/register", "Create a project, or get the one that has its name");
    vec![
        registered(register.takes(object(&[], Value::Object(wanted))), &kinds::PROJECT, false),
        shown(one, &kinds::PROJECT),
        found(of("post", "/api/project/get", "Find projects").takes(asked), &kinds::PROJECT),
    ]
}

fn experiments() -> Vec<Operation> {
    let create = kinds::EXPERIMENT.describe().create;
    let mut fields = create["properties"].as_object().cloned().unwrap_or_default();
    for name in ["name", "ensure_new", "project_id"] {
        fields.remove(name);
    }
    fields.extend(placed());
    let wanted =
        with(fields, json!({"experiment_name": maybe_text(), "update": {"type": "boolean", "nullable": true}}));
    let asked = with(
        placed(),
        json!({"id": one_or_several(), "experiment_name": maybe_text(), "name": maybe_text(), "org_id": {"nullable": true}}),
    );
    let based = object(&["base_exp_id", "base_exp_name"], json!({"base_exp_id": uuid(), "base_exp_name": text()}));
    let register = of(
        "post",
        "/api/experiment/register",
        "Create an experiment, with a new name if its own exists, or get the existing one",
    );
    vec![
        registered(register.takes(object(&[], wanted)), &kinds::EXPERIMENT, true),
        found(of("post", "/api/experiment/get", "Find experiments").takes(object(&[], asked)), &kinds::EXPERIMENT),
        of("post", "/api/base_experiment/get_id", "Get the base experiment of an experiment")
            .takes(object(&["id"], json!({"id": uuid()})))
            .answers(based),
    ]
}

fn datasets() -> Vec<Operation> {
    let fields = of_create(&kinds::DATASET, &["description", "metadata", "tags"]);
    let mut wanted = with(fields, json!({"dataset_name": maybe_text()}));
    if let Some(fields) = wanted.as_object_mut() {
        fields.extend(placed());
    }
    let asked = with(
        placed(),
        json!({"id": one_or_several(), "dataset_name": maybe_text(), "name": maybe_text(), "org_id": {"nullable": true}}),
    );
    let register = of("post", "/api/dataset/register", "Create a dataset, or get the one that has its name");
    vec![
        registered(register.takes(object(&[], wanted)), &kinds::DATASET, true),
        found(of("post", "/api/dataset/get", "Find datasets").takes(object(&[], asked)), &kinds::DATASET),
    ]
}

fn snapshots() -> Vec<Operation> {
    let kind = &kinds::DATASET_SNAPSHOT;
    let fields = of_create(kind, &["dataset_id", "xact_id", "description"]);
    let update = json!({"type": "boolean", "nullable": true});
    let wanted = with(fields, json!({"dataset_snapshot_name": some_text(), "update": update}));
    let limit = json!({"type": "integer", "nullable": true, "minimum": 0, "maximum": u64::MAX});
    let maybe_version = json!({"anyOf": [maybe(version()), {"type": "string", "maxLength": 0}]});
    let asked = json!({
        "id": maybe_id(), "dataset_id": maybe_id(), "name": maybe_text(), "dataset_snapshot_name": maybe_text(),
        "xact_id": maybe_version, "limit": limit, "cursor": maybe_id(),
    });
    let path = "/api/dataset_snapshot/get";
    let mut by_query = of("get", path, "Find snapshots of datasets");
    for (name, schema) in [
        ("id", uuid()),
        ("dataset_id", uuid()),
        ("name", text()),
        ("dataset_snapshot_name", text()),
        ("xact_id", version()),
        ("limit", limit),
        ("cursor", uuid()),
    ] {
        by_query = by_query.asks(name, schema);
    }
    let register = of("post", "/api/dataset_snapshot/register", "Name a version of a dataset");
    let mut all = vec![
        registered(register.takes(object(&["dataset_id", "dataset_snapshot_name", "xact_id"], wanted)), kind, false),
        found(of("post", path, "Find snapshots of datasets").takes(object(&[], asked)), kind),
        found(by_query, kind),
        of("get", "/xact-id", "Get a version above all acknowledged writes").answers_as("text/plain", text()),
    ];
    all.extend(by_id(kind));
    all
}

fn automations() -> Vec<Operation> {
    let kind = &kinds::PROJECT_AUTOMATION;
    let fields = of_create(kind, &["project_id", "description", "config"]);
    let update = json!({"type": "boolean", "nullable": true});
    let wanted = with(fields, json!({"project_automation_name": some_text(), "update": update}));
    let register = of("post", "/api/project_automation/register", "Create an automation of a project");
    let needed = ["project_id", "project_automation_name", "config"];
    // An automation that nothing carries out is not stored.
    let register = register.takes(object(&needed, wanted)).also_refuses(&[ErrorKind::NotImplemented]);
    let mut all = vec![registered(register, kind, false)];
    all.extend(by_id(kind));
    all
}

/// Operations that name the record to change or to delete in the body.
fn by_id(kind: &Kind) -> Vec<Operation> {
    let (name, words) = (kind.name(), kind.name().replace('_', " "));
    let described = kind.describe();
    let mut patched = described.patch;
    patched["properties"]["id"] = uuid();
    patched["required"] = json!(["id"]);
    let mut patch = of("post", &format!("/api/{name}/patch_id"), &format!("Change a {words}"));
    if described.refuses_some {
        patch = patch.also_refuses(&[ErrorKind::NotImplemented]);
    }
    let delete = of("post", &format!("/api/{name}/delete_id"), &format!("Delete a {words} and return it"));
    let named = object(&["id"], json!({"id": uuid()}));
    vec![shown(patch.takes(patched), kind), delete.takes(named).answers(object(&["id"], json!({"id": uuid()})))]
}

fn organization() -> Operation {
    let (mut patched, shown) = describe_organization();
    patched["properties"]["id"] = uuid();
    patched["required"] = json!(["id"]);
    let operation = of("post", "/api/organization/patch_id", "Change an organization").takes(patched);
    operation.with("Organization", shown).answers(reference("Organization"))
}

fn object_info() -> Operation {
    let words = ["project", "project_log", "project_logs", "experiment", "dataset"];
    let asked = json!({
        "object_type": {"type": "string", "enum": words},
        "object_ids": {"type": "array", "items": uuid(), "maxItems": IDS_MAX},
    });
    let named = object(&["id", "name"], json!({"id": uuid(), "name": text()}));
    let parents = object(&["organization", "project"], json!({"organization": named, "project": named}));
    let info = object(
        &["object_id", "object_name", "object_type", "parent_cols"],
        json!({"object_id": uuid(), "object_name": text(), "object_type": text(), "parent_cols": parents}),
    );
    of("post", "/api/self/get_object_info", "Get the names of objects and of their projects")
        .takes(object(&["object_type", "object_ids"], asked))
        .answers(json!({"type": "array", "items": info}))
}
