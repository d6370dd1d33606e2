//! What official SDKs read from llama.cpp's server, and from it through the gateway.
//!
//! Runs on demand, with the path of the program `llama-server` in ASSAY_LLAMA_SERVER. The server speaks the formats of
//! chat completions, Responses and Messages itself, so that most values are compared with its own.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_test_api::http::{Request, send};
use assay_test_api::process::Process;
use assay_test_clients::models::{ModelNode, ModelProvider};
use assay_test_clients::python::{command, folder, made};
use serde_json::{Value, json};

const SERVER: &str = "ASSAY_LLAMA_SERVER";
const KEY: &str = "sk-llama";
const MODELS: [&str; 2] = ["tiny", "tiny-embedding"];
const READY_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// A server with a tiny model, for conversations or for embeddings.
#[derive(Debug)]
struct LlamaServer {
    process: Process,
    origin: String,
}

impl LlamaServer {
    fn start(program: &Path, model: &Path, options: &[&str]) -> Result<LlamaServer> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        command.arg("--model").arg(model).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--jinja", "--api-key", KEY, "--parallel", "1", "--threads", "1", "--ctx-size", "4096"]);
        // the same answer to the same prompt, also with what an earlier one left in the cache
        command.args(["--temp", "0", "--no-cache-prompt"]).args(options);
        let log = model.with_extension(format!("{port}.log"));
        let mut server =
            LlamaServer { process: Process::start(&mut command, &log)?, origin: format!("http://127.0.0.1:{port}") };
        server.until_it_answers()?;
        Ok(server)
    }

    fn until_it_answers(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        let request = Request { method: "GET".into(), target: "/health".into(), ..Request::default() };
        while !send(&self.origin, &request).is_ok_and(|answer| answer.status == 200) {
            ensure!(self.process.lives(), "the server ended:\n{}", self.process.log());
            ensure!(Instant::now() < deadline, "no answer within {READY_WITHIN:?}:\n{}", self.process.log());
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// Runs the clients and returns what each read.
fn read_by(python: &Path, (origin, key): (&str, &str), clients: &[&str]) -> Result<Value> {
    let home = tempfile::tempdir()?;
    let mut command = command(python, home.path(), origin, key);
    command.arg(folder().join("llama_cpp.py")).args([origin, key]).args(MODELS).args(clients);
    let output = command.output().context("running Python")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn start_all(home: &Path) -> Result<[LlamaServer; 2]> {
    let program =
        std::env::var_os(SERVER).with_context(|| format!("{SERVER} has to name the program of the server"))?;
    let model = home.join("tiny.gguf");
    let writer = made("llama", include_str!("../python/llama.lock"))?;
    let script = folder().join("llama_model.py");
    let written = command(&writer, home, "", "").arg(script).arg(&model).status()?;
    ensure!(written.success(), "the model was not written");
    let program = Path::new(&program);
    Ok([
        LlamaServer::start(program, &model, &[])?,
        LlamaServer::start(program, &model, &["--embeddings", "--pooling", "mean"])?,
    ])
}

#[test]
#[ignore = "needs llama.cpp's server; on demand"]
fn clients_read_through_the_gateway_what_llama_cpp_answers() {
    let home = tempfile::tempdir().expect("a directory");
    let [chat, embedding] = start_all(home.path()).unwrap_or_else(|error| panic!("{error:#}"));
    let sdks = made("models", include_str!("../python/models.lock")).unwrap_or_else(|error| panic!("{error:#}"));
    let node = ModelNode::start();
    let add = |name: &str, server: &LlamaServer, models: Value| {
        let api_base = format!("{}/v1", server.origin);
        node.add_provider(&ModelProvider { name, provider_type: "openai", api_base: &api_base, secret: KEY, models });
    };
    add("llama", &chat, json!({ "tiny": { "format": "openai", "endpoint_types": ["chat"] } }));
    add("llama-embedding", &embedding, json!({ "tiny-embedding": { "format": "openai", "flavor": "embedding" } }));
    let read = |caller: (&str, &str), clients: &[&str]| {
        read_by(&sdks, caller, clients).unwrap_or_else(|error| panic!("{error:#}\n{}", chat.process.log()))
    };
    let mut directly = read((&chat.origin, KEY), &["chat", "responses", "messages"]);
    directly["embeddings"] = read((&embedding.origin, KEY), &["embeddings"])["embeddings"].take();
    let through = read(node.caller(), &["chat", "responses", "messages", "embeddings", "gemini"]);
    println!("directly: {directly:#}\nthrough the gateway: {through:#}");
    let all = directly.as_object().into_iter().chain(through.as_object()).flatten();
    let failed: Vec<_> = all.filter(|(_, values)| values.get("failed").is_some()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    for client in ["chat", "responses", "messages", "embeddings"] {
        assert_eq!(through[client], directly[client], "{client}");
    }
    // the server does not speak Gemini's format
    for (scenario, member) in
        [("plain", "text"), ("plain", "usage"), ("stream", "text"), ("tool", "calls"), ("tool", "usage")]
    {
        let (gemini, chat) = (&through["gemini"][scenario][member], &directly["chat"][scenario][member]);
        assert_eq!(gemini, chat, "gemini, {scenario}, {member}");
    }
    assert_eq!(through["gemini"]["schema"], directly["chat"]["schema"]);
    assert_eq!(through["gemini"]["plain"]["finish"], "MAX_TOKENS");
    assert_eq!(through["gemini"]["error"], json!(["ClientError", 400]));
}
