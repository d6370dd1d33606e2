//! `assay import`: traces, scores, datasets, experiments and prompts of other products, into a running server.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use assay_node_auth::Secret;
use assay_node_import_client::{
    HttpPeer, ImportJob, ImportOutcome, PeerHeader, SourceAccess, basic, run as run_import,
};
use assay_node_importers::{
    BraintrustSource, ColumnMap, ImportSource, ImportWindow, ItemHome, LangfuseApi, LangfuseExport, LangfuseSource,
    LangsmithExport, LangsmithSource, MlflowSource, OtlpSource, PhoenixSource, TableSource,
};
use assay_storage_model::event::{format_micros, parse_created};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::output;
use crate::process::secret_variable;
use crate::serve::API_KEY_VARIABLE;

/// Variables with keys of sources.
pub const LANGFUSE_VARIABLE: &str = "LANGFUSE_SECRET_KEY";
pub const PHOENIX_VARIABLE: &str = "PHOENIX_API_KEY";
pub const MLFLOW_VARIABLE: &str = "MLFLOW_TRACKING_TOKEN";
pub const LANGSMITH_VARIABLE: &str = "LANGSMITH_API_KEY";
pub const BRAINTRUST_VARIABLE: &str = "BRAINTRUST_API_KEY";

/// Exit code of an import whose rows differ from the source.
const EXIT_DIFFERS: u8 = 2;

/// Arguments of `assay import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    source: SourceArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// Target, window and state of an import.
#[derive(Debug, Args)]
struct TargetArgs {
    /// Address of the server to write to
    #[arg(long, value_name = "URL", global = true)]
    to: Option<String>,
    /// Project to write to, which is created if it does not exist
    #[arg(long, value_name = "NAME", global = true)]
    project: Option<String>,
    /// Import only traces from this time on, such as 2026-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", global = true)]
    since: Option<String>,
    /// Import only traces before this time [default: the start of the import]
    #[arg(long, value_name = "TIME", global = true)]
    until: Option<String>,
    /// Directory of the state and the report [default: assay-import-SOURCE-HASH in the current directory]
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
    /// PEM file with certificates to trust for https
    #[arg(long, value_name = "FILE", global = true)]
    ca_file: Option<PathBuf>,
    /// Send keys over plain http to other machines
    #[arg(long, global = true)]
    plain_http: bool,
}

/// Generation of Langfuse's API.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ApiChoice {
    Auto,
    V3,
    V4,
}

#[derive(Debug, Subcommand)]
enum SourceArgs {
    /// Langfuse, by its API or from the files of its export to blob storage
    Langfuse {
        /// Address of the server, such as https://cloud.langfuse.com
        #[arg(long, value_name = "URL", required_unless_present = "export")]
        url: Option<String>,
        /// Public key of the project. The secret key is read from LANGFUSE_SECRET_KEY
        #[arg(long, value_name = "KEY", required_unless_present = "export")]
        public_key: Option<String>,
        /// Directory with an export, instead of a server
        #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "public_key"])]
        export: Option<PathBuf>,
        /// Version of the API; auto asks the server
        #[arg(long, value_enum, default_value = "auto")]
        api: ApiChoice,
    },
    /// Phoenix, by its REST API. A key is read from PHOENIX_API_KEY
    Phoenix {
        /// Address of the server, such as http://127.0.0.1:6006
        #[arg(long, value_name = "URL", required_unless_present = "sqlite")]
        url: Option<String>,
        /// Project of the source [default: all]
        #[arg(long, value_name = "NAME")]
        source_project: Option<String>,
        /// Database file, which is not read: the command says what to do instead
        #[arg(long, value_name = "FILE", conflicts_with = "url")]
        sqlite: Option<PathBuf>,
    },
    /// MLflow, traces by its REST API. A token is read from MLFLOW_TRACKING_TOKEN
    Mlflow {
        /// Address of the tracking server
        #[arg(long, value_name = "URL")]
        url: String,
        /// Experiment of the source [default: all]
        #[arg(long, value_name = "NAME")]
        source_project: Option<String>,
    },
    /// LangSmith, by its API with LANGSMITH_API_KEY, or from the Parquet files of a bulk export
    Langsmith {
        /// Address of the API
        #[arg(long, value_name = "URL", default_value = "https://api.smith.langchain.com")]
        url: String,
        /// Tracing project of the source [default: all, with datasets and experiments]
        #[arg(long, value_name = "NAME")]
        source_project: Option<String>,
        /// Directory with a bulk export, instead of the API
        #[arg(long, value_name = "DIR")]
        export: Option<PathBuf>,
    },
    /// Braintrust, by its API with BRAINTRUST_API_KEY
    Braintrust {
        /// Address of the API
        #[arg(long, value_name = "URL", default_value = "https://api.braintrust.dev")]
        url: String,
        /// Project of the source
        #[arg(long, value_name = "NAME")]
        source_project: String,
    },
    /// Files of OpenTelemetry or OpenInference: JSON, JSON lines or protobuf
    Otlp {
        /// File or directory
        path: PathBuf,
    },
    /// JSON lines, JSON or CSV with columns of any name
    Table {
        /// File or directory
        path: PathBuf,
        /// Field and column, such as input=question or scores.quality=rating; may be repeated
        #[arg(long, value_name = "FIELD=COLUMN")]
        map: Vec<String>,
        /// File with a mapping on each line
        #[arg(long, value_name = "FILE")]
        map_file: Option<PathBuf>,
        /// Where rows go: logs, dataset:NAME or experiment:NAME
        #[arg(long, value_name = "OBJECT", default_value = "logs")]
        into: String,
    },
}

/// Creator of a source for a window, and the way to it.
type OpenedSource = (Box<dyn Fn(ImportWindow) -> Box<dyn ImportSource>>, SourceAccess);

/// Runs the command. Exit codes: 0 all is there and equal, 1 it failed, 2 something differs.
pub fn run(args: ImportArgs) -> ExitCode {
    match import(args) {
        Ok(outcome) => match output::json(&summary(&outcome)) {
            Err(error) if !error.is::<output::ReaderGone>() => failed(&error),
            _ if outcome.report.is_equal => ExitCode::SUCCESS,
            _ => ExitCode::from(EXIT_DIFFERS),
        },
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    output::note(format_args!("assay: {}", output::chain(error)));
    ExitCode::FAILURE
}

fn summary(outcome: &ImportOutcome) -> Value {
    let report = &outcome.report;
    json!({
        "project": report.project,
        "counts": report.counts,
        "is_equal": report.is_equal,
        "differences": report.differences,
        "without_equivalent": report.without_equivalent.values().sum::<u64>(),
        "report": outcome.report_file,
    })
}

fn import(args: ImportArgs) -> anyhow::Result<ImportOutcome> {
    let ImportArgs { source, target } = args;
    let window = window(&target)?;
    let url = target.to.clone().context("name the server with --to, such as --to http://127.0.0.1:8000")?;
    let project = target.project.clone().context("name the project to write to with --project")?;
    let key = secret_variable(API_KEY_VARIABLE)?;
    let key = key.with_context(|| format!("set {API_KEY_VARIABLE} to a key of the server"))?;
    let (source, access) = source.open(&target)?;
    let job = ImportJob {
        source,
        access,
        target: target.peer(&url, &[bearer(&key)])?,
        target_url: url.trim_end_matches('/').to_owned(),
        project,
        window,
        state_dir: target.state,
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(run_import(job, &mut |line: &str| output::note(line)))
}

fn window(target: &TargetArgs) -> anyhow::Result<ImportWindow> {
    let time = |text: &String| {
        let micros = parse_created(text);
        let micros = micros.with_context(|| format!("`{text}` is no time: write for instance 2026-01-01T00:00:00Z"))?;
        anyhow::Ok(format_micros(micros))
    };
    let since = target.since.as_ref().map(time).transpose()?;
    let until = match &target.until {
        Some(until) => time(until)?,
        None => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
            format_micros(i64::try_from(now.as_millis())?.saturating_mul(1000))
        }
    };
    ensure!(since.as_ref().is_none_or(|since| *since < until), "--since is not before the end of the window");
    Ok(ImportWindow { since, until })
}

fn bearer(key: &Secret) -> PeerHeader {
    PeerHeader { name: "authorization", value: Secret::new(format!("Bearer {}", key.expose())) }
}

impl TargetArgs {
    fn peer(&self, url: &str, headers: &[PeerHeader]) -> anyhow::Result<HttpPeer> {
        HttpPeer::new(url, headers, self.ca_file.as_deref(), self.plain_http)
    }
}

impl SourceArgs {
    fn open(self, target: &TargetArgs) -> anyhow::Result<OpenedSource> {
        let http = |url: &str, headers: &[PeerHeader]| target.peer(url, headers).map(SourceAccess::Http);
        let trimmed = |url: String| url.trim_end_matches('/').to_owned();
        let needed = |variable: &'static str| {
            secret_variable(variable)?.with_context(|| format!("set {variable} to the key of the source"))
        };
        let shown = |path: &PathBuf| std::path::absolute(path).map(|path| path.display().to_string());
        Ok(match self {
            SourceArgs::Langfuse { export: Some(path), .. } => {
                let text = shown(&path)?;
                let source =
                    move |_: ImportWindow| Box::new(LangfuseExport { path: text.clone() }) as Box<dyn ImportSource>;
                (Box::new(source), SourceAccess::Files(path))
            }
            SourceArgs::Langfuse { url, public_key, api, export: None } => {
                let url = trimmed(url.context("name the server with --url")?);
                let public_key = public_key.context("name the project with --public-key")?;
                let access = http(&url, &[basic(&public_key, &needed(LANGFUSE_VARIABLE)?)])?;
                let source = move |window: ImportWindow| -> Box<dyn ImportSource> {
                    let (url, public_key) = (url.clone(), public_key.clone());
                    Box::new(LangfuseSource { url, public_key, window, api: api.chosen() })
                };
                (Box::new(source), access)
            }
            SourceArgs::Phoenix { sqlite: Some(_), .. } => anyhow::bail!(
                "a database of Phoenix is not read directly: its tables change between versions. \
                 Start `phoenix serve` on it, and import with --url"
            ),
            SourceArgs::Phoenix { url, source_project, sqlite: None } => {
                let url = trimmed(url.context("name the server with --url")?);
                let headers: Vec<PeerHeader> = secret_variable(PHOENIX_VARIABLE)?.iter().map(bearer).collect();
                let access = http(&url, &headers)?;
                let source = move |window: ImportWindow| -> Box<dyn ImportSource> {
                    let (url, source_project) = (url.clone(), source_project.clone());
                    Box::new(PhoenixSource { url, window, source_project })
                };
                (Box::new(source), access)
            }
            SourceArgs::Mlflow { url, source_project } => {
                let url = trimmed(url);
                let headers: Vec<PeerHeader> = secret_variable(MLFLOW_VARIABLE)?.iter().map(bearer).collect();
                let access = http(&url, &headers)?;
                let source = move |window: ImportWindow| -> Box<dyn ImportSource> {
                    let (url, source_project) = (url.clone(), source_project.clone());
                    Box::new(MlflowSource { url, window, source_project })
                };
                (Box::new(source), access)
            }
            SourceArgs::Langsmith { export: Some(path), .. } => {
                let text = shown(&path)?;
                let source =
                    move |_: ImportWindow| Box::new(LangsmithExport { path: text.clone() }) as Box<dyn ImportSource>;
                (Box::new(source), SourceAccess::Files(path))
            }
            other => return other.open_others(target),
        })
    }

    /// Opens sources that need a key, and files.
    fn open_others(self, target: &TargetArgs) -> anyhow::Result<OpenedSource> {
        let needed = |variable: &'static str| {
            secret_variable(variable)?.with_context(|| format!("set {variable} to the key of the source"))
        };
        let shown = |path: &PathBuf| std::path::absolute(path).map(|path| path.display().to_string());
        Ok(match self {
            SourceArgs::Langsmith { url, source_project, .. } => {
                let url = url.trim_end_matches('/').to_owned();
                let header = PeerHeader { name: "x-api-key", value: needed(LANGSMITH_VARIABLE)? };
                let access = SourceAccess::Http(target.peer(&url, &[header])?);
                let source = move |window: ImportWindow| -> Box<dyn ImportSource> {
                    let (url, source_project) = (url.clone(), source_project.clone());
                    Box::new(LangsmithSource { url, window, source_project })
                };
                (Box::new(source), access)
            }
            SourceArgs::Braintrust { url, source_project } => {
                let url = url.trim_end_matches('/').to_owned();
                let access = SourceAccess::Http(target.peer(&url, &[bearer(&needed(BRAINTRUST_VARIABLE)?)])?);
                let source = move |window: ImportWindow| -> Box<dyn ImportSource> {
                    let (url, source_project) = (url.clone(), source_project.clone());
                    Box::new(BraintrustSource { url, source_project, window })
                };
                (Box::new(source), access)
            }
            SourceArgs::Table { path, mut map, map_file, into } => {
                if let Some(file) = map_file {
                    let lines =
                        std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
                    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                    map.extend(lines.map(str::to_owned));
                }
                let (map, into) = (ColumnMap::parse(map.iter().map(String::as_str))?, home(&into)?);
                let text = shown(&path)?;
                let source = move |_: ImportWindow| -> Box<dyn ImportSource> {
                    Box::new(TableSource { path: text.clone(), map: map.clone(), into: into.clone() })
                };
                (Box::new(source), SourceAccess::Files(path))
            }
            SourceArgs::Otlp { path } => {
                let text = shown(&path)?;
                let source =
                    move |_: ImportWindow| Box::new(OtlpSource { path: text.clone() }) as Box<dyn ImportSource>;
                (Box::new(source), SourceAccess::Files(path))
            }
            _ => anyhow::bail!("this source is opened elsewhere"),
        })
    }
}

impl ApiChoice {
    fn chosen(self) -> Option<LangfuseApi> {
        match self {
            ApiChoice::Auto => None,
            ApiChoice::V3 => Some(LangfuseApi::V3),
            ApiChoice::V4 => Some(LangfuseApi::V4),
        }
    }
}

fn home(into: &str) -> anyhow::Result<ItemHome> {
    match into.split_once(':') {
        None if into == "logs" => Ok(ItemHome::Logs),
        Some(("dataset", name)) if !name.is_empty() => Ok(ItemHome::Dataset(name.to_owned())),
        Some(("experiment", name)) if !name.is_empty() => Ok(ItemHome::Experiment(name.to_owned())),
        _ => anyhow::bail!("--into {into}: write logs, dataset:NAME or experiment:NAME"),
    }
}
