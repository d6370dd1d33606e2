//! Service that runs code functions on this node.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io};

use assay_node_limits::{Holder, Refusals};
use assay_node_runtimes::{
    BundleLocation, CallOutput, CodeSource, FunctionCall, FunctionLoad, NODE_MODULES_VARIABLE, RUNTIME_FILES,
    RuntimeKind, SourceLanguage, TUNNEL_VARIABLE,
};
use assay_node_sandbox::spawner::SpawnError;
use assay_node_sandbox::{JailBind, JailPlan, SandboxReport, SandboxStrength, Spawner, probe};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use crate::admission::{FunctionAdmission, FunctionSlot};
use crate::console::CodeEvent;
use crate::error::CodeError;
use crate::interpreters::{Interpreter, WantedVersion, choose, find};
use crate::pool::IdlePool;
use crate::settings::{FunctionNetwork, FunctionSettings};
use crate::tunnel::{TunnelDialer, WorkerTunnel};
use crate::worker::{CallLimits, Worker, WorkerFiles};

/// Upper bound of the calls around a call.
const NESTED_DEPTH_MAX: usize = 5;
/// Upper bound of the calls of one worker.
const CALLS_MAX: u32 = 100;
/// Interval between two looks at idle workers.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Network connections that a worker inherits where it has no tunnel.
const INHERITED_STREAMS: usize = 32;
/// Share of the memory of a call that the heap of Node.js may take, in percent.
const NODE_HEAP_PERCENT: u64 = 75;
/// Search path of sandboxed processes.
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Paths in a private root.
const RUNTIME_TARGET: &str = "/run/assay/runtime";
const BUNDLE_TARGET: &str = "/run/assay/bundle";
const PACKAGES_TARGET: &str = "/run/assay/node_modules";
const PYTHON_TARGET: &str = "/run/assay/python";
const TUNNEL_TARGET: &str = "/run/assay/tunnel";

/// Parts that a runner is made of.
#[derive(Debug)]
pub struct RunnerParts {
    pub settings: FunctionSettings,
    /// Directory of the runner, which no other process uses.
    pub directory: PathBuf,
    /// Program of this server, which has the command of the stage.
    pub stage: PathBuf,
    pub dialer: Arc<dyn TunnelDialer>,
    pub refusals: Refusals,
}

/// Owner of a worker. A worker serves one owner only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerOwner {
    pub organization: Uuid,
    /// Project of execution.
    pub project: Option<Uuid>,
    /// User or service account on whose behalf the function runs.
    pub principal: Uuid,
}

/// Code to run.
#[derive(Clone, Debug)]
pub enum CodeUnit {
    Inline {
        runtime: RuntimeKind,
        version: String,
        code: String,
        is_module: bool,
        language: SourceLanguage,
    },
    Bundle {
        runtime: RuntimeKind,
        version: String,
        /// Hash of the content.
        hash: String,
        /// File or directory of the unpacked bundle on this machine.
        path: PathBuf,
        /// Name of the file within `path` that a worker loads, for bundles of Node.js.
        file: Option<String>,
        location: BundleLocation,
    },
}

/// Call of a code function.
#[derive(Debug)]
pub struct CodeCall {
    pub owner: WorkerOwner,
    pub unit: CodeUnit,
    /// Variables of the organization, the project and the function, which the function sees also while it is loaded.
    pub variables: BTreeMap<String, String>,
    /// Call without an id, which the runner chooses.
    pub call: FunctionCall,
    pub time_max: Duration,
    pub events: Option<mpsc::Sender<CodeEvent>>,
    /// Number of calls around this one, which wait for it in their own slots.
    pub depth: usize,
}

/// Value of a call.
#[derive(Debug)]
pub struct CodeOutcome {
    pub output: CallOutput,
    /// Time from the admission of the call to its value.
    pub ran: Duration,
    pub was_warm: bool,
}

/// Sandbox and interpreters of this node, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerReport {
    pub setting: &'static str,
    /// Strength in force, or `None` if no code runs.
    pub strength: Option<SandboxStrength>,
    pub interpreters: Vec<(&'static str, String)>,
    /// What is missing, with what to do about it.
    pub missing: Vec<String>,
}

/// Counts of a runner since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunnerReading {
    pub calls: u64,
    pub failures: u64,
    pub starts: u64,
    pub idle: u64,
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    failures: AtomicU64,
    starts: AtomicU64,
}

/// Key of a worker: its owner, its code, and its variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WorkerKey {
    owner: WorkerOwner,
    code: blake3::Hash,
}

/// Runner of code functions.
#[derive(Debug)]
pub struct CodeRunner {
    settings: FunctionSettings,
    directory: PathBuf,
    dialer: Arc<dyn TunnelDialer>,
    /// Slots by depth. A call waits only for deeper ones, so calls within each other cannot block each other.
    admissions: Vec<FunctionAdmission>,
    sandbox: SandboxReport,
    strength: Option<SandboxStrength>,
    spawner: Option<Spawner>,
    interpreters: Vec<Interpreter>,
    missing: Vec<String>,
    idle: Mutex<IdlePool<WorkerKey, Worker>>,
    began: Instant,
    counts: Counts,
}

impl CodeRunner {
    /// Starts a runner: writes the runtimes, tries the sandbox, and looks for interpreters.
    pub async fn start(parts: &RunnerParts) -> io::Result<Arc<CodeRunner>> {
        let RunnerParts { settings, directory, stage, dialer, refusals } = parts;
        let (settings, directory, stage) = (settings.clone(), directory.clone(), stage.clone());
        let (setting, place) = (settings.code, directory.clone());
        let probed = tokio::task::spawn_blocking(move || {
            prepare(&place)?;
            Ok::<_, io::Error>(probe(&stage, &place.join("trial")))
        });
        let sandbox = probed.await.map_err(io::Error::other)??;
        let strength = setting.chosen(sandbox.available);
        let (interpreters, problems) = match strength {
            Some(_) => find(&settings).await,
            None => Default::default(),
        };
        let spawner = strength.map(|_| Spawner::start(sandbox.host.clone())).transpose()?;
        let missing = sandbox.missing.iter().cloned().chain(problems).collect();
        let idle = IdlePool::new(settings.idle_max, Duration::from_secs(settings.idle_seconds));
        let slots = |depth: usize| if depth == 0 { settings.slots() } else { settings.slots().div_ceil(2) };
        let admission = |depth| FunctionAdmission::new(slots(depth), settings.waiting_max, refusals);
        let admissions = (0..=NESTED_DEPTH_MAX).map(admission).collect();
        let runner = Arc::new(CodeRunner {
            settings,
            directory,
            dialer: Arc::clone(dialer),
            admissions,
            sandbox,
            strength,
            spawner,
            interpreters,
            missing,
            idle: Mutex::new(idle),
            began: Instant::now(),
            counts: Counts::default(),
        });
        runner.announce();
        Ok(runner)
    }

    fn announce(&self) {
        let report = self.report();
        match report.strength {
            Some(SandboxStrength::Unsafe) => {
                tracing::warn!("functions.code is unsafe: code of users runs without a sandbox, for development only");
            }
            Some(strength) => tracing::info!(%strength, interpreters = ?report.interpreters, "code functions run"),
            None => tracing::info!(setting = report.setting, missing = ?report.missing, "code functions do not run"),
        }
    }

    /// Looks at idle workers until it is dropped: old ones and those that are active leave.
    pub async fn keep(self: Arc<CodeRunner>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let runner = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || {
                let mut idle = runner.idle.lock();
                let old = idle.expire(runner.began.elapsed());
                let bad = idle.discard(|worker| worker.is_restless() || worker.is_busy_alone());
                drop(idle);
                drop((old, bad));
            });
            if let Err(why) = looked.await {
                tracing::error!(%why, "idle workers of functions could not be checked");
            }
        }
    }

    pub fn report(&self) -> RunnerReport {
        let interpreters = self.interpreters.iter();
        RunnerReport {
            setting: self.settings.code.name(),
            strength: self.strength,
            interpreters: interpreters.map(|found| (found.runtime.name(), found.version.clone())).collect(),
            missing: self.missing.clone(),
        }
    }

    pub fn reading(&self) -> RunnerReading {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RunnerReading {
            calls: read(&self.counts.calls),
            failures: read(&self.counts.failures),
            starts: read(&self.counts.starts),
            idle: self.idle.lock().len() as u64,
        }
    }

    /// Returns whether this node can run code of a runtime and a version. The error says what is missing.
    pub fn can_run(&self, wanted: WantedVersion<'_>) -> Result<(), CodeError> {
        self.chosen(wanted).map(|_| ())
    }

    fn chosen(&self, wanted: WantedVersion<'_>) -> Result<(SandboxStrength, &Interpreter), CodeError> {
        let Some(strength) = self.strength else { return Err(CodeError::NotRun(self.why_not())) };
        let interpreter = choose(&self.interpreters, wanted).map_err(CodeError::NotRun)?;
        Ok((strength, interpreter))
    }

    fn why_not(&self) -> String {
        let setting = self.settings.code.name();
        match self.sandbox.available {
            _ if setting == "off" => "this server runs no code functions: functions.code is off".to_owned(),
            Some(strength) => format!(
                "this server runs no code functions: it offers a {strength} sandbox only, and functions.code is \
                 {setting}. Missing: {}",
                self.missing.join("; ")
            ),
            None => {
                format!(
                    "this server runs no code functions: it offers no sandbox. Missing: {}",
                    self.missing.join("; ")
                )
            }
        }
    }

    /// Runs a call. Dropping the future ends the function.
    pub async fn call(&self, call: CodeCall) -> Result<CodeOutcome, CodeError> {
        let (strength, interpreter) = self.chosen(call.unit.wanted())?;
        let until = Instant::now() + call.time_max;
        let _slot = self.slot(&call.owner, call.depth, until).await?;
        let began = Instant::now();
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        let result = self.run(call, strength, interpreter, until).await;
        match result {
            Ok((output, was_warm)) => Ok(CodeOutcome { output, ran: began.elapsed(), was_warm }),
            Err(error) => {
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    async fn slot(&self, owner: &WorkerOwner, depth: usize, until: Instant) -> Result<FunctionSlot, CodeError> {
        let admission = self.admissions.get(depth).ok_or_else(|| {
            CodeError::NotRun(format!("functions call each other more than {NESTED_DEPTH_MAX} levels deep"))
        })?;
        admission.enter(Holder::new(owner.organization, owner.principal), until).await
    }

    async fn run(
        &self,
        call: CodeCall,
        strength: SandboxStrength,
        interpreter: &Interpreter,
        until: Instant,
    ) -> Result<(CallOutput, bool), CodeError> {
        let key = WorkerKey { owner: call.owner.clone(), code: fingerprint(&call.unit, &call.variables, interpreter) };
        let limits = CallLimits { until, time_max: call.time_max, events: call.events };
        let warm = self.warm(&key);
        let was_warm = warm.is_some();
        let mut worker = match warm {
            Some(worker) => worker,
            None => {
                let mut worker = self.start_worker(&call.owner, &call.unit, strength, interpreter).await?;
                let load =
                    FunctionLoad { source: self.source(&call.unit, strength), environment: call.variables.clone() };
                worker.load(load, &limits).await?;
                worker
            }
        };
        let mut environment = call.variables;
        environment.extend(call.call.environment);
        let sent = FunctionCall { id: random_id()?, environment, ..call.call };
        let answer = worker.call(sent, &limits).await;
        if answer.is_usable && worker.calls() < CALLS_MAX {
            let leaving = self.idle.lock().put(key, worker, self.began.elapsed());
            drop(leaving);
        }
        answer.result.map(|output| (output, was_warm))
    }

    /// Takes an idle worker that is fit for another call.
    fn warm(&self, key: &WorkerKey) -> Option<Worker> {
        loop {
            let mut worker = self.idle.lock().take(key)?;
            if !worker.is_restless() {
                return Some(worker);
            }
        }
    }

    /// Starts the process of a worker in its sandbox.
    async fn start_worker(
        &self,
        owner: &WorkerOwner,
        unit: &CodeUnit,
        strength: SandboxStrength,
        interpreter: &Interpreter,
    ) -> Result<Worker, CodeError> {
        let Some(spawner) = self.spawner.clone() else { return Err(CodeError::NotRun(self.why_not())) };
        self.counts.starts.fetch_add(1, Ordering::Relaxed);
        let failed = |why: io::Error| CodeError::Node(format!("a worker could not be started: {why}"));
        let files = worker_directory(&self.directory).map_err(failed)?;
        let has_root = strength == SandboxStrength::Full;
        let has_network = self.settings.network != FunctionNetwork::Off;
        let socket = files.0.join("tunnel");
        let mut tunnel = (has_root && has_network)
            .then(|| WorkerTunnel::listen(&socket, Arc::clone(&self.dialer), owner.organization))
            .transpose()
            .map_err(failed)?;
        let plan = self.plan(unit, strength, interpreter, &files.0, tunnel.is_some());
        let spawned = tokio::task::spawn_blocking(move || spawner.spawn(plan)).await;
        let spawned = spawned.map_err(|why| CodeError::Node(why.to_string()))?;
        let mut process = spawned.map_err(|why: SpawnError| CodeError::Node(why.to_string()))?;
        let streams = std::mem::take(&mut process.streams);
        if !streams.is_empty() {
            let dialer = Arc::clone(&self.dialer);
            tunnel = Some(WorkerTunnel::serve(streams, dialer, owner.organization).map_err(failed)?);
        }
        Worker::new(process, tunnel, self.settings.limits(), files).map_err(failed)
    }

    /// Returns what a worker sees and executes.
    fn plan(
        &self,
        unit: &CodeUnit,
        strength: SandboxStrength,
        interpreter: &Interpreter,
        files: &Path,
        has_tunnel: bool,
    ) -> JailPlan {
        let bind = |source: &Path, target: &str| JailBind { source: source.to_owned(), target: target.into() };
        let runtime = bind(&self.directory.join("runtime"), RUNTIME_TARGET);
        let packages = self.settings.node_modules.as_ref().map(|path| bind(path, PACKAGES_TARGET));
        let python = self.settings.python_path.as_ref().map(|path| bind(path, PYTHON_TARGET));
        let bundle = match unit {
            CodeUnit::Bundle { path, .. } => Some(bind(path, BUNDLE_TARGET)),
            CodeUnit::Inline { .. } => None,
        };
        let mut read_only = interpreter.binds();
        read_only.push(runtime.clone());
        read_only.extend([&packages, &python, &bundle].into_iter().flatten().cloned());
        let has_streams = strength != SandboxStrength::Full && self.settings.network != FunctionNetwork::Off;
        let mut plan = JailPlan {
            strength,
            command: Vec::new(),
            read_only,
            tunnel: has_tunnel.then(|| bind(&files.join("tunnel"), TUNNEL_TARGET)),
            temp: files.join("temp"),
            streams: if has_streams { INHERITED_STREAMS } else { 0 },
            limits: self.settings.limits(),
            environment: Vec::new(),
        };
        let runtime = plan.visible(&runtime).to_owned();
        plan.command = self.command(interpreter, &runtime);
        let mut set = |name: &str, value: OsString| plan.environment.push((name.to_owned(), value));
        set("PATH", SEARCH_PATH.into());
        set("TZ", "UTC".into());
        set("LANG", "C.UTF-8".into());
        for (name, value) in interpreter.runtime.variables(&runtime) {
            set(name, value.into());
        }
        let temp = plan.visible_temp().as_os_str().to_owned();
        plan.environment.extend([("HOME".to_owned(), temp.clone()), ("TMPDIR".to_owned(), temp)]);
        if let Some(tunnel) = &plan.tunnel {
            plan.environment.push((TUNNEL_VARIABLE.to_owned(), plan.visible(tunnel).as_os_str().to_owned()));
        }
        if let Some(packages) = &packages {
            let seen = plan.visible(packages).as_os_str().to_owned();
            plan.environment.push((NODE_MODULES_VARIABLE.to_owned(), seen));
        }
        let own_packages = matches!(unit, CodeUnit::Inline { .. }).then_some(python).flatten();
        if let Some(python) = own_packages {
            let seen = plan.visible(&python).to_owned();
            extend_search(&mut plan.environment, &seen);
        }
        plan
    }

    fn command(&self, interpreter: &Interpreter, runtime: &Path) -> Vec<OsString> {
        let options = match interpreter.runtime {
            RuntimeKind::Node => {
                let mebibytes = (self.settings.memory_bytes_max >> 20) * NODE_HEAP_PERCENT / 100;
                vec![format!("--max-old-space-size={mebibytes}")]
            }
            RuntimeKind::Python => ["-s", "-B"].map(str::to_owned).to_vec(),
        };
        let words = options.into_iter().chain(interpreter.runtime.arguments(runtime));
        [interpreter.program.clone().into_os_string()].into_iter().chain(words.map(OsString::from)).collect()
    }

    fn source(&self, unit: &CodeUnit, strength: SandboxStrength) -> CodeSource {
        match unit {
            CodeUnit::Inline { code, is_module, language, .. } => {
                CodeSource::Inline { code: code.clone(), is_module: *is_module, language: *language }
            }
            CodeUnit::Bundle { path, file, location, .. } => {
                let seen = if strength == SandboxStrength::Full { Path::new(BUNDLE_TARGET) } else { path.as_path() };
                let seen = file.as_ref().map_or_else(|| seen.to_owned(), |file| seen.join(file));
                CodeSource::Bundle { path: seen.to_string_lossy().into_owned(), location: location.clone() }
            }
        }
    }
}

impl CodeUnit {
    /// Returns the interpreter that the code needs.
    pub fn wanted(&self) -> WantedVersion<'_> {
        match self {
            CodeUnit::Inline { runtime, version, .. } => WantedVersion { runtime: *runtime, version, is_exact: false },
            CodeUnit::Bundle { runtime, version, .. } => {
                WantedVersion { runtime: *runtime, version, is_exact: *runtime == RuntimeKind::Python }
            }
        }
    }
}

/// Appends a directory to the search path of Python.
fn extend_search(environment: &mut Vec<(String, OsString)>, directory: &Path) {
    match environment.iter_mut().find(|(name, _)| name == "PYTHONPATH") {
        Some((_, value)) => {
            value.push(":");
            value.push(directory);
        }
        None => environment.push(("PYTHONPATH".to_owned(), directory.as_os_str().to_owned())),
    }
}

/// Returns the fingerprint of code, its variables and its interpreter.
fn fingerprint(unit: &CodeUnit, variables: &BTreeMap<String, String>, interpreter: &Interpreter) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    add(&interpreter.program.to_string_lossy());
    match unit {
        CodeUnit::Inline { code, is_module, language, .. } => {
            add("inline");
            add(code);
            add(&format!("{is_module} {language:?}"));
        }
        CodeUnit::Bundle { hash, location, .. } => {
            add("bundle");
            add(hash);
            add(&format!("{location:?}"));
        }
    }
    for (name, value) in variables {
        add(name);
        add(value);
    }
    hasher.finalize()
}

/// Returns an id that no other call can guess.
fn random_id() -> Result<String, CodeError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|why| CodeError::Node(format!("no randomness: {why}")))?;
    Ok(Uuid::from_bytes(bytes).simple().to_string())
}

/// Makes the directories of a runner, with its programs, and removes what an earlier process left.
fn prepare(directory: &Path) -> io::Result<()> {
    let runtime = directory.join("runtime");
    for old in [&runtime, &directory.join("workers"), &directory.join("trial")] {
        match fs::remove_dir_all(old) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
            _ => {}
        }
    }
    fs::create_dir_all(directory)?;
    readable_directory(&runtime)?;
    for file in RUNTIME_FILES {
        let path = runtime.join(file.name);
        fs::write(&path, file.content)?;
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644))?;
    }
    readable_directory(&directory.join("workers"))?;
    open_directory(&directory.join("trial"))
}

/// Makes the directory of a worker, with its temporary directory.
fn worker_directory(directory: &Path) -> Result<WorkerFiles, io::Error> {
    let files = WorkerFiles(directory.join("workers").join(Uuid::new_v4().simple().to_string()));
    readable_directory(&files.0)?;
    open_directory(&files.0.join("temp"))?;
    Ok(files)
}

/// Makes a directory that the user of a sandbox may read. The process itself creates files for nobody else.
fn readable_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, PermissionsExt::from_mode(0o755))
}

/// Makes a directory in which the user of a sandbox may write.
fn open_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, PermissionsExt::from_mode(0o777))
}
