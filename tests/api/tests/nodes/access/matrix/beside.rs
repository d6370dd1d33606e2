//! Acts outside of the table of kinds: members of the organization, keys, grants, the versions used by environments,
//! evaluations, and rules of online scoring.

use anyhow::Result;
use serde_json::{Value, json};

use super::NO_ID;
use super::acts::{Act, Open, Scope, says};
use super::callers::{Caller, Way, new_acl};
use super::kinds::Kind;
use super::model::{Expected, RowsAct, Rule, TargetObject, expected};
use super::world::{Ask, MARKER, ORGANIZATION, World, merged, text};

const VERSION: &str = "1000192656880881099";

/// Shared objects, made once.
#[derive(Clone, Debug)]
pub struct Beside {
    owner: String,
    /// A member that must not be removed.
    stays: String,
    key: String,
    account: String,
    tokens: Vec<(String, String)>,
    token: String,
    acl: String,
    granted: Value,
    spare: String,
    /// Evaluation that has ended, and its experiment.
    evaluation: (String, String),
    /// Rule of online scoring that selects nothing.
    rule: String,
}

impl Beside {
    /// `tokens` is what a service account of an owner shows.
    pub fn new(world: &World, account: &str, tokens: Vec<(String, String)>) -> Result<Beside> {
        let me = world.call("POST", "/api/self/me", json!({}))?;
        let stays = "stays@example.com".to_owned();
        world.call("PATCH", "/v1/organization/members", json!({"invite_users": {"emails": [stays]}}))?;
        let granted = new_acl(world)?;
        let spare = world.fixture(Kind::of("environment"))?.name;
        let environment = world.things["environment"].name.clone();
        for (object, id) in pinned(world) {
            let target = format!("/environment-object/{object}/{id}/{environment}");
            world.call("PUT", &target, json!({"object_version": VERSION}))?;
        }
        let listed = world.call("GET", "/v1/service_token", Value::Null)?;
        Ok(Beside {
            owner: text(&me["id"])?,
            stays,
            key: world.make("/v1/api_key", &json!({"name": world.name("key")}))?,
            account: account.to_owned(),
            tokens,
            token: text(&listed["objects"][0]["id"])?,
            acl: world.make("/v1/acl", &granted)?,
            granted,
            spare,
            evaluation: evaluation(world)?,
            rule: scoring_rule(world)?,
        })
    }

    pub fn acts(&self, world: &World, caller: &Caller) -> Result<Vec<Act>> {
        let mut acts = self.people(world, caller)?;
        acts.extend(self.keys(world, caller)?);
        acts.extend(self.tokens(world, caller)?);
        acts.extend(self.grants(world, caller)?);
        acts.extend(self.evaluations(world));
        acts.extend(running_queries());
        acts.extend(self.scoring(world));
        for (object, id) in pinned(world) {
            acts.extend(self.pins(world, caller, object, &id)?);
        }
        Ok(acts)
    }

    fn people(&self, world: &World, caller: &Caller) -> Result<Vec<Act>> {
        let members = TargetObject::of_organization("org_member", &world.org);
        let org = TargetObject::of_organization("organization", &world.org);
        let one = format!("/v1/organization/{}", world.org);
        let user = format!("/v1/user/{}", self.owner);
        let coming = format!("coming-{}@example.com", world.number());
        let leaving = Rule::Members { needs: "delete", on: members.clone() };
        let going = if expected(&caller.identity, &leaving) == Expected::Open {
            let going = format!("going-{}@example.com", world.number());
            world.call("PATCH", "/v1/organization/members", json!({"invite_users": {"emails": [going]}}))?;
            going
        } else {
            self.stays.clone()
        };
        let change = |what: &str, email: &str| {
            let body = json!({"org_id": world.org, what: {"emails": [email]}});
            Ask::new("PATCH", "/v1/organization/members", body)
        };
        let is_mode = Open::Has("/image_rendering_mode".into(), "blocked".into());
        let act = |label: &str, rule, ask, about: &str, open| {
            Act::new(label, rule, ask, about, open).scope(Scope::Organization)
        };
        let read = Rule::Act { needs: &["read"], on: members.clone() };
        let listed = Rule::List { needs: "read", on: members.clone() };
        let invites = Rule::Members { needs: "create", on: members };
        let changes = Rule::Members { needs: "update", on: org };
        let patch = Ask::new("PATCH", one.clone(), json!({"image_rendering_mode": "blocked"}));
        Ok(vec![
            act("user: read", read, Ask::get(user), &self.owner, says(&self.owner)),
            act("user: list", listed, Ask::get("/v1/user"), &self.owner, says(&self.owner)),
            act("user: invite", invites, change("invite_users", &coming), &world.org, says(&coming))
                .leaves("/v1/user", &coming),
            act("user: remove", leaving, change("remove_users", &going), &world.org, says("success"))
                .takes("/v1/user", &going),
            act("organization: read", Rule::Anybody, Ask::get(one), &world.org, says(&world.org)),
            act("organization: list", Rule::Listed, Ask::get("/v1/organization"), &world.org, says(&world.org)),
            act("organization: patch", changes, patch, &world.org, is_mode),
        ])
    }

    fn keys(&self, world: &World, caller: &Caller) -> Result<Vec<Act>> {
        let members = TargetObject::of_organization("org_member", &world.org);
        let delete = Rule::Key { needs: "delete", on: members.clone() };
        let doomed = match expected(&caller.identity, &delete) {
            Expected::Open => world.make("/v1/api_key", &json!({"name": world.name("key")}))?,
            _ => self.key.clone(),
        };
        let new = json!({"name": world.name("key"), "org_name": ORGANIZATION});
        let read = Rule::Key { needs: "read_acls", on: members.clone() };
        let list = Rule::List { needs: "read_acls", on: members };
        let own = Open::Says(vec!["\"key\":\"sk-".into()], Vec::new());
        let act =
            |label: &str, rule, ask, about: &str, open| Act::new(label, rule, ask, about, open).scope(Scope::Grants);
        // A key outlives the right to act as its user, so nobody makes one while acting as another.
        let is_acting = matches!(caller.way, Way::Impersonated | Way::ImpersonatedNothing);
        let making = if is_acting { Rule::Nobody } else { Rule::Anybody };
        let listed = act("api_key: list", list, Ask::get("/v1/api_key"), &self.key, says(&self.key));
        Ok(vec![
            act("api_key: create", making, Ask::new("POST", "/v1/api_key", new), ORGANIZATION, own),
            act("api_key: read", read, Ask::get(format!("/v1/api_key/{}", self.key)), &self.key, says(&self.key)),
            Act { hidden: vec![self.key.clone()], ..listed },
            act(
                "api_key: delete",
                delete,
                Ask::new("DELETE", format!("/v1/api_key/{doomed}"), Value::Null),
                &doomed,
                says(&doomed),
            )
            .takes("/v1/api_key", &doomed),
        ])
    }

    fn tokens(&self, world: &World, caller: &Caller) -> Result<Vec<Act>> {
        let path = "/v1/service_token";
        let members = TargetObject::of_organization("org_member", &world.org);
        let body =
            || json!({"name": world.name("token"), "service_account_id": self.account, "org_name": ORGANIZATION});
        let delete = Rule::Key { needs: "delete", on: members.clone() };
        let mut doomed = [self.token.clone(), self.token.clone()];
        if expected(&caller.identity, &delete) == Expected::Open {
            for doomed in &mut doomed {
                *doomed = text(&world.call_as(&self.tokens, "POST", path, body())?["id"])?;
            }
        }
        let [by_id, by_body] = doomed;
        let read = Rule::Key { needs: "read_acls", on: members.clone() };
        let list = Rule::List { needs: "read_acls", on: members };
        let one = Ask::get(format!("{path}/{}", self.token));
        let of_id = Ask::new("DELETE", format!("{path}/{by_id}"), Value::Null);
        let of_body = Ask::new("DELETE", path, json!({"id": by_body}));
        let act = |what: &str, rule, ask, about: &str| {
            Act::new(format!("service_token: {what}"), rule, ask, about, says(about)).scope(Scope::Grants)
        };
        Ok(vec![
            act("create", Rule::Nobody, Ask::new("POST", path, body()), ORGANIZATION),
            act("put", Rule::Nobody, Ask::new("PUT", path, body()), ORGANIZATION),
            act("read", read, one, &self.token),
            act("list", list, Ask::get(path), &self.token),
            act("delete", delete.clone(), of_id, &by_id).takes(path, &by_id),
            act("delete by body", delete, of_body, &by_body).takes(path, &by_body),
        ])
    }

    fn grants(&self, world: &World, caller: &Caller) -> Result<Vec<Act>> {
        let on = TargetObject::in_organization("project", Some(&world.parts), &world.org);
        let org = TargetObject::of_organization("organization", &world.org);
        let listed = format!("/v1/acl?object_type=project&object_id={}", world.parts);
        let delete = Rule::Grant { needs: "delete_acls", on: on.clone() };
        let shared = || (self.acl.clone(), self.granted.clone());
        let mut doomed = [shared(), shared(), shared()];
        if expected(&caller.identity, &delete) == Expected::Open {
            for (id, granted) in &mut doomed {
                *granted = new_acl(world)?;
                *id = world.make("/v1/acl", granted)?;
            }
        }
        let [(by_id, _), (of_body, by_body), (of_many, by_many)] = doomed;
        let (new, more) = (new_acl(world)?, new_acl(world)?);
        let group = |acl: &Value| acl["group_id"].as_str().unwrap_or_default().to_owned();
        let make = Rule::MakeGrant { on: on.clone() };
        let act = |what: &str, rule, ask, about: &str, open| {
            Act::new(format!("acl: {what}"), rule, ask, about, open).scope(Scope::Grants)
        };
        let all = Ask::get(format!("/v1/acl/list_org?org_name={ORGANIZATION}"));
        let read = Rule::Grant { needs: "read_acls", on: on.clone() };
        let why = Ask::get(format!("/console/access?object_type=project&object_id={}", world.parts));
        let list = Rule::List { needs: "read_acls", on: on.clone() };
        let of_id = Ask::new("DELETE", format!("/v1/acl/{by_id}"), Value::Null);
        let listing = act("list", list, Ask::get(&listed), &self.acl, says(&self.acl));
        let many = Ask::new("POST", "/v1/acl/batch_update", json!({"add_acls": [more]}));
        let by_fields = act(
            "delete by its fields",
            delete.clone(),
            Ask::new("DELETE", "/v1/acl", by_body),
            &world.parts,
            says(&of_body),
        );
        let removing = Ask::new("POST", "/v1/acl/batch_update", json!({"remove_acls": [by_many]}));
        let removed = act("delete many", Rule::RemoveGrant { on }, removing, &world.parts, says(&of_many));
        Ok(vec![
            Act { hidden: vec![of_many.clone(), MARKER.to_owned()], ..removed }.takes(&listed, &of_many),
            act("create", make.clone(), Ask::new("POST", "/v1/acl", new.clone()), &world.parts, says(&group(&new)))
                .leaves(&listed, &group(&new)),
            act("create many", make, many, &world.parts, says(&group(&more))).leaves(&listed, &group(&more)),
            act("read", read.clone(), Ask::get(format!("/v1/acl/{}", self.acl)), &self.acl, says(&self.acl)),
            act("explain", read, why, &world.parts, says("permissions")),
            Act { hidden: vec![self.acl.clone()], ..listing },
            act(
                "list of the organization",
                Rule::Members { needs: "read_acls", on: org },
                all,
                ORGANIZATION,
                says(&self.acl),
            ),
            act("delete", delete, of_id, &by_id, says(&by_id)).takes(&listed, &by_id),
            Act { hidden: vec![of_body.clone(), MARKER.to_owned()], ..by_fields }.takes(&listed, &of_body),
        ])
    }

    /// Versions of a prompt or a dataset.
    /// The rights on an evaluation are those on its experiment.
    fn evaluations(&self, world: &World) -> Vec<Act> {
        let (job, experiment) = &self.evaluation;
        let on = || TargetObject::in_project("experiment", Some(experiment), &world.project, &world.org);
        let project = TargetObject::in_organization("project", Some(&world.project), &world.org);
        let one = format!("/v1/eval/{job}");
        let read = Rule::Act { needs: &["read"], on: on() };
        let change = Rule::Act { needs: &["update"], on: on() };
        let list = Rule::Act { needs: &["read"], on: project };
        let all = format!("/v1/eval?project_id={}", world.project);
        vec![
            Act::new("evaluation: read", read, Ask::get(&one), job, says(job)),
            Act::new(
                "evaluation: cancel",
                change,
                Ask::new("POST", format!("{one}/cancel"), json!({})),
                job,
                says(job),
            ),
            Act::new("evaluation: list", list, Ask::get(all), &world.project, says(job)),
        ]
    }

    /// What rules of online scoring do is shown with the project. They change rows of its logs.
    fn scoring(&self, world: &World) -> Vec<Act> {
        let project = || TargetObject::in_organization("project", Some(&world.project), &world.org);
        let logs = TargetObject::in_project("project_log", Some(&world.project), &world.project, &world.org);
        let rows = RowsAct { thing: logs, project: Some(project()) };
        let (read, one) = (Rule::Act { needs: &["read"], on: project() }, format!("/v1/project_score/{}", self.rule));
        let change = Rule::RowsBy { needs: "update", on: project(), rows: rows.clone() };
        let backfill = Ask::new("POST", format!("{one}/backfill"), json!({"filter": "id = 'none'"}));
        let config = json!({"online": {"sampling_rate": 1, "scorers": []}});
        let test = Ask::new("POST", "/v1/project_score/test", json!({"project_id": world.project, "config": config}));
        vec![
            Act::new("online scoring: state", read, Ask::get(format!("{one}/status")), &self.rule, says("pending")),
            Act::new("online scoring: backfill", change, backfill, &self.rule, says("queued")),
            Act::new("online scoring: test", Rule::Rows { needs: "read", rows }, test, &world.project, says("results")),
        ]
    }

    fn pins(&self, world: &World, caller: &Caller, object: &str, id: &str) -> Result<Vec<Act>> {
        let on = TargetObject::in_project(
            if object == "prompt" { "prompt" } else { "dataset" },
            Some(id),
            &world.project,
            &world.org,
        );
        let all = format!("/environment-object/{object}/{id}");
        let there = &world.things["environment"].name;
        let change = Rule::Act { needs: &["update"], on: on.clone() };
        let (mut new, mut gone) = (self.spare.clone(), there.clone());
        let version = json!({"object_version": VERSION});
        if expected(&caller.identity, &change) == Expected::Open {
            new = world.fixture(Kind::of("environment"))?.name;
            gone = world.fixture(Kind::of("environment"))?.name;
            world.call("PUT", &format!("{all}/{gone}"), version.clone())?;
        }
        let read = Rule::Act { needs: &["read"], on };
        let add = merged(&[&version, &json!({"environment_slug": new})]);
        let act = |what: &str, rule, ask, open| {
            Act::new(format!("environment-object of a {object}: {what}"), rule, ask, id, open)
        };
        Ok(vec![
            act("list", read.clone(), Ask::get(&all), says(there)),
            act("read", read, Ask::get(format!("{all}/{there}")), says(there)),
            act("put", change.clone(), Ask::new("PUT", format!("{all}/{there}"), version), says(there)),
            act("create", change.clone(), Ask::new("POST", &all, add), says(&new)).leaves(&all, &new),
            act("delete", change, Ask::new("DELETE", format!("{all}/{gone}"), Value::Null), says(&gone))
                .takes(&all, &gone),
        ])
    }
}

/// Every member may list running queries. One that does not run exists for nobody.
fn running_queries() -> Vec<Act> {
    let nowhere = TargetObject { object: "query", within: Vec::new() };
    let cancel = Ask::new("POST", format!("/v1/query/{NO_ID}/cancel"), json!({}));
    vec![
        Act::new("running query: list", Rule::Listed, Ask::get("/v1/query/running"), NO_ID, says("silent_nodes")),
        Act::new("running query: cancel", Rule::Later { of: nowhere }, cancel, NO_ID, says("is_cancelled")),
    ]
}

/// Runs an evaluation over one case, and returns its id and its experiment.
fn evaluation(world: &World) -> Result<(String, String)> {
    let experiment = world.fixture(Kind::of("experiment"))?.id;
    let parent = json!({"object_type": "experiment", "object_id": experiment});
    let body = json!({"project_id": world.project, "data": {"data": [1]}, "task": {"global_function": "ValidJSON"},
        "scores": [], "parent": parent});
    world.call("POST", "/v1/eval", body)?;
    let listed = world.call("GET", &format!("/v1/eval?project_id={}", world.project), Value::Null)?;
    Ok((text(&listed["objects"][0]["id"])?, experiment))
}

/// Makes a rule of online scoring that selects nothing.
fn scoring_rule(world: &World) -> Result<String> {
    let online = json!({"sampling_rate": 0, "scorers": []});
    let rule = json!({"project_id": world.project, "name": world.name("rule"), "score_type": "online",
        "config": {"online": online}});
    world.make("/v1/project_score", &rule)
}

fn pinned(world: &World) -> [(&'static str, String); 2] {
    ["dataset", "prompt"].map(|object| (object, world.id(object).clone()))
}
