//! One sandboxed process: its start, the load of a function, and calls within limits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use assay_node_runtimes::{
    BundleLocation, CallOutput, ChannelDecoder, CodeSource, FrameCodecError, FromWorker, FunctionCall, FunctionLoad,
    ToWorker, WorkerFailure, encode_frame,
};
use assay_node_sandbox::process::KillOnDrop;
use assay_node_sandbox::{JailLimits, SandboxDirectory, SandboxedProcess, SettledProcesses};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::console::{CallConsole, CodeEvent, ConsoleOverflow, ConsolePipe, ConsoleStream};
use crate::credentials::WorkerSecret;
use crate::error::{CodeError, FunctionFailure};
use crate::tunnel::WorkerTunnel;
use crate::watch::{CALL_YIELDS_AFTER, CallWatch, LOAD_YIELDS_AFTER, sentence};

/// Bytes that are read from the channel at once.
const READ_BYTES: usize = 64 << 10;

/// Running worker.
#[derive(Debug)]
pub struct Worker {
    channel: UnixStream,
    decoder: ChannelDecoder<FromWorker>,
    buffer: Box<[u8]>,
    stdout: ConsolePipe,
    stderr: ConsolePipe,
    tunnel: Option<WorkerTunnel>,
    /// Revoked with the worker.
    secret: WorkerSecret,
    limits: JailLimits,
    calls: u32,
    /// Function of the bundle that calls run.
    location: Option<BundleLocation>,
    /// Processes after the load, which are paused between calls.
    settled: Option<Arc<SettledProcesses>>,
    /// Ends the process before its files are removed.
    process: KillOnDrop,
    _files: SandboxDirectory,
}

/// Limits of one exchange with a worker.
#[derive(Clone, Debug)]
pub struct CallLimits {
    pub until: Instant,
    /// Time that `until` stands for, for the error.
    pub time_max: Duration,
    pub events: Option<mpsc::Sender<CodeEvent>>,
}

/// Answer of a worker, and whether it may serve further calls.
#[derive(Debug)]
pub struct WorkerAnswer {
    pub result: Result<CallOutput, CodeError>,
    pub is_usable: bool,
}

impl Worker {
    /// Takes over a process that was just started.
    pub fn new(
        process: SandboxedProcess,
        (tunnel, secret): (Option<WorkerTunnel>, WorkerSecret),
        limits: JailLimits,
        files: SandboxDirectory,
    ) -> io::Result<Worker> {
        let (channel, stdout, stderr, _, process) = process.into_parts();
        channel.set_nonblocking(true)?;
        Ok(Worker {
            channel: UnixStream::from_std(channel)?,
            decoder: ChannelDecoder::default(),
            buffer: vec![0; READ_BYTES].into(),
            stdout: ConsolePipe::new(ConsoleStream::Stdout, stdout.into())?,
            stderr: ConsolePipe::new(ConsoleStream::Stderr, stderr.into())?,
            tunnel,
            secret,
            limits,
            calls: 0,
            location: None,
            settled: None,
            process,
            _files: files,
        })
    }

    /// Number of calls that the worker has served.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Function of the bundle that calls run, if a bundle is loaded.
    pub fn location(&self) -> Option<&BundleLocation> {
        self.location.as_ref()
    }

    pub fn secret(&self) -> &WorkerSecret {
        &self.secret
    }

    /// Waits until the interpreter has started.
    pub async fn ready(&mut self, limits: &CallLimits) -> Result<(), CodeError> {
        let mut console = CallConsole::new(limits.events.clone());
        let watch = self.watch(limits, LOAD_YIELDS_AFTER);
        let frame = tokio::select! {
            biased;
            error = watch.broken() => return Err(error),
            frame = self.awaited(&mut console) => frame?,
        };
        match frame {
            FromWorker::Ready(_) => Ok(()),
            _ => Err(unexpected("before it was ready")),
        }
    }

    /// Loads the first function.
    pub async fn load(&mut self, load: FunctionLoad, limits: &CallLimits) -> Result<(), CodeError> {
        self.choose(load, limits).await?;
        self.settle().await;
        Ok(())
    }

    /// Loads a function: the first one, or another one of the same bundle.
    pub async fn choose(&mut self, load: FunctionLoad, limits: &CallLimits) -> Result<(), CodeError> {
        let location = match &load.source {
            CodeSource::Bundle { location, .. } => Some(location.clone()),
            CodeSource::Inline { .. } => None,
        };
        match self.ask(&ToWorker::Load(load), limits).await? {
            FromWorker::Loaded(_) => {
                self.location = location;
                Ok(())
            }
            _ => Err(unexpected("instead of the end of the load")),
        }
    }

    /// Notes the processes that the function has after its load. Without them, the worker serves one call.
    async fn settle(&mut self) {
        let root = self.process.id();
        let settled = tokio::task::spawn_blocking(move || SettledProcesses::of(root)).await;
        self.settled = settled.ok().flatten().map(Arc::new);
    }

    /// Stops the worker until its next call, and returns the bytes of its memory.
    ///
    /// Returns `None` if it may serve no further call: processes are left behind.
    pub async fn pause(&self) -> Option<u64> {
        let settled = self.settled.clone()?;
        tokio::task::spawn_blocking(move || settled.pause()).await.ok().flatten()
    }

    /// Returns whether a paused worker is still stopped.
    pub fn is_paused(&self) -> bool {
        self.settled.as_ref().is_some_and(|settled| settled.are_paused())
    }

    /// Continues a paused worker. Returns false if it has ended.
    pub fn resume(&self) -> bool {
        self.settled.as_ref().is_some_and(|settled| settled.resume())
    }

    /// Sends a request whose answer has no id, such as a list of evaluators, and returns the answer.
    pub async fn ask(&mut self, request: &ToWorker, limits: &CallLimits) -> Result<FromWorker, CodeError> {
        let mut console = CallConsole::new(limits.events.clone());
        let watch = self.watch(limits, LOAD_YIELDS_AFTER);
        let answer = tokio::select! {
            biased;
            error = watch.broken() => return Err(error),
            answer = self.asked(request, &mut console) => answer?,
        };
        match answer {
            FromWorker::Error(failure) => {
                Err(self.exceeded().unwrap_or_else(|| CodeError::Function(failure_of(failure, &console))))
            }
            answer => Ok(answer),
        }
    }

    async fn asked(&mut self, request: &ToWorker, console: &mut CallConsole) -> Result<FromWorker, CodeError> {
        self.send(request).await?;
        let answer = self.awaited(console).await?;
        self.finish(console).await?;
        Ok(answer)
    }

    /// Calls the loaded function.
    pub async fn call(&mut self, call: FunctionCall, limits: &CallLimits) -> WorkerAnswer {
        self.calls += 1;
        let id = call.id.clone();
        let watch = self.watch(limits, CALL_YIELDS_AFTER);
        let answer = tokio::select! {
            biased;
            error = watch.broken() => Err(error),
            answer = self.called(call, &id, limits) => answer,
        };
        match answer {
            Ok(answer) => answer,
            Err(error) => WorkerAnswer { result: Err(error), is_usable: false },
        }
    }

    async fn called(&mut self, call: FunctionCall, id: &str, limits: &CallLimits) -> Result<WorkerAnswer, CodeError> {
        let mut console = CallConsole::new(limits.events.clone());
        self.send(&ToWorker::Call(Box::new(call))).await?;
        let frame = loop {
            let frame = self.awaited(&mut console).await?;
            if frame.call_id() != Some(id) {
                return Err(unexpected("that belongs to no call"));
            }
            match frame {
                FromWorker::Progress(progress) => {
                    if let Some(events) = &limits.events {
                        // A reader that has left ends the call elsewhere.
                        let _ = events.send(CodeEvent::Progress(progress.data)).await;
                    }
                }
                last => break last,
            }
        };
        self.finish(&mut console).await?;
        match frame {
            FromWorker::Result(output) => Ok(WorkerAnswer { is_usable: output.left == 0, result: Ok(output) }),
            FromWorker::Error(failure) => {
                let exceeded = self.exceeded();
                let is_usable = failure.left == 0 && exceeded.is_none();
                let error = exceeded.unwrap_or_else(|| CodeError::Function(failure_of(failure, &console)));
                Ok(WorkerAnswer { result: Err(error), is_usable })
            }
            _ => Err(unexpected("during a call")),
        }
    }

    async fn send(&mut self, frame: &ToWorker) -> Result<(), CodeError> {
        let bytes =
            encode_frame(frame).map_err(|why| CodeError::NotRun(format!("the input of the function: {why}")))?;
        self.channel.write_all(&bytes).await.map_err(|_| self.ended_early(""))
    }

    /// Takes what the function wrote, and the connections that were refused, before its last frame.
    async fn finish(&mut self, console: &mut CallConsole) -> Result<(), CodeError> {
        while let Some(refusal) = self.tunnel.as_mut().and_then(WorkerTunnel::waiting_refusal) {
            console.note_refusal(refusal).await;
        }
        for pipe in [&mut self.stdout, &mut self.stderr] {
            console.finish(pipe).await.map_err(overflow)?;
        }
        Ok(())
    }

    fn watch(&self, limits: &CallLimits, yields_after: Duration) -> CallWatch {
        let CallLimits { until, time_max, .. } = *limits;
        let cgroup = self.process.cgroup().cloned();
        if let Some(cgroup) = &cgroup {
            cgroup.begin();
        }
        CallWatch { process: self.process.id(), limits: self.limits.clone(), until, time_max, yields_after, cgroup }
    }

    /// Returns the error of a function that passed a limit of the kernel during this exchange.
    fn exceeded(&self) -> Option<CodeError> {
        let exceeded = self.process.cgroup()?.exceeded()?;
        Some(CodeError::ended("LimitError", sentence(exceeded, &self.limits)))
    }

    /// Waits for a frame, while the console is read.
    async fn awaited(&mut self, console: &mut CallConsole) -> Result<FromWorker, CodeError> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(malformed)? {
                return Ok(frame);
            }
            tokio::select! {
                read = self.channel.read(&mut self.buffer) => match read {
                    Ok(count @ 1..) => self.decoder.push(&self.buffer[..count]),
                    _ => {
                        self.finish(console).await?;
                        return Err(self.ended_early(console.last_error()));
                    }
                },
                () = self.stdout.readable() => console.take(&mut self.stdout).await.map_err(overflow)?,
                () = self.stderr.readable() => console.take(&mut self.stderr).await.map_err(overflow)?,
                refusal = refusal_of(&mut self.tunnel) => console.note_refusal(refusal).await,
            }
        }
    }

    /// Returns whether an idle worker may not serve another call: it has ended, or sent a frame.
    pub fn is_restless(&mut self) -> bool {
        let mut byte = [0];
        let is_silent = matches!(self.channel.try_read(&mut byte), Err(why) if why.kind() == io::ErrorKind::WouldBlock);
        !is_silent || self.decoder.pending() > 0 || self.process.has_ended()
    }

    fn ended_early(&self, words: &str) -> CodeError {
        if let Some(error) = self.exceeded() {
            return error;
        }
        let mut message = "the function ended its process".to_owned();
        if !words.is_empty() {
            message.push_str(": ");
            message.push_str(words);
        }
        CodeError::ended("ProcessError", message)
    }
}

async fn refusal_of(tunnel: &mut Option<WorkerTunnel>) -> String {
    match tunnel {
        Some(tunnel) => tunnel.refusal().await,
        None => std::future::pending().await,
    }
}

fn overflow(_: ConsoleOverflow) -> CodeError {
    CodeError::ended("LimitError", "the function wrote more than 64 MiB to its console")
}

/// Returns the error of a function that wrote to the channel of its worker.
fn malformed(why: FrameCodecError) -> CodeError {
    CodeError::ended("ProtocolError", format!("the function answered without a value: {why}"))
}

fn unexpected(when: &str) -> CodeError {
    CodeError::ended("ProtocolError", format!("the worker of the function sent a frame {when}"))
}

/// Returns the failure of a function. A connection that was refused before is part of it.
fn failure_of(failure: WorkerFailure, console: &CallConsole) -> FunctionFailure {
    let WorkerFailure { name, mut message, stack, .. } = failure;
    if let Some(refusal) = console.refusal() {
        message.push_str(&format!(" ({refusal})"));
    }
    FunctionFailure { name, message, stack }
}
