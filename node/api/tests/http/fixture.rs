//! A server over a founded cluster in a directory of its own, and a caller that has its key.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{Cluster, ClusterConfig};
use assay_node_budgets::{Budgets, ReplicatedBudgets};
use assay_node_bulk_jobs::BulkJobs;
use assay_node_code_forwarding::CodeForwarding;
use assay_node_console::cluster::ClusterReader;
use assay_node_egress::{EgressClient, EgressConfig, EgressPolicy, EgressSettings, OwnEndpoints, TrustedRoots};
use assay_node_gateway::{Gateway, GatewayParts, GatewaySettings};
use assay_node_http::{
    Admin, App, Console, ConsoleConfig, Handle as ServerHandle, Health, HttpConfig, Server, Sockets, WiresConfig,
};
use assay_node_identity::{Identity, Jwts};
use assay_node_limits::{LimitsConfig, Quotas, RateLimiter, RatePeers, RateRule, RateView};
use assay_node_models::catalog::Catalog;
use assay_node_objects::{AuditLog, ObjectLimits, Objects, node_clock};
use assay_node_query::{Prices, Queries, QueryLimits};
use assay_node_records::{Founding, Records};
use assay_node_runner::CodeHost;
use assay_node_secrets::{Keyring, Secret, VaultKey};
use assay_node_usage::UsageMeter;
use assay_storage_model::NodeId;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;

use crate::client::{ClientResponse, connect, exchange, first_events, request};

pub const KEY: &str = "sk-the-key-of-the-tests-0123456789";
pub const ORG: &str = "acme";
pub const OWNER: &str = "owner@example.com";

pub struct Fixture {
    pub address: SocketAddr,
    pub metrics: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
    pub handle: ServerHandle,
    pub runtime: Runtime,
    cluster: Arc<Cluster>,
    objects: Objects,
    queries: Queries,
    serving: Option<JoinHandle<std::io::Result<()>>>,
    pub dir: TempDir,
}

impl Fixture {
    pub fn open() -> Fixture {
        Fixture::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut HttpConfig)) -> Fixture {
        Fixture::with_admin(change, None)
    }

    /// That takes what an issuer of JWTs signs.
    pub fn trusting(jwts: Jwts) -> Fixture {
        Fixture::built(|_| {}, None, &LimitsConfig::default(), Some(Arc::new(jwts)), GatewaySettings::default())
    }

    /// With a listener for administrators.
    pub fn with_admin(change: impl FnOnce(&mut HttpConfig), admin: Option<Admin>) -> Fixture {
        Fixture::built(change, admin, &LimitsConfig::default(), None, GatewaySettings::default())
    }

    /// With settings of the gateway.
    pub fn with_gateway(settings: GatewaySettings) -> Fixture {
        Fixture::built(|_| {}, None, &LimitsConfig::default(), None, settings)
    }

    /// With limits, as a node that is alone has them.
    pub fn with_rates(rates: Vec<RateRule>) -> Fixture {
        let limits = LimitsConfig { rates, ..LimitsConfig::default() };
        Fixture::built(|_| {}, None, &limits, None, GatewaySettings::default())
    }

    fn built(
        change: impl FnOnce(&mut HttpConfig),
        admin: Option<Admin>,
        limits: &LimitsConfig,
        jwts: Option<Arc<Jwts>>,
        settings: GatewaySettings,
    ) -> Fixture {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads");
        let dir = tempfile::tempdir().expect("a directory");
        let cluster = ClusterConfig { data_dir: dir.path().join("data"), shards: 4, ..ClusterConfig::default() };
        let mut config = HttpConfig { listen: "127.0.0.1:0".into(), workers: 2, ..HttpConfig::default() };
        change(&mut config);
        let (cluster, objects, queries, server) = runtime.block_on(async {
            let cluster = Arc::new(Cluster::open(cluster).await.expect("a cluster"));
            let objects = Objects::start(Arc::clone(&cluster), ObjectLimits::default(), node_clock(&cluster));
            let records = Records::new(Arc::clone(&cluster), Arc::new(AuditLog::new(objects.clone())));
            records.secrets().give_keys(Keyring::new(VaultKey::new([7; 32]), Vec::new()));
            let identity = Identity::new(records.clone());
            let identity = if let Some(jwts) = jwts { identity.trusting(jwts) } else { identity };
            let api_key = Some(Secret::new(KEY.into()));
            let founding = Founding { org_name: ORG.into(), owner_email: OWNER.into(), api_key };
            records.found(founding).await.expect("founded");
            let clock = node_clock(&cluster);
            let queries =
                Queries::start(Arc::clone(&cluster), QueryLimits::default(), Prices::standard().clone(), clock)
                    .expect("a folder for queries");
            let asked = queries.clone();
            let app = App {
                queries,
                identity,
                objects: objects.clone(),
                health: Arc::new(|| Health { live: true, ready: true, notes: Vec::new(), shortfalls: Vec::new() }),
                metrics: Arc::new(|| "assay_more 1\n".into()),
                config,
                wires: WiresConfig::default(),
                rates: RateLimiter::new(limits, Arc::new(Alone), Handle::current()).expect("rules"),
                quotas: Quotas::default(),
                admin,
                provider: None,
                gateway: gateway(&records, settings),
                code: CodeHost::off(dir.path().join("functions")),
                code_forwarding: CodeForwarding::start(&cluster, Handle::current()),
                usage: UsageMeter::open(&cluster, node_clock(&cluster)).expect("a folder"),
                console: Console {
                    config: ConsoleConfig { operators: vec![OWNER.into()], ..ConsoleConfig::default() },
                    cluster: "0a1b2c3d".into(),
                    node: "1".into(),
                    readings: Arc::new(ClusterReader::new(Arc::clone(&cluster))),
                    jobs: BulkJobs::start(&cluster),
                },
                services: assay_node_api::services(),
            };
            (cluster, objects, asked, {
                let admin = app.admin.as_ref().map(|admin| admin.config.clone()).unwrap_or_default();
                let sockets = Sockets::reserve(&app.config, &admin).expect("ports");
                Server::bind(app, sockets).expect("a server")
            })
        });
        let (address, handle) = (server.addresses()[0], server.handle());
        let metrics = server.metrics_addresses().first().copied();
        let admin = server.admin_addresses().first().copied();
        let serving = Some(runtime.spawn(server.run()));
        Fixture { address, metrics, admin, handle, runtime, cluster, objects, queries, serving, dir }
    }

    /// Another organization, of the same owner.
    pub fn organization(&self, name: &str) {
        let records = Records::new(Arc::clone(&self.cluster), Arc::new(AuditLog::new(self.objects.clone())));
        self.runtime.block_on(Identity::new(records).admin_create_organization(name, OWNER)).expect("an organization");
    }

    /// A service account that owns the organization, as an administrator makes it: with its token, in `service_token`.
    pub fn service_account(&self, name: &str) -> Value {
        let records = Records::new(Arc::clone(&self.cluster), Arc::new(AuditLog::new(self.objects.clone())));
        self.runtime.block_on(Identity::new(records).admin_create_service_account(ORG, name)).expect("an account")
    }

    pub fn send(&self, bytes: &[u8]) -> ClientResponse {
        exchange(&mut connect(self.address), bytes)
    }

    /// Without a credential.
    pub fn knock(&self, method: &str, path: &str) -> ClientResponse {
        self.send(&request(method, path, &[], b""))
    }

    pub fn get(&self, path: &str) -> ClientResponse {
        self.call("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> ClientResponse {
        self.call("POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    pub fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> ClientResponse {
        let bearer = format!("Bearer {KEY}");
        let headers: Vec<_> = [("Authorization", bearer.as_str())].iter().chain(headers).copied().collect();
        self.send(&request(method, path, &headers, body))
    }

    /// Returns the first events of a stream, each its name and its data.
    pub fn stream(&self, path: &str, events: usize) -> Vec<(String, Value)> {
        let mut stream = connect(self.address);
        let bearer = format!("Bearer {KEY}");
        stream.write_all(&request("GET", path, &[("Authorization", &bearer)], b"")).expect("takes a request");
        first_events(&mut stream, events)
    }

    /// A new record of the kind; its id.
    #[track_caller]
    pub fn make(&self, kind: &str, body: &Value) -> String {
        self.post(&format!("/v1/{kind}"), body).ok()["id"].as_str().expect("an id").to_owned()
    }

    #[track_caller]
    pub fn project(&self, name: &str) -> String {
        self.make("project", &json!({ "name": name }))
    }

    /// What `fetch` shows of an object.
    #[track_caller]
    pub fn events(&self, kind: &str, id: &str) -> Vec<Value> {
        let page = self.post(&format!("/v1/{kind}/{id}/fetch"), &json!({})).ok();
        page["events"].as_array().expect("events").clone()
    }

    /// Stops the server and waits for it.
    pub fn stop(&mut self) {
        self.runtime.block_on(self.handle.stop());
        if let Some(serving) = self.serving.take() {
            let ended = self.runtime.block_on(async { tokio::time::timeout(Duration::from_secs(40), serving).await });
            ended.expect("the server ends").expect("no panic").expect("no error");
        }
    }
}

/// No other nodes.
#[derive(Debug)]
struct Alone;

impl RatePeers for Alone {
    fn view(&self) -> Arc<RateView> {
        Arc::new(RateView { own: NodeId(1), known: 1, alive: vec![NodeId(1)] })
    }

    fn ask(&self, node: NodeId, _: Bytes, _: Duration) -> BoxFuture<'static, Result<Bytes, String>> {
        async move { Err(format!("there is no node {node}")) }.boxed()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
            self.runtime.block_on(async {
                self.queries.close().await;
                self.objects.shutdown().await;
                self.cluster.shutdown().await.expect("the cluster closes");
            });
        }
    }
}

/// Returns a gateway with budgets, which reaches servers on this machine.
fn gateway(records: &Records, settings: GatewaySettings) -> Gateway {
    let allow = json!({"allow": [{"cidr": "127.0.0.0/8", "ports": ["1024-65535"], "for": ["models", "mcp"]}]});
    let egress: EgressSettings = serde_json::from_value(allow).expect("settings");
    let policy = EgressPolicy::new(&egress, OwnEndpoints::default()).expect("a policy");
    let egress = EgressClient::new(EgressConfig::new(TrustedRoots::none()), policy);
    let catalog = Catalog::built_in().clone();
    let budgets = Budgets::new(Arc::new(ReplicatedBudgets(records.catalog().clone())), Handle::current());
    let parts = GatewayParts::new(egress, settings, catalog, Handle::current());
    Gateway::new(GatewayParts { budgets: Some(budgets), ..parts })
}
