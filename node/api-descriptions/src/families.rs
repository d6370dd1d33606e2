//! Descriptions of families: the operations on one kind of records, prompts or functions, from the description of the kind.

use assay_node_functions::Definition;
use assay_node_http::openapi::{Operation, objects, pascal, reference, text, uuid, version};
use assay_node_http::responses::refusal::ErrorKind;
use assay_node_records::{Changes, Description, IDS_MAX, Kind};
use serde_json::{Value, json};

const FOUND: (&str, &str) =
    ("x-bt-found-existing", "`true` if the name exists: the response is the existing record, unmodified");

/// Adds the parameters of every list.
pub fn paged(operation: Operation, list_default: Option<u64>) -> Operation {
    let mut limit = json!({"type": "integer", "nullable": true, "minimum": 0, "maximum": u64::MAX});
    if let Some(default) = list_default {
        limit["default"] = default.into();
    }
    operation
        .asks("limit", limit)
        .asks("starting_after", uuid())
        .asks("ending_before", uuid())
        .asks("ids", json!({"anyOf": [uuid(), {"type": "array", "items": uuid(), "maxItems": IDS_MAX}]}))
        .asks("org_name", text())
}

pub fn filtered(mut operation: Operation, filters: &[(&'static str, Value)]) -> Operation {
    for (name, schema) in filters {
        // A text that no record can have finds none.
        let is_parsed = schema.get("format").is_some();
        let schema = if is_parsed { schema.clone() } else { json!({"anyOf": [schema, text()]}) };
        operation = operation.asks(name, schema);
    }
    operation
}

/// Describes the routes that `records_of` in `routes` registers.
pub fn records(path: &str, kind: &Kind, changes: Changes) -> Vec<Operation> {
    let name = kind.name();
    let family = Family::new(path, name, kind.describe());
    let mut all = vec![family.create(), family.list(), family.get(), family.delete()];
    if changes != Changes::Never {
        all.push(family.patch());
    }
    if changes == Changes::ByPatchAndPut {
        all.push(family.replace());
    }
    if family.said.refuses_some {
        let refused = |operation: Operation| match operation.method {
            "post" | "put" | "patch" => operation.also_refuses(&[ErrorKind::NotImplemented]),
            _ => operation,
        };
        all = all.into_iter().map(refused).collect();
    }
    all
}

/// Describes the routes that `definitions_of` in `routes` registers.
pub fn definitions(path: &str, definition: Definition) -> Vec<Operation> {
    let family = Family::new(path, definition.name(), definition.describe());
    let versioned = |operation: Operation| {
        let operation = operation.asks("version", version()).asks("environment", text());
        operation.also_refuses(&[ErrorKind::Past, ErrorKind::NotImplemented])
    };
    let mut all = vec![
        family.create(),
        family.replace(),
        versioned(family.list()),
        versioned(family.get()),
        family.patch(),
        family.delete(),
    ];
    // What to do where the slug is taken is asked of a create alone.
    if definition == Definition::Function {
        let mut create = family.said.create.clone();
        let words = json!({"type": "string", "enum": ["error", "ignore", "replace", null], "nullable": true});
        create["properties"]["if_exists"] = words;
        let replace =
            family.operation("put", path.into(), "Create a function, or replace the one that has its slug".into());
        all[1] = family.shown(family.made_of("ReplaceFunction", &family.said.create, replace));
        all[0] = family.created(&create).also_refuses(&[ErrorKind::NotImplemented]);
    }
    all
}

/// One kind: its names in the document, and what is said of it.
#[derive(Debug)]
pub struct Family {
    path: String,
    name: String,
    /// `a project`, `an experiment`.
    one: String,
    type_name: String,
    pub said: Description,
}

impl Family {
    pub fn new(path: &str, name: &str, said: Description) -> Family {
        let words = name.replace('_', " ");
        let article = if words.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        let one = format!("{article} {words}");
        Family { path: path.to_owned(), name: name.to_owned(), one, type_name: pascal(name), said }
    }

    fn operation(&self, method: &'static str, path: String, summary: String) -> Operation {
        Operation::new(method, path, format!("{}s", self.type_name), summary)
    }

    fn on_one(&self, method: &'static str, summary: String) -> Operation {
        let operation = self.operation(method, format!("{}/{{id}}", self.path), summary);
        self.shown(operation.of(&self.name))
    }

    fn shown(&self, operation: Operation) -> Operation {
        operation.with(&self.type_name, self.said.answer.clone()).answers(reference(&self.type_name))
    }

    fn made(&self, operation: Operation) -> Operation {
        self.made_of(&format!("Create{}", self.type_name), &self.said.create, operation)
    }

    fn made_of(&self, name: &str, body: &Value, operation: Operation) -> Operation {
        operation.with(name, body.clone()).takes(reference(name))
    }

    pub fn create(&self) -> Operation {
        if self.said.has_key { self.with_key("post") } else { self.created(&self.said.create) }
    }

    fn created(&self, body: &Value) -> Operation {
        let summary = format!("Create {}, or get the one that has its name", self.one);
        let operation = self.operation("post", self.path.clone(), summary);
        let operation = self.made_of(&format!("Create{}", self.type_name), body, operation);
        self.shown(operation).sends_header(FOUND.0, FOUND.1)
    }

    /// The one answer that has the secret.
    pub fn with_key(&self, method: &'static str) -> Operation {
        let mut answer = self.said.answer.clone();
        answer["properties"]["key"] = text();
        if let Some(required) = answer["required"].as_array_mut() {
            required.push("key".into());
        }
        let summary = format!("Create {}; its key is only shown once", self.one);
        let name = format!("Created{}", self.type_name);
        self.made(self.operation(method, self.path.clone(), summary)).with(&name, answer).answers(reference(&name))
    }

    pub fn replace(&self) -> Operation {
        let summary = format!("Create {}, or replace the one that has its name", self.one);
        let operation = self.made(self.operation("put", self.path.clone(), summary));
        self.shown(operation)
    }

    pub fn list(&self) -> Operation {
        let summary = format!("List {}s, newest first", self.name.replace('_', " "));
        let operation = paged(self.operation("get", self.path.clone(), summary), self.said.list_default);
        let operation = filtered(operation, &self.said.filters);
        operation.with(&self.type_name, self.said.answer.clone()).answers(objects(&reference(&self.type_name)))
    }

    pub fn get(&self) -> Operation {
        self.on_one("get", format!("Get {}", self.one))
    }

    pub fn patch(&self) -> Operation {
        let name = format!("Patch{}", self.type_name);
        let operation = self.on_one("patch", format!("Change {}", self.one));
        operation.with(&name, self.said.patch.clone()).takes(reference(&name))
    }

    pub fn delete(&self) -> Operation {
        let summary = format!("Delete {} and return it", self.one);
        self.deleted(self.operation("delete", format!("{}/{{id}}", self.path), summary).of(&self.name))
    }

    /// Describes deletion of the record that the body names.
    pub fn delete_by(&self, body: Value) -> Operation {
        let summary = format!("Delete the {} that the body names and return it", self.name.replace('_', " "));
        self.deleted(self.operation("delete", self.path.clone(), summary).takes(body))
    }

    /// Some kinds say when in this answer alone; prompts never do.
    fn deleted(&self, operation: Operation) -> Operation {
        let mut answer = self.said.answer.clone();
        if answer["properties"].get("deleted_at").is_some() || answer["properties"].get("log_id").is_some() {
            return self.shown(operation);
        }
        answer["properties"]["deleted_at"] = json!({"type": "string", "format": "date-time"});
        if let Some(required) = answer["required"].as_array_mut() {
            required.push("deleted_at".into());
        }
        let name = format!("Deleted{}", self.type_name);
        operation.with(&name, answer).answers(reference(&name))
    }
}
