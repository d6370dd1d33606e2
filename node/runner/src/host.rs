//! What a server has for code functions: the runner, unpacked bundles, and the address at which functions reach it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use assay_node_bundles::{BundleCache, BundleCacheLimits};
use assay_node_limits::Refusals;
use assay_node_sandbox::CodeSetting;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use tokio::sync::OnceCell;

use crate::error::CodeError;
use crate::runner::{CodeRunner, RunnerParts};
use crate::settings::FunctionSettings;
use crate::tunnel::{TunnelDialer, TunnelRefusal, TunnelStream, TunnelTarget};

/// Time after the start of a server at which it looks at its sandbox, unless a function runs earlier.
const PROBE_AFTER: Duration = Duration::from_secs(10);

/// Address of this server for its own functions, known once it listens.
#[derive(Clone, Debug, Default)]
pub struct OwnAddress(Arc<OnceLock<SocketAddr>>);

impl OwnAddress {
    /// Sets the address to the first one of a listener. Later calls have no effect.
    pub fn set_first(&self, addresses: &[SocketAddr]) {
        if let Some(address) = addresses.first() {
            let _ = self.0.set(*address);
        }
    }

    pub fn get(&self) -> Option<SocketAddr> {
        self.0.get().copied()
    }

    /// Returns the URL at which functions call the API.
    pub fn url(&self) -> Option<String> {
        self.get().map(|address| format!("http://{address}"))
    }
}

/// Dialer of a server whose functions do not run.
#[derive(Debug)]
struct NoNetwork;

impl TunnelDialer for NoNetwork {
    fn dial(&self, _: TunnelTarget) -> BoxFuture<'_, Result<Box<dyn TunnelStream>, TunnelRefusal>> {
        ready(Err(TunnelRefusal("this server runs no functions".to_owned()))).boxed()
    }
}

/// Code functions of a server, which are prepared at their first use. Clones share everything.
#[derive(Clone, Debug)]
pub struct CodeHost {
    pub own: OwnAddress,
    shared: Arc<SharedHost>,
}

#[derive(Debug)]
struct SharedHost {
    parts: RunnerParts,
    ready: OnceCell<ReadyHost>,
}

#[derive(Debug)]
struct ReadyHost {
    runner: Arc<CodeRunner>,
    bundles: BundleCache,
}

impl CodeHost {
    pub fn new(parts: RunnerParts, own: OwnAddress) -> CodeHost {
        CodeHost { own, shared: Arc::new(SharedHost { parts, ready: OnceCell::new() }) }
    }

    /// Returns the host of a server that runs no code, such as one within a test: a sandbox executes the program again.
    pub fn off(directory: PathBuf) -> CodeHost {
        let parts = RunnerParts {
            settings: FunctionSettings { code: CodeSetting::Off, ..FunctionSettings::default() },
            stage: directory.join("assay"),
            directory,
            dialer: Arc::new(NoNetwork),
            refusals: Refusals::default(),
        };
        CodeHost::new(parts, OwnAddress::default())
    }

    /// Returns the longest time of a call.
    pub fn time_max(&self) -> Duration {
        self.shared.parts.settings.time_max()
    }

    /// Returns whether inline JavaScript runs in QuickJS where there is no Node.js.
    pub fn has_quickjs_for_node(&self) -> bool {
        self.shared.parts.settings.quickjs_for_node
    }

    /// Returns the runner, after the trial of the sandbox.
    pub async fn runner(&self) -> Result<&Arc<CodeRunner>, CodeError> {
        Ok(&self.ready().await?.runner)
    }

    /// Returns the runner if it has been used before.
    pub fn runner_if_ready(&self) -> Option<&Arc<CodeRunner>> {
        self.shared.ready.get().map(|ready| &ready.runner)
    }

    /// Returns the bundles that this node has unpacked.
    pub async fn bundles(&self) -> Result<BundleCache, CodeError> {
        Ok(self.ready().await?.bundles.clone())
    }

    async fn ready(&self) -> Result<&ReadyHost, CodeError> {
        self.shared.ready.get_or_try_init(|| self.prepare()).await
    }

    async fn prepare(&self) -> Result<ReadyHost, CodeError> {
        let parts = &self.shared.parts;
        let failed = |why: String| CodeError::Node(format!("code functions could not be prepared: {why}"));
        let runner = CodeRunner::start(parts).await.map_err(|why| failed(why.to_string()))?;
        let directory = parts.directory.join("bundles");
        let limits = BundleCacheLimits { bytes: parts.settings.bundle_bytes_max, ..BundleCacheLimits::default() };
        let opened = tokio::task::spawn_blocking(move || BundleCache::open(&directory, limits)).await;
        let bundles = opened.map_err(|why| failed(why.to_string()))?.map_err(|why| failed(why.to_string()))?;
        Ok(ReadyHost { runner, bundles })
    }

    /// Prepares code functions some time after the start, and looks at idle workers until it is dropped.
    pub async fn keep(self) {
        tokio::time::sleep(PROBE_AFTER).await;
        match self.runner().await {
            Ok(runner) => Arc::clone(runner).keep().await,
            Err(why) => tracing::error!(%why, "code functions do not run"),
        }
    }
}
