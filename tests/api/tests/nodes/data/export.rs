//! Export of an organization from one node and import on another: the API returns the same there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_test_api::http::{Request, send};
use assay_test_api::process::{Ran, run};
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

const BOB: &str = "bob@example.com";
/// More than are written together, so that what stops half-way has a half.
const ROWS: usize = 2500;
const ROWS_AT_ONCE: usize = 500;
/// Key of the attachment that a row names.
const ATTACHMENT: &str = "5b6f2c1e-8f4e-4a57-9f2b-2f8a5f1c0007";
/// Lists to compare, and fields that cannot be exported.
const LISTS: [&str; 21] = [
    "/v1/project",
    "/v1/experiment",
    "/v1/dataset",
    "/v1/prompt",
    "/v1/function",
    "/v1/group",
    "/v1/role",
    "/v1/acl/list_org",
    "/v1/user",
    "/v1/organization",
    "/v1/agent",
    "/v1/dataset_snapshot",
    "/v1/mcp_server",
    "/v1/project_score",
    "/v1/project_tag",
    "/v1/prompt_session",
    "/v1/span_iframe",
    "/v1/custom_column",
    "/environment",
    "/v1/view?object_type=project&object_id=PROJECT",
    "/environment-object/prompt/PROMPT",
];

struct Node {
    server: Server,
    data: PathBuf,
    /// Key of the caller whose answers are compared.
    key: String,
}

impl Node {
    fn start(dir: &Path) -> Result<Node> {
        let server = Server::start(&Options::new(dir))?;
        let key = server.key.clone();
        Ok(Node { server, data: dir.to_owned(), key })
    }

    fn admin(&self, words: &[&str]) -> Result<Ran> {
        let place = ["--data-dir", self.data.to_str().context("a path that is text")?];
        run(&[["admin"].as_slice(), words, &place].concat(), &[], "")
    }

    fn asked(&self, key: &str, method: &str, target: &str, body: &Value) -> Result<(u16, String)> {
        let headers = vec![("authorization".into(), format!("Bearer {key}"))];
        let body = (method != "GET").then(|| body.to_string().into_bytes());
        let request = Request { method: method.into(), target: target.into(), headers, body, declared_length: None };
        let answer = send(&self.server.url, &request)?;
        Ok((answer.status, answer.text()))
    }

    fn call(&self, method: &str, target: &str, body: &Value) -> Result<Value> {
        let (status, text) = self.asked(&self.key, method, target, body)?;
        ensure!(status == 200, "{method} {target}: {status}: {text}");
        serde_json::from_str(&text).with_context(|| format!("{method} {target}"))
    }

    fn post(&self, target: &str, body: Value) -> Result<Value> {
        self.call("POST", target, &body)
    }

    fn get(&self, target: &str) -> Result<Value> {
        self.call("GET", target, &Value::Null)
    }

    /// Every row of an object, over pages.
    fn rows(&self, path: &str, version: Option<&Value>) -> Result<Vec<Value>> {
        let (mut rows, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let body = json!({"limit": 1000, "cursor": cursor, "version": version});
            let page = self.post(&format!("{path}/fetch"), body)?;
            rows.extend(page["events"].as_array().context("events")?.clone());
            cursor = page["cursor"].clone();
            if cursor.is_null() {
                return Ok(rows);
            }
        }
    }
}

fn id(object: &Value) -> Result<String> {
    object["id"].as_str().map(str::to_owned).with_context(|| format!("no id: {object}"))
}

/// Content of the organization, by the ids that its owner got.
struct Acme {
    org: String,
    project: String,
    hidden: String,
    experiment: String,
    dataset: String,
    playground: String,
    prompt: String,
    function: String,
    /// Versions of the dataset, the older first.
    versions: [Value; 2],
    old_prompt: Value,
}

/// Makes the records without rows.
fn make_records(node: &Node, project: &str, dataset: &str, bob: &str) -> Result<()> {
    let part = |more: Value| {
        let mut body = json!({"project_id": project, "name": "part"});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    for (path, body) in [
        ("/v1/agent", part(json!({"metadata": {"n": 1.50}}))),
        ("/v1/project_tag", part(json!({"color": "#fff"}))),
        ("/v1/project_score", part(json!({"score_type": "slider"}))),
        ("/v1/span_iframe", part(json!({"url": "https://example.com"}))),
        ("/v1/custom_column", part(json!({"source": "dataset", "expr": "input.n"}))),
        ("/v1/mcp_server", part(json!({"url": "https://example.com"}))),
        ("/v1/view", json!({"object_type": "project", "object_id": project, "view_type": "logs", "name": "seen"})),
        ("/environment", json!({"name": "Production", "slug": "production"})),
        ("/v1/ai_secret", json!({"name": "OPENAI_API_KEY", "type": "openai", "secret": "sk-stays-where-it-is"})),
        ("/v1/env_var", json!({"object_type": "project", "object_id": project, "name": "TOKEN", "value": "stays"})),
    ] {
        node.post(path, body)?;
    }
    let role = id(&node.post("/v1/role", json!({"name": "reads", "member_permissions": [{"permission": "read"}]}))?)?;
    let inner = id(&node.post("/v1/group", json!({"name": "inner", "member_users": [bob]}))?)?;
    let outer = id(&node.post("/v1/group", json!({"name": "outer", "member_groups": [inner]}))?)?;
    node.post("/v1/acl", json!({"object_type": "project", "object_id": project, "group_id": outer, "role_id": role}))?;
    let direct = json!({"object_type": "dataset", "object_id": dataset, "user_id": bob, "permission": "update"});
    node.post("/v1/acl", direct)?;
    Ok(())
}

fn make_dataset(node: &Node, project: &str) -> Result<(String, [Value; 2])> {
    let dataset = id(&node.post("/v1/dataset", json!({"project_id": project, "name": "d"}))?)?;
    let path = format!("/v1/dataset/{dataset}");
    let insert = |rows: Value| node.post(&format!("{path}/insert"), json!({"events": rows}));
    let version = || -> Result<Value> {
        let rows = node.rows(&path, None)?;
        rows.iter().map(|row| row["_xact_id"].clone()).max_by_key(Value::to_string).context("a row")
    };
    insert(
        json!([{"id": "kept", "input": 1}, {"id": "changed", "input": {"a": 1, "b": 2}}, {"id": "gone", "input": 3}]),
    )?;
    let first = version()?;
    insert(json!([{"id": "changed", "input": {"b": 3}, "_is_merge": true}]))?;
    insert(json!([{"id": "gone", "_object_delete": true}]))?;
    insert(json!([{"id": "new", "input": 12345678901234567890_u64, "expected": 0.1}]))?;
    let second = version()?;
    insert(json!([{"id": "new", "input": "later"}]))?;
    node.post(
        &format!("{path}/feedback"),
        json!({"feedback": [{"id": "kept", "comment": "look", "source": "external"}]}),
    )?;
    let named = json!({"dataset_id": dataset, "name": "first", "xact_id": first});
    node.post("/v1/dataset_snapshot", named)?;
    Ok((dataset, [first, second]))
}

fn make_rows(node: &Node, acme: &Acme) -> Result<()> {
    let logs = format!("/v1/project_logs/{}", acme.project);
    let row = |n: usize| {
        json!({"id": format!("row {n}"), "root_span_id": format!("trace {}", n / 3), "span_id": format!("s{n}"),
               "span_parents": if n.is_multiple_of(3) { Value::Null } else { json!([format!("s{}", n - 1)]) },
               "input": {"n": n}, "metrics": {"start": n as f64 + 0.5}, "tags": ["x"], "created": "2026-01-02T03:04:05.678Z"})
    };
    for rows in (0..ROWS).map(row).collect::<Vec<_>>().chunks(ROWS_AT_ONCE) {
        node.post(&format!("{logs}/insert"), json!({ "events": rows }))?;
    }
    node.post(&format!("{logs}/insert"), json!({"events": [{"id": "row 7", "output": "merged", "_is_merge": true}]}))?;
    node.post(&format!("{logs}/insert"), json!({"events": [{"id": "row 8", "_object_delete": true}]}))?;
    let said =
        json!({"id": "row 7", "scores": {"s": 1}, "comment": "well done", "metadata": {"who": "me"}, "source": "app"});
    node.post(&format!("{logs}/feedback"), json!({ "feedback": [said] }))?;
    let origin =
        json!({"object_type": "dataset", "object_id": acme.dataset, "id": "changed", "_xact_id": acme.versions[0]});
    upload_attachment(node)?;
    let attachment =
        json!({"type": "braintrust_attachment", "filename": "f", "content_type": "text/plain", "key": ATTACHMENT});
    let rows = json!([{"id": "e", "input": 1, "output": attachment, "scores": {"x": 0.5}, "origin": origin}]);
    node.post(&format!("/v1/experiment/{}/insert", acme.experiment), json!({ "events": rows }))?;
    let row = json!({"prompt_session_id": acme.playground, "log_id": "x", "id": "p", "input": "tried"});
    node.post("/logs3", json!({"rows": [row], "api_version": 2}))?;
    Ok(())
}

/// Content of the attachment, in several chunks.
fn attachment_bytes() -> Vec<u8> {
    (0..700_000_u32).map(|number| b'a' + (number % 23) as u8).collect()
}

/// Sends a request to an address that the node issued, without a credential.
fn at_address(address: &Value, method: &str, body: Option<Vec<u8>>) -> Result<Vec<u8>> {
    let address = address.as_str().context("an address")?;
    let place = address.find("/attachment/bytes").context("an address of a file")?;
    let request = Request { method: method.into(), target: address[place..].into(), body, ..Request::default() };
    let answer = send(&address[..place], &request)?;
    ensure!(answer.status == 200, "{method} {address}: {}: {}", answer.status, answer.text());
    Ok(answer.body)
}

fn upload_attachment(node: &Node) -> Result<()> {
    let body = json!({"key": ATTACHMENT, "filename": "f", "content_type": "text/plain"});
    let slot = node.post("/attachment", body)?;
    at_address(&slot["signedUrl"], "PUT", Some(attachment_bytes()))?;
    Ok(())
}

fn make(node: &Node, org: &str) -> Result<Acme> {
    let bob = node.call("PATCH", "/v1/organization/members", &json!({"invite_users": {"emails": [BOB]}}))?;
    let bob = id(&bob["added_users"][0])?;
    let project = id(&node.post("/v1/project", json!({"name": "seen"}))?)?;
    let hidden = id(&node.post("/v1/project", json!({"name": "hidden"}))?)?;
    let (dataset, versions) = make_dataset(node, &project)?;
    make_records(node, &project, &dataset, &bob)?;
    let prompt = json!({"project_id": project, "name": "p", "slug": "p", "prompt_data": {"prompt": {"type": "completion", "content": "one"}}});
    let prompt = node.post("/v1/prompt", prompt)?;
    let (prompt, old_prompt) = (id(&prompt)?, prompt["_xact_id"].clone());
    let changed = json!({"prompt_data": {"prompt": {"type": "completion", "content": "two"}}});
    node.call("PATCH", &format!("/v1/prompt/{prompt}"), &changed)?;
    let code = json!({"type": "code", "data": {
        "type": "inline", "runtime_context": {"runtime": "node", "version": "20"}, "code": "1"}});
    let function = json!({"project_id": project, "name": "f", "slug": "f", "function_data": code});
    let function = id(&node.post("/v1/function", function)?)?;
    let pin = json!({"environment_slug": "production", "object_version": old_prompt});
    node.post(&format!("/environment-object/prompt/{prompt}"), pin)?;
    let experiment = json!({"project_id": project, "name": "e", "dataset_id": dataset, "dataset_version": versions[1]});
    let experiment = id(&node.post("/v1/experiment", experiment)?)?;
    let playground = id(&node.post("/v1/prompt_session", json!({"project_id": project, "name": "try"}))?)?;
    let org = org.to_owned();
    let acme = Acme { org, project, hidden, experiment, dataset, playground, prompt, function, versions, old_prompt };
    make_rows(node, &acme)?;
    Ok(acme)
}

/// Removes values counted per node, and replaces two ids of one person by one.
fn plain(mut value: Value, bobs: &[String]) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for counted in ["_xact_id", "_pagination_key", "xact_id", "object_version", "dataset_version"] {
                    fields.remove(counted);
                }
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    let text = bobs.iter().fold(value.to_string(), |text, bob| text.replace(bob.as_str(), "BOB"));
    serde_json::from_str(&text).expect("JSON")
}

fn same(what: &str, there: Value, here: Value, bobs: &[String]) -> Result<()> {
    let (there, here) = (plain(there, bobs), plain(here, bobs));
    ensure!(there == here, "{what}\nthere {there:#}\nhere {here:#}");
    Ok(())
}

fn bob_of(node: &Node) -> Result<String> {
    let users = node.get("/v1/user")?;
    let found = users["objects"].as_array().context("users")?.iter().find(|user| user["email"] == BOB);
    id(found.context("nobody is called Bob")?)
}

/// Compares the responses to all reads.
fn compare(there: &Node, here: &Node, acme: &Acme) -> Result<()> {
    let bobs = [bob_of(there)?, bob_of(here)?];
    ensure!(bobs[0] != bobs[1], "whoever is a user here already stays who they are");
    for list in LISTS {
        let list = list.replace("PROJECT", &acme.project).replace("PROMPT", &acme.prompt);
        let (mut of_there, mut of_here) = (there.get(&list)?, here.get(&list)?);
        if list == "/v1/user" {
            // People are listed by when they came, and some came here before.
            for users in [&mut of_there, &mut of_here] {
                let users = users["objects"].as_array_mut().context("users")?;
                users.iter_mut().for_each(|user| user["created"] = Value::Null);
                users.sort_by_key(|user| user["email"].to_string());
            }
        }
        ensure!(of_there["objects"].as_array().is_none_or(|objects| !objects.is_empty()), "{list} is empty");
        same(&list, of_there, of_here, &bobs)?;
    }
    for path in [
        format!("/v1/project_logs/{}", acme.project),
        format!("/v1/experiment/{}", acme.experiment),
        format!("/v1/dataset/{}", acme.dataset),
    ] {
        let (of_there, of_here) = (there.rows(&path, None)?, here.rows(&path, None)?);
        ensure!(!of_there.is_empty(), "{path} has no rows");
        same(&path, of_there.into(), of_here.into(), &bobs)?;
    }
    let query = format!("SELECT * FROM playground_logs('{}')", acme.playground);
    let asked = json!({"query": query, "fmt": "json"});
    let (of_there, of_here) = (there.post("/btql", asked.clone())?, here.post("/btql", asked)?);
    ensure!(of_there["data"].as_array().is_some_and(|rows| rows.len() == 1), "{of_there}");
    same("playground", of_there["data"].clone(), of_here["data"].clone(), &bobs)?;
    for path in [format!("/v1/prompt/{}", acme.prompt), format!("/v1/function/{}", acme.function)] {
        same(&path, there.get(&path)?, here.get(&path)?, &bobs)?;
    }
    let attachment = here.get(&format!("/attachment?key={ATTACHMENT}"))?;
    let content = at_address(&attachment["downloadUrl"], "GET", None)?;
    ensure!(content == attachment_bytes(), "the attachment has {} bytes", content.len());
    compare_versions(there, here, acme, &bobs)
}

/// Checks that a version there maps to a version here with the same rows.
fn compare_versions(there: &Node, here: &Node, acme: &Acme, bobs: &[String]) -> Result<()> {
    let path = format!("/v1/dataset/{}", acme.dataset);
    let list = format!("/v1/dataset_snapshot?dataset_id={}", acme.dataset);
    let first = here.get(&list)?["objects"][0]["xact_id"].clone();
    let experiment = here.get(&format!("/v1/experiment/{}", acme.experiment))?;
    let mut counts = Vec::new();
    for (old, new) in acme.versions.iter().zip([&first, &experiment["dataset_version"]]) {
        ensure!(old != new, "{old} is a transaction of another place");
        let (of_there, of_here) = (there.rows(&path, Some(old))?, here.rows(&path, Some(new))?);
        counts.push(of_there.iter().map(|row| row["id"].to_string()).collect::<Vec<_>>());
        same("a version of the dataset", of_there.into(), of_here.into(), bobs)?;
    }
    ensure!(counts[0].len() == 3 && counts[0].contains(&"\"gone\"".into()) && !counts[1].contains(&"\"gone\"".into()));
    let row = here.rows(&format!("/v1/experiment/{}", acme.experiment), None)?;
    ensure!(row[0]["origin"]["_xact_id"] == first, "{}", row[0]);
    let prompt = format!("/v1/prompt/{}", acme.prompt);
    let by_slug = here.get(&format!("{prompt}?environment=production"))?;
    let before = there.get(&format!("{prompt}?version={}", acme.old_prompt.as_str().context("a version")?))?;
    ensure!(by_slug["prompt_data"]["prompt"]["content"] == "one", "{by_slug}");
    same("a version of the prompt", before, by_slug, bobs)
}

/// Checks that grants there are grants here, to the holder of the address.
fn compare_access(here: &Node, acme: &Acme) -> Result<()> {
    let made = here.admin(&["create-key", "bob", "--organization", "acme", "--user", BOB])?.json()?;
    let key = made["api_key"].as_str().context("a key")?;
    for (target, expected) in [
        (format!("/v1/project/{}", acme.project), 200),
        (format!("/v1/dataset/{}", acme.dataset), 200),
        (format!("/v1/project_logs/{}/fetch", acme.project), 200),
        (format!("/v1/project/{}", acme.hidden), 404),
        (format!("/v1/organization/{}", acme.org), 200),
    ] {
        let (status, text) = here.asked(key, "GET", &target, &Value::Null)?;
        ensure!(status == expected, "{target}: {status}: {text}");
    }
    let (path, body) = (format!("/v1/project/{}", acme.project), json!({"description": "changed"}));
    ensure!(here.asked(key, "PATCH", &path, &body)?.0 == 403, "who may read may not change");
    Ok(())
}

fn refused(ran: Ran, why: &str) -> Result<()> {
    ensure!(!ran.success && ran.errors.contains(why), "{}{}", ran.out, ran.errors);
    Ok(())
}

/// The chain of the old place stays in the file, and both places have it on record.
fn is_on_record(node: &Node, org: &str, action: &str) -> Result<()> {
    let query = format!("SELECT action, actor, object_id FROM org_audit_logs('{org}') WHERE action = '{action}'");
    let found = node.post("/btql", json!({"query": query, "fmt": "json"}))?;
    let entry = &found["data"][0];
    ensure!(entry["actor"]["type"] == "operator" && entry["object_id"] == org, "{found}");
    Ok(())
}

/// Nothing of what is damaged comes.
fn damaged_comes_not(here: &Node, file: &Path, dir: &Path) -> Result<()> {
    let bytes = std::fs::read(file)?;
    let damaged = dir.join("damaged");
    let place = damaged.to_str().context("a path that is text")?;
    for (end, changed) in [(bytes.len() / 2, None), (bytes.len() - 1, None), (bytes.len(), Some(bytes.len() / 2))] {
        let mut other = bytes[..end].to_vec();
        if let Some(at) = changed {
            other[at] ^= 4;
        }
        std::fs::write(&damaged, other)?;
        refused(here.admin(&["import-organization", "--from", place])?, "not a complete export")?;
    }
    let orgs = here.admin(&["organizations"])?.json()?;
    ensure!(!orgs.to_string().contains("acme"), "{orgs}");
    Ok(())
}

fn moves(dir: &Path) -> Result<()> {
    let (mut there, mut here) = (Node::start(&dir.join("there"))?, Node::start(&dir.join("here"))?);
    let made = there.admin(&["create-organization", "acme", "--owner", "ann@example.com"])?.json()?;
    there.key = made["api_key"].as_str().context("a key")?.to_owned();
    let acme = make(&there, made["id"].as_str().context("an id")?)?;
    here.admin(&["create-organization", "other", "--owner", BOB])?.json()?;

    let file = dir.join("acme.export");
    let path = file.to_str().context("a path that is text")?;
    let said = there.admin(&["export-organization", "acme", "--to", path])?.json()?;
    ensure!(said["operations"].as_u64().is_some_and(|count| count > ROWS as u64), "{said}");
    refused(there.admin(&["export-organization", "acme", "--to", path])?, "already exists")?;
    let elsewhere = dir.join("elsewhere");
    let elsewhere = elsewhere.to_str().context("a path that is text")?;
    refused(there.admin(&["export-organization", "nobody", "--to", elsewhere])?, "nobody")?;
    ensure!(!Path::new(elsewhere).exists() && !dir.join("elsewhere.partial").exists(), "nothing is left of it");
    refused(there.admin(&["import-organization", "--from", path])?, &acme.org)?;
    is_on_record(&there, &acme.org, "export")?;

    damaged_comes_not(&here, &file, dir)?;
    // Ids of transactions begin with a second: within the same one both places may give the same.
    std::thread::sleep(Duration::from_millis(1100));
    let done = here.admin(&["import-organization", "--from", path])?.json()?;
    ensure!(done["sha256"] == said["sha256"] && done["operations_written"].as_u64() > Some(ROWS as u64), "{done}");
    let missing = done["to_be_set_anew"].to_string();
    ensure!(missing.contains("OPENAI_API_KEY") && missing.contains("TOKEN") && !missing.contains("sk-st"), "{missing}");
    let key = here.admin(&["create-key", "ann", "--organization", "acme", "--user", "ann@example.com"])?.json()?;
    here.key = key["api_key"].as_str().context("a key")?.to_owned();
    compare(&there, &here, &acme)?;
    compare_access(&here, &acme)?;
    is_on_record(&here, &acme.org, "import")?;
    ensure!(here.get("/v1/ai_secret")?["objects"] == json!([]), "a secret without a value is none");

    let again = here.admin(&["import-organization", "--from", path])?.json()?;
    ensure!(again["records_written"] == 0 && again["operations_written"] == 0, "{again}");
    compare(&there, &here, &acme)?;
    stopped_goes_on(dir, &there, &acme, &file)
}

/// Checks that an interrupted import is started again where no node runs, and is then whole.
fn stopped_goes_on(dir: &Path, there: &Node, acme: &Acme, file: &Path) -> Result<()> {
    let mut third = Node::start(&dir.join("third"))?;
    third.admin(&["create-organization", "other", "--owner", BOB])?.json()?;
    let path = file.to_str().context("a path that is text")?;
    let logs = format!("/v1/project_logs/{}/fetch", acme.project);
    std::thread::scope(|scope| -> Result<()> {
        let words = ["admin", "import-organization", "--from", path, "--as", "acme"];
        let place = ["--data-dir", third.data.to_str().context("a path that is text")?];
        let all = [words.as_slice(), &place].concat();
        let importing = scope.spawn(move || run(&all, &[], ""));
        // As soon as the first of it is there.
        for _ in 0..2000 {
            let orgs = third.admin(&["organizations"])?.out;
            if orgs.contains("acme") || importing.is_finished() {
                break;
            }
        }
        let server = std::mem::replace(&mut third.server, Server::start(&Options::new(&dir.join("fourth")))?);
        server.kill()?;
        importing.join().expect("a command ends").map(drop)
    })?;
    let done = third.admin(&["import-organization", "--from", path])?;
    ensure!(done.success, "where no node runs: {}{}", done.out, done.errors);
    third.server = Server::start(&Options::new(&third.data))?;
    let key = third.admin(&["create-key", "ann", "--organization", "acme", "--user", "ann@example.com"])?.json()?;
    third.key = key["api_key"].as_str().context("a key")?.to_owned();
    ensure!(third.get(&logs)?["events"].is_array(), "the logs");
    compare(there, &third, acme)
}

#[test]
fn an_organization_moves_with_all_it_owns() {
    let dir = tempfile::tempdir().expect("a directory");
    moves(dir.path()).unwrap_or_else(|error| panic!("{error:#}"));
}
