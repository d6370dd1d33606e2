//! Callers without a valid credential are rejected everywhere; a revoked key is rejected by every node, even by one
//! that cannot know of the revocation.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::dev::{Dev, NODES};
use assay_test_api::http::{Exchange, HttpResponse, Request, exchange, send};
use assay_test_api::process::{run, signal};
use assay_test_api::server::{Options, Server};
use serde_json::{Value, json};

/// Value for parameters in paths of the document.
const SOME_ID: &str = "5ca1ab1e-0000-4000-8000-0123456789ab";
/// Refusals of unknown keys are paced, and those who wait share a turn.
const KNOCKERS: usize = 32;
/// Fewer are not the API any more.
const ROUTES_MIN: usize = 120;
/// Maximum time until a revoked key is invalid everywhere.
const REVOKED_MAX: Duration = Duration::from_secs(5);
/// Time for which an isolated node gets requests: well beyond that time.
const ASKED_FOR: Duration = Duration::from_secs(12);
/// Timeout; an isolated node reports it after 5 s.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
/// Two of three nodes take a key away within this time, where the third leads nothing that has to agree.
const TAKEN_WITHIN: Duration = Duration::from_secs(4);
const ATTEMPTS_MAX: usize = 6;

struct Route {
    method: String,
    path: String,
    is_public: bool,
}

fn ask(url: &str, method: &str, target: &str, credential: Option<&str>, body: Option<&Value>) -> Result<HttpResponse> {
    send(url, &request(method, target, credential, body))
}

fn request(method: &str, target: &str, credential: Option<&str>, body: Option<&Value>) -> Request {
    Request {
        method: method.into(),
        target: target.into(),
        headers: credential.map(|shown| ("authorization".to_owned(), shown.to_owned())).into_iter().collect(),
        body: body.map(|body| body.to_string().into_bytes()),
        declared_length: None,
    }
}

/// Returns every operation of the server's own document. One is public if the document requires no credential.
fn routes(url: &str) -> Result<Vec<Route>> {
    let document: Value = serde_json::from_slice(&ask(url, "GET", "/openapi.json", None, None)?.body)?;
    let paths = document["paths"].as_object().context("paths")?;
    let mut routes = Vec::new();
    for (path, operations) in paths {
        let filled: Vec<&str> =
            path.split('/').map(|part| if part.starts_with('{') { SOME_ID } else { part }).collect();
        for (method, operation) in operations.as_object().context("operations")? {
            let method = method.to_uppercase();
            if ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str()) {
                let is_public = operation["security"] == json!([]);
                routes.push(Route { method, path: filled.join("/"), is_public });
            }
        }
    }
    Ok(routes)
}

/// Public paths: documents for everyone, and the login of people without a credential.
const PUBLIC: [&str; 30] = [
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/api/cli/wizard-session/allow",
    "/api/cli/wizard-session/create",
    "/api/cli/wizard-session/login",
    "/api/cli/wizard-session/poll",
    "/console/about",
    "/console/login",
    "/console/login/callback",
    "/console/login/link",
    "/console/session",
    "/docs",
    "/docs/guide",
    "/docs/guide/5ca1ab1e-0000-4000-8000-0123456789ab",
    "/docs/guide/errors/5ca1ab1e-0000-4000-8000-0123456789ab",
    "/docs/guide/images/5ca1ab1e-0000-4000-8000-0123456789ab",
    "/gateway",
    "/healthz",
    "/metrics",
    "/oauth/authorize",
    "/oauth/callback",
    "/oauth/invitations",
    "/oauth/register",
    "/oauth/revoke",
    "/oauth/token",
    "/openapi.json",
    "/readyz",
    "/v1",
    "/v1/proxy",
];

/// Prefixes of paths that model clients call: their errors have the form of a model API.
const OF_MODEL_CLIENTS: [&str; 10] = [
    "/gateway/",
    "/v1/chat/",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/models",
    "/v1/moderations",
    "/v1/proxy/",
    "/v1/responses",
    "/v1beta/",
];

/// Calls each route with each of these credentials.
fn knock(server: &Server) -> Result<()> {
    let routes = routes(&server.url)?;
    let public: Vec<&str> = routes.iter().filter(|route| route.is_public).map(|route| route.path.as_str()).collect();
    ensure!(routes.len() - public.len() >= ROUTES_MIN, "only {} routes need a credential", routes.len() - public.len());
    let mut known = public.clone();
    known.sort_unstable();
    ensure!(known == PUBLIC, "{known:?} are public");
    let wrong = format!("Bearer {}x", server.key);
    let basic = format!("Basic {}", server.key);
    let shown =
        [None, Some("Bearer sk-nobodys-key"), Some(wrong.as_str()), Some(basic.as_str()), Some("Bearer bt-st-nobodys")];
    let cells: Vec<(&Route, Option<&str>)> = routes
        .iter()
        .filter(|route| !route.is_public)
        .flat_map(|route| shown.map(|credential| (route, credential)))
        .collect();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..KNOCKERS {
            scope.spawn(|| {
                while let Some((route, credential)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = is_refused(&server.url, route, *credential) {
                        let mut failures = failures.lock().expect("nobody panics");
                        failures.push(format!("{} {} with {credential:?}: {why:#}", route.method, route.path));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panics");
    ensure!(failures.is_empty(), "{} of {} came in: {failures:#?}", failures.len(), cells.len());
    println!("{} knocks at {} routes were refused", cells.len(), routes.len() - public.len());
    Ok(())
}

/// Checks the refusal with an empty body, and with one that would be refused if it were read.
fn is_refused(url: &str, route: &Route, credential: Option<&str>) -> Result<()> {
    let nothing = json!({});
    for body in [None, Some(&nothing)] {
        let answer = ask(url, &route.method, &route.path, credential, body)?;
        let told = answer.text();
        ensure!(answer.status == 401, "{}: {told}", answer.status);
        let of_model_client = OF_MODEL_CLIENTS.iter().any(|prefix| route.path.starts_with(prefix));
        let is_told = told.contains("UnauthorizedError") || of_model_client && told.contains("\"error\":");
        ensure!(answer.header("www-authenticate").is_some() && is_told, "{told}");
    }
    Ok(())
}

#[test]
fn a_knock_without_a_key_opens_no_route() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::start(&Options::new(&dir.path().join("data"))).unwrap_or_else(|error| panic!("{error:#}"));
    knock(&server).unwrap_or_else(|error| panic!("{error:#}\nthe server said:\n{}", server.log()));
}

/// A key of another user and its permitted requests.
struct Key {
    shown: String,
    id: String,
    targets: Vec<(&'static str, String)>,
}

impl Key {
    fn new(dev: &Dev, project: &str) -> Result<Key> {
        let made = called(dev, "POST", "/v1/api_key", &json!({"name": "to be taken away"}))?;
        let text = |field: &str| made[field].as_str().map(str::to_owned).context("a text");
        // What is decided without another look at the catalog, and what is read with one.
        let targets = vec![
            ("GET", "/ping".to_owned()),
            ("GET", "/version".to_owned()),
            ("GET", "/v1/project".to_owned()),
            ("GET", format!("/v1/project_logs/{project}/fetch")),
        ];
        Ok(Key { shown: format!("Bearer {}", text("key")?), id: text("id")?, targets })
    }

    /// None where no answer comes in time.
    fn status(&self, url: &str, (method, target): &(&'static str, String)) -> Option<u16> {
        match exchange(url, &request(method, target, Some(&self.shown), None), PATIENCE) {
            Ok(Exchange::Answered(answer)) => Some(answer.status),
            _ => None,
        }
    }

    /// Statuses of each of its targets.
    fn statuses(&self, url: &str) -> Vec<Option<u16>> {
        self.targets.iter().map(|target| self.status(url, target)).collect()
    }

    /// Repeats requests to each of its targets; returns the count of each status and the time of the last success,
    /// relative to `since`.
    fn watch(&self, url: &str, since: Instant) -> (BTreeMap<Option<u16>, usize>, Option<Duration>) {
        let watch = |target| {
            let (mut seen, mut last): (BTreeMap<Option<u16>, usize>, Option<Duration>) = (BTreeMap::new(), None);
            while since.elapsed() < ASKED_FOR {
                let asked = since.elapsed();
                let status = self.status(url, target);
                *seen.entry(status).or_default() += 1;
                last = if status == Some(200) { Some(asked) } else { last };
                std::thread::sleep(POLL);
            }
            (seen, last)
        };
        std::thread::scope(|scope| {
            let watchers: Vec<_> = self.targets.iter().map(|target| scope.spawn(move || watch(target))).collect();
            let (mut all, mut last) = (BTreeMap::new(), None);
            for watcher in watchers {
                let (seen, of_one) = watcher.join().expect("nobody panics");
                seen.into_iter().for_each(|(status, times)| *all.entry(status).or_default() += times);
                last = last.max(of_one);
            }
            (all, last)
        })
    }
}

fn called(dev: &Dev, method: &str, target: &str, body: &Value) -> Result<Value> {
    let owner = format!("Bearer {}", dev.key);
    let answer = ask(&dev.urls[0], method, target, Some(&owner), (method != "DELETE").then_some(body))?;
    ensure!(answer.status == 200, "{method} {target}: {}: {}", answer.status, answer.text());
    Ok(serde_json::from_slice(&answer.body)?)
}

/// Those of the nodes that are stopped go on when this is dropped.
struct Stopped<'d>(&'d Dev, Vec<usize>);

impl Stopped<'_> {
    fn stop(&mut self, node: usize) -> Result<()> {
        self.1.push(node);
        signal("STOP", self.0.processes()[node])
    }

    fn go_on(&mut self, node: usize) -> Result<()> {
        self.1.retain(|other| *other != node);
        signal("CONT", self.0.processes()[node])
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        for node in &self.1 {
            let _ = signal("CONT", self.0.processes()[*node]); // what is below ends them otherwise
        }
    }
}

/// Checks the refusal on all nodes of a connected cluster.
fn is_refused_everywhere(dev: &Dev, project: &str) -> Result<()> {
    let key = Key::new(dev, project)?;
    let deadline = Instant::now() + PATIENCE;
    for url in &dev.urls {
        while key.statuses(url).iter().any(|status| *status != Some(200)) {
            ensure!(Instant::now() < deadline, "a new key opens nothing at {url}");
        }
    }
    called(dev, "DELETE", &format!("/v1/api_key/{}", key.id), &Value::Null)?;
    let revoked = Instant::now();
    let mut last = BTreeMap::new();
    while revoked.elapsed() < REVOKED_MAX + Duration::from_secs(1) {
        for (node, url) in dev.urls.iter().enumerate() {
            let asked = revoked.elapsed();
            if key.statuses(url).contains(&Some(200)) {
                ensure!(asked < REVOKED_MAX, "node {} lets it in {asked:?} after it was taken away", node + 1);
                last.insert(node + 1, asked);
            }
        }
        std::thread::sleep(POLL);
    }
    for url in &dev.urls {
        let statuses = key.statuses(url);
        ensure!(statuses.iter().all(|status| *status == Some(401)), "{statuses:?} at {url}");
    }
    println!("heard by all: the last that let it in, by node, after it was taken away: {last:?}");
    Ok(())
}

/// Checks the refusal on a node that was isolated during the revocation and stays isolated.
fn is_refused_by_who_was_cut_off(dev: &Dev, project: &str, cut: usize) -> Result<()> {
    let url = &dev.urls[cut];
    let mut stopped = Stopped(dev, Vec::new());
    let mut attempts = 0;
    let (key, revoked) = loop {
        let key = Key::new(dev, project)?;
        let deadline = Instant::now() + PATIENCE;
        while key.statuses(url).iter().any(|status| *status != Some(200)) {
            ensure!(Instant::now() < deadline, "a new key opens nothing at {url}");
        }
        stopped.stop(cut)?;
        if taken_away(dev, &key) {
            break (key, Instant::now());
        }
        // It led what had to agree, and the others choose somebody else meanwhile.
        stopped.go_on(cut)?;
        attempts += 1;
        ensure!(attempts < ATTEMPTS_MAX, "two of three nodes do not take a key away");
    };
    for other in (0..NODES).filter(|other| *other != cut) {
        stopped.stop(other)?;
    }
    stopped.go_on(cut)?;
    let alone = revoked.elapsed();
    let (seen, last) = key.watch(url, revoked);
    println!("alone from {alone:?} on: {seen:?}, let in the last time after {last:?}");
    ensure!(last.is_none_or(|last| last < REVOKED_MAX), "it was let in {last:?} after it was taken away");
    let statuses = key.statuses(url);
    let refused = |status: &Option<u16>| matches!(status, Some(401 | 503) | None);
    ensure!(statuses.iter().all(refused), "{statuses:?} of a node that hears nobody");
    ensure!(seen.contains_key(&Some(503)) || seen.contains_key(&Some(401)), "nobody was told anything: {seen:?}");
    for other in (0..NODES).filter(|other| *other != cut) {
        stopped.go_on(other)?;
    }
    for url in &dev.urls {
        let deadline = Instant::now() + PATIENCE * 3;
        loop {
            let statuses = key.statuses(url);
            ensure!(!statuses.contains(&Some(200)), "{url} lets it in again: {statuses:?}");
            if statuses.iter().all(|status| *status == Some(401)) {
                break;
            }
            ensure!(Instant::now() < deadline, "{statuses:?} at {url} long after all hear each other");
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

/// Returns whether the other nodes refuse the key.
fn taken_away(dev: &Dev, key: &Key) -> bool {
    let owner = format!("Bearer {}", dev.key);
    let sent = request("DELETE", &format!("/v1/api_key/{}", key.id), Some(&owner), None);
    matches!(exchange(&dev.urls[0], &sent, TAKEN_WITHIN), Ok(Exchange::Answered(answer)) if answer.status == 200)
}

fn revoked_keys(dev: &Dev, data: &Path) -> Result<()> {
    let project = called(dev, "POST", "/v1/project", &json!({"name": "guarded"}))?;
    let project = project["id"].as_str().context("an id")?;
    is_refused_everywhere(dev, project)?;
    is_refused_by_who_was_cut_off(dev, project, NODES - 1)?;
    // All of it goes on: an administrator is answered, too.
    let node = data.join("node-1");
    let node = node.to_str().context("a path that is text")?;
    let keys = run(&["admin", "keys", "--organization", "default", "--data-dir", node], &[], "")?.json()?;
    ensure!(keys.to_string().contains("owner"), "{keys}");
    Ok(())
}

#[test]
fn a_key_that_was_taken_away_opens_nothing_anywhere() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let dev = Dev::start(&data).unwrap_or_else(|error| panic!("{error:#}"));
    revoked_keys(&dev, &data).unwrap_or_else(|error| panic!("{error:#}\nthe nodes said:\n{}", dev.log()));
}
