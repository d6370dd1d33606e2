//! One sandboxed process: its start, the load of a function, and calls within limits.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use assay_node_runtimes::{
    CallOutput, ChannelDecoder, FromWorker, FunctionCall, FunctionLoad, ToWorker, WorkerFailure, encode_frame,
};
use assay_node_sandbox::JailLimits;
use assay_node_sandbox::spawner::{KillOnDrop, SandboxedProcess};
use assay_node_sandbox::usage::{SandboxUsage, measure, measure_shared_memory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::console::{CallConsole, CodeEvent, ConsoleOverflow, ConsolePipe, ConsoleStream};
use crate::error::{CodeError, FunctionFailure};
use crate::tunnel::WorkerTunnel;

/// Interval between two measurements of a running worker.
const MEASURE_EVERY: Duration = Duration::from_millis(50);
/// Bytes that are read from the channel at once.
const READ_BYTES: usize = 64 << 10;
/// Processor time that an idle worker may use between two checks.
const IDLE_PROCESSOR_MAX: Duration = Duration::from_millis(500);

/// Running worker.
#[derive(Debug)]
pub struct Worker {
    channel: UnixStream,
    decoder: ChannelDecoder<FromWorker>,
    buffer: Box<[u8]>,
    stdout: ConsolePipe,
    stderr: ConsolePipe,
    tunnel: Option<WorkerTunnel>,
    limits: JailLimits,
    calls: u32,
    /// Processor time at the last check of the idle worker.
    idle_processor: Option<Duration>,
    /// Ends the process before its files are removed.
    process: KillOnDrop,
    _files: WorkerFiles,
}

/// Directory of a worker, removed when it is dropped.
#[derive(Debug)]
pub struct WorkerFiles(pub PathBuf);

impl Drop for WorkerFiles {
    fn drop(&mut self) {
        // What is left is removed at the next start of the node.
        let _ = std::fs::remove_dir_all(&self.0);
    }
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
        tunnel: Option<WorkerTunnel>,
        limits: JailLimits,
        files: WorkerFiles,
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
            limits,
            calls: 0,
            idle_processor: None,
            process,
            _files: files,
        })
    }

    /// Number of calls that the worker has served.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Waits until the interpreter has started.
    pub async fn ready(&mut self, limits: &CallLimits) -> Result<(), CodeError> {
        let mut console = CallConsole::new(limits.events.clone());
        match self.awaited(&mut console, limits).await? {
            FromWorker::Ready(_) => Ok(()),
            _ => Err(unexpected("before it was ready")),
        }
    }

    /// Waits for the interpreter, and loads a function.
    pub async fn load(&mut self, load: FunctionLoad, limits: &CallLimits) -> Result<(), CodeError> {
        self.ready(limits).await?;
        match self.ask(&ToWorker::Load(load), limits).await? {
            FromWorker::Loaded(_) => Ok(()),
            _ => Err(unexpected("instead of the end of the load")),
        }
    }

    /// Sends a request whose answer has no id, such as a list of evaluators, and returns the answer.
    pub async fn ask(&mut self, request: &ToWorker, limits: &CallLimits) -> Result<FromWorker, CodeError> {
        let mut console = CallConsole::new(limits.events.clone());
        self.send(request).await?;
        let answer = self.awaited(&mut console, limits).await?;
        self.finish(&mut console).await?;
        match answer {
            FromWorker::Error(failure) => Err(CodeError::Function(failure_of(failure))),
            answer => Ok(answer),
        }
    }

    /// Calls the loaded function.
    pub async fn call(&mut self, call: FunctionCall, limits: &CallLimits) -> WorkerAnswer {
        self.calls += 1;
        self.idle_processor = None;
        let id = call.id.clone();
        match self.called(call, &id, limits).await {
            Ok(answer) => answer,
            Err(error) => WorkerAnswer { result: Err(error), is_usable: false },
        }
    }

    async fn called(&mut self, call: FunctionCall, id: &str, limits: &CallLimits) -> Result<WorkerAnswer, CodeError> {
        let mut console = CallConsole::new(limits.events.clone());
        self.send(&ToWorker::Call(Box::new(call))).await?;
        let answer = loop {
            let frame = self.awaited(&mut console, limits).await?;
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
                FromWorker::Result(output) => {
                    let is_usable = output.left == 0;
                    break WorkerAnswer { result: Ok(output), is_usable };
                }
                FromWorker::Error(failure) => {
                    let is_usable = failure.left == 0;
                    break WorkerAnswer { result: Err(CodeError::Function(failure_of(failure))), is_usable };
                }
                FromWorker::Ready(_) | FromWorker::Loaded(_) | FromWorker::Listed(_) => {
                    return Err(unexpected("during a call"));
                }
            }
        };
        self.finish(&mut console).await?;
        Ok(answer)
    }

    async fn send(&mut self, frame: &ToWorker) -> Result<(), CodeError> {
        let bytes =
            encode_frame(frame).map_err(|why| CodeError::NotRun(format!("the input of the function: {why}")))?;
        self.channel.write_all(&bytes).await.map_err(|_| self.ended_early(""))
    }

    async fn finish(&mut self, console: &mut CallConsole) -> Result<(), CodeError> {
        for pipe in [&mut self.stdout, &mut self.stderr] {
            console.finish(pipe).await.map_err(overflow)?;
        }
        Ok(())
    }

    /// Waits for a frame, while the console is read and the limits are checked.
    async fn awaited(&mut self, console: &mut CallConsole, limits: &CallLimits) -> Result<FromWorker, CodeError> {
        let mut ticks = interval_at(Instant::now() + MEASURE_EVERY, MEASURE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut processor_at_start = None;
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(|why| CodeError::Node(why.to_string()))? {
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
                refusal = refusal_of(&mut self.tunnel) => console.note(&refusal).await,
                _ = ticks.tick() => {
                    let usage = self.measured().await;
                    let start = *processor_at_start.get_or_insert(usage.processor);
                    self.check(usage, usage.processor.saturating_sub(start), limits).await?;
                }
                () = sleep_until(limits.until) => {
                    let seconds = limits.time_max.as_secs_f64();
                    return Err(CodeError::ended("TimeoutError", format!("the function ran for more than {seconds} seconds")));
                }
            }
        }
    }

    async fn measured(&self) -> SandboxUsage {
        let id = self.process.id();
        // Reading may wait for the kernel.
        tokio::task::spawn_blocking(move || measure(id)).await.unwrap_or_default()
    }

    /// Checks what a running call uses.
    async fn check(&self, usage: SandboxUsage, processor: Duration, limits: &CallLimits) -> Result<(), CodeError> {
        let ended = |message: String| Err(CodeError::ended("LimitError", message));
        if usage.memory_bytes > self.limits.memory_bytes {
            let id = self.process.id();
            let shared = tokio::task::spawn_blocking(move || measure_shared_memory(id)).await;
            if shared.unwrap_or(usage.memory_bytes) > self.limits.memory_bytes {
                let mebibytes = self.limits.memory_bytes >> 20;
                return ended(format!("the function used more than {mebibytes} MiB of memory"));
            }
        }
        if usage.threads > self.limits.processes {
            return ended(format!("the function started more than {} processes and threads", self.limits.processes));
        }
        if processor > limits.time_max {
            let seconds = limits.time_max.as_secs_f64();
            return ended(format!("the function used more than {seconds} seconds of processor time"));
        }
        Ok(())
    }

    /// Returns whether an idle worker may not serve another call: it has ended, sent a frame, or works on its own.
    pub fn is_restless(&mut self) -> bool {
        let mut byte = [0];
        let is_silent = matches!(self.channel.try_read(&mut byte), Err(why) if why.kind() == io::ErrorKind::WouldBlock);
        !is_silent || self.decoder.pending() > 0 || self.process.has_ended()
    }

    /// Returns whether an idle worker has used the processor since the last check.
    pub fn is_busy_alone(&mut self) -> bool {
        let processor = self.process.usage().processor;
        let last = self.idle_processor.replace(processor).unwrap_or(processor);
        processor.saturating_sub(last) > IDLE_PROCESSOR_MAX
    }

    fn ended_early(&self, words: &str) -> CodeError {
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

fn unexpected(when: &str) -> CodeError {
    CodeError::ended("ProtocolError", format!("the worker of the function sent a frame {when}"))
}

fn failure_of(failure: WorkerFailure) -> FunctionFailure {
    FunctionFailure { name: failure.name, message: failure.message, stack: failure.stack }
}
