//! `assay serve`: the only place where the pieces are wired, and the order in which they start and end.
//!
//! Start: the store; the first organization, if there is none; the actors; the door for administrators; HTTP. What was
//! started ends in the opposite order: readiness says no, HTTP finishes what it has, the actors answer what they took,
//! the store closes. A second signal ends the process at once, which is as safe as a crash.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use assay_cluster::Cluster;
use assay_node_auth::Secret;
use assay_node_http::{App, Health, Server};
use assay_node_objects::{Objects, system_clock};
use assay_node_records::{Founding, Records};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::admin::Door;
use crate::config::{Config, LogFormat};
use crate::metrics;

/// Wiring, signals, administrators: little work.
const MAIN_THREADS: usize = 2;
/// Takes the place of the key that a first start makes.
const API_KEY_VARIABLE: &str = "ASSAY_API_KEY";
/// How often deletes that could not be finished are taken up again.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// Returns when a signal ended it and everything is closed.
pub fn serve(config: Config) -> anyhow::Result<()> {
    start_log(&config)?;
    assay_cluster::install_abort_hook();
    let runtime = Builder::new_multi_thread()
        .worker_threads(MAIN_THREADS)
        .thread_name("assay-main")
        .enable_all()
        .build()
        .context("starting the program's runtime")?;
    let ended = runtime.block_on(run(config));
    // Nothing is left to wait for: whatever a handler still does ends with the process.
    runtime.shutdown_background();
    ended
}

/// Structured lines on stderr: stdout is for what the operator is told once.
fn start_log(config: &Config) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(&config.log.filter)
        .with_context(|| format!("log.filter: `{}` is no filter; write for instance info", config.log.filter))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log.format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

async fn run(config: Config) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let cluster = Arc::new(Cluster::open(config.store.cluster()?).await?);
    let records = Records::new(Arc::clone(&cluster));
    let made = records.found(founding(&config)?).await.context("making the first organization")?;
    let objects = Objects::start(Arc::clone(&cluster), config.objects.limits(), system_clock());
    let door = Door::open(&config.store.data_dir, records.clone())?;
    let sweeping = tokio::spawn(keep_sweeping(records.clone()));
    let serving = Arc::new(AtomicBool::new(true));
    let app = App {
        records,
        objects: objects.clone(),
        health: health(Arc::clone(&serving)),
        metrics: metrics::source(Arc::clone(&cluster), objects.clone()),
        config: config.http.clone(),
    };
    let server = Server::bind(app).with_context(|| format!("listening on {}", config.http.listen))?;
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    announce(made.as_ref(), scheme, &server)?;
    drop(made);

    let handle = server.handle();
    let http = tokio::spawn(server.run());
    signals.first().await;
    tracing::info!("a signal asks this node to stop");
    serving.store(false, Ordering::Relaxed);
    sweeping.abort();
    handle.drain();
    let stopping = async {
        handle.stop().await;
        http.await.context("the task of HTTP")?.context("serving HTTP")?;
        objects.shutdown().await;
        door.close();
        cluster.shutdown().await.context("closing the store")
    };
    tokio::select! {
        stopped = stopping => stopped,
        () = signals.first() => anyhow::bail!("a second signal: the node stops without finishing, as after a crash"),
    }
}

/// The start has swept once.
async fn keep_sweeping(records: Records) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        records.sweep_and_say().await;
    }
}

fn founding(config: &Config) -> anyhow::Result<Founding> {
    let api_key = match std::env::var(API_KEY_VARIABLE) {
        Ok(key) if key.trim().is_empty() => None,
        Ok(key) => Some(Secret::new(key.trim().to_owned())),
        Err(std::env::VarError::NotPresent) => None,
        Err(error) => return Err(error).context(API_KEY_VARIABLE),
    };
    Ok(Founding {
        org_name: config.founding.organization.clone(),
        owner_email: config.founding.owner_email.clone(),
        api_key,
    })
}

fn health(serving: Arc<AtomicBool>) -> Arc<dyn Fn() -> Health + Send + Sync> {
    Arc::new(move || Health { live: true, ready: serving.load(Ordering::Relaxed), notes: Vec::new() })
}

/// What an operator, or a program that started this one, waits for.
fn announce(made: Option<&Secret>, scheme: &str, server: &Server) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if let Some(key) = made {
        writeln!(out, "API key (shown once): {}", key.expose())?;
    }
    for address in server.addresses() {
        writeln!(out, "Assay is ready at {scheme}://{address}")?;
    }
    out.flush()?;
    Ok(())
}

/// SIGTERM and SIGINT, one after the other.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Signals> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn first(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
