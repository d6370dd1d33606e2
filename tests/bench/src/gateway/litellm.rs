//! LiteLLM's proxy before the scripted model server, as its guide has it for production: one worker, no debug output.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;
use tokio::runtime::Runtime;

use super::scripts::{MESSAGES, PACED, WHOLE};
use crate::cluster::peers::tool::{Running, free_ports};
use crate::http::client::{Connection, Target};
use crate::process::Process;
use crate::python::{PythonEnvironment, folder_beside};

/// Packages of the tests of clients, which have the proxy as well.
const REQUIREMENTS: &str = include_str!("../../../clients/python/frameworks.lock");
/// Name of the proxy's package in the lock file.
const PACKAGE: &str = "litellm==";
/// Key of the proxy. No secret: the proxy is gone when the benchmark ends.
const KEY: &str = "sk-litellm";
/// Time within which the proxy answers: its import takes seconds, and a minute on a busy machine.
const READY_WAIT_MAX: Duration = Duration::from_secs(180);
const READY_LOOK: Duration = Duration::from_millis(200);

/// A proxy on a port of its own. It is ended with this.
#[derive(Debug)]
pub struct LiteLlm {
    running: Running,
    target: Target,
}

impl LiteLlm {
    /// Installs the proxy in `environment` or beside this program, starts it, and waits until it answers.
    pub fn start(
        runtime: &Runtime,
        environment: Option<PathBuf>,
        upstream: SocketAddr,
        dir: &Path,
    ) -> anyhow::Result<LiteLlm> {
        let folder = folder_beside(environment, "gateway-peers")?;
        let python = PythonEnvironment { requirements: REQUIREMENTS, programs: "LiteLLM's proxy" }.made(&folder)?;
        std::fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        let file = dir.join("litellm.json");
        std::fs::write(&file, configuration(upstream))?;
        // The proxy does not say which port the system chose.
        let [address] = free_ports::<1>()?;
        let mut command = Command::new(python.with_file_name("litellm"));
        command.current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", dir).env("PYTHONDONTWRITEBYTECODE", "1");
        // It would fetch prices otherwise.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        command.env("LITELLM_MODE", "PRODUCTION").env("LITELLM_LOG", "ERROR");
        command.arg("--config").arg(&file).args(["--num_workers", "1", "--telemetry", "False"]);
        command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
        let running = Running::start(&mut command, &dir.join("litellm.stderr"))?;
        let proxy = LiteLlm { running, target: Target { address, key: Some(KEY.to_owned()) } };
        runtime.block_on(proxy.ready()).with_context(|| format!("LiteLLM said: {}", proxy.running.said()))?;
        Ok(proxy)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn process(&self) -> Process {
        self.running.process()
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < READY_WAIT_MAX {
            let answer = Connection::new(&self.target).get("/health/liveliness").await;
            if answer.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            tokio::time::sleep(READY_LOOK).await;
        }
        bail!("LiteLLM's proxy is not ready after {} s", READY_WAIT_MAX.as_secs())
    }
}

/// Returns the version of the proxy.
pub fn version() -> &'static str {
    REQUIREMENTS.lines().find_map(|line| line.strip_prefix(PACKAGE)).unwrap_or("of unknown version")
}

/// Returns the proxy's configuration: JSON is YAML too.
fn configuration(upstream: SocketAddr) -> String {
    let model = |name: &str, vendor: &str, base: &str| {
        let parameters = json!({ "model": format!("{vendor}/{name}"), "api_key": "none", "api_base": base });
        json!({ "model_name": name, "litellm_params": parameters })
    };
    let (origin, v1) = (format!("http://{upstream}"), format!("http://{upstream}/v1"));
    let configuration = json!({
        "model_list": [
            model(WHOLE, "openai", &v1),
            model(PACED, "openai", &v1),
            model(&format!("{MESSAGES}{WHOLE}"), "anthropic", &origin)
        ],
        "litellm_settings": { "num_retries": 0, "set_verbose": false },
        "router_settings": { "disable_cooldowns": true },
        "general_settings": { "master_key": KEY }
    });
    configuration.to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_lock_file_names_the_version_of_the_proxy() {
        assert!(super::version().starts_with(|first: char| first.is_ascii_digit()), "{}", super::version());
    }
}
