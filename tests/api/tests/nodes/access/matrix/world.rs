//! The cluster of all cells, and its objects. Requests go to two of its nodes in turn.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::Dev;
use assay_test_api::http::{HttpResponse, Request, send};
use serde_json::{Value, json};

use super::kinds::{Home, KINDS, Kind};
use super::model::{On, TargetObject, on};

/// Name from a first start.
pub const ORGANIZATION: &str = "default";
/// Text in objects that must be invisible to callers without permission to read.
pub const MARKER: &str = "xq7unseen";
/// The row that every object of rows has from the beginning.
pub const ROW: &str = "seen";
/// Number of nodes that get requests in turn.
const ASKED: usize = 2;

/// A request, without whose it is.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: &'static str,
    pub target: String,
    pub body: Value,
}

impl Ask {
    pub fn new(method: &'static str, target: impl Into<String>, body: Value) -> Ask {
        Ask { method, target: target.into(), body }
    }

    pub fn get(target: impl Into<String>) -> Ask {
        Ask::new("GET", target, Value::Null)
    }

    /// The same about something else.
    pub fn about(&self, id: &str, other: &str) -> Ask {
        let body = if self.body.is_null() { String::new() } else { self.body.to_string().replace(id, other) };
        Ask {
            method: self.method,
            target: self.target.replace(id, other),
            body: serde_json::from_str(&body).unwrap_or(Value::Null),
        }
    }

    pub fn said(&self) -> String {
        format!("{} {}", self.target, self.body)
    }
}

/// A thing that is there, and what decides of it.
#[derive(Clone, Debug)]
pub struct KindFixture {
    pub kind: &'static Kind,
    pub id: String,
    pub name: String,
    /// Grant on it or, for a part, on its whole.
    pub own: TargetObject,
    pub into: TargetObject,
    /// Its container, if a request to make one names that by its id.
    pub gate: Option<TargetObject>,
}

#[derive(Debug)]
pub struct World {
    pub dev: Dev,
    pub org: String,
    pub owner: Vec<(String, String)>,
    /// Things in it are granted one by one.
    pub project: String,
    /// It is granted as a whole.
    pub parts: String,
    pub things: BTreeMap<&'static str, KindFixture>,
    /// A dataset besides the granted one.
    pub beside: String,
    /// One that is taken back to a version.
    pub restored: String,
    pub restored_to: String,
    turn: AtomicUsize,
    made: AtomicUsize,
}

pub fn key(key: &str) -> Vec<(String, String)> {
    vec![("authorization".into(), format!("Bearer {key}"))]
}

pub fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("a text: {value}"))
}

impl World {
    pub fn start(data: &Path) -> Result<World> {
        let dev = Dev::start(data)?;
        let owner = key(&dev.key);
        let mut world = World {
            dev,
            owner,
            org: String::new(),
            project: String::new(),
            parts: String::new(),
            things: BTreeMap::new(),
            beside: String::new(),
            restored: String::new(),
            restored_to: String::new(),
            turn: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
        };
        let me = world.call("POST", "/api/self/me", json!({}))?;
        world.org = text(&me["organizations"][0]["id"])?;
        world.project = world.make("/v1/project", &json!({"name": world.name("home")}))?;
        world.parts = world.make("/v1/project", &json!({"name": world.name("parts")}))?;
        // Those that others are in come first in the table.
        for kind in &KINDS {
            let fixture = world.fixture(kind)?;
            world.things.insert(kind.name, fixture);
        }
        world.fill()?;
        Ok(world)
    }

    /// Makes rows, and their containers outside of the table.
    fn fill(&mut self) -> Result<()> {
        let dataset = |world: &World| {
            world.make("/v1/dataset", &json!({"project_id": world.project, "name": world.name("dataset")}))
        };
        (self.beside, self.restored) = (dataset(self)?, dataset(self)?);
        let rows = json!({"events": [{"id": ROW, "input": MARKER}]});
        let objects = [
            ("project_logs", &self.project),
            ("experiment", self.id("experiment")),
            ("dataset", self.id("dataset")),
            ("dataset", &self.beside),
            ("dataset", &self.restored),
        ];
        for (path, id) in objects {
            self.call("POST", &format!("/v1/{path}/{id}/insert"), rows.clone())?;
        }
        let row = json!({"id": ROW, "prompt_session_id": self.id("prompt_session"), "log_id": "x", "input": MARKER});
        self.call("POST", "/logs3", json!({"api_version": 2, "rows": [row]}))?;
        let events = self.call("POST", &format!("/v1/dataset/{}/fetch", self.restored), json!({}))?;
        self.restored_to = text(&events["events"][0]["_xact_id"])?;
        let later = json!({"events": [{"id": "later", "input": 1}]});
        self.call("POST", &format!("/v1/dataset/{}/insert", self.restored), later)?;
        Ok(())
    }

    pub fn id(&self, kind: &str) -> &String {
        &self.things[kind].id
    }

    pub fn number(&self) -> usize {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an unused name.
    pub fn name(&self, what: &str) -> String {
        format!("{}-{MARKER}-{}", what.replace([' ', '_'], "-"), self.number())
    }

    /// Sends the request to the next node.
    pub fn ask(&self, headers: &[(String, String)], ask: &Ask) -> Result<HttpResponse> {
        let node = self.turn.fetch_add(1, Ordering::Relaxed) % ASKED;
        send(&self.dev.urls[node], &request(headers, ask))
    }

    /// The JSON of a 200 to the owner.
    pub fn call(&self, method: &'static str, target: &str, body: Value) -> Result<Value> {
        self.call_as(&self.owner, method, target, body)
    }

    pub fn call_as(
        &self,
        headers: &[(String, String)],
        method: &'static str,
        target: &str,
        body: Value,
    ) -> Result<Value> {
        let answer = self.ask(headers, &Ask::new(method, target, body))?;
        ensure!(answer.status == 200, "{method} {target}: {}: {}", answer.status, answer.text());
        serde_json::from_slice(&answer.body).with_context(|| format!("{method} {target}: no JSON"))
    }

    pub fn make(&self, path: &str, body: &Value) -> Result<String> {
        text(&self.call("POST", path, body.clone())?["id"])
    }

    /// A new one of the kind, in the place of all of its kind.
    pub fn fixture(&self, kind: &'static Kind) -> Result<KindFixture> {
        let name = self.name(kind.name);
        let id = self.make(kind.path, &self.body(kind, &name))?;
        let (own, into) = match kind.own {
            Some(object) => (self.place(kind, object, Some(&id)), self.place(kind, object, None)),
            None => (self.holder(kind), self.holder(kind)),
        };
        let gate = match kind.home {
            Home::Organization => None,
            Home::Project => Some(TargetObject::in_organization("project", Some(&self.project), &self.org)),
            _ => Some(self.holder(kind)),
        };
        Ok(KindFixture { kind, id, name, own, into, gate })
    }

    fn place(&self, kind: &Kind, object: &'static str, id: Option<&str>) -> TargetObject {
        match kind.home {
            Home::Organization => TargetObject::in_organization(object, id, &self.org),
            _ => TargetObject::in_project(object, id, &self.project, &self.org),
        }
    }

    /// Returns the whole of a part.
    fn holder(&self, kind: &Kind) -> TargetObject {
        let in_project = |object, id: &str| TargetObject::in_project(object, Some(id), &self.project, &self.org);
        match kind.home {
            Home::Organization | Home::OfOrganization => TargetObject::of_organization("organization", &self.org),
            Home::Project | Home::Parts | Home::OfParts => {
                TargetObject::in_organization("project", Some(&self.parts), &self.org)
            }
            Home::OfDataset => in_project("dataset", self.id("dataset")),
            Home::OfFunction => in_project("prompt", self.id("function")),
        }
    }

    /// Returns the container's field in a request.
    pub fn home_of(&self, kind: &Kind) -> Value {
        let object = |object: &str, id: &str| json!({"object_type": object, "object_id": id});
        match kind.home {
            Home::Organization => json!({"org_name": ORGANIZATION}),
            Home::Project => json!({"project_id": self.project}),
            Home::Parts => json!({"project_id": self.parts}),
            Home::OfParts => object("project", &self.parts),
            Home::OfDataset => json!({"dataset_id": self.id("dataset")}),
            Home::OfFunction => object("function", self.id("function")),
            Home::OfOrganization => object("organization", &self.org),
        }
    }

    pub fn body(&self, kind: &Kind, name: &str) -> Value {
        merged(&[&json!({"name": name}), &self.home_of(kind), &(kind.fields)(name)])
    }

    /// Everything that is granted one by one. To make something is granted on what it will be in.
    pub fn one_by_one(&self, permission: &str) -> Vec<On> {
        if permission.ends_with("_acls") {
            return vec![on("project", &self.parts), on("org_member", &self.org)];
        }
        let mut all: Vec<On> = self.things.values().filter_map(|thing| Some(on(thing.kind.own?, &thing.id))).collect();
        all.extend([
            on("project", &self.parts),
            on("dataset", &self.restored),
            on("project_log", &self.project),
            on("org_member", &self.org),
        ]);
        if permission == "create" {
            all.push(on("project", &self.project));
        }
        all
    }
}

pub fn request(headers: &[(String, String)], ask: &Ask) -> Request {
    Request {
        method: ask.method.into(),
        target: ask.target.clone(),
        headers: headers.to_vec(),
        body: (!ask.body.is_null()).then(|| ask.body.to_string().into_bytes()),
        declared_length: None,
    }
}

/// One object of all fields.
pub fn merged(parts: &[&Value]) -> Value {
    let fields = parts.iter().filter_map(|part| part.as_object()).flatten();
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}
