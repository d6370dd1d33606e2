//! Code functions of this node: their parts, and the network that they reach.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use assay_cluster::Cluster;
use assay_node_code_forwarding::CodeForwarding;
use assay_node_egress::{EgressClient, EgressPurpose, EgressUrl, UNREACHABLE};
use assay_node_limits::Refusals;
use assay_node_quickjs::QuickJsLimits;
use assay_node_runner::runner::RunnerParts;
use assay_node_runner::{
    CodeHost, CodeSetting, FunctionNetwork, FunctionSettings, OwnAddress, TunnelDialer, TunnelRefusal, TunnelStream,
    TunnelTarget,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

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

/// Starts the code functions of this node, and the forwarding of calls between nodes.
pub fn start(
    config: &Config,
    egress: &EgressClient,
    cluster: &Arc<Cluster>,
) -> anyhow::Result<(CodeHost, CodeForwarding)> {
    Ok((host(config, egress)?, CodeForwarding::start(cluster, Handle::current())))
}

/// Returns the host of code functions, which prepares them at their first use.
fn host(config: &Config, egress: &EgressClient) -> anyhow::Result<CodeHost> {
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
        directory: directory(&config.functions, &data_dir, rustix::process::geteuid().is_root()),
        stage: own_program()?,
        dialer: Arc::new(dialer),
        refusals: Refusals::default(),
    };
    Ok(CodeHost::new(parts, own))
}

/// Returns the directory of code functions.
///
/// Where sandboxes have users of their own and no private root, these cannot enter the data directory.
fn directory(settings: &FunctionSettings, data_dir: &Path, is_root: bool) -> PathBuf {
    if let Some(named) = &settings.directory {
        return named.clone();
    }
    let may_be_entered = is_root && matches!(settings.code, CodeSetting::Reduced | CodeSetting::Unsafe);
    match data_dir.file_name().filter(|_| may_be_entered) {
        Some(name) => {
            let mut beside = name.to_owned();
            beside.push("-");
            beside.push(DIRECTORY);
            data_dir.with_file_name(beside)
        }
        None => data_dir.join(DIRECTORY),
    }
}

/// Serves functions with the engine of this program, on the channel at the standard input.
///
/// `arguments` are the bytes of memory and the seconds of a call.
pub fn serve_worker(arguments: &[OsString]) -> anyhow::Result<()> {
    let [memory, seconds] = arguments else { bail!("expected the bytes of memory and the seconds of a call") };
    let number = |word: &OsString| word.to_str().and_then(|text| text.parse::<u64>().ok());
    let limits = QuickJsLimits {
        memory_bytes: number(memory).and_then(|bytes| bytes.try_into().ok()).context("the bytes are not a number")?,
        time: Duration::from_secs(number(seconds).context("the seconds are not a number")?),
        ..QuickJsLimits::default()
    };
    let channel = std::io::stdin().as_fd().try_clone_to_owned().context("the channel")?;
    assay_node_quickjs::run(UnixStream::from(channel), limits).context("the channel")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_root_without_a_private_root_have_a_directory_that_others_enter() {
        let data_dir = Path::new("/var/lib/assay");
        let place =
            |code, is_root| directory(&FunctionSettings { code, ..FunctionSettings::default() }, data_dir, is_root);
        assert_eq!(place(CodeSetting::Reduced, true), Path::new("/var/lib/assay-functions"));
        for (code, is_root) in [(CodeSetting::Auto, true), (CodeSetting::Reduced, false), (CodeSetting::Off, true)] {
            assert_eq!(place(code, is_root), Path::new("/var/lib/assay/functions"), "{code:?}");
        }
        let named = FunctionSettings { directory: Some("/srv/f".into()), ..FunctionSettings::default() };
        assert_eq!(directory(&named, data_dir, true), Path::new("/srv/f"));
    }
}
