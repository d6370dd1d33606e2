//! Course of an import: pages from the source to the target, the state behind each, and the report.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_node_egress::Method;
use assay_node_importers::{
    ImportReport, ImportSource, ImportState, ImportWindow, Planner, SourceAnswer, SourceRequest, SourceTask,
    StateHeader, Tally, markdown, source_hash,
};

use crate::files::FileSource;
use crate::http::HttpPeer;
use crate::store::{StateStore, default_dir};
use crate::target::{Say, Target};
use crate::verify::compare;

/// Interval of lines about progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Way to a source.
#[derive(Debug)]
pub enum SourceAccess {
    Http(HttpPeer),
    /// Directory or file.
    Files(PathBuf),
}

/// Import to run.
#[derive(Debug)]
pub struct ImportJob<F> {
    /// Creates the source for a window. A resumed import has the window of its start.
    pub source: F,
    pub access: SourceAccess,
    pub target: HttpPeer,
    /// Address of the target, for the state and the report.
    pub target_url: String,
    pub project: String,
    pub window: ImportWindow,
    /// Directory of the state. `None` is one below the current directory.
    pub state_dir: Option<PathBuf>,
}

/// End of an import.
#[derive(Debug)]
pub struct ImportOutcome {
    pub report: ImportReport,
    /// Path of the report for people.
    pub report_file: PathBuf,
}

/// Runs an import to its end, or goes on with it.
pub async fn run<F>(job: ImportJob<F>, say: Say<'_>) -> anyhow::Result<ImportOutcome>
where
    F: Fn(ImportWindow) -> Box<dyn ImportSource>,
{
    let source = (job.source)(job.window.clone());
    let header = StateHeader::new(&*source, &job.target_url, &job.project, job.window);
    let dir = job.state_dir.unwrap_or_else(|| default_dir(&*source, source_hash(&header)));
    let (mut store, saved, known) = StateStore::open(&dir, &header)?;
    say(&format!("the state of this import is in {}", dir.display()));
    let (source, mut state) = match saved {
        Some(state) => {
            say(&format!("going on behind {} pages", state.pages));
            ((job.source)(state.header.window.clone()), state)
        }
        None => {
            let state = ImportState::new(header, source.first_tasks());
            store.save(&state, None)?;
            (source, state)
        }
    };
    let mut planner = Planner::new(source.name(), &source.identity(), known);
    let mut target = Target::open(job.target, &job.project, say).await.context("the target")?;
    let mut reader = SourceReader::new(job.access)?;
    let mut lines = ProgressLines { last: Instant::now() };
    while let Some(task) = state.next().cloned() {
        let answer = reader.answer(&*source, &task, say).await.with_context(|| format!("reading {task}"))?;
        let (page, next) = planner.plan(source.page(&task, &answer)?, &state.tally)?;
        for step in &page.steps {
            target.run(step, say).await.with_context(|| format!("writing {task}"))?;
        }
        planner.acknowledge(&page);
        state.acknowledge(&page, next)?;
        store.save(&state, Some(&page))?;
        lines.progress(&state, &task, say);
    }
    say(&format!("reading back the project {}", target.project()));
    let differences = compare(&state, &planner, &mut target, say).await.context("reading back")?;
    state.is_verified = differences.is_empty();
    store.save(&state, None)?;
    let report = ImportReport::new(&state, differences, target.notes);
    store.write("report.json", &serde_json::to_string_pretty(&report)?)?;
    let report_file = store.write("report.md", &markdown(&report, &state.tally))?;
    Ok(ImportOutcome { report, report_file })
}

/// Reader of a source.
enum SourceReader {
    Http(HttpPeer),
    Files(FileSource),
}

impl SourceReader {
    fn new(access: SourceAccess) -> anyhow::Result<SourceReader> {
        match access {
            SourceAccess::Http(peer) => Ok(SourceReader::Http(peer)),
            SourceAccess::Files(root) => Ok(SourceReader::Files(FileSource::new(&root)?)),
        }
    }

    async fn answer(
        &mut self,
        source: &dyn ImportSource,
        task: &SourceTask,
        say: Say<'_>,
    ) -> anyhow::Result<SourceAnswer> {
        let request = source.request(task);
        let peer = match self {
            SourceReader::Files(files) => return files.answer(&request),
            SourceReader::Http(peer) => peer,
        };
        let response = match &request {
            SourceRequest::Get(path) => peer.call(Method::GET, path, None, say).await?,
            SourceRequest::Search { path, body } => peer.call(Method::POST, path, Some(body), say).await?,
            _ => anyhow::bail!("this source has no files"),
        };
        let (status, body) = (response.status, response.body.to_vec());
        Ok(SourceAnswer { status, body, ..SourceAnswer::default() })
    }
}

/// Printer of progress, at most one line in some seconds.
struct ProgressLines {
    last: Instant,
}

impl ProgressLines {
    fn progress(&mut self, state: &ImportState, task: &SourceTask, say: Say<'_>) {
        if self.last.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.last = Instant::now();
        let tally = &state.tally;
        let (spans, rows) = (tally.logs.rows + Tally::sum(&tally.experiments).rows, Tally::sum(&tally.datasets).rows);
        say(&format!(
            "{} pages, now {task}: {spans} spans in {} traces, {} scores, {rows} rows of datasets, {} prompts",
            state.pages, tally.traces, tally.logs.scores, tally.prompt_versions
        ));
    }
}
