//! Node whose functions are measured, and the requests that call them.

use std::path::Path;

use anyhow::Context;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::group::ProcessGroup;
use super::interpreter::{BareInterpreter, HandlerLanguage, input};
use crate::http::client::{Connection, Target};
use crate::http::server_process::ServerProcess;

/// Project of the functions.
const PROJECT: &str = "functions";
pub const INVOKE: &str = "/function/invoke";

/// Node with a project.
#[derive(Debug)]
pub struct CodeServer {
    server: ServerProcess,
    /// Dropped after the server.
    group: ProcessGroup,
    project: String,
}

impl CodeServer {
    /// Starts a node that uses these interpreters, and creates its project.
    pub fn start(
        runtime: &Runtime,
        program: &Path,
        interpreters: &[BareInterpreter],
        settings: &[(&str, &str)],
        dir: &Path,
    ) -> anyhow::Result<CodeServer> {
        let mut all: Vec<(String, String)> = Vec::new();
        for interpreter in interpreters {
            let name = format!("ASSAY_FUNCTIONS_{}", interpreter.language.runtime().to_uppercase());
            all.push((name, json!([interpreter.path]).to_string()));
        }
        all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let given: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let server = ServerProcess::assay_with(program, dir, &given)?;
        let group = ProcessGroup::of(server.id())?;
        let created = json!({ "name": PROJECT });
        let project: Value = runtime.block_on(post(server.target(), "/v1/project", &created))?;
        let project = project["id"].as_str().context("the id of a project")?.to_owned();
        Ok(CodeServer { server, group, project })
    }

    pub fn target(&self) -> &Target {
        self.server.target()
    }

    /// Returns the server with its workers.
    pub fn group(&self) -> &ProcessGroup {
        &self.group
    }

    /// Returns the processor seconds of the server without its workers.
    pub fn own_cpu_seconds(&self) -> anyhow::Result<f64> {
        Ok(self.server.process().cpu()?.values().sum())
    }

    /// Returns the id of the project.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Waits until the server is at rest.
    pub fn quiet(&self) -> anyhow::Result<()> {
        self.server.quiet()
    }

    /// Stores a scorer of inline code.
    pub fn store(&self, runtime: &Runtime, language: HandlerLanguage, slug: &str, code: &str) -> anyhow::Result<()> {
        let body = json!({
            "project_id": self.project, "name": slug, "slug": slug, "function_type": "scorer",
            "function_data": { "type": "code", "data": {
                "type": "inline", "runtime_context": context(language), "code": code,
            }},
        });
        runtime.block_on(post(self.target(), "/v1/function", &body)).map(|_| ())
    }

    /// Returns the request that calls a stored scorer.
    pub fn stored_call(slug: &str) -> Bytes {
        Bytes::from(json!({ "project_name": PROJECT, "slug": slug, "input": input() }).to_string())
    }

    /// Returns the request that runs code of its own.
    pub fn inline_call(language: HandlerLanguage, code: &str, input: &Value) -> Bytes {
        let body = json!({ "inline_context": context(language), "code": code, "input": input });
        Bytes::from(body.to_string())
    }
}

/// Returns the runtime context of a request.
pub fn context(language: HandlerLanguage) -> Value {
    let version = match language {
        HandlerLanguage::JavaScript => "20",
        HandlerLanguage::Python => "3.10",
    };
    json!({ "runtime": language.runtime(), "version": version })
}

/// Sends a request that must succeed.
pub async fn post(target: &Target, path: &str, body: &Value) -> anyhow::Result<Value> {
    Connection::new(target).post(path, &Bytes::from(body.to_string())).await?.json(path)
}
