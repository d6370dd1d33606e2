//! The measured sides: servers before the scripted model server, and the calls that clients make of each.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::litellm::LiteLlm;
use super::model_server::COUNT_PATH;
use super::scripts::{MESSAGES, OPEN, PACED, ScriptForm, WHOLE};
use crate::http::client::{Connection, Target};
use crate::http::server_process::ServerProcess;
use crate::process::Process;

/// Settings of our node: a model server on this machine is allowed, and more streams than the default.
const SETTINGS: [(&str, &str); 4] = [
    ("ASSAY_EGRESS_ALLOW", r#"[{cidr = "127.0.0.0/8", ports = ["1024-65535"], for = ["models"]}]"#),
    ("ASSAY_EGRESS_CALLS_MAX", "4096"),
    ("ASSAY_EGRESS_CALLS_PER_ORIGIN_MAX", "4096"),
    ("ASSAY_GATEWAY_CALLS_MAX", "4096"),
];
/// Project that logged calls are for.
const PROJECT: &str = "gateway";
const JSON_TYPE: (&str, &str) = ("content-type", "application/json");
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");
const LOGGED: (&str, &str) = ("x-bt-parent", "project_name:gateway");
const CACHED: (&str, &str) = ("x-bt-use-cache", "always");

/// What stands between the clients and the model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewaySide {
    /// Nothing.
    Direct,
    Bare,
    Assay,
    LiteLlm,
}

/// Formats of a call: the client's, and the model server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Translation {
    /// OpenAI's chat at both ends.
    None,
    /// Messages of Anthropic's format to a server of OpenAI's.
    MessagesToChat,
    /// Chat of OpenAI's format to a server of Anthropic's.
    ChatToMessages,
}

impl Translation {
    pub fn name(self) -> &'static str {
        match self {
            Translation::None => "passed",
            Translation::MessagesToChat => "messages to chat",
            Translation::ChatToMessages => "chat to messages",
        }
    }
}

/// A call as clients make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Call {
    pub side: GatewaySide,
    pub translation: Translation,
    /// Whether Assay logs it as a span.
    pub logged: bool,
}

impl Call {
    pub fn new(side: GatewaySide, translation: Translation, logged: bool) -> Call {
        Call { side, translation, logged }
    }

    /// Returns the name of the call in figures.
    pub fn name(self) -> String {
        let side = match self.side {
            GatewaySide::Direct => "direct",
            GatewaySide::Bare => "bare",
            GatewaySide::Assay => "assay",
            GatewaySide::LiteLlm => "litellm",
        };
        match (self.side, self.logged) {
            (GatewaySide::Direct | GatewaySide::Bare, _) => side.to_owned(),
            (_, false) => format!("{side}, {}", self.translation.name()),
            (_, true) => format!("{side}, {}, logged", self.translation.name()),
        }
    }
}

/// Request that is sent again and again.
#[derive(Clone, Debug)]
pub struct CallRequest {
    pub target: Target,
    pub path: &'static str,
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Bytes,
}

impl CallRequest {
    /// Returns a new connection for this request.
    pub fn connection(&self) -> Connection {
        Connection::saying(&self.target, &self.headers)
    }

    /// Returns the same request with a cached response.
    pub fn cached(mut self) -> CallRequest {
        self.headers.push(CACHED);
        self
    }

    /// Sends the request once and looks at the answer.
    pub async fn check(&self) -> anyhow::Result<()> {
        let answer = self.connection().post(self.path, &self.body).await?;
        let text = String::from_utf8(answer.ok(self.path)?).context("an answer that is no text")?;
        ensure!(text.contains("the label for the return"), "{}: this is not the scripted answer: {text}", self.path);
        Ok(())
    }
}

/// All servers of a run.
#[derive(Debug)]
pub struct Sides {
    model_server: ServerProcess,
    bare: ServerProcess,
    assay: ServerProcess,
    litellm: Option<LiteLlm>,
}

impl Sides {
    /// Starts the servers. LiteLLM's proxy needs its own environment: `None` leaves it out.
    pub fn start(
        runtime: &Runtime,
        program: &Path,
        litellm: Option<Option<PathBuf>>,
        dir: &Path,
    ) -> anyhow::Result<Sides> {
        let model_server = ServerProcess::part(&dir.join("model-server"), &["model-server"])?;
        let upstream = model_server.target().address;
        let bare = ServerProcess::part(&dir.join("bare"), &["bare-proxy", &upstream.to_string()])?;
        let assay = assay(runtime, program, upstream, &dir.join("assay"))?;
        let litellm = litellm.map(|environment| LiteLlm::start(runtime, environment, upstream, &dir.join("litellm")));
        Ok(Sides { model_server, bare, assay, litellm: litellm.transpose()? })
    }

    /// Returns the address of the model server.
    pub fn upstream(&self) -> SocketAddr {
        self.model_server.target().address
    }

    /// Returns the process whose time and memory a side takes.
    pub fn process(&self, side: GatewaySide) -> anyhow::Result<Process> {
        Ok(match side {
            GatewaySide::Direct => self.model_server.process(),
            GatewaySide::Bare => self.bare.process(),
            GatewaySide::Assay => self.assay.process(),
            GatewaySide::LiteLlm => self.litellm.as_ref().context("LiteLLM is left out")?.process(),
        })
    }

    /// Waits until our node has done what calls left behind.
    pub fn quiet(&self) -> anyhow::Result<()> {
        self.assay.quiet()
    }

    /// Returns the request of a call; streamed with one of the paced models.
    pub fn request(&self, call: Call, model: &str, stream: bool) -> anyhow::Result<CallRequest> {
        let target = match call.side {
            GatewaySide::Direct => self.model_server.target(),
            GatewaySide::Bare => self.bare.target(),
            GatewaySide::Assay => self.assay.target(),
            GatewaySide::LiteLlm => self.litellm.as_ref().context("LiteLLM is left out")?.target(),
        };
        Ok(request_to(target, call, model, stream))
    }

    /// Returns how many conversations the model server has had.
    pub async fn conversations(&self) -> anyhow::Result<u64> {
        Connection::new(self.model_server.target()).get(COUNT_PATH).await?.json(COUNT_PATH)
    }
}

/// Returns the request of a call to a server.
pub fn request_to(target: &Target, call: Call, model: &str, stream: bool) -> CallRequest {
    let (form, model) = match call.translation {
        Translation::None => (ScriptForm::Chat, model.to_owned()),
        Translation::MessagesToChat => (ScriptForm::Messages, model.to_owned()),
        Translation::ChatToMessages => (ScriptForm::Chat, format!("{MESSAGES}{model}")),
    };
    let mut headers = vec![JSON_TYPE];
    if form == ScriptForm::Messages {
        headers.push(VERSION);
    }
    if call.logged {
        headers.push(LOGGED);
    }
    CallRequest { target: target.clone(), path: form.path(), headers, body: form.request(&model, stream) }
}

/// Starts our node with secrets for the model server in both formats, and a project for logged calls.
pub fn assay(runtime: &Runtime, program: &Path, upstream: SocketAddr, dir: &Path) -> anyhow::Result<ServerProcess> {
    let server = ServerProcess::assay_with(program, dir, &SETTINGS)?;
    let secret = |name: &str, kind: &str, prefix: &str| {
        let models = [WHOLE, PACED, OPEN].map(|model| (format!("{prefix}{model}"), json!({ "format": kind })));
        let metadata = json!({
            "api_base": format!("http://{upstream}/v1"),
            "excludeDefaultModels": true,
            "customModels": serde_json::Map::from_iter(models)
        });
        json!({ "name": name, "type": kind, "secret": "scripted-key", "metadata": metadata })
    };
    runtime.block_on(async {
        let mut connection = Connection::new(server.target());
        for (path, body) in [
            ("/v1/ai_secret", secret("chat-server", "openai", "")),
            ("/v1/ai_secret", secret("messages-server", "anthropic", MESSAGES)),
            ("/v1/project", json!({ "name": PROJECT })),
        ] {
            connection.post(path, &Bytes::from(body.to_string())).await?.json::<Value>(path)?;
        }
        anyhow::Ok(())
    })?;
    Ok(server)
}
