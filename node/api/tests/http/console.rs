//! The console as browsers meet it: its page, and sessions that only its own pages can use.

use assay_node_records::kinds::console_session::CONSOLE_SESSIONS_PER_USER_MAX;
use serde_json::{Value, json};

use crate::client::{ClientResponse, request};
use crate::fixture::Fixture;

const CONSOLE: (&str, &str) = ("x-assay-console", "1");
const COOKIE: &str = "assay-0a1b2c3d=";
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    media-src 'self' blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; frame-src blob:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types assay-worker; \
    report-uri /console/csp";

fn send(fixture: &Fixture, method: &str, path: &str, headers: &[(&str, &str)]) -> ClientResponse {
    fixture.send(&request(method, path, headers, b""))
}

/// Signs in with a key. Returns the cookie and the response.
fn sign_in(fixture: &Fixture, key: &str) -> (String, ClientResponse) {
    let bearer = format!("Bearer {key}");
    let response = send(fixture, "POST", "/console/session", &[("Authorization", &bearer), CONSOLE]);
    assert_eq!(response.status, 200, "{}", response.text());
    let set = response.header("set-cookie").expect("a cookie");
    (set.split(';').next().expect("a pair").to_owned(), response)
}

fn new_key(fixture: &Fixture, name: &str) -> (String, String) {
    let made = fixture.post("/v1/api_key", &json!({"name": name})).ok();
    let text = |field: &str| made[field].as_str().expect("text").to_owned();
    (text("id"), text("key"))
}

#[test]
fn a_key_signs_a_browser_in_and_ends_its_session_with_it() {
    let fixture = Fixture::open();
    let (id, key) = new_key(&fixture, "browser");
    let (cookie, signed_in) = sign_in(&fixture, &key);
    let set = signed_in.header("set-cookie").expect("a cookie");
    assert!(set.starts_with(COOKIE) && set.ends_with("; HttpOnly; SameSite=Strict"), "{set}");
    assert!(!set.contains(&key) && !signed_in.text().contains(&key));

    let mine = [("Cookie", cookie.as_str()), CONSOLE];
    let session = send(&fixture, "GET", "/console/session", &mine).ok();
    let me = fixture.post("/api/self/me", &Value::Null).ok();
    assert_eq!((&session["user"]["id"], &session["by"]), (&me["id"], &json!("key")));
    assert_eq!(session["organizations"][0]["name"], me["organizations"][0]["name"]);
    fixture.project("one");
    let listed = send(&fixture, "GET", "/v1/project", &mine).ok();
    assert_eq!(listed["objects"][0]["name"], "one");
    let again = send(&fixture, "POST", "/console/session", &mine).refused(401);
    assert!(again.contains("cannot open another"), "{again}");

    assert_eq!(fixture.call("DELETE", &format!("/v1/api_key/{id}"), &[], b"").status, 200);
    send(&fixture, "GET", "/v1/project", &mine).refused(401);
    send(&fixture, "GET", "/console/session", &mine).refused(401);
    let about = send(&fixture, "GET", "/console/about", &mine).ok();
    assert!(about["has_rows"].is_null(), "a page can still ask how to sign in: {about}");
}

#[test]
fn one_session_more_than_a_user_may_have_replaces_the_idlest() {
    let fixture = Fixture::open();
    let (_, key) = new_key(&fixture, "browsers");
    let cookies: Vec<String> = (0..=CONSOLE_SESSIONS_PER_USER_MAX).map(|_| sign_in(&fixture, &key).0).collect();
    let opens = |cookie: &String| send(&fixture, "GET", "/ping", &[("Cookie", cookie), CONSOLE]).status == 200;
    let open = cookies.iter().filter(|cookie| opens(cookie)).count();
    assert_eq!(open, CONSOLE_SESSIONS_PER_USER_MAX as usize);
    assert!(opens(cookies.last().expect("the last")));
}

#[test]
fn only_a_page_of_this_server_can_use_a_session() {
    let fixture = Fixture::open();
    let (_, key) = new_key(&fixture, "browser");
    let (cookie, _) = sign_in(&fixture, &key);
    let cookie = ("Cookie", cookie.as_str());
    let status = |headers: &[(&str, &str)]| send(&fixture, "GET", "/v1/project", headers).status;
    let own = "http://assay-test:8000";
    assert_eq!(status(&[cookie, CONSOLE]), 200);
    assert_eq!(status(&[cookie, CONSOLE, ("Origin", own)]), 200);
    assert_eq!(status(&[cookie, CONSOLE, ("Sec-Fetch-Site", "same-origin")]), 200);
    for other in [
        &[cookie][..],
        &[cookie, ("Origin", own)],
        &[cookie, CONSOLE, ("Origin", "http://evil.example")],
        &[cookie, CONSOLE, ("Origin", "null")],
        &[cookie, CONSOLE, ("Sec-Fetch-Site", "cross-site")],
        &[cookie, CONSOLE, ("Sec-Fetch-Site", "same-site"), ("Origin", own)],
        &[cookie, CONSOLE, ("Sec-Fetch-Site", "none")],
        &[cookie, CONSOLE, ("Authorization", "Bearer sk-unknown")],
        &[("Cookie", "assay-0a1b2c3d=cs-unknown"), CONSOLE],
        &[("Cookie", "__Host-assay-0a1b2c3d=x"), CONSOLE],
    ] {
        assert_eq!(status(other), 401, "{other:?}");
    }
    // The value is no credential of the API, and no other site learns that it may send the header.
    let value = cookie.1.split_once('=').expect("a pair").1;
    assert_eq!(status(&[("Authorization", &format!("Bearer {value}"))]), 401);
    let preflight = [("Origin", "http://evil.example"), ("Access-Control-Request-Headers", "x-assay-console")];
    let allowed = send(&fixture, "OPTIONS", "/v1/project", &preflight);
    assert!(!allowed.header("access-control-allow-headers").unwrap_or_default().contains("x-assay-console"));
    let foreign = send(&fixture, "GET", "/console/about", &[("Origin", "http://evil.example")]);
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    let bearer = format!("Bearer {key}");
    let without = send(&fixture, "POST", "/console/session", &[("Authorization", &bearer)]);
    assert!(without.refused(400).contains("x-assay-console"));
    let cross = [("Authorization", bearer.as_str()), CONSOLE, ("Sec-Fetch-Site", "cross-site")];
    send(&fixture, "POST", "/console/session", &cross).refused(401);
}

#[test]
fn whoever_signs_out_is_signed_out_here_or_everywhere() {
    let fixture = Fixture::open();
    let (_, key) = new_key(&fixture, "browsers");
    let cookies: Vec<String> = (0..3).map(|_| sign_in(&fixture, &key).0).collect();
    let status = |cookie: &str| send(&fixture, "GET", "/v1/project", &[("Cookie", cookie), CONSOLE]).status;
    let statuses = || cookies.iter().map(|cookie| status(cookie)).collect::<Vec<_>>();
    let end = |cookie: &str, path: &str| {
        let ended = send(&fixture, "DELETE", path, &[("Cookie", cookie), CONSOLE]);
        assert_eq!(ended.status, 200, "{}", ended.text());
        assert!(ended.header("set-cookie").is_some_and(|set| set.starts_with("assay-0a1b2c3d=; ")));
    };
    end(&cookies[0], "/console/session");
    assert_eq!(statuses(), [401, 200, 200]);
    end(&cookies[0], "/console/session?everywhere=true");
    assert_eq!(statuses(), [401, 200, 200], "a session that has ended ends no other");
    end(&cookies[1], "/console/session?everywhere=true");
    assert_eq!(statuses(), [401, 401, 401]);
    send(&fixture, "DELETE", "/console/session?everywhere=yes", &[CONSOLE]).refused(400);
}

#[test]
fn the_page_is_the_same_below_app_and_its_files_are_kept_for_ever() {
    let fixture = Fixture::open();
    let page = fixture.knock("GET", "/app");
    assert_eq!((page.status, page.header("content-security-policy")), (200, Some(POLICY)));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    for path in ["/app/", "/app/acme/p/one/logs?oid=1", "/app/%77elcome", "/app/../app"] {
        assert_eq!(fixture.knock("GET", path).body, page.body, "{path}");
    }
    let tag = page.header("etag").expect("a tag");
    let known = send(&fixture, "GET", "/app", &[("If-None-Match", tag)]);
    assert_eq!((known.status, known.body.len()), (304, 0));

    let text = page.text();
    let script = text.split("src=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a script");
    let asset = fixture.knock("GET", script);
    assert_eq!((asset.status, asset.header("cache-control")), (200, Some("public, max-age=31536000, immutable")));
    let packed = send(&fixture, "GET", script, &[("Accept-Encoding", "gzip, br")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < asset.body.len() || asset.body.len() < 500);
    assert_eq!(fixture.knock("GET", "/app/assets/none.js").status, 404);
    let browser = send(&fixture, "GET", "/", &[("Accept", "text/html,*/*;q=0.8")]);
    assert_eq!((browser.status, browser.header("location")), (303, Some("/app")));
}

#[test]
fn a_newcomer_learns_what_is_here_and_sees_the_first_row() {
    let fixture = Fixture::open();
    let about = fixture.knock("GET", "/console/about").ok();
    assert!(about["first_key"].is_string() && about["has_rows"].is_null(), "{about}");
    let (_, key) = new_key(&fixture, "browser");
    let (cookie, _) = sign_in(&fixture, &key);
    let mine = [("Cookie", cookie.as_str()), CONSOLE];
    let about = || send(&fixture, "GET", "/console/about", &mine).ok();
    assert!(about()["first_key"].is_null());
    assert_eq!(about()["has_rows"], false);
    let projects = || send(&fixture, "GET", "/console/projects", &mine).ok()["projects"].clone();
    assert_eq!(projects(), json!([]));
    let project = fixture.project("one");
    assert_eq!(projects()[0]["newest"], Value::Null);
    let rows = json!({"events": [{"input": "a"}, {"input": "b", "error": "why"}]});
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &rows).ok();
    assert_eq!(about()["has_rows"], true);
    let one = projects()[0].clone();
    assert_eq!((&one["name"], &one["rows_24h"], &one["errors_24h"]), (&json!("one"), &json!(2), &json!(1)), "{one}");
    assert!(one["newest"].is_string(), "{one}");
}

#[test]
fn reports_of_browsers_are_counted() {
    let fixture = Fixture::open();
    let report = json!({"csp-report": {"violated-directive": "script-src", "blocked-uri": "inline"}}).to_string();
    let headers = [("Content-Type", "application/csp-report")];
    for _ in 0..3 {
        assert_eq!(fixture.send(&request("POST", "/console/csp", &headers, report.as_bytes())).status, 204);
    }
    let metrics = fixture.knock("GET", "/metrics").text();
    assert!(metrics.contains("assay_http_console_policy_reports_total 3"), "{metrics}");
}

#[test]
fn the_result_of_a_query_is_downloaded_once_by_the_browser_that_asked() {
    let fixture = Fixture::open();
    let project = fixture.project("one");
    let rows = json!({"events": [{"id": "a", "input": "=1+1"}, {"id": "b", "input": "x"}]});
    fixture.post(&format!("/v1/project_logs/{project}/insert"), &rows).ok();
    let query = format!("select: id, input | from: project_logs('{project}') spans | sort: id");
    let body = json!({"query": query, "fmt": "spreadsheet_csv", "filename": "my logs"});
    let link = fixture.post("/console/download", &body).ok()["url"].as_str().expect("a URL").to_owned();
    let file = fixture.knock("GET", &link);
    assert_eq!((file.status, file.text().as_str()), (200, "id,input\r\na,'=1+1\r\nb,x\r\n"));
    let expected = "attachment; filename=\"my logs.csv\"; filename*=UTF-8''my%20logs.csv";
    assert_eq!(file.header("content-disposition"), Some(expected));
    assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(fixture.knock("GET", &link).refused(401).contains("was used already"));
    fixture.knock("GET", "/console/download/none").refused(401);

    let (id, key) = new_key(&fixture, "browser");
    let (cookie, _) = sign_in(&fixture, &key);
    let link = |cookie: &str| {
        let headers = [("Cookie", cookie), CONSOLE, ("Content-Type", "application/json")];
        let made = fixture.send(&request("POST", "/console/download", &headers, body.to_string().as_bytes())).ok();
        made["url"].as_str().expect("a URL").to_owned()
    };
    let of_session = link(&cookie);
    fixture.knock("GET", &of_session).refused(401);
    let mine = [("Cookie", cookie.as_str())];
    assert_eq!(send(&fixture, "GET", &of_session, &mine).status, 200);
    let of_session = link(&cookie);
    assert_eq!(fixture.call("DELETE", &format!("/v1/api_key/{id}"), &[], b"").status, 200);
    send(&fixture, "GET", &of_session, &mine).refused(401);

    let unseen = json!({"query": "select: * | from: project_logs('8c5a1ab1-0000-4000-8000-000000000000')"});
    fixture.post("/console/download", &unseen).refused(403);
    fixture.post("/console/download", &json!({"query": "selec: *"})).refused(400);
    fixture.post("/console/download", &json!({"query": query, "filename": 3})).refused(400);
    let long = format!("{query} | filter: id = '{}'", "x".repeat(8 << 10));
    assert!(fixture.post("/console/download", &json!({"query": long})).refused(413).contains("too long for a link"));
}

#[test]
fn texts_of_the_language_are_parsed_and_printed() {
    let fixture = Fixture::open();
    let parse = |body: Value| fixture.post("/console/parse", &body).ok();
    let found = parse(json!({"expression": "scores.Exact>0.5 or tags includes 'a'"}));
    assert_eq!(parse(json!({"tree": found["tree"]})), found);
    let error = parse(json!({"expression": "a = "}))["error"].clone();
    assert_eq!((&error["line"], &error["column"], &error["offset"]), (&json!(1), &json!(5), &json!(4)), "{error}");
    assert_eq!(parse(json!({"query": "SELECT id FROM project_logs('p') LIMIT 2"}))["tree"]["limit"], 2);
    fixture.post("/console/parse", &json!({})).refused(400);
}

/// Makes two experiments. Returns the project, the newer experiment and the older one.
fn two_experiments(fixture: &Fixture) -> [String; 3] {
    let project = fixture.project("one");
    let experiment = |name: &str, rows: Value| {
        let id = fixture.make("experiment", &json!({"project_id": project, "name": name}));
        fixture.post(&format!("/v1/experiment/{id}/insert"), &json!({"events": rows})).ok();
        id
    };
    let row = |id: &str, input: &str, output: &str, score: f64, level: &str| {
        json!({
            "id": id, "input": input, "output": output, "expected": "4", "scores": {"Exact": score},
            "metrics": {"start": 10, "end": 12}, "metadata": {"level": level},
        })
    };
    let before = experiment(
        "before",
        json!([
            row("b1", "2+2", "5", 0.0, "easy"),
            row("b2", "3+3", "6", 1.0, "easy"),
            row("b3", "9", "9", 1.0, "hard")
        ]),
    );
    let after = experiment(
        "after",
        json!([
            row("a1", "2+2", "4", 1.0, "easy"),
            row("a2", "2+2", "5", 0.0, "easy"),
            row("a3", "3+3", "7", 0.0, "easy"),
            {"id": "a4", "input": "new", "error": "why"},
        ]),
    );
    [project, after, before]
}

#[test]
fn experiments_are_compared_row_by_row() {
    let fixture = Fixture::open();
    let [project, after, before] = two_experiments(&fixture);
    let compare = |more: Value| {
        let mut body = json!({"experiments": [after, before]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        fixture.post("/console/compare", &body)
    };
    let found = compare(json!({"group": "metadata.level"})).ok();
    assert_eq!((&found["key"], &found["score"], &found["base"]), (&json!("input"), &json!("Exact"), &json!(before)));
    let summary = &found["experiments"][0];
    assert_eq!((&summary["name"], &summary["rows"], &summary["errors"]), (&json!("after"), &json!(4), &json!(1)));
    let change = &found["comparisons"][0]["scores"]["Exact"];
    assert_eq!((&change["pairs"], &change["up"], &change["down"]), (&json!(2), &json!(1), &json!(1)), "{change}");
    assert_eq!((&found["comparisons"][0]["new"], &found["comparisons"][0]["missing"]), (&json!(1), &json!(1)));
    let keys = |found: &Value| -> Vec<Value> {
        found["rows"].as_array().expect("rows").iter().map(|row| row["input"].clone()).collect()
    };
    assert_eq!(keys(&found), [json!("3+3"), json!("2+2"), json!("9"), json!("new")]);
    let trials = &found["rows"][1]["cells"][0];
    assert_eq!((trials["trials"].as_array().map(Vec::len), &trials["scores"]["Exact"]), (Some(2), &json!(0.5)));
    assert_eq!(trials["deltas"]["Exact"], 0.5);
    assert_eq!(found["rows"][0]["expected"], "4");
    assert_eq!(
        (&found["groups"][0]["value"], &found["groups"][0]["experiments"][0]["rows"]),
        (&json!("easy"), &json!(3))
    );

    let first = compare(json!({"limit": 3})).ok();
    let second = compare(json!({"limit": 3, "cursor": first["cursor"]})).ok();
    assert_eq!((keys(&first).len(), keys(&second)), (3, vec![json!("new")]));
    assert_eq!((&first["total"], &second["cursor"]), (&json!(4), &Value::Null));
    assert_eq!(keys(&compare(json!({"only": "down"})).ok()), [json!("3+3")]);
    assert_eq!(keys(&compare(json!({"only": "errors"})).ok()), [json!("new")]);
    assert_eq!(keys(&compare(json!({"filter": "metadata.level = 'hard'"})).ok()), [json!("9")]);
    for (wrong, says) in [
        (json!({"base": project}), "one of `experiments`"),
        (json!({"only": "worse"}), "`only` is `worse`"),
        (json!({"filter": "a ="}), "line 1"),
        (json!({"limit": 0}), "`limit` is 0"),
        (json!({"cursor": "x"}), "Invalid cursor"),
        (json!({"experiments": []}), "`experiments` has to be"),
    ] {
        let why = compare(wrong.clone()).refused(400);
        assert!(why.contains(says), "{wrong}: {why}");
    }
    compare(json!({"experiments": [project]})).refused(404);
}

#[test]
fn a_stream_that_goes_on_behind_a_transaction_has_the_rows_since() {
    let fixture = Fixture::open();
    let project = fixture.project("one");
    let insert = |rows: Value| {
        fixture.post(&format!("/v1/project_logs/{project}/insert"), &json!({"events": rows})).ok();
    };
    insert(json!([{"id": "a", "input": "x"}]));
    let many: Vec<Value> = (0..700).map(|number| json!({"id": format!("m{number}"), "input": "x"})).collect();
    insert(json!(many));
    let path = format!("/v1/project_logs/{project}/tail");
    fixture.get(&format!("{path}?after=x")).refused(400);
    fixture.get(&format!("{path}?filter=a%20%3D")).refused(400);
    fixture.get(&format!("{path}?filter=true)%20or%20(true")).refused(400);
    fixture.get("/v1/project_logs/8c5a1ab1-0000-4000-8000-000000000000/tail").refused(403);
    let events = fixture.stream(&format!("{path}?after=0"), 3);
    assert_eq!(events[0].0, "start");
    let rows: Vec<&Value> = events[1..].iter().flat_map(|(_, data)| data["rows"].as_array().expect("rows")).collect();
    assert_eq!((rows.len(), &rows[0]["id"]), (701, &json!("a")));
}

#[test]
fn every_permission_on_an_object_has_its_reason() {
    let fixture = Fixture::open();
    let project = fixture.project("one");
    let me = fixture.post("/api/self/me", &Value::Null).ok();
    let group = fixture.make("group", &json!({"name": "team", "member_users": [me["id"]]}));
    let outer = fixture.make("group", &json!({"name": "everybody", "member_groups": [group]}));
    let grant = json!({"object_type": "project", "object_id": project, "group_id": outer, "permission": "read"});
    let acl = fixture.make("acl", &grant);
    let explain = |query: &str| fixture.get(&format!("/console/access?{query}"));
    let found = explain(&format!("object_type=project&object_id={project}")).ok();
    let person = &found["people"][0];
    assert_eq!(person["user"]["email"], me["email"]);
    assert_eq!(person["permissions"].as_array().map(Vec::len), Some(8), "{person}");
    let grants = person["grants"].as_array().expect("grants");
    let own = grants.iter().find(|grant| grant["acl_id"] == json!(acl)).expect("the grant to the group");
    assert_eq!(
        (&own["permission"], &own["is_inherited"], &own["to"]),
        (&json!("read"), &json!(false), &json!("group"))
    );
    assert_eq!((&own["groups"][0]["name"], &own["groups"][1]["name"]), (&json!("team"), &json!("everybody")));
    let owner = grants.iter().find(|grant| grant["gives"] == "role").expect("the role of the owner");
    assert_eq!((&owner["roles"][0]["name"], &owner["object_type"]), (&json!("Owner"), &json!("organization")));
    assert_eq!(owner["is_inherited"], true);

    let id = me["id"].as_str().expect("an id");
    let mine = explain(&format!("object_type=project&object_id={project}&user={id}")).ok();
    assert_eq!(mine["people"][0], *person);
    explain(&format!("object_type=project&object_id={project}&user={project}")).refused(404);
    explain(&format!("object_type=project&object_id={id}")).refused(404);
    assert!(explain(&format!("object_type=house&object_id={project}")).refused(400).contains("`house`"));
    assert!(explain("object_type=project").refused(400).contains("`object_id` is missing"));
}

#[test]
fn an_experiment_is_compared_with_the_baseline_of_its_project() {
    let fixture = Fixture::open();
    let project = fixture.project("one");
    let experiment = |name: &str| {
        let id = fixture.make("experiment", &json!({"project_id": project, "name": name, "ensure_new": true}));
        let row = json!({"events": [{"id": format!("{name}-1"), "input": "x", "scores": {"Exact": 1}}]});
        fixture.post(&format!("/v1/experiment/{id}/insert"), &row).ok();
        id
    };
    let [first, _second, third] = ["first", "second", "third"].map(experiment);
    let base = |id: &str| {
        let path = format!("/v1/experiment/{id}/summarize?summarize_scores=true");
        fixture.get(&path).ok()["comparison_experiment_name"].clone()
    };
    assert_eq!(base(&third), "second", "the newest other one");
    let settings = json!({"settings": {"baseline_experiment_id": first}}).to_string();
    fixture.call("PATCH", &format!("/v1/project/{project}"), &[], settings.as_bytes()).ok();
    assert_eq!((base(&third), base(&first)), (json!("first"), json!("third")), "no experiment is its own baseline");
}
