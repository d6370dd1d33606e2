//! `assay serve`: wiring of the parts of a node, and the order of startup and shutdown.
//!
//! Before the start: settings that can be wrong, and the addresses to listen on. A start that is refused there has created
//! nothing. Start: the store; the actors; the administrators' socket; HTTP; the first organization and the master key of
//! secrets, if there are none, which takes a majority of the cluster. Only then the node says that it is ready. What was
//! started ends in the opposite order: readiness says no, HTTP finishes what it has, queries that run on after their request
//! stop, the actors answer what they took, the store closes. A second signal ends the process at once, which is as safe as a
//! crash.

use std::io::{Stderr, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use assay_cluster::{Cluster, ClusterConfig, KeyWrap};
use assay_node_api::limits_warnings;
use assay_node_auth::{Asker, Job, LoginRules, Secret};
use assay_node_backups::Backups;
use assay_node_budgets::{Budgets, ReplicatedBudgets};
use assay_node_bulk_jobs::BulkJobs;
use assay_node_console::cluster::ClusterReader;
use assay_node_egress::EgressClient;
use assay_node_files::{Collector, Files};
use assay_node_gateway::Gateway;
use assay_node_http::{App, Console, Health, HttpConfig, Server, Sockets};
use assay_node_identity::{
    CLIENT_SECRET_VARIABLE, Identity, OpenId, Provider, TrustedIssuer, open_issuer, open_provider,
};
use assay_node_limits::{ClusterPeers, ClusterUsage, Quotas, RateLimiter, serve_leases};
use assay_node_models::catalog::Catalog;
use assay_node_objects::{AuditLog, Objects, node_clock};
use assay_node_organization_deletion::OrganizationDeletions;
use assay_node_query::{Prices, Queries};
use assay_node_records::{Founding, Records};
use assay_node_retention::Retention;
use assay_node_secrets::{KeySources, Keyring, MASTER_KEY_VARIABLE, NodeKeys};
use assay_node_usage::UsageMeter;
use assay_storage_model::sabotage;
use futures::FutureExt;
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::admin_api::socket::AdminSocket;
use crate::admin_api::{http_listener, token};
use crate::code_functions;
use crate::config::{Config, LogFormat};
use crate::https_client::TlsClient;
use crate::metrics;
use crate::model_calls;
use crate::outbound::{self, OutboundPolicy};
use crate::process::log_lines::LogLines;
use crate::process::{hardening, open_files, secret_variable};

/// Wiring, signals, administrators: little work.
const MAIN_THREADS: usize = 2;
/// Takes the place of the key that a first start makes.
pub const API_KEY_VARIABLE: &str = "ASSAY_API_KEY";
/// Context of errors about the first organization.
const FOUNDING: &str = "cannot create the first organization from [founding] and ASSAY_API_KEY";
/// Error of a shutdown that a second signal ends.
const SECOND_SIGNAL: &str = "received a second signal, stopping at once as after a crash";
/// Time that a shutdown gives the spans of model calls to be written.
const SPANS_WAIT: Duration = Duration::from_secs(10);
/// Interval of retries of unfinished deletes.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// Returns when a signal ended it and everything is closed.
pub fn serve(config: Config) -> anyhow::Result<()> {
    let log = start_log(&config)?;
    let ended = serve_logged(config);
    log.flush();
    ended
}

fn serve_logged(mut config: Config) -> anyhow::Result<()> {
    tracing::info!("assay {}", sabotage::version(env!("CARGO_PKG_VERSION")));
    if let Some(confession) = sabotage::confession() {
        tracing::warn!("{confession}");
    }
    hardening::close_memory();
    hardening::close_directory(&config.store.data_dir)?;
    open_files::fit(open_files::raise(), &mut config.http, &mut config.egress);
    assay_cluster::install_abort_hook();
    let runtime = Builder::new_multi_thread()
        .worker_threads(MAIN_THREADS)
        .thread_name("assay-main")
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(run(config));
    // Nothing is left to wait for: whatever a handler still does ends with the process.
    runtime.shutdown_background();
    ended
}

/// Starts the log on stderr. Stdout is for messages to the operator.
fn start_log(config: &Config) -> anyhow::Result<LogLines<Stderr>> {
    let filter = tracing_subscriber::EnvFilter::try_new(&config.log.filter).with_context(|| {
        format!("log.filter: `{}` is not a valid filter; write for instance info", config.log.filter)
    })?;
    let log = LogLines::start(std::io::stderr()).context("cannot start the thread of the log")?;
    log.flush_on_panic();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(log.clone());
    match config.log.format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(log)
}

async fn run(config: Config) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let Checked { founding, prices, trust, login, sockets, keys, outbound, models } = checked(&config).await?;
    let cluster = Arc::new(open(&config, &keys).await?);
    let objects = Objects::start(Arc::clone(&cluster), config.objects.limits(), node_clock(&cluster));
    let records = records(&config, (&cluster, &keys), &objects);
    let (identity, provider) = identity(&config, &records, (trust.as_ref(), login));
    let queries = queries(&config, prices, &cluster)?;
    let backups = open_backups(&config, &cluster)?;
    let admin_socket = AdminSocket::open(&config.store.data_dir, (&cluster, &identity, &objects), backups.clone())?;
    let serving = Arc::new(AtomicBool::new(false));
    let budgets = Budgets::new(Arc::new(ReplicatedBudgets(records.catalog().clone())), Handle::current());
    let gateway = model_calls::start_gateway(&config, (outbound.clone(), models, &budgets), &cluster, &records).await?;
    let usage = open_usage(&cluster, (&objects, &queries, &gateway))?;
    let (code, code_forwarding) = code_functions::start(&config, &outbound, &cluster)?;
    let functions = (&code, &code_forwarding);
    let app = App {
        identity: identity.clone(),
        objects: objects.clone(),
        queries: queries.clone(),
        health: health(Arc::clone(&cluster), records.clone(), Arc::clone(&serving)),
        metrics: metrics::source(&cluster, (&objects, &queries), (&outbound, &budgets), functions, &backups),
        config: config.http.clone(),
        wires: config.wires.clone(),
        rates: rate_limiter(&config, &cluster)?,
        quotas: Quotas::new(config.limits.quotas.clone(), ClusterUsage::start(&cluster, &config.limits.quotas)),
        admin: http_listener::open(&config, Arc::clone(&cluster))?,
        provider,
        gateway: gateway.clone(),
        code: code.clone(),
        code_forwarding: code_forwarding.clone(),
        usage: Arc::clone(&usage),
        console: console(&config, &cluster),
        services: assay_node_api::services(),
    };
    let server = Server::bind(app, sockets).context("cannot start to listen")?;
    code.own.set_first(&server.function_addresses());
    let outbound = OutboundPolicy::open(outbound, &config.egress, &server, Arc::clone(&cluster))?;
    http_listener::announce(&config, &server.admin_addresses())?; // early: they are needed most without a majority
    let (addresses, otlp) = (server.addresses(), server.otlp_addresses());
    let (handle, background) = (server.handle(), server.background());
    let http = tokio::spawn(server.run());
    let settling = async {
        let first = settle(&identity, &founding, (&keys, &serving)).await?;
        announce(first.as_ref(), &config, (&addresses, &otlp))
    };
    let started = signals.until(Box::pin(settling)).await;
    let mut beside = keep_beside(&config, &cluster, (&identity, budgets), (&objects, &queries));
    let kept = [outbound.keep().boxed(), code.keep().boxed(), background, keep_backing_up(backups, keys).boxed()];
    kept.into_iter().chain([Arc::clone(&usage).keep_saving().boxed()]).for_each(|kept| drop(beside.spawn(kept)));
    if let Some(started) = started {
        started?; // what was acknowledged is as safe as after a crash
        signals.first().await;
    }
    tracing::info!("received a signal, shutting down");
    serving.store(false, Ordering::Relaxed);
    beside.abort_all();
    handle.drain();
    let stopping = async {
        futures::join!(handle.stop(), code_forwarding.close(Duration::from_secs(config.http.stop_seconds_max)));
        http.await.context("the HTTP server failed")?.context("serving HTTP")?;
        gateway.settle(SPANS_WAIT).await;
        queries.close().await;
        objects.shutdown().await;
        usage.save();
        admin_socket.close();
        cluster.shutdown().await.context("cannot close the store")
    };
    signals.until(Box::pin(stopping)).await.unwrap_or_else(|| anyhow::bail!(SECOND_SIGNAL))
}

/// Credentials that a first start created.
struct FirstCredentials {
    key: Secret,
    /// Code of a link that signs in with the key.
    sign_in_code: Secret,
}

/// Makes what a first start needs, and returns the credentials if some were made. Takes a majority of the cluster. Then
/// the node serves.
async fn settle(
    identity: &Identity,
    founding: &Founding,
    (keys, serving): (&NodeKeys, &AtomicBool),
) -> anyhow::Result<Option<FirstCredentials>> {
    let records = identity.records();
    let made = records.found_when_heard(founding).await.context(FOUNDING)?;
    records.settle_master_key(keys).await.context("the master key of secrets")?;
    identity.sweep_and_say().await;
    serving.store(true, Ordering::Relaxed);
    let Some(key) = made else { return Ok(None) };
    let sign_in_code = identity.create_sign_in_code(key.clone())?;
    Ok(Some(FirstCredentials { key, sign_in_code }))
}

/// Backs up the cluster, if the settings have a backup.
async fn keep_backing_up(backups: Option<Backups>, keys: Arc<NodeKeys>) {
    if let Some(backups) = backups {
        backups.run(keys.ring().map(Keyring::to_texts).unwrap_or_default()).await;
    }
}

/// Returns what the server has to know of the console.
fn console(config: &Config, cluster: &Arc<Cluster>) -> Console {
    let id = cluster.id().to_string();
    Console {
        config: config.console.clone(),
        cluster: id.chars().take_while(|letter| *letter != '-').collect(),
        node: cluster.node().to_string(),
        readings: Arc::new(ClusterReader::new(Arc::clone(cluster))),
        jobs: BulkJobs::start(cluster),
    }
}

/// Starts the rate limiter, whose rules all nodes share.
fn rate_limiter(config: &Config, cluster: &Arc<Cluster>) -> anyhow::Result<RateLimiter> {
    let peers = Arc::new(ClusterPeers::new(Arc::clone(cluster)));
    let rates = RateLimiter::new(&config.limits, peers, Handle::current()).map_err(anyhow::Error::msg)?;
    serve_leases(cluster, &rates);
    Ok(rates)
}

/// Validated settings, before anything is created.
struct Checked {
    founding: Founding,
    prices: Prices,
    trust: Option<TrustedIssuer>,
    login: Option<(LoginRules, Arc<OpenId>)>,
    sockets: Sockets,
    keys: Arc<NodeKeys>,
    outbound: EgressClient,
    models: Catalog,
}

async fn checked(config: &Config) -> anyhow::Result<Checked> {
    limits_warnings(&config.limits).iter().for_each(|warning| tracing::warn!("{warning}"));
    let founding = founding(config)?;
    config.node()?;
    let keys = NodeKeys::open(KeySources {
        variable: secret_variable(MASTER_KEY_VARIABLE)?.as_ref(),
        settings: &config.secrets,
        data_dir: &config.store.data_dir,
    })?;
    token::check_token(config)?;
    Ok(Checked {
        founding,
        prices: config.queries.prices().context("queries.prices")?,
        trust: open_issuer(&config.jwt, &TlsClient).await?,
        login: open_provider(
            &config.oidc,
            config.http.public_origin(),
            secret_variable(CLIENT_SECRET_VARIABLE)?,
            Arc::new(TlsClient),
        )?,
        sockets: Sockets::reserve(&config.http, &config.admin)?,
        keys,
        outbound: outbound::client(&config.egress)?,
        models: model_calls::catalog(config)?,
    })
}

/// Opens the backup, if the settings have one.
fn open_backups(config: &Config, cluster: &Arc<Cluster>) -> anyhow::Result<Option<Backups>> {
    let settings = config.backup.checked().map_err(anyhow::Error::msg)?;
    settings.map(|settings| Backups::start(cluster, &settings).context("the backup")).transpose()
}

/// Opens the usage of credentials, in which later writes, queries and model calls are counted.
fn open_usage(
    cluster: &Arc<Cluster>,
    (objects, queries, gateway): (&Objects, &Queries, &Gateway),
) -> anyhow::Result<Arc<UsageMeter>> {
    let usage = UsageMeter::open(cluster, node_clock(cluster)).context("the usage of credentials")?;
    objects.count_usage(Arc::clone(&usage));
    queries.count_usage(Arc::clone(&usage));
    gateway.count_usage(Arc::clone(&usage));
    Ok(usage)
}

fn queries(config: &Config, prices: Prices, cluster: &Arc<Cluster>) -> anyhow::Result<Queries> {
    let queries = Queries::start(Arc::clone(cluster), config.queries.limits(), prices, node_clock(cluster));
    let queries = queries.context("cannot open the asynchronous queries")?;
    queries.run_jobs_for(Asker::Job(Job::LaterQueries).to_bytes());
    Ok(queries)
}

/// Opens or founds the data directory with the master keys of the node.
async fn open(config: &Config, keys: &Arc<NodeKeys>) -> anyhow::Result<Cluster> {
    let node = ClusterConfig { keys: Some(Arc::clone(keys) as Arc<dyn KeyWrap>), ..config.node()? };
    Ok(Cluster::open(node).await?)
}

/// Returns the records with the keys of secrets. They also authorize requests of other nodes.
fn records(config: &Config, (cluster, keys): (&Arc<Cluster>, &NodeKeys), objects: &Objects) -> Records {
    let records =
        Records::new(Arc::clone(cluster), Arc::new(AuditLog::new(objects.clone()))).with_rules(config.records.rules());
    if let Some(ring) = keys.ring() {
        records.secrets().give_keys(ring.clone());
    }
    cluster.guard_with(Arc::new(records.clone()));
    records
}

/// Returns the identity service and the OpenID provider.
fn identity(
    config: &Config,
    records: &Records,
    (trust, login): (Option<&TrustedIssuer>, Option<(LoginRules, Arc<OpenId>)>),
) -> (Identity, Option<Arc<dyn Provider>>) {
    let mut identity = Identity::new(records.clone()).with_invitations(config.people.invitations);
    if let Some(trust) = trust {
        identity = identity.trusting(Arc::clone(&trust.jwts));
    }
    let mut provider: Option<Arc<dyn Provider>> = None;
    if let Some((rules, known)) = login {
        identity = identity.with_logins(rules);
        provider = Some(known);
    }
    (identity, provider)
}

/// Starts background jobs, which run until they are aborted.
fn keep_beside(
    config: &Config,
    cluster: &Arc<Cluster>,
    (identity, budgets): (&Identity, Budgets),
    (objects, queries): (&Objects, &Queries),
) -> JoinSet<()> {
    let records = identity.records();
    let (cluster, every) = (Arc::clone(cluster), config.retention.every());
    let collector = Collector {
        cluster: Arc::clone(&cluster),
        records: records.clone(),
        files: Files::new(objects.on_behalf_of(&Asker::Job(Job::Files))),
        config: config.files.clone(),
    };
    let deletions = OrganizationDeletions { cluster: Arc::clone(&cluster), records: records.clone() };
    let job = Asker::Job(Job::Retention);
    let (objects, queries) = (objects.on_behalf_of(&job), queries.on_behalf_of(job.to_bytes()));
    let retention = Retention { cluster, records: records.clone(), objects, queries, every };
    let mut beside = JoinSet::new();
    beside.spawn(records.secrets().clone().keep_tending());
    beside.spawn(collector.run());
    beside.spawn(retention.keep());
    beside.spawn(deletions.keep());
    beside.spawn(keep_sweeping(identity.clone(), budgets));
    beside
}

/// Finishes deletes and logins that were cut short or are over, and deletes ledgers of deleted budgets. The start has swept
/// records once.
async fn keep_sweeping(identity: Identity, budgets: Budgets) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        identity.records().sweep_and_say().await;
        identity.sweep_and_say().await;
        budgets.sweep_and_say().await;
    }
}

/// Returns the settings of a first start. A founded directory ignores them.
fn founding(config: &Config) -> anyhow::Result<Founding> {
    let founding = Founding {
        org_name: config.founding.organization.clone(),
        owner_email: config.founding.owner_email.clone(),
        api_key: secret_variable(API_KEY_VARIABLE)?,
    };
    if !config.store.data_dir.join("FORMAT").exists() {
        founding.check_names().map_err(|why| anyhow::anyhow!("settings [founding]: {why}"))?;
        founding.check_key().map_err(|why| anyhow::anyhow!("environment {API_KEY_VARIABLE}: {why}"))?;
    }
    Ok(founding)
}

fn health(cluster: Arc<Cluster>, records: Records, serving: Arc<AtomicBool>) -> Arc<dyn Fn() -> Health + Send + Sync> {
    Arc::new(move || {
        let mut notes = cluster.not_ready();
        if !serving.load(Ordering::Relaxed) {
            notes.push("this node is starting or stopping".into());
        }
        Health { live: true, ready: notes.is_empty(), notes, shortfalls: records.secrets().shortfalls() }
    })
}

/// Warns if clients on other machines reach this node without TLS.
fn warn_of_plain_text(http: &HttpConfig, addresses: &[SocketAddr]) {
    if let Some(warning) = beyond_this_machine(http, addresses) {
        tracing::warn!("{warning}");
    }
}

/// Returns a warning for nodes with clients on other machines. Without `public_url` login returns the host of the
/// request, unless that is a domain name, which anyone can point here.
fn beyond_this_machine(http: &HttpConfig, addresses: &[SocketAddr]) -> Option<&'static str> {
    let is_alone = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
    (!is_alone && http.public_url.is_none() && http.tls.is_none()).then_some(
        "clients on other machines connect in plain text, and login fails for clients that use a domain of this \
         node. Set http.public_url to the origin of the proxy in front of this node, or set http.tls",
    )
}

/// Prints the first API key, a link that signs in with it, and the addresses, for operators and programs that wait for them.
fn announce(
    first: Option<&FirstCredentials>,
    config: &Config,
    (addresses, otlp): (&[SocketAddr], &[SocketAddr]),
) -> anyhow::Result<()> {
    warn_of_plain_text(&config.http, addresses);
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let mut out = std::io::stdout().lock();
    if let Some(first) = first {
        writeln!(out, "API key (shown once): {}", first.key.expose())?;
    }
    for address in otlp {
        writeln!(out, "Exporters of OpenTelemetry are served over gRPC at {scheme}://{address}")?;
    }
    for address in addresses.iter().filter(|_| config.console.enabled) {
        writeln!(out, "The console is at {scheme}://{address}/app")?;
    }
    // The code works once, so one link is enough. Browsers on this machine reach the first address.
    if let (Some(first), Some(address), true) = (first, addresses.first(), config.console.enabled) {
        let origin = match config.http.public_origin() {
            Some(origin) => origin.to_owned(),
            None => reached_at(scheme, *address),
        };
        let path = format!("/console/login/link?code={}", first.sign_in_code.expose());
        writeln!(out, "Sign in with this link (works once, for an hour): {origin}{path}")?;
    }
    for address in addresses {
        writeln!(out, "Assay is ready at {scheme}://{address}")?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the origin at which a browser on this machine reaches a listener.
fn reached_at(scheme: &str, address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("{scheme}://localhost:{}", address.port()),
        false => format!("{scheme}://{address}"),
    }
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

    /// Returns the output of a future, or `None` if a signal comes first.
    async fn until<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            output = future => Some(output),
            () = self.first() => None,
        }
    }

    async fn first(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_serves_others_in_the_open_is_warned() {
        let warned = |address: &str, change: fn(&mut HttpConfig)| {
            let mut http = HttpConfig::default();
            change(&mut http);
            beyond_this_machine(&http, &[address.parse().expect("an address")]).is_some()
        };
        assert!(warned("0.0.0.0:8000", |_| {}) && warned("[::]:8000", |_| {}) && warned("10.0.0.1:8000", |_| {}));
        for here in ["127.0.0.1:8000", "[::1]:8000", "[::ffff:127.0.0.1]:8000"] {
            assert!(!warned(here, |_| {}), "{here}");
        }
        assert!(!warned("0.0.0.0:8000", |http| http.public_url = Some("https://assay.example.com".into())));
    }
}
