//! Service that runs code functions on this node.

mod evaluators;
mod kernel_limits;
mod launch;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io};

use assay_node_limits::{Holder, Refusals};
use assay_node_runtimes::{
    BundleLocation, CallForm, CallOutput, FunctionCall, FunctionLoad, RuntimeKind, SourceLanguage,
};
use assay_node_sandbox::reach::closed_part;
use assay_node_sandbox::spawner::SpawnError;
use assay_node_sandbox::{SandboxReport, SandboxStrength, Spawner, probe};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use crate::admission::{FunctionAdmission, FunctionSlot};
use crate::console::CodeEvent;
use crate::credentials::{CallRights, WorkerSecret};
use crate::error::CodeError;
use crate::interpreters::{Interpreter, WantedVersion, choose, find};
use crate::offer::{OfferedInterpreter, RunnerOffer};
use crate::place::{RunnerPlace, remove_unreachable};
use crate::pool::{IdleLimits, IdlePool, PoolKey};
use crate::settings::FunctionSettings;
use crate::tunnel::{TunnelDialer, WorkerTunnel};
use crate::worker::{CallLimits, Worker};
use kernel_limits::KernelLimits;

/// Upper bound of the calls around a call.
const NESTED_DEPTH_MAX: usize = 5;
/// Time after which a worker that still starts lets others start too.
const START_TURN_MAX: Duration = Duration::from_secs(2);
/// Upper bound of the calls of one worker (decision 63).
const CALLS_MAX: u32 = 1_000;
/// Part of the memory of a call from which an idle worker is not kept: the next call would have too little left.
const KEPT_MEMORY_SHARE: u64 = 2;
/// Interval between two looks at idle workers.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Part of the memory of as many running workers that the idle ones may have together.
const IDLE_MEMORY_SHARE: u64 = 8;

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
    /// Variables of the organization, the project and the function. Calls with other variables have other workers.
    pub variables: BTreeMap<String, String>,
    /// Rights that the secret of the worker has during the call.
    pub rights: Arc<dyn CallRights>,
    /// Names of the variables that hold the secret.
    pub secret_names: Vec<&'static str>,
    /// Call without an id, which the runner chooses.
    ///
    /// Its environment is added to the variables and the secret. The function sees all of them also while it is loaded.
    pub call: FunctionCall,
    pub time_max: Duration,
    pub events: Option<mpsc::Sender<CodeEvent>>,
}

/// Value of a call.
#[derive(Debug)]
pub struct CodeOutcome {
    pub output: CallOutput,
    /// Time from the start of the call to its value.
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
    /// `cgroup v2` if the kernel holds the memory and the processes of a worker, or why it does not.
    pub kernel_limits: String,
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

impl PoolKey for WorkerKey {
    type Owner = Uuid;

    fn owner(&self) -> Uuid {
        self.owner.organization
    }
}

/// Runner of code functions.
#[derive(Debug)]
pub struct CodeRunner {
    settings: FunctionSettings,
    place: RunnerPlace,
    dialer: Arc<dyn TunnelDialer>,
    /// Slots by depth. A call waits only for deeper ones, so calls within each other cannot block each other.
    admissions: Vec<FunctionAdmission>,
    sandbox: SandboxReport,
    strength: Option<SandboxStrength>,
    spawner: Option<Spawner>,
    interpreters: Vec<Interpreter>,
    missing: Vec<String>,
    kernel_limits: String,
    idle: Mutex<IdlePool<WorkerKey, Worker>>,
    /// Turns of workers that start.
    starts: Semaphore,
    began: Instant,
    counts: Counts,
}

impl CodeRunner {
    /// Starts a runner: writes the runtimes, tries the sandbox, and looks for interpreters.
    pub async fn start(parts: &RunnerParts) -> io::Result<Arc<CodeRunner>> {
        let RunnerParts { settings, directory, stage, dialer, refusals } = parts;
        let (settings, directory, stage) = (settings.clone(), directory.clone(), stage.clone());
        let code = settings.code;
        let probed = tokio::task::spawn_blocking(move || {
            let place = RunnerPlace::prepare(&directory)?;
            let sandbox = probe(&stage, &place.trial());
            let strength = code.chosen(sandbox.available);
            let kernel_limits = KernelLimits::take(&sandbox, strength.is_some());
            Ok::<_, io::Error>((place, sandbox, strength, kernel_limits))
        });
        let (place, sandbox, strength, kernel_limits) = probed.await.map_err(io::Error::other)??;
        let (mut interpreters, mut problems) = match strength {
            Some(_) => find(&settings).await,
            None => Default::default(),
        };
        if sandbox.host.is_root && strength != Some(SandboxStrength::Full) {
            problems.extend(remove_unreachable(&mut interpreters));
        }
        if strength.is_some() {
            match closed_stage(&sandbox, strength) {
                None => interpreters.push(Interpreter::quickjs()),
                Some(closed) => problems.push(closed),
            }
        }
        let spawner = strength.map(|_| Spawner::start(sandbox.host.clone(), kernel_limits.cgroups)).transpose()?;
        let missing = sandbox.missing.iter().cloned().chain(problems).collect();
        let idle = IdlePool::new(idle_limits(&settings));
        let slots = |depth: usize| if depth == 0 { settings.slots() } else { settings.slots().div_ceil(2) };
        let admission = |depth| FunctionAdmission::new(slots(depth), settings.waiting_max, refusals);
        let admissions = (0..=NESTED_DEPTH_MAX).map(admission).collect();
        let runner = Arc::new(CodeRunner {
            settings,
            place,
            dialer: Arc::clone(dialer),
            admissions,
            sandbox,
            strength,
            spawner,
            interpreters,
            missing,
            kernel_limits: kernel_limits.report,
            idle: Mutex::new(idle),
            starts: Semaphore::new(starts_at_once()),
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
            Some(strength) => {
                let limits = report.kernel_limits;
                tracing::info!(%strength, interpreters = ?report.interpreters, limits, "code functions run");
            }
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
                let bad = idle.discard(|worker| worker.is_restless() || !worker.is_paused());
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
            interpreters: interpreters.map(|found| (found.about.runtime.name(), found.about.version.clone())).collect(),
            missing: self.missing.clone(),
            kernel_limits: self.kernel_limits.clone(),
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

    /// Returns what this runner offers to other nodes.
    pub fn offer(&self) -> RunnerOffer {
        let readings: Vec<_> = self.admissions.iter().map(FunctionAdmission::reading).collect();
        RunnerOffer {
            refusal: self.strength.is_none().then(|| self.why_not()),
            interpreters: self
                .interpreters
                .iter()
                .map(|interpreter| OfferedInterpreter::of(&interpreter.about))
                .collect(),
            slots: readings.first().map_or(0, |outermost| outermost.slots),
            running: readings.iter().map(|reading| reading.running).sum(),
            waiting: readings.iter().map(|reading| reading.waiting).sum(),
        }
    }

    /// Returns whether this node can run code of a runtime and a version. The error says what is missing.
    pub fn can_run(&self, wanted: WantedVersion<'_>) -> Result<(), CodeError> {
        self.chosen(wanted).map(|_| ())
    }

    fn chosen(&self, wanted: WantedVersion<'_>) -> Result<(SandboxStrength, &Interpreter), CodeError> {
        let Some(strength) = self.strength else { return Err(CodeError::NotRun(self.why_not())) };
        let versions: Vec<_> = self.interpreters.iter().map(|interpreter| interpreter.about.clone()).collect();
        let chosen = choose(&versions, wanted).map_err(CodeError::NotRun)?;
        Ok((strength, &self.interpreters[chosen]))
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

    /// Runs a call in a slot. Dropping the future ends the function.
    pub async fn call(&self, slot: FunctionSlot, call: CodeCall) -> Result<CodeOutcome, CodeError> {
        let (strength, interpreter) = self.chosen(call.unit.wanted())?;
        let until = Instant::now() + call.time_max;
        let began = Instant::now();
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        let result = match call.call.form {
            CallForm::Evaluators => self.list(call, strength, interpreter, until).await.map(|output| (output, false)),
            _ => self.run(call, strength, interpreter, until).await,
        };
        drop(slot);
        match result {
            Ok((output, was_warm)) => Ok(CodeOutcome { output, ran: began.elapsed(), was_warm }),
            Err(error) => {
                self.counts.failures.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Waits for a slot until a deadline. Dropping the future leaves the queue.
    ///
    /// `depth` is the number of calls around the call, which wait for it in their own slots.
    pub async fn slot(&self, owner: &WorkerOwner, depth: usize, until: Instant) -> Result<FunctionSlot, CodeError> {
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
                let secret = call.rights.issue()?;
                self.start_worker(&call.owner, (&call.unit, secret), (strength, interpreter), &limits).await?
            }
        };
        // Until the end of the call, and before the worker serves another one.
        let loan = call.rights.lend(worker.secret())?;
        let mut environment = call.variables;
        environment.extend(call.call.environment);
        let secret = worker.secret().expose();
        environment.extend(call.secret_names.iter().map(|name| ((*name).to_owned(), secret.to_owned())));
        if !was_warm || worker.location() != call.unit.location() {
            let load = FunctionLoad { source: self.source(&call.unit, strength), environment: environment.clone() };
            match was_warm {
                true => worker.choose(load, &limits).await?,
                false => worker.load(load, &limits).await?,
            }
        }
        let sent = FunctionCall { id: random_id()?, environment, ..call.call };
        let answer = worker.call(sent, &limits).await;
        drop(loan);
        if answer.is_usable
            && worker.calls() < CALLS_MAX
            && let Some(bytes) = worker.pause().await
            && bytes <= self.settings.memory_bytes_max / KEPT_MEMORY_SHARE
        {
            let leaving = self.idle.lock().put(key, worker, bytes, self.began.elapsed());
            drop(leaving);
        }
        answer.result.map(|output| (output, was_warm))
    }

    /// Takes an idle worker that is fit for another call.
    fn warm(&self, key: &WorkerKey) -> Option<Worker> {
        loop {
            let mut worker = self.idle.lock().take(key)?;
            if worker.resume() && !worker.is_restless() {
                return Some(worker);
            }
        }
    }

    /// Starts the process of a worker in its sandbox, and waits until its interpreter has started.
    ///
    /// Starts take turns, because each keeps a processor busy that calls of others need.
    async fn start_worker(
        &self,
        owner: &WorkerOwner,
        (unit, secret): (&CodeUnit, WorkerSecret),
        (strength, interpreter): (SandboxStrength, &Interpreter),
        limits: &CallLimits,
    ) -> Result<Worker, CodeError> {
        let Some(spawner) = self.spawner.clone() else { return Err(CodeError::NotRun(self.why_not())) };
        let turn = timeout_at(limits.until, self.starts.acquire()).await;
        let late = || CodeError::ended("TimeoutError", "no worker could be started in time, because others start");
        let turn = turn.map_err(|_| late())?.map_err(|why| CodeError::Node(why.to_string()))?;
        self.counts.starts.fetch_add(1, Ordering::Relaxed);
        let failed = |why: io::Error| CodeError::Node(format!("a worker could not be started: {why}"));
        let files = self.place.worker().map_err(failed)?;
        let has_root = strength == SandboxStrength::Full;
        let has_network = self.has_network(interpreter);
        let socket = files.path().join("tunnel");
        let mut tunnel = (has_root && has_network)
            .then(|| WorkerTunnel::listen(&socket, Arc::clone(&self.dialer), owner.organization))
            .transpose()
            .map_err(failed)?;
        let plan = self.plan(unit, strength, interpreter, files.path(), tunnel.is_some());
        let spawned = tokio::task::spawn_blocking(move || spawner.spawn(plan)).await;
        let spawned = spawned.map_err(|why| CodeError::Node(why.to_string()))?;
        let mut process = spawned.map_err(|why: SpawnError| CodeError::Node(why.to_string()))?;
        let streams = std::mem::take(&mut process.streams);
        if !streams.is_empty() {
            let dialer = Arc::clone(&self.dialer);
            tunnel = Some(WorkerTunnel::serve(streams, dialer, owner.organization).map_err(failed)?);
        }
        let mut worker = Worker::new(process, (tunnel, secret), self.settings.limits(), files).map_err(failed)?;
        {
            let mut ready = Box::pin(worker.ready(limits));
            match timeout(START_TURN_MAX, &mut ready).await {
                Ok(started) => started?,
                // Others need not wait for a slow disk.
                Err(_) => {
                    drop(turn);
                    ready.await?;
                }
            }
        }
        Ok(worker)
    }
}

impl CodeUnit {
    fn location(&self) -> Option<&BundleLocation> {
        match self {
            CodeUnit::Inline { .. } => None,
            CodeUnit::Bundle { location, .. } => Some(location),
        }
    }

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

/// Returns the number of workers that may start at the same time: half of the processors.
fn starts_at_once() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1))
}

/// Returns the limits of idle workers. Together they have a share of the memory that as many running ones may use.
fn idle_limits(settings: &FunctionSettings) -> IdleLimits {
    IdleLimits {
        workers: settings.idle_max,
        bytes: settings.memory_bytes_max.saturating_mul(settings.idle_max as u64) / IDLE_MEMORY_SHARE,
        time: Duration::from_secs(settings.idle_seconds),
    }
}

/// Returns a sentence if users of sandboxes cannot execute the server's program.
fn closed_stage(sandbox: &SandboxReport, strength: Option<SandboxStrength>) -> Option<String> {
    if !sandbox.host.is_root || strength == Some(SandboxStrength::Full) {
        return None;
    }
    let closed = closed_part(&sandbox.host.stage)?;
    Some(format!(
        "quickjs: users of sandboxes may not read {}: install the program of the server where every user may",
        closed.display()
    ))
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
        // A worker serves all functions of its bundle, as long as its files exist: a bundle that has left the cache and
        // was unpacked again is another directory, which the sandboxes of older workers do not see.
        CodeUnit::Bundle { hash, path, .. } => {
            add("bundle");
            add(hash);
            add(&fs::metadata(path).map_or(0, |directory| directory.ino()).to_string());
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
