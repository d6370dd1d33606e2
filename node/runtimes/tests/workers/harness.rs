//! Start of a worker, and an exchange of frames with it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use assay_node_runtimes::{
    BundleLocation, CallForm, CallOutput, ChannelDecoder, CodeSource, FromWorker, FunctionCall, FunctionLoad,
    RUNTIME_FILES, RuntimeKind, SourceLanguage, TaskHooks, ToWorker, WorkerFailure, WorkerReady, WorkerTrace,
    encode_frame, read_frame,
};
use serde_json::Value;
use tempfile::TempDir;

pub const BOTH: [RuntimeKind; 2] = [RuntimeKind::Node, RuntimeKind::Python];
/// Time in which every frame has to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Directory with the files of the runtimes, for all tests of this process.
static RUNTIMES: LazyLock<TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    for file in RUNTIME_FILES {
        std::fs::write(directory.path().join(file.name), file.content).unwrap();
    }
    directory
});

/// Paths of the interpreters themselves: those on the search path may be scripts that choose one.
static INTERPRETERS: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    [
        printed(Command::new("node").args(["-p", "process.execPath"])),
        printed(Command::new("python3").args(["-c", "import sys; print(sys.executable)"])),
    ]
});

pub fn runtimes() -> &'static Path {
    RUNTIMES.path()
}

pub fn interpreter(kind: RuntimeKind) -> &'static Path {
    match kind {
        RuntimeKind::Node => &INTERPRETERS[0],
        RuntimeKind::Python => &INTERPRETERS[1],
        RuntimeKind::QuickJs => unreachable!("QuickJS has no interpreter of its own"),
    }
}

fn printed(command: &mut Command) -> PathBuf {
    let output = command.output().expect("node and python3 are on the search path");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// Worker that waits for frames.
pub struct Worker {
    child: Child,
    channel: UnixStream,
    decoder: ChannelDecoder<FromWorker>,
    console: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
    pub ready: WorkerReady,
    next: usize,
    pub environment: BTreeMap<String, String>,
    pub parent: Option<String>,
    pub trace: Option<WorkerTrace>,
    pub hooks: Option<TaskHooks>,
    /// Events that tasks reported.
    pub progress: Vec<Value>,
    /// Home of the process, and the place of its temporary files.
    _home: TempDir,
}

impl Worker {
    pub fn start(kind: RuntimeKind) -> Worker {
        Worker::start_with(kind, &[])
    }

    pub fn start_with(kind: RuntimeKind, variables: &[(&str, &str)]) -> Worker {
        Worker::start_in_shell(kind, variables, "exec 3<&0 0</dev/null; exec \"$0\" \"$@\"")
    }

    /// Starts a worker by a script, whose standard input is the channel and whose arguments are the program.
    pub fn start_in_shell(kind: RuntimeKind, variables: &[(&str, &str)], script: &str) -> Worker {
        let (channel, inner) = UnixStream::pair().unwrap();
        channel.set_read_timeout(Some(PATIENCE)).unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(interpreter(kind)).args(kind.arguments(runtimes())).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("LANG", "C.UTF-8");
        command.env("HOME", home.path()).env("TMPDIR", home.path()).current_dir(home.path());
        // the directory of runtimes is read-only in a jail
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.envs(kind.variables(runtimes())).envs(variables.iter().copied());
        command.stdin(std::os::fd::OwnedFd::from(inner)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(command);
        let console = Arc::new(Mutex::new(String::new()));
        let readers = vec![
            collected(child.stdout.take().unwrap(), console.clone()),
            collected(child.stderr.take().unwrap(), console.clone()),
        ];
        let mut worker = Worker {
            child,
            channel,
            decoder: ChannelDecoder::default(),
            console,
            readers,
            ready: WorkerReady { runtime: String::new(), version: String::new() },
            next: 0,
            environment: BTreeMap::new(),
            parent: None,
            trace: None,
            hooks: None,
            progress: Vec::new(),
            _home: home,
        };
        match worker.receive() {
            FromWorker::Ready(ready) => worker.ready = ready,
            other => panic!("{other:?} instead of ready"),
        }
        worker
    }

    /// Starts a worker, and loads inline code in its language.
    pub fn inline(kind: RuntimeKind, code: &str) -> Worker {
        let mut worker = Worker::start(kind);
        worker.load(inline(kind, code)).unwrap();
        worker
    }

    pub fn bundle(kind: RuntimeKind, path: &Path, location: BundleLocation) -> Worker {
        let mut worker = Worker::start(kind);
        worker.load(bundle(path, location)).unwrap();
        worker
    }

    pub fn send(&mut self, frame: &ToWorker) {
        self.channel.write_all(&encode_frame(frame).unwrap()).unwrap();
    }

    pub fn receive(&mut self) -> FromWorker {
        let frame = read_frame(&mut self.channel, &mut self.decoder);
        match frame {
            Ok(Some(frame)) => frame,
            other => panic!("{other:?} instead of a frame; console: {}", self.console()),
        }
    }

    /// Returns whether the worker has closed its channel.
    pub fn has_ended(&mut self) -> bool {
        matches!(read_frame(&mut self.channel, &mut self.decoder), Ok(None))
    }

    pub fn load(&mut self, source: CodeSource) -> Result<(), WorkerFailure> {
        let load = FunctionLoad { source, environment: self.environment.clone() };
        self.send(&ToWorker::Load(load));
        match self.receive() {
            FromWorker::Loaded(_) => Ok(()),
            FromWorker::Error(failure) => Err(failure),
            other => panic!("{other:?} instead of loaded"),
        }
    }

    /// Calls the function, and takes all frames of the call.
    pub fn try_call(&mut self, form: CallForm, input: Value) -> Result<CallOutput, WorkerFailure> {
        self.next += 1;
        let id = format!("call-{}", self.next);
        let call = FunctionCall {
            id: id.clone(),
            form,
            input,
            parent: self.parent.clone(),
            trace: self.trace.clone(),
            environment: self.environment.clone(),
            hooks: self.hooks.clone(),
        };
        self.send(&ToWorker::Call(Box::new(call)));
        loop {
            let frame = self.receive();
            assert_eq!(frame.call_id(), Some(id.as_str()), "{frame:?}");
            match frame {
                FromWorker::Progress(progress) => self.progress.push(progress.data),
                FromWorker::Result(output) => return Ok(output),
                FromWorker::Error(failure) => return Err(failure),
                other => panic!("{other:?} within a call"),
            }
        }
    }

    /// Returns the value of a call that leaves nothing behind.
    pub fn call(&mut self, form: CallForm, input: Value) -> Value {
        match self.try_call(form, input) {
            Ok(output) => {
                assert_eq!(output.left, 0, "left behind: {}", self.console());
                output.value
            }
            Err(failure) => panic!("{failure:?}\nconsole: {}", self.console()),
        }
    }

    pub fn function(&mut self, input: Value) -> Value {
        self.call(CallForm::Function, input)
    }

    pub fn failure(&mut self, input: Value) -> WorkerFailure {
        self.try_call(CallForm::Function, input).unwrap_err()
    }

    /// Returns what the function has printed so far.
    pub fn console(&self) -> String {
        self.console.lock().unwrap().clone()
    }

    /// Ends the worker as the server does, and returns everything that it printed.
    pub fn finish(mut self) -> String {
        self.channel.shutdown(std::net::Shutdown::Both).unwrap();
        self.child.wait().unwrap();
        for reader in std::mem::take(&mut self.readers) {
            reader.join().unwrap();
        }
        self.console()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collected(mut pipe: impl Read + Send + 'static, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut bytes) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    })
}

pub fn inline(kind: RuntimeKind, code: &str) -> CodeSource {
    let language = match kind {
        RuntimeKind::Node | RuntimeKind::QuickJs => SourceLanguage::JavaScript,
        RuntimeKind::Python => SourceLanguage::Python,
    };
    CodeSource::Inline { code: code.to_owned(), is_module: false, language }
}

pub fn module(code: &str) -> CodeSource {
    CodeSource::Inline { code: code.to_owned(), is_module: true, language: SourceLanguage::JavaScript }
}

pub fn bundle(path: &Path, location: BundleLocation) -> CodeSource {
    CodeSource::Bundle { path: path.to_string_lossy().into_owned(), location }
}

/// Writes files below a directory, which is made first.
pub fn write_files(directory: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}
