//! `assay demo`: fills a project of a running server with example data, and removes it again.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use assay_node_auth::{Secret, form_encoded};
use assay_node_demo::{DemoContent, PROMPT_NAME, PROMPT_SLUG, demo};
use assay_node_egress::Method;
use assay_node_import_client::{HttpPeer, PeerHeader};
use clap::Args;
use serde_json::{Value, json};

use super::output;
use crate::process::secret_variable;

/// Variables with the API key, in the order in which they are looked for.
const KEY_VARIABLES: [&str; 2] = ["ASSAY_API_KEY", "BRAINTRUST_API_KEY"];
/// Mark of the project, so that a project of the same name is neither filled nor removed.
const DESCRIPTION: &str = "Example data of `assay demo`. Remove it with `assay demo --remove`.";
/// Rows of one request.
const ROWS_AT_ONCE: usize = 500;
const SEED: u64 = 7;

/// Arguments of `assay demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Address of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8000")]
    to: String,
    /// Name of the project, which must not exist
    #[arg(long, value_name = "NAME", default_value = "demo")]
    project: String,
    /// Remove the project with all its example data
    #[arg(long)]
    remove: bool,
    /// PEM file with the certificate to trust for https, or with that of its authority
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Fills or removes the project.
pub fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let bearer = PeerHeader { name: "authorization", value: Secret::new(format!("Bearer {}", key()?.expose())) };
    let peer = HttpPeer::new(&args.to, &[bearer], args.ca.as_deref(), false)?;
    let server = DemoServer { peer };
    runtime.block_on(async {
        match args.remove {
            true => server.remove(&args.project).await,
            false => server.fill(args).await,
        }
    })
}

fn key() -> anyhow::Result<Secret> {
    for name in KEY_VARIABLES {
        if let Some(key) = secret_variable(name)? {
            return Ok(key);
        }
    }
    anyhow::bail!(
        "set {} to an API key of the server; `assay admin create-key` creates one",
        KEY_VARIABLES.join(" or ")
    )
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

fn id_of(record: &Value) -> anyhow::Result<String> {
    Ok(record["id"].as_str().context("the server answered without an id")?.to_owned())
}

struct DemoServer {
    peer: HttpPeer,
}

impl DemoServer {
    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        self.peer.json(method, path, body, &mut |line| output::note(format_args!("{line}"))).await
    }

    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.json(Method::POST, path, Some(body)).await
    }

    /// Returns the project with this name, if there is one.
    async fn project(&self, name: &str) -> anyhow::Result<Option<Value>> {
        let path = format!("/v1/project?{}", form_encoded(&[("project_name", name)]));
        let mut found = self.json(Method::GET, &path, None).await?;
        Ok(found.pointer_mut("/objects/0").map(Value::take))
    }

    async fn fill(&self, args: &DemoArgs) -> anyhow::Result<()> {
        let name = &args.project;
        if let Some(known) = self.project(name).await? {
            match known["description"] == DESCRIPTION {
                true => anyhow::bail!("the project `{name}` has example data already: remove it with --remove"),
                false => anyhow::bail!("the project `{name}` exists and is no demo: choose another --project"),
            }
        }
        let mut content = demo(SEED, now_micros());
        let project = self.post("/v1/project", &json!({"name": name, "description": DESCRIPTION})).await?;
        let project = id_of(&project)?;
        self.insert("project_logs", &project, &content.log).await?;
        let dataset =
            json!({"project_id": project, "name": "questions", "description": "Questions with their answers"});
        let dataset = id_of(&self.post("/v1/dataset", &dataset).await?)?;
        self.insert("dataset", &dataset, &content.cases).await?;
        self.prompts(&project, &content).await?;
        for experiment in &mut content.experiments {
            let body = json!({"project_id": project, "name": experiment.name, "description": experiment.description,
                "metadata": experiment.metadata, "dataset_id": dataset});
            let id = id_of(&self.post("/v1/experiment", &body).await?)?;
            for origin in experiment.events.iter_mut().filter_map(|event| event.get_mut("origin")) {
                origin["object_id"] = Value::from(dataset.as_str());
            }
            self.insert("experiment", &id, &experiment.events).await?;
        }
        output::line(format_args!(
            "The project `{name}` has {} spans, {} cases, {} experiments and a prompt: {}/app",
            content.log.len(),
            content.cases.len(),
            content.experiments.len(),
            args.to.trim_end_matches('/')
        ))
    }

    async fn insert(&self, kind: &str, id: &str, events: &[Value]) -> anyhow::Result<()> {
        let mut sent = 0;
        for events in events.chunks(ROWS_AT_ONCE) {
            self.post(&format!("/v1/{kind}/{id}/insert"), &json!({"events": events})).await?;
            sent += events.len();
            output::note(format_args!("{sent} rows of {kind}"));
        }
        Ok(())
    }

    /// Creates the prompt, and changes it to each of its later versions.
    async fn prompts(&self, project: &str, content: &DemoContent) -> anyhow::Result<()> {
        let Some((first, later)) = content.prompts.split_first() else { return Ok(()) };
        let body = json!({"project_id": project, "name": PROMPT_NAME, "slug": PROMPT_SLUG, "prompt_data": first});
        let id = id_of(&self.post("/v1/prompt", &body).await?)?;
        for version in later {
            let body = json!({"prompt_data": version});
            self.json(Method::PATCH, &format!("/v1/prompt/{id}"), Some(&body)).await?;
        }
        Ok(())
    }

    async fn remove(&self, name: &str) -> anyhow::Result<()> {
        let project = self.project(name).await?.with_context(|| format!("there is no project `{name}`"))?;
        anyhow::ensure!(
            project["description"] == DESCRIPTION,
            "the project `{name}` was not made by `assay demo`, so it is not removed"
        );
        self.json(Method::DELETE, &format!("/v1/project/{}", id_of(&project)?), None).await?;
        output::line(format_args!("the project `{name}` and its example data are removed"))
    }
}
