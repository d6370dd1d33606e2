//! Operations that are of no family, one after the other. A test says which one is missing here.

use assay_node_answers::Format;
use assay_node_functions::DEFINITIONS_AT_ONCE_MAX;
use assay_node_identity::MEMBERS_AT_ONCE_MAX;
use assay_node_records::{ACLS_AT_ONCE_MAX, describe_organization, describe_user, kinds};
use serde_json::{Value, json};

use crate::body::ROWS_MAX;
use crate::describe::families::{Family, filtered, paged};
use crate::describe::operation::{Operation, maybe_version, objects, reference, some_text, text, uuid, version};
use crate::describe::{files, invitations, otel, registering, rows};
use crate::refusal::Kind;

const SERVICE: &str = "Service";
const QUERIES: &str = "Queries";
const ACLS: &str = "Acls";
const ORGANIZATIONS: &str = "Organizations";

pub fn operations() -> Vec<Operation> {
    let mut all = service();
    all.extend(callers());
    all.extend(logins());
    all.extend(setups());
    all.extend(views());
    all.extend(secrets());
    all.extend(tokens());
    all.extend(environments());
    all.extend(simulated_users());
    all.extend(restores());
    all.extend(summaries());
    all.extend(acls());
    all.extend(people());
    all.extend(invitations::operations());
    all.extend(queries());
    all.extend(writes());
    all.extend(registering::operations());
    all.extend(files::operations());
    all.extend(otel::operations());
    all
}

fn service() -> Vec<Operation> {
    let get = |path: &str, summary: &str| Operation::new("get", path, SERVICE, summary);
    let well = |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "boolean", "enum": [true]}}});
    let most = json!({"type": "integer", "minimum": 1});
    let version = json!({"type": "object", "required": ["version", "logs3_payload_max_bytes"],
        "properties": {"version": text(), "logs3_payload_max_bytes": most}});
    vec![
        get("/v1", "A greeting").public().answers_as("text/plain", text()),
        get("/openapi.json", "This document").public().answers(json!({"type": "object"})),
        get("/docs", "This document as a page").public().answers_as("text/html", text()),
        get("/healthz", "Whether the node should go on running").public().answers(well("live")),
        get("/readyz", "Whether the node should be sent requests").public().answers(well("ready")),
        get(
            "/metrics",
            "Metrics in Prometheus' format, for callers on this machine where they have no port of their own",
        )
        .public()
        .answers_as("text/plain", text()),
        get("/version", "The version of the server").answers(version),
    ]
}

fn callers() -> Vec<Operation> {
    let shown = |fields: Value| json!({"type": "object", "required": names(&fields), "properties": fields});
    let maybe = json!({"type": "string", "nullable": true});
    let organization = shown(json!({
        "id": uuid(), "name": text(), "api_url": text(), "proxy_url": text(), "realtime_url": maybe,
        "is_universal_api": {"type": "boolean"}, "git_metadata": {"type": "object", "nullable": true},
    }));
    let login = json!({"type": "object", "required": ["org_info"],
        "properties": {"org_info": {"type": "array", "items": organization, "minItems": 1}}});
    let named = shown(json!({"id": uuid(), "name": text()}));
    let me = shown(json!({"id": uuid(), "email": text(), "organizations": {"type": "array", "items": named}}));
    let ping = shown(json!({"id": uuid(), "email": text(), "org_id": uuid(), "org_name": text()}));
    vec![
        Operation::new("get", "/ping", SERVICE, "Who is calling, in which organization").answers(ping),
        Operation::new(
            "post",
            "/api/apikey/login",
            SERVICE,
            "The organizations of the credential and where they are served",
        )
        .answers(login),
        Operation::new("post", "/api/self/me", SERVICE, "The user of the credential").answers(me),
    ]
}

/// How people come in.
fn logins() -> Vec<Operation> {
    const LOGINS: &str = "Logins";
    let of = |method, path: &str, summary: &str| Operation::new(method, path, LOGINS, summary).public();
    let page = |operation: Operation, status| {
        operation.answers_with(status, "A page that says why nobody is logged in", "text/html", text())
    };
    let refused =
        json!({"type": "object", "required": ["error"], "properties": {"error": text(), "error_description": text()}});
    let form = |operation: Operation, needed: &[&str], fields: Value| {
        operation
            .takes_form(json!({"type": "object", "required": needed, "properties": fields}))
            .with("LoginError", refused.clone())
            .answers_with(400, "What was shown is not taken", "application/json", reference("LoginError"))
    };
    let grants = json!({"type": "string", "enum": ["authorization_code", "refresh_token"]});
    let tokens = json!({
        "type": "object", "required": ["access_token", "token_type", "expires_in", "refresh_token", "scope"],
        "properties": {
            "access_token": text(), "token_type": {"type": "string", "enum": ["Bearer"]}, "expires_in": {"type": "integer"},
            "refresh_token": text(), "scope": text(),
        },
    });
    let method = json!({"type": "string", "enum": ["S256"]});
    let authorize = of("get", "/oauth/authorize", "Have a person log in with the provider")
        .must_ask("response_type", json!({"type": "string", "enum": ["code"]}))
        .must_ask("client_id", text())
        .must_ask("redirect_uri", text())
        .must_ask("code_challenge", text())
        .must_ask("code_challenge_method", method)
        .asks("state", text())
        .asks("scope", json!({"type": "string", "enum": ["mcp"]}));
    let back = of("get", "/oauth/callback", "Where the provider sends people back to")
        .must_ask("state", text())
        .asks("code", text())
        .asks("error", text());
    let granted = json!({
        "grant_type": grants, "client_id": text(), "code": text(), "redirect_uri": text(), "code_verifier": text(),
        "refresh_token": text(), "scope": text(),
    });
    let revoked = json!({"token": text(), "token_type_hint": text(), "client_id": text()});
    let ended = of("post", "/oauth/revoke", "End the login of a token");
    let replies = json!({"type": "object", "required": ["answer"], "properties": {"answer": text()},
        "additionalProperties": {"type": "string", "enum": ["accept", "decline", "later"]}});
    let reply =
        of("post", "/oauth/invitations", "What a person who logs in says to their invitations").takes_form(replies);
    vec![
        of("get", "/.well-known/oauth-authorization-server", "Where clients log people in: RFC 8414")
            .answers(json!({"type": "object", "required": ["issuer", "authorization_endpoint", "token_endpoint"]})),
        page(authorize.redirects(), 400),
        page(page(back.redirects(), 400), 403).answers_with(
            200,
            "A page that asks about pending invitations",
            "text/html",
            text(),
        ),
        page(page(reply.redirects(), 400), 403),
        form(
            of("post", "/oauth/token", "Get tokens for a code or a refresh token"),
            &["grant_type", "client_id"],
            granted,
        )
        .answers(tokens),
        form(ended, &["token"], revoked).answers(json!({"type": "object"})),
    ]
}

/// Programs that are set up while their person logs in.
fn setups() -> Vec<Operation> {
    let of = |method, path: &str, summary: &str| {
        Operation::new(method, format!("/api/cli/wizard-session/{path}"), "Logins", summary).public()
    };
    let shown = |fields: Value| json!({"type": "object", "required": names(&fields), "properties": fields});
    let page = |operation: Operation, status| {
        operation.answers_with(status, "A page for the person at the browser", "text/html", text())
    };
    let time = json!({"type": "string", "format": "date-time"});
    let session = shown(json!({
        "session_token": text(), "poll_token": text(), "login_path": text(), "verification_code": text(), "expires_at": time,
    }));
    let status = json!({"type": "string", "enum": ["pending", "expired", "claimed", "complete"]});
    let state = json!({"type": "object", "required": ["status"], "properties": {
        "status": status, "expires_at": time, "api_key": text(), "org_id": uuid(), "org_name": text(), "project_id": uuid(),
        "project_name": text(),
    }});
    let login = of("get", "login", "Have the person of a program log in").must_ask("session_token", text());
    let answer = json!({"type": "object", "required": ["answer"], "properties": {"answer": text()}});
    let allow = of("post", "allow", "What the person says of the program that waits").takes_form(answer);
    let allow = allow.answers_with(200, "A page that says so", "text/html", text());
    vec![
        of("post", "create", "Begin to wait for a person").answers(session),
        page(page(login.redirects(), 400), 503),
        page(page(allow, 400), 403),
        of("get", "poll", "How far it is; to be asked with the session's `poll_token` as a bearer")
            .must_ask("session_token", text())
            .answers(state),
    ]
}

pub(super) fn names(fields: &Value) -> Vec<&String> {
    fields.as_object().map(|fields| fields.keys().collect()).unwrap_or_default()
}

/// Whoever asks for one names the object that it is of.
fn views() -> Vec<Operation> {
    let family = Family::new("/v1/view", "view", kinds::VIEW.describe());
    let object = |name: &str| family.said.create["properties"][name].clone();
    let (object_type, object_id) = (object("object_type"), object("object_id"));
    let of_object = |operation: Operation| {
        operation.must_ask("object_type", object_type.clone()).must_ask("object_id", object_id.clone())
    };
    let mut change = family.said.patch.clone();
    change["properties"]["object_type"] = object_type.clone();
    change["properties"]["object_id"] = object_id.clone();
    change["required"] = json!(["object_type", "object_id"]);
    let named = json!({"type": "object", "required": ["object_type", "object_id"],
        "properties": {"object_type": object_type.clone(), "object_id": object_id.clone()}});
    let filters: Vec<_> =
        family.said.filters.iter().filter(|(name, _)| !name.starts_with("object_")).cloned().collect();
    let list = Operation::new("get", "/v1/view", "Views", "List views of an object, newest first");
    let list = of_object(filtered(paged(list, None), &filters));
    vec![
        family.create(),
        family.replace(),
        list.with("View", family.said.answer.clone()).answers(objects(&reference("View"))),
        of_object(family.get()),
        family.patch().with("PatchView", change),
        family.delete().takes(named),
    ]
}

fn secrets() -> Vec<Operation> {
    let family = Family::new("/v1/ai_secret", "ai_secret", kinds::AI_SECRET.describe());
    let org_name = json!({"type": "string", "nullable": true});
    let named =
        json!({"type": "object", "required": ["name"], "properties": {"name": some_text(), "org_name": org_name}});
    let of_org = json!({"type": "object", "properties": {"org_id": maybe_org_id()}});
    let all = Operation::new("post", "/api/ai_secret/get", "AiSecrets", "List the AI secrets of an organization");
    vec![
        family.create(),
        family.replace(),
        family.list(),
        family.get(),
        family.patch(),
        family.delete(),
        family.delete_by(named),
        all.takes(of_org).answers(json!({"type": "array", "items": reference("AiSecret")})),
    ]
}

/// Names are not unique: either way makes another.
fn tokens() -> Vec<Operation> {
    let family = Family::new("/v1/service_token", "service_token", kinds::SERVICE_TOKEN.describe());
    let by_id = json!({"type": "object", "required": ["id"], "properties": {"id": uuid()}});
    vec![
        family.with_key("post"),
        family.with_key("put"),
        family.list(),
        family.get(),
        family.delete(),
        family.delete_by(by_id),
    ]
}

/// Which versions environments use.
fn environments() -> Vec<Operation> {
    let object_type = json!({"type": "string", "enum": ["dataset", "prompt"]});
    let shown = json!({
        "type": "object",
        "required": ["id", "object_type", "object_id", "object_version", "environment_slug", "created"],
        "properties": {
            "id": uuid(), "object_type": object_type, "object_id": uuid(), "object_version": text(),
            "environment_slug": text(), "created": {"type": "string", "format": "date-time"},
        },
    });
    let of = |method, path: &str, summary: &str| {
        let operation = Operation::new(method, path, "Environments", summary).part("object_type", object_type.clone());
        operation.of("object").with("EnvironmentObject", shown.clone())
    };
    let all = |method, summary: &str| of(method, "/environment-object/{object_type}/{id}", summary);
    let one = |method, summary: &str| {
        of(method, "/environment-object/{object_type}/{id}/{slug}", summary)
            .part("slug", text())
            .answers(reference("EnvironmentObject"))
    };
    let pin = json!({"type": "object", "required": ["object_version"], "properties": {"object_version": version()}});
    let mut pinned = pin.clone();
    pinned["required"] = json!(["object_version", "environment_slug"]);
    pinned["properties"]["environment_slug"] = some_text();
    vec![
        all("get", "List the versions of a prompt or dataset that environments use")
            .answers(objects(&reference("EnvironmentObject"))),
        all("post", "Have an environment use a version").takes(pinned).answers(reference("EnvironmentObject")),
        one("get", "Get the version that an environment uses"),
        one("put", "Have an environment use a version, in the place of the one it uses").takes(pin),
        one("delete", "Have an environment use no version"),
    ]
}

/// A dataset as it was.
fn restores() -> Vec<Operation> {
    let named = json!({"type": "object", "required": ["version"], "properties": {"version": version()}});
    let rows = json!({"type": "integer", "minimum": 0});
    let of = |path: &str, summary: &str, fields: Value| {
        let answer = json!({"type": "object", "required": names(&fields), "properties": fields});
        let operation = Operation::new("post", path, "Datasets", summary).of("dataset");
        operation.takes(named.clone()).answers(answer).also_refuses(&[Kind::Past])
    };
    vec![
        of(
            "/v1/dataset/{id}/restore/preview",
            "How many rows a restore to a version would bring back and take away",
            json!({"rows_to_restore": rows, "rows_to_delete": rows}),
        ),
        of(
            "/v1/dataset/{id}/restore",
            "Make a dataset be what it was at a version, in one write",
            json!({"xact_id": {"type": "string", "nullable": true}, "rows_restored": rows, "rows_deleted": rows}),
        ),
    ]
}

fn summaries() -> Vec<Operation> {
    let count = json!({"type": "integer", "minimum": 0});
    let entry = |mean: &str, bounds: Value, diff: Value, unit: Option<Value>| {
        let mut schema = json!({"type": "object", "required": ["name", mean, "improvements", "regressions"],
            "properties": {"name": text(), mean: bounds, "diff": diff, "improvements": count, "regressions": count}});
        if let Some(unit) = unit {
            schema["properties"]["unit"] = unit;
            schema["required"] = json!(["name", mean, "unit", "improvements", "regressions"]);
        }
        schema
    };
    let number = json!({"type": "number"});
    let score = entry(
        "score",
        json!({"type": "number", "minimum": 0, "maximum": 1}),
        json!({"type": "number", "minimum": -1, "maximum": 1}),
        None,
    );
    let metric = entry("metric", number.clone(), number, Some(text()));
    let each = |name: &str, nullable: bool| json!({"type": "object", "nullable": nullable, "additionalProperties": reference(name)});
    let (maybe, url) = (json!({"type": "string", "nullable": true}), json!({"type": "string", "format": "uri"}));
    let of_experiment = json!({"type": "object",
    "required": ["project_name", "experiment_name", "project_url", "experiment_url"],
    "properties": {
        "project_name": text(), "experiment_name": text(), "project_url": url, "experiment_url": url,
        "comparison_experiment_name": maybe, "scores": each("ScoreSummary", true), "metrics": each("MetricSummary", true),
    }});
    let data = json!({"type": "object", "required": ["total_records"], "properties": {"total_records": count}});
    let mut data_or_null = data.clone();
    data_or_null["nullable"] = true.into();
    let of_dataset = json!({"type": "object", "required": ["project_name", "dataset_name", "project_url", "dataset_url"],
    "properties": {
        "project_name": text(), "dataset_name": text(), "project_url": url, "dataset_url": url, "data_summary": data_or_null,
    }});
    let comparison = json!({"type": "object", "required": ["scores", "metrics"], "properties": {
        "scores": each("ScoreSummary", false), "metrics": each("MetricSummary", false), "base_experiment_name": text(),
    }});
    let (experiments, datasets) = ("Experiments", "Datasets");
    let switch = json!({"type": "boolean", "nullable": true});
    let scored =
        |operation: Operation| operation.with("ScoreSummary", score.clone()).with("MetricSummary", metric.clone());
    let get = |path: &str, tag: &str, summary: &str| Operation::new("get", path, tag, summary);
    vec![
        scored(get(
            "/v1/experiment/{id}/summarize",
            experiments,
            "What the scores and metrics of an experiment come to",
        ))
        .of("experiment")
        .asks("summarize_scores", switch.clone())
        .asks("comparison_experiment_id", uuid())
        .answers(of_experiment)
        .also_refuses(&[Kind::TooLarge]),
        get("/v1/dataset/{id}/summarize", datasets, "How many rows a dataset has")
            .of("dataset")
            .asks("summarize_data", switch)
            .answers(of_dataset),
        scored(get(
            "/experiment-comparison2",
            experiments,
            "The scores and metrics of an experiment against another's",
        ))
        .must_ask("experiment_id", uuid())
        .asks("base_experiment_id", uuid())
        .answers(comparison)
        .also_refuses(&[Kind::TooLarge]),
        get("/dataset-summary", datasets, "How many rows a dataset has").must_ask("dataset_id", uuid()).answers(data),
    ]
}

/// The path says which project they are of.
fn simulated_users() -> Vec<Operation> {
    let mut said = kinds::SIMULATED_USER.describe();
    for part in ["properties", "required"] {
        match &mut said.create[part] {
            Value::Object(fields) => drop(fields.remove("project_id")),
            Value::Array(names) => names.retain(|name| name != "project_id"),
            _ => {}
        }
    }
    said.filters.retain(|(name, _)| *name != "project_id");
    let family = Family::new("/v1/project/{project_id}/simulated_user", "simulated_user", said);
    let all = [family.create(), family.list(), family.get(), family.patch(), family.delete()];
    all.into_iter().map(|operation| operation.part("project_id", uuid())).collect()
}

fn acls() -> Vec<Operation> {
    let family = Family::new("/v1/acl", "acl", kinds::ACL.describe());
    let (object_type, object_id) = (family.said.filters[0].1.clone(), family.said.filters[1].1.clone());
    let list = |path: &str, summary: &str| paged(Operation::new("get", path, ACLS, summary), None);
    let shown = |operation: Operation| operation.with("Acl", family.said.answer.clone());
    let of_object = list("/v1/acl", "List what was granted on an object, newest first");
    let of_object = of_object.must_ask("object_type", object_type).must_ask("object_id", object_id);
    let of_object = filtered(of_object, &family.said.filters[2..]);
    let of_organization = list("/v1/acl/list_org", "List what was granted in an organization, newest first");
    let of_organization = filtered(of_organization, &family.said.filters);
    let update = |path: &str, summary: &str| {
        let list =
            json!({"type": "array", "nullable": true, "items": reference("CreateAcl"), "maxItems": ACLS_AT_ONCE_MAX});
        let done = |name: &str| json!({"type": "array", "items": reference(name)});
        let body = json!({"type": "object", "properties": {"add_acls": list, "remove_acls": list}});
        let answer = json!({"type": "object", "required": ["added_acls", "removed_acls"],
            "properties": {"added_acls": done("Acl"), "removed_acls": done("DeletedAcl")}});
        let operation = Operation::new("post", path, ACLS, summary).with("CreateAcl", family.said.create.clone());
        shown(operation).takes(body).answers(answer)
    };
    vec![
        family.create(),
        shown(of_object).answers(objects(&reference("Acl"))),
        family.delete_by(reference("CreateAcl")),
        update("/v1/acl/batch_update", "Grant and take away several at once"),
        update("/v1/acl/batch-update", "The same, as one client spells it"),
        // No object around it, as clients have it.
        shown(of_organization).answers(json!({"type": "array", "items": reference("Acl")})),
        family.get(),
        family.delete(),
    ]
}

fn people() -> Vec<Operation> {
    let user = |operation: Operation| operation.with("User", describe_user());
    let mut users =
        paged(Operation::new("get", "/v1/user", "Users", "List the users of an organization, newest first"), None);
    for name in ["given_name", "family_name", "email"] {
        users = users.asks(name, text());
    }
    let (patch, shown) = describe_organization();
    let organization = |operation: Operation| operation.with("Organization", shown.clone());
    let one = |method, summary: &str| {
        let operation = Operation::new(method, "/v1/organization/{id}", ORGANIZATIONS, summary).of("organization");
        organization(operation).answers(reference("Organization"))
    };
    let organizations =
        paged(Operation::new("get", "/v1/organization", ORGANIZATIONS, "List the caller's organizations"), None);
    let keys = kinds::API_KEY.describe();
    let key_list =
        Operation::new("get", "/v1/organization/api_keys", ORGANIZATIONS, "List API keys of members, newest first");
    let key_list = filtered(paged(key_list, keys.list_default), &keys.filters).with("ApiKey", keys.answer);
    let members = Operation::new("patch", "/v1/organization/members", ORGANIZATIONS, "Invite users and remove them");
    vec![
        user(users).answers(objects(&reference("User"))),
        user(Operation::new("get", "/v1/user/{id}", "Users", "Get a user").of("user")).answers(reference("User")),
        organization(organizations).answers(objects(&reference("Organization"))),
        one("get", "Get an organization"),
        one("patch", "Change an organization").with("PatchOrganization", patch).takes(reference("PatchOrganization")),
        key_list.answers(objects(&reference("ApiKey"))),
        members.takes(members_body()).answers(members_answer()),
    ]
}

/// Empty says nothing, as null does.
fn maybe_org_id() -> Value {
    json!({"anyOf": [{"type": "string", "format": "uuid", "nullable": true}, {"type": "string", "maxLength": 0}]})
}

fn members_body() -> Value {
    let list = |item: Value| json!({"type": "array", "nullable": true, "items": item, "maxItems": MEMBERS_AT_ONCE_MAX});
    let maybe = |schema: Value| {
        let mut schema = schema;
        schema["nullable"] = true.into();
        schema
    };
    let email = json!({"type": "string", "pattern": r"^[^@\s]+@\S+$"});
    let account = json!({"type": "object", "required": ["name"], "properties": {"name": some_text(), "token_name": maybe(text())}});
    let invited = json!({
        "ids": list(uuid()), "emails": list(email), "service_accounts": list(account), "send_invite_emails": {"type": "boolean", "nullable": true},
        "group_ids": list(uuid()), "group_names": list(text()), "group_id": maybe(uuid()), "group_name": maybe(text()),
    });
    let removed = json!({"ids": list(uuid()), "emails": list(text())});
    json!({"type": "object", "properties": {
        "invite_users": {"type": "object", "nullable": true, "properties": invited},
        "remove_users": {"type": "object", "nullable": true, "properties": removed},
        "org_name": maybe(text()), "org_id": maybe_org_id(),
    }})
}

fn members_answer() -> Value {
    let maybe = json!({"type": "string", "nullable": true});
    let fields = json!({"id": uuid(), "email": text(), "api_key": maybe, "token_name": maybe});
    let user = json!({"type": "object", "required": ["id", "email"], "properties": fields});
    json!({
        "type": "object", "required": ["status", "org_id", "send_email_error", "added_users"],
        "properties": {
            "status": {"type": "string", "enum": ["success"]}, "org_id": text(),
            "send_email_error": {"type": "string", "nullable": true}, "added_users": {"type": "array", "items": user},
        },
    })
}

/// `asked` reads it.
fn question() -> Value {
    let formats: Vec<Value> = Format::ALL.iter().map(|format| format.name().into()).chain([Value::Null]).collect();
    let flag = json!({"type": "boolean", "nullable": true});
    let maybe = json!({"type": "string", "nullable": true});
    let natural = json!({"type": "integer", "nullable": true, "minimum": 0, "maximum": u64::MAX});
    json!({
        "type": "object", "required": ["query"],
        "properties": {
            "query": {"anyOf": [some_text(), {"type": "object", "minProperties": 1}]},
            "fmt": {"type": "string", "nullable": true, "enum": formats},
            "cursor": maybe, "version": maybe_version(), "scope_to_root_span_id": maybe,
            "tz_offset": {"type": "integer", "nullable": true, "minimum": -1440, "maximum": 1440},
            "lint_mode": {"type": "string", "nullable": true, "enum": ["default", "strict", "off", null]},
            "strict_lint_mode": flag, "audit_log": flag, "disable_limit": flag, "include_plan": flag,
            "brainstore_realtime": flag, "inference_depth": natural, "query_timeout_seconds": natural,
        },
    })
}

fn queries() -> Vec<Operation> {
    const REFUSED: [Kind; 3] = [Kind::Past, Kind::TooLate, Kind::NotImplemented];
    let maybe = json!({"type": "string", "nullable": true});
    let rows = json!({"type": "array", "items": {"type": "object"}});
    let object = json!({"type": "object"});
    let answer = json!({
        "type": "object", "required": ["data", "schema", "realtime_state", "freshness_state", "freshness", "warnings"],
        "properties": {
            "data": rows, "schema": object, "realtime_state": object, "freshness_state": object,
            "freshness": {"type": "string", "enum": ["complete"]}, "warnings": rows, "cursor": text(), "plan": text(),
        },
    });
    let mut later = question();
    later["properties"]["format"] = json!({"type": "string", "nullable": true, "enum": ["jsonl", null]});
    later["properties"]["batch_size"] = json!({"type": "integer", "nullable": true, "minimum": 1, "maximum": u64::MAX});
    let status = json!({"type": "string", "enum": ["queued", "running", "succeeded", "failed"]});
    let made = json!({"type": "object", "required": ["id", "status", "project_id", "object_id"],
        "properties": {"id": uuid(), "status": status, "project_id": maybe, "object_id": maybe}});
    let seen = json!({"type": "object", "required": ["status"], "properties": {"status": status, "error": text()}});
    let page = json!({"type": "object", "required": ["status", "rows", "cursor"],
        "properties": {"status": status, "rows": rows, "cursor": maybe, "error": text()}});
    let ask = Operation::new("post", "/btql", QUERIES, "Ask a question over rows").with("Question", question());
    vec![
        ask.takes(reference("Question"))
            .answers(answer)
            .answers_as("text/csv", text())
            .answers_as("application/x-jsonlines", text())
            .answers_as("application/vnd.apache.parquet", json!({"type": "string", "format": "binary"}))
            .sends_header("x-bt-cursor", "Where the next page begins, if there is one")
            .also_refuses(&REFUSED),
        Operation::new("post", "/btql/async", QUERIES, "Ask a question whose answer is looked for later")
            .takes(later)
            .answers(made)
            .also_refuses(&REFUSED),
        Operation::new("get", "/btql/async/{id}", QUERIES, "How far the answer is").of("query").answers(seen),
        Operation::new("get", "/btql/async/{id}/result", QUERIES, "A page of the answer")
            .of("query")
            .asks("limit", json!({"type": "integer", "minimum": 1}))
            .asks("cursor", text())
            .answers(page),
    ]
}

fn writes() -> Vec<Operation> {
    let many = json!({"type": "array", "items": reference("CreateFunction"), "maxItems": DEFINITIONS_AT_ONCE_MAX});
    let functions = json!({"type": "object", "required": ["functions"], "properties": {"functions": many}});
    let inserted = json!({"type": "object", "required": ["functions", "ignored_count"], "properties": {
        "functions": {"type": "array", "items": reference("Function")}, "ignored_count": {"type": "integer", "minimum": 0},
    }});
    let row = json!({"type": "object", "additionalProperties": {"nullable": true}});
    let logs = json!({"type": "object", "required": ["rows"], "properties": {
        "rows": {"type": "array", "items": row, "maxItems": ROWS_MAX},
        "api_version": {"nullable": true},
    }});
    let crossed =
        Operation::new("post", "/v1/insert", "CrossObject", "Write rows of several objects and feedback to them");
    let logged = Operation::new("post", "/logs3", "CrossObject", "Write rows that name their objects themselves");
    let pushed = Operation::new(
        "post",
        "/insert-functions",
        "Functions",
        "Create several functions, or none where one is wrong",
    );
    vec![
        crossed.reads_header(rows::REPEATED.0, rows::REPEATED.1).takes(rows::crossed()).answers(rows::crossed_rows()),
        logged
            .reads_header(rows::REPEATED.0, rows::REPEATED.1)
            .takes(logs)
            .answers(reference("InsertedRows"))
            .also_refuses(&[Kind::NotImplemented]),
        pushed.takes(functions).answers(inserted),
    ]
}
