//! Actions on each kind: make, make again, read, list, change, replace, delete.

use anyhow::Result;
use serde_json::{Value, json};

use super::callers::{Caller, Level, Way};
use super::kinds::{Home, KINDS, Kind};
use super::model::{Expected, Rule, expected};
use super::world::{Ask, KindFixture, MARKER, World, merged};

/// Callers of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Things,
    /// Also callers with a grant on the organization alone.
    Organization,
    /// Also callers with a grant about grants.
    Grants,
}

/// Content of a permitted response.
#[derive(Clone, Debug)]
pub enum Open {
    /// These texts, and none of those.
    Says(Vec<String>, Vec<String>),
    /// This value at this place.
    Has(String, Value),
}

#[derive(Clone, Debug)]
pub struct Act {
    pub label: String,
    pub scope: Scope,
    pub rule: Rule,
    pub ask: Ask,
    /// Id that it is about: with another one, nothing exists.
    pub about: String,
    pub open: Open,
    /// Texts that a denied response must not contain unless the request did.
    pub hidden: Vec<String>,
    /// Resulting object of a permitted act: a list, and its item.
    pub leaves: Option<(String, String)>,
    /// Removed object of a permitted act.
    pub takes: Option<(String, String)>,
}

impl Act {
    pub fn new(label: impl Into<String>, rule: Rule, ask: Ask, about: &str, open: Open) -> Act {
        Act {
            label: label.into(),
            scope: Scope::Things,
            rule,
            ask,
            about: about.to_owned(),
            open,
            hidden: vec![about.to_owned(), MARKER.to_owned()],
            leaves: None,
            takes: None,
        }
    }

    pub fn scope(self, scope: Scope) -> Act {
        Act { scope, ..self }
    }

    pub fn leaves(self, list: impl Into<String>, named: &str) -> Act {
        Act { leaves: Some((list.into(), named.to_owned())), ..self }
    }

    pub fn takes(self, list: impl Into<String>, named: &str) -> Act {
        Act { takes: Some((list.into(), named.to_owned())), ..self }
    }

    /// Returns whether the act is for this caller. Callers with a grant on the object or on a parent test that a
    /// permission allows nothing else; the other ways are tested only with acts that need their permission.
    pub fn is_for(&self, caller: &Caller) -> bool {
        let of_grants = caller.permission.ends_with("_acls") && caller.way != Way::AllElse;
        let in_scope = match caller.level {
            Level::Things => !of_grants || self.scope == Scope::Grants,
            Level::Organization => caller.way == Way::Direct || self.scope == Scope::Organization,
        };
        let of_all = matches!(caller.way, Way::Direct | Way::Parent) || caller.permission.is_empty();
        in_scope && (of_all || self.rule.asks(caller.permission))
    }
}

pub fn says(text: &str) -> Open {
    Open::Says(vec![text.to_owned()], Vec::new())
}

/// All of all kinds for one caller.
pub fn of_kinds(world: &World, caller: &Caller) -> Result<Vec<Act>> {
    let mut all = Vec::new();
    for kind in &KINDS {
        let fixture = &world.things[kind.name];
        let scope = match kind.home {
            Home::Organization | Home::OfOrganization => Scope::Organization,
            _ => Scope::Things,
        };
        let mut acts =
            vec![read(world, fixture), list(world, fixture), list_from(world, fixture), patch(world, fixture, caller)];
        if kind.name == "experiment" {
            acts.push(compared(world, fixture));
        }
        acts.extend(made(world, fixture, caller));
        acts.extend(deleted(world, kind, caller)?);
        all.extend(acts.into_iter().map(|act| act.scope(scope)));
    }
    Ok(all)
}

/// Returns the object of a view for the request.
fn object_of(world: &World, kind: &Kind) -> Option<Value> {
    (kind.name == "view").then(|| world.home_of(kind))
}

fn with_object(world: &World, kind: &Kind, target: String) -> String {
    match object_of(world, kind) {
        Some(_) => format!("{target}?object_type=project&object_id={}", world.parts),
        None => target,
    }
}

pub fn list_of(world: &World, kind: &Kind) -> String {
    with_object(world, kind, kind.path.to_owned())
}

fn one(fixture: &KindFixture) -> String {
    format!("{}/{}", fixture.kind.path, fixture.id)
}

fn read(world: &World, fixture: &KindFixture) -> Act {
    let kind = fixture.kind;
    let rule = Rule::Act { needs: &["read"], on: fixture.own.clone() };
    let ask = Ask::get(with_object(world, kind, one(fixture)));
    Act::new(format!("{}: read", kind.name), rule, ask, &fixture.id, says(&fixture.name))
}

fn list(world: &World, fixture: &KindFixture) -> Act {
    let kind = fixture.kind;
    let rule = Rule::List { needs: "read", on: fixture.own.clone() };
    let ask = Ask::get(list_of(world, kind));
    let open = Open::Says(vec![fixture.name.clone(), fixture.id.clone()], Vec::new());
    let act = Act::new(format!("{}: list", kind.name), rule, ask, &fixture.id, open);
    // What else is in it may be theirs.
    Act { hidden: vec![fixture.id.clone(), fixture.name.clone()], ..act }
}

/// Lists from a cursor. Its existence is no secret to a caller that may read it.
fn list_from(world: &World, fixture: &KindFixture) -> Act {
    let kind = fixture.kind;
    let list = list_of(world, kind);
    let and = if list.contains('?') { '&' } else { '?' };
    let ask = Ask::get(format!("{list}{and}starting_after={}", fixture.id));
    let rule = Rule::From { on: fixture.own.clone() };
    Act::new(format!("{}: list from it on", kind.name), rule, ask, &fixture.id, says("objects"))
}

/// A new experiment that is compared with one that is named.
fn compared(world: &World, fixture: &KindFixture) -> Act {
    let kind = fixture.kind;
    let body = merged(&[&world.body(kind, &world.name(kind.name)), &json!({"base_experiment": fixture.name})]);
    let rule =
        Rule::Naming { on: fixture.own.clone(), make: ("create", fixture.into.clone()), gate: fixture.gate.clone() };
    let open = Open::Has("/base_exp_id".into(), fixture.id.clone().into());
    let act = Act::new("experiment: create and compare", rule, Ask::new("POST", kind.path, body), &fixture.name, open);
    Act { hidden: vec![fixture.id.clone()], ..act }
}

fn patch(world: &World, fixture: &KindFixture, caller: &Caller) -> Act {
    let kind = fixture.kind;
    let (field, value) = (kind.change)(&caller.name);
    let mut body = json!({ field: value });
    // The one kind of which every change says the name.
    if kind.path == "/v1/env_var" {
        body["name"] = fixture.name.clone().into();
    }
    // Views are looked at before they are changed.
    let mut needs: &[&str] = &["update"];
    if let Some(object) = object_of(world, kind) {
        body = merged(&[&body, &object]);
        needs = &["read", "update"];
    }
    let rule = Rule::Act { needs, on: fixture.own.clone() };
    let ask = Ask::new("PATCH", one(fixture), body);
    Act::new(format!("{}: patch", kind.name), rule, ask, &fixture.id, Open::Has(format!("/{field}"), value))
}

/// Made and replaced, under a new name and under one that is taken.
fn made(world: &World, fixture: &KindFixture, caller: &Caller) -> Vec<Act> {
    let kind = fixture.kind;
    let make = (kind.needs("create"), fixture.into.clone());
    let home = world.home_of(kind);
    // By what its place is named.
    let place = ["project_id", "object_id", "dataset_id", "org_name"].iter().find_map(|field| home[*field].as_str());
    let place = place.unwrap_or_default().to_owned();
    let is_definition = kind.own == Some("prompt");
    let act = |what: &str, method, name: &str, needs: Option<&'static [&'static str]>| {
        let rule = match needs {
            None => Rule::Make { needs: make.0, on: make.1.clone(), gate: fixture.gate.clone() },
            Some(needs) => Rule::Taken {
                needs,
                on: fixture.own.clone(),
                make: make.clone(),
                gate: fixture.gate.clone(),
                alone: kind.alone,
            },
        };
        let (field, value) = (kind.change)(&caller.name);
        let change = if method == "PUT" { json!({ field: value }) } else { json!({}) };
        let body = merged(&[&world.body(kind, name), &change]);
        let label = format!("{}: {what}", kind.name);
        let act =
            Act::new(label, rule, Ask::new(method, kind.path, body), &place, Open::Has("/name".into(), name.into()));
        Act { hidden: vec![fixture.id.clone(), MARKER.to_owned()], ..act }
    };
    let (new, other) = (world.name(kind.name), world.name(kind.name));
    let mut acts = vec![
        act("create", "POST", &new, None).leaves(list_of(world, kind), &new),
        act("create what is there", "POST", &fixture.name, Some(&["read"])),
    ];
    if kind.by_put {
        // Prompts are found before they are replaced.
        let needs: &[&str] = if is_definition { &["read", "update"] } else { &["update"] };
        acts.push(act("put", "PUT", &other, None).leaves(list_of(world, kind), &other));
        acts.push(act("put in the place of what is there", "PUT", &fixture.name, Some(needs)));
    }
    acts
}

/// Returns the shared object or, if it would be deleted, one for this caller to delete.
pub fn victim(
    world: &World,
    kind: &'static Kind,
    caller: &Caller,
    needs: &'static [&'static str],
) -> Result<Option<KindFixture>> {
    let shared = &world.things[kind.name];
    let rule = Rule::Act { needs, on: shared.own.clone() };
    if expected(&caller.identity, &rule) != Expected::Open {
        return Ok(Some(shared.clone()));
    }
    if let Some(doomed) = caller.doomed.get(kind.name) {
        return Ok(Some(doomed.clone()));
    }
    // What is granted one by one is the one that everybody asks for.
    let is_shared = caller.way.is_one_by_one() && caller.level == Level::Things && kind.own.is_some();
    if is_shared { Ok(None) } else { world.fixture(kind).map(Some) }
}

fn deleted(world: &World, kind: &'static Kind, caller: &Caller) -> Result<Vec<Act>> {
    let needs: &[&str] = match (kind.own, kind.name) {
        (Some(_), _) => &["delete"],
        (None, "view") => &["read", "update"],
        (None, _) => &["update"],
    };
    let mut acts = Vec::new();
    if let Some(fixture) = victim(world, kind, caller, needs)? {
        let rule = Rule::Act { needs, on: fixture.own.clone() };
        let ask = Ask::new("DELETE", one(&fixture), object_of(world, kind).unwrap_or_default());
        let act = Act::new(format!("{}: delete", kind.name), rule, ask, &fixture.id, says(&fixture.name));
        acts.push(act.takes(list_of(world, kind), &fixture.name));
    }
    // Secrets are deleted by their names too, which is asked of another one.
    let by_name = kind.name == "ai_secret" && !caller.doomed.contains_key(kind.name);
    if by_name && let Some(fixture) = victim(world, kind, caller, needs)? {
        let rule = Rule::Act { needs, on: fixture.own.clone() };
        let ask = Ask::new("DELETE", kind.path, json!({"name": fixture.name, "org_name": super::world::ORGANIZATION}));
        let act = Act::new("ai_secret: delete by name", rule, ask, &fixture.name, says(&fixture.id));
        let hidden = vec![fixture.id.clone(), MARKER.to_owned()];
        acts.push(Act { hidden, ..act }.takes(kind.path, &fixture.name));
    }
    Ok(acts)
}
