//! A real server under one identity, with an attacking organization, a victim, and canaries around them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use assay_test_api::http::{Exchange, HttpResponse, Request, exchange};
use assay_test_api::process::{Process, STOP_MAX, command};
use assay_test_api::server::{TEST_KEY, ready};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::attempt::{Caller, Language, StepProject};
use crate::canaries::{Canaries, state_of};
use crate::verdict::AttemptAnswer;

/// Seconds that a call may run.
pub const CALL_SECONDS: u64 = 5;
const MEMORY_BYTES: u64 = 160 << 20;
const PROCESSES: u64 = 48;
const WAITING: u64 = 100;
/// Seconds after which an idle worker ends, so that what it leaves shows within a run.
const IDLE_SECONDS: u64 = 4;
/// Time in which the directories of idle workers disappear.
const IDLE_TIME_MAX: Duration = Duration::from_secs(20);
/// Time without a byte after which the server counts as hanging.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// User and group of a server that does not run as root.
const NOBODY: u32 = 65_534;
/// Text of the victim in its bundle, its variables and its arguments.
const VICTIM_TEXT: &str = "of-the-victim";
/// Places of a Python that every user may execute.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "/usr/local/bin/python3"];

/// User of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    Root,
    Nobody,
}

/// Server and its surroundings in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub identity: Identity,
    /// Whether the server may make no namespaces, and accepts a reduced sandbox.
    pub is_reduced: bool,
}

impl Setup {
    pub fn name(self) -> String {
        let user = match self.identity {
            Identity::Root => "root".to_owned(),
            Identity::Nobody => format!("uid {NOBODY}"),
        };
        format!("{user}, {} sandbox", if self.is_reduced { "reduced" } else { "full" })
    }
}

#[derive(Debug)]
pub struct World {
    pub url: String,
    pub canaries: Canaries,
    pub facts: Value,
    pub secrets: Vec<String>,
    /// Keys of attacker, colleague and victim.
    keys: [String; 3],
    other_project: String,
    process: Process,
    server_state: String,
    workers: PathBuf,
    data: PathBuf,
    directory: TempDir,
}

impl World {
    /// Starts a server, and makes organizations, canaries and functions of the victim.
    pub fn start(setup: Setup) -> Result<World> {
        let everybody = PermissionsExt::from_mode(0o755);
        let directory = tempfile::Builder::new().prefix("assay-escapes-").permissions(everybody).tempdir_in("/tmp")?;
        let place = directory.path();
        let own_program = copied(&program()?, place)?;
        let identity_words = words_of(setup.identity);
        let canaries = Canaries::make(place, &identity_words)?;
        let data = place.join("data");
        std::fs::create_dir(&data)?;
        if setup.identity == Identity::Nobody {
            std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY))?;
        }
        let mut words = identity_words.clone();
        if setup.is_reduced {
            words.push(copied(&without_namespaces()?, place)?.display().to_string());
        }
        let mut process = started(&words, &own_program, (place, &data), setup.is_reduced, canaries.listed_port)?;
        let ready = ready(&mut process)?;
        let beside = setup.is_reduced && setup.identity == Identity::Root;
        let functions = if beside { place.join("data-functions") } else { data.join("functions") };
        let mut world = World {
            url: ready.url,
            canaries,
            facts: Value::Null,
            secrets: Vec::new(),
            keys: [String::new(), String::new(), TEST_KEY.to_owned()],
            other_project: String::new(),
            process,
            server_state: String::new(),
            workers: functions.join("workers"),
            data,
            directory,
        };
        world.fill(&own_program, &identity_words, &functions)?;
        Ok(world)
    }

    fn fill(&mut self, own_program: &Path, identity: &[String], functions: &Path) -> Result<()> {
        self.server_state = state_of(self.process.id())?;
        let data = self.data.display().to_string();
        let create = ["admin", "create-organization", "attackers", "--owner", "attacker@example.com"];
        let made = ran(identity, own_program, &[create.as_slice(), &["--data-dir", &data]].concat())?;
        self.keys[0] = text(&made["api_key"])?;
        let create = ["admin", "create-service-account", "colleague", "--organization", "attackers"];
        let account = ran(identity, own_program, &[create.as_slice(), &["--data-dir", &data]].concat())?;
        self.keys[1] = text(&account["service_token"])?;
        let own = self.call(Caller::Attacker, "POST", "/api/self/me", &json!({}))?;
        let organization = text(&own["organizations"][0]["id"])?;
        let other = self.call(Caller::Attacker, "POST", "/v1/project", &json!({"name": "other"}))?;
        self.other_project = text(&other["id"])?;
        let project = text(&self.call(Caller::Victim, "POST", "/v1/project", &json!({"name": "victim"}))?["id"])?;
        let function = self.victim(&project)?;
        let victim_files = self.files_below(&functions.join("bundles"));
        ensure!(!victim_files.is_empty(), "the bundle of the victim is not unpacked below {}", functions.display());
        let node_files: Vec<PathBuf> = self.files_below(&self.data).into_iter().take(20).collect();
        let ports = self.url.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).context("a port")?;
        let canaries = &self.canaries;
        self.secrets = vec![
            canaries.secret_text.clone(),
            format!("bundle-{VICTIM_TEXT}"),
            format!("variable-{VICTIM_TEXT}"),
            TEST_KEY.to_owned(),
        ];
        self.facts = json!({
            "secret": canaries.secret, "data": self.data, "program": own_program, "node_files": node_files,
            "victim_files": victim_files, "victim_project": project, "victim_function": function,
            "organization": organization, "server": self.process.id(), "bystander": canaries.bystander(),
            "port": canaries.port, "listed_port": canaries.listed_port, "node_ports": [ports],
            "unix": canaries.unix, "datagrams": canaries.datagrams, "abstract": canaries.abstract_name,
            "machine": std::fs::read_to_string("/proc/sys/kernel/hostname")?.trim(),
        });
        Ok(())
    }

    /// Makes variables, a function and an unpacked bundle of the victim. Returns the id of the function.
    fn victim(&self, project: &str) -> Result<String> {
        let variable = json!({"object_type": "project", "object_id": project, "name": "VICTIM",
            "value": format!("variable-{VICTIM_TEXT}")});
        self.call(Caller::Victim, "POST", "/v1/env_var", &variable)?;
        let code = format!("globalThis._evals.functions.push({{ handler: () => 'bundle-{VICTIM_TEXT}' }});");
        let answer = self.bundle(Caller::Victim, project, Language::Javascript, code.as_bytes())?;
        ensure!(answer.0.body.contains(VICTIM_TEXT), "the victim's bundle answers {:?}", answer.0);
        Ok(answer.1)
    }

    /// Uploads a bundle, makes a function of it, and calls it. Returns the answer and the id of the function.
    pub fn bundle(
        &self,
        by: Caller,
        project: &str,
        language: Language,
        bytes: &[u8],
    ) -> Result<(AttemptAnswer, String)> {
        let slot = self.call(by, "POST", "/function/code", &json!({"org_id": ""}))?;
        let url = text(&slot["url"])?;
        let target = url.strip_prefix(&self.url).with_context(|| format!("{url} is no address of the server"))?;
        let upload =
            Request { method: "PUT".into(), target: target.into(), body: Some(bytes.to_vec()), ..Request::default() };
        let uploaded = self.send(&upload)?;
        if uploaded.status != 200 {
            return Ok((AttemptAnswer { status: uploaded.status, body: uploaded.text() }, String::new()));
        }
        let slug = format!("bundle-{}", text(&slot["bundleId"])?);
        let function = json!({"project_id": project, "name": slug, "slug": slug, "function_type": "tool",
            "function_data": {"type": "code", "data": {"type": "bundle", "runtime_context": runtime(language),
                "bundle_id": slot["bundleId"], "location": {"type": "function", "index": 0}, "preview": null}}});
        let made = self.call(by, "POST", "/v1/function", &function)?;
        let id = text(&made["id"])?;
        let answer = self.request(by, "POST", "/function/invoke", &json!({"function_id": id, "input": {}}))?;
        Ok((AttemptAnswer { status: answer.status, body: answer.text() }, id))
    }

    /// Returns the request that invokes inline code.
    pub fn invocation(&self, by: Caller, project: StepProject, body: &Value) -> Request {
        let mut headers = self.headers(by);
        let project = match project {
            StepProject::Own => None,
            StepProject::Other => Some(self.other_project.as_str()),
            StepProject::Foreign => self.facts["victim_project"].as_str(),
        };
        headers.extend(project.map(|id| ("x-bt-project-id".to_owned(), id.to_owned())));
        let body = Some(body.to_string().into_bytes());
        Request { method: "POST".into(), target: "/function/invoke".into(), headers, body, declared_length: None }
    }

    pub fn send(&self, request: &Request) -> Result<HttpResponse> {
        match exchange(&self.url, request, SILENCE_MAX)? {
            Exchange::Answered(answer) => Ok(answer),
            Exchange::Closed => bail!("{}: the connection was closed without an answer", request.target),
        }
    }

    /// Returns the project that the attacker may use for bundles.
    pub fn attacker_project(&self) -> &str {
        &self.other_project
    }

    fn headers(&self, by: Caller) -> Vec<(String, String)> {
        let key = match by {
            Caller::Attacker => &self.keys[0],
            Caller::Colleague => &self.keys[1],
            Caller::Victim => &self.keys[2],
        };
        vec![("authorization".into(), format!("Bearer {key}")), ("content-type".into(), "application/json".into())]
    }

    pub fn request(&self, by: Caller, method: &str, target: &str, body: &Value) -> Result<HttpResponse> {
        let body = (method != "GET").then(|| body.to_string().into_bytes());
        let (method, target) = (method.into(), target.into());
        self.send(&Request { method, target, headers: self.headers(by), body, declared_length: None })
    }

    /// The JSON of a 200.
    fn call(&self, by: Caller, method: &str, target: &str, body: &Value) -> Result<Value> {
        let answer = self.request(by, method, target, body)?;
        ensure!(answer.status == 200, "{method} {target}: {} {}", answer.status, answer.text());
        serde_json::from_slice(&answer.body).context("no JSON")
    }

    fn files_below(&self, directory: &Path) -> Vec<PathBuf> {
        let (mut found, mut waiting) = (Vec::new(), vec![directory.to_owned()]);
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                    Ok(kind) if kind.is_file() => found.push(entry.path()),
                    _ => {}
                }
            }
        }
        found
    }

    /// Returns what is wrong with the server and its surroundings.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut found = self.canaries.complaints();
        if !self.process.lives() {
            found.push(format!("the server has ended. It said:\n{}", self.process.log()));
        } else if state_of(self.process.id()).ok().as_ref() != Some(&self.server_state) {
            found.push("limits, priority or processors of the server have changed".into());
        }
        found
    }

    /// Returns the end of the server's log.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Waits until the workers have ended, except that of the neighbour, and stops the server. Returns what is left.
    pub fn stop(mut self) -> Result<Vec<String>> {
        let left = || std::fs::read_dir(&self.workers).into_iter().flatten().flatten();
        let began = Instant::now();
        while left().count() > 1 && began.elapsed() < IDLE_TIME_MAX {
            std::thread::sleep(Duration::from_millis(100));
        }
        let found = left().skip(1).map(|entry| entry.path().display().to_string()).collect();
        let status = self.process.stop(STOP_MAX)?;
        ensure!(status.success(), "the server ended with {status}: {}", self.process.log());
        Ok(found)
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

/// Returns the runtime context of a function.
pub fn runtime(language: Language) -> Value {
    match language {
        Language::Python => json!({"runtime": "python", "version": "3.11"}),
        Language::Javascript => json!({"runtime": "node", "version": "20"}),
        Language::Quickjs => json!({"runtime": "quickjs", "version": "ES2023"}),
    }
}

/// Returns the Python that functions and the harness use.
pub fn python() -> Result<&'static str> {
    PYTHONS
        .into_iter()
        .find(|path| Path::new(path).exists())
        .context("there is no Python in /usr/bin or /usr/local/bin")
}

fn words_of(identity: Identity) -> Vec<String> {
    let id = NOBODY.to_string();
    match identity {
        Identity::Root => Vec::new(),
        Identity::Nobody => {
            ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--inh-caps=-all"].map(str::to_owned).to_vec()
        }
    }
}

fn started(
    words: &[String],
    program: &Path,
    (place, data): (&Path, &Path),
    is_reduced: bool,
    listed_port: u16,
) -> Result<Process> {
    let listed = format!("egress.allow=[{{cidr = \"127.0.0.1\", ports = [{listed_port}], for = [\"functions\"]}}]");
    let mut command = launched(words, program);
    command.env("ASSAY_API_KEY", TEST_KEY).args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    let strength = if is_reduced { "reduced" } else { "auto" };
    let settings = [
        "http.otlp_listen=off".to_owned(),
        listed,
        format!("functions.idle_seconds={IDLE_SECONDS}"),
        format!("functions.code={strength}"),
        format!("functions.python=[\"{}\"]", python()?),
        format!("functions.seconds_max={CALL_SECONDS}"),
        format!("functions.memory_bytes_max={MEMORY_BYTES}"),
        format!("functions.processes_max={PROCESSES}"),
        format!("functions.waiting_max={WAITING}"),
    ];
    for setting in &settings {
        command.args(["--set", setting]);
    }
    Process::start(&mut command, &place.join("server.log"))
}

/// Returns a command for a program of ours behind others that start it.
fn launched(words: &[String], program: &Path) -> Command {
    let Some((first, rest)) = words.split_first() else { return command(program) };
    let mut command = command(Path::new(first));
    command.args(rest).arg(program);
    command
}

/// Returns the JSON output of a command of the program.
fn ran(identity: &[String], program: &Path, words: &[&str]) -> Result<Value> {
    let output = launched(identity, program).args(words).output()?;
    ensure!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("no JSON")
}

/// Puts a program where every user may execute it.
fn copied(program: &Path, directory: &Path) -> Result<PathBuf> {
    let copy = directory.join(program.file_name().context("a name")?);
    if std::fs::hard_link(program, &copy).is_err() {
        std::fs::copy(program, &copy).with_context(|| format!("copying {}", program.display()))?;
    }
    Ok(copy)
}

/// Returns the server's program: `ASSAY_BIN`, or that of the build of this program.
fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ASSAY_BIN") {
        return Ok(path.into());
    }
    let built = std::env::current_exe()?.with_file_name("assay");
    ensure!(built.is_file(), "{} is missing: build it with `cargo build --workspace --bin assay`", built.display());
    Ok(built)
}

/// Returns the program that starts another one without namespaces, from the build of this program.
fn without_namespaces() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let built = own.parent().context("a directory")?.join("examples/without_namespaces");
    ensure!(built.is_file(), "{} is missing: build it with `cargo build --workspace --examples`", built.display());
    Ok(built)
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("a text instead of {value}"))
}
