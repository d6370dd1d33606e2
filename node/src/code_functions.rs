//! Code functions of this node: their parts, and the network that they reach.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use assay_node_egress::{EgressClient, EgressPurpose, EgressUrl, UNREACHABLE};
use assay_node_limits::Refusals;
use assay_node_runner::runner::RunnerParts;
use assay_node_runner::{
    CodeHost, FunctionNetwork, OwnAddress, TunnelDialer, TunnelRefusal, TunnelStream, TunnelTarget,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::TcpStream;

use crate::config::Config;

/// Directory of code functions in the data directory.
const DIRECTORY: &str = "functions";

/// Dialer of connections that functions open: to this node, or to the outside by the policy of outbound calls.
#[derive(Debug)]
struct FunctionDialer {
    own: OwnAddress,
    /// Host and port by which clients reach the cluster in plain text.
    public: Option<(String, u16)>,
    network: FunctionNetwork,
    egress: EgressClient,
}

/// Returns what this node has for code functions. They are prepared at their first use.
pub fn host(config: &Config, egress: &EgressClient) -> anyhow::Result<CodeHost> {
    let own = OwnAddress::default();
    let dialer = FunctionDialer {
        own: own.clone(),
        public: config.http.public_origin().and_then(plain_origin),
        network: config.functions.network,
        egress: egress.clone(),
    };
    let data_dir = std::path::absolute(&config.store.data_dir).context("store.data_dir")?;
    let parts = RunnerParts {
        settings: config.functions.clone(),
        directory: data_dir.join(DIRECTORY),
        stage: own_program()?,
        dialer: Arc::new(dialer),
        refusals: Refusals::default(),
    };
    Ok(CodeHost::new(parts, own))
}

/// Returns the path of this program, which sandboxes execute again.
pub fn own_program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("the path of this program")
}

/// Returns host and port of an origin without TLS, whose connections this node takes itself.
fn plain_origin(origin: &str) -> Option<(String, u16)> {
    let url = origin.parse::<EgressUrl>().ok()?;
    origin.starts_with("http://").then(|| (url.host().to_string(), url.port()))
}

impl FunctionDialer {
    fn is_own(&self, target: &TunnelTarget) -> Option<SocketAddr> {
        let own = self.own.get()?;
        let is_listener = target.host == own.ip().to_string() && target.port == own.port();
        let is_public = self.public.as_ref().is_some_and(|(host, port)| *host == target.host && *port == target.port);
        (is_listener || is_public).then_some(own)
    }

    async fn connect(&self, target: TunnelTarget) -> Result<Box<dyn TunnelStream>, TunnelRefusal> {
        if let Some(own) = self.is_own(&target) {
            let stream = TcpStream::connect(own).await;
            return stream
                .map(|stream| Box::new(stream) as Box<dyn TunnelStream>)
                .map_err(|_| TunnelRefusal("this server does not answer".to_owned()));
        }
        if self.network != FunctionNetwork::Public {
            let why = "functions reach this cluster only: functions.network is self";
            return Err(TunnelRefusal(why.to_owned()));
        }
        let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host };
        // Any port of an allowed host, with any protocol: the function speaks TLS itself.
        let url = format!("https://{host}:{}/", target.port).parse::<EgressUrl>();
        let url = url.map_err(|why| TunnelRefusal(why.to_string()))?;
        match self.egress.open_stream(EgressPurpose::Functions, &url).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(why) => {
                // The reason may tell what is in the operator's network.
                tracing::info!(organization = %target.organization, reason = %why.operator_reason(), "a connection of a function was refused");
                Err(TunnelRefusal(UNREACHABLE.to_owned()))
            }
        }
    }
}

impl TunnelDialer for FunctionDialer {
    fn dial(&self, target: TunnelTarget) -> BoxFuture<'_, Result<Box<dyn TunnelStream>, TunnelRefusal>> {
        self.connect(target).boxed()
    }
}
