//! LiteLLM's proxy with mock models, and with one of a scripted provider.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_test_api::http::{Request, send};
use assay_test_api::process::Process;
use serde_json::{Value, json};

/// Key of the proxy, which scripted providers take as well. No secret: the proxy is gone when its test ends.
pub const KEY: &str = "sk-litellm";
/// Time within which the proxy answers: its import takes seconds, and a minute on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(200);

/// A proxy on a port of its own.
#[derive(Debug)]
pub struct LiteLlmProxy {
    process: Process,
    origin: String,
    _folder: tempfile::TempDir,
}

impl LiteLlmProxy {
    /// Starts it before a scripted provider, and waits until it answers.
    pub fn start(python: &Path, provider: &str) -> Result<LiteLlmProxy> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("litellm.json");
        std::fs::write(&file, configuration(provider).to_string())?;
        // the proxy does not say which port the system chose
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(python.with_file_name("litellm"));
        command.current_dir(folder.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
        // it would fetch prices otherwise
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        command.arg("--config").arg(&file).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        let process = Process::start(&mut command, &folder.path().join("log"))?;
        let mut proxy = LiteLlmProxy { process, origin: format!("http://127.0.0.1:{port}"), _folder: folder };
        proxy.until_it_answers()?;
        Ok(proxy)
    }

    pub fn origin(&self) -> String {
        self.origin.clone()
    }

    fn until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        let request = Request { method: "GET".into(), target: "/health/liveliness".into(), ..Request::default() };
        while !send(&self.origin, &request).is_ok_and(|answer| answer.status == 200) {
            ensure!(self.process.lives(), "the proxy ended:\n{}", self.process.log());
            ensure!(Instant::now() < deadline, "no answer within {READY_WITHIN:?}:\n{}", self.process.log());
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// Returns the proxy's configuration: JSON is YAML too.
fn configuration(provider: &str) -> Value {
    let mock = |name: &str, response: &str| {
        let parameters = json!({ "model": "openai/gpt-4o", "api_key": "none", "mock_response": response });
        json!({ "model_name": name, "litellm_params": parameters })
    };
    let scripted =
        json!({ "model": "openai/scripted-cached", "api_key": "none", "api_base": format!("{provider}/v1") });
    json!({
        "model_list": [
            mock("mocked", "hello from the mock"),
            mock("limited", "litellm.RateLimitError"),
            { "model_name": "litellm-cached", "litellm_params": scripted }
        ],
        "litellm_settings": { "num_retries": 0 },
        "router_settings": { "disable_cooldowns": true },
        "general_settings": { "master_key": KEY }
    })
}

/// Returns what a client reads from the mock models.
pub fn mocked_values() -> Value {
    let read = |usage: [u64; 2]| json!({ "text": "hello from the mock", "finish": "stop", "usage": usage });
    let limited = json!(["RateLimitError", 429]);
    json!({ "plain": read([10, 20]), "stream": read([8, 4]), "error": limited, "streamed_error": limited })
}
