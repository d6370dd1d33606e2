//! Fixed scenarios and their common parts: a cluster in a directory of its own, the steps, and the final verdict.

pub mod far_apart;
pub mod old_leader;
pub(super) mod request_outcomes;
mod scored_rows;
pub mod scoring;
pub mod upgrade;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use tempfile::TempDir;

use super::environment::fault_support::{FaultSupport, Need};
use super::environment::world::{API_KEY, Plan, World};
use super::faults::conductor::Conductor;
use super::judge;
use super::recording::event_log::Journal;
use super::recording::events::{Phase, RunEvent};
use super::workload::shared::{ClientContext, Patience};
use crate::report::{Report, Verdict};

/// Setup of a scenario.
#[derive(Clone, Debug)]
pub struct Opening {
    pub seed: u64,
    pub seconds: u64,
    pub plan: Plan,
    /// Requirement without which the scenario is skipped.
    pub need: Option<Need>,
    pub patience: Patience,
}

#[derive(Debug)]
pub struct Scenario<'a> {
    // Processes before the directory they write to.
    pub conductor: Conductor<'a>,
    dir: TempDir,
}

impl<'a> Scenario<'a> {
    /// Makes the nodes; none runs. Returns nothing, and reports it, where this machine lacks what the story needs.
    pub fn open(
        opening: Opening,
        interrupted: &'a AtomicBool,
        report: &mut Report,
    ) -> anyhow::Result<Option<Scenario<'a>>> {
        let Opening { seed, seconds, plan, need, patience } = opening;
        let dir = tempfile::Builder::new().prefix("assay-chaos-run-").tempdir().context("making a directory")?;
        let journal = Journal::create(dir.path())?;
        journal.say(RunEvent::Run { seed, seconds, nodes: plan.nodes, shards: plan.shards });
        journal.say(RunEvent::Phase { phase: Phase::Setup });
        let world = World::create(dir.path(), plan, FaultSupport::probe())?;
        if let Some(lacks) = need.and_then(|need| world.means.lacks(need)) {
            report.not_covered.push(lacks.to_owned());
            return Ok(None);
        }
        let mut stage = ClientContext::new(journal, API_KEY.to_owned(), world.nodes_at());
        stage.patience = patience;
        let conductor = Conductor::new(world, Arc::new(stage), interrupted);
        Ok(Some(Scenario { conductor, dir }))
    }

    /// Plays the story, then holds what it left against the checkers and against `further`. Returns the directory of a
    /// story that did not hold.
    pub fn tell(
        self,
        report: &mut Report,
        play: impl FnOnce(&mut Conductor<'_>) -> anyhow::Result<()>,
        further: impl FnOnce(&Path, &mut Report) -> anyhow::Result<()>,
    ) -> Vec<PathBuf> {
        // In this order: the conductor goes first.
        let dir = self.dir;
        let mut conductor = self.conductor;
        let played = play(&mut conductor).and_then(|()| judge(dir.path(), report));
        if let Err(why) = played.and_then(|()| further(dir.path(), report)) {
            report.troubles.push(format!("{why:#}"));
        }
        if !matches!(report.verdict(), Verdict::Invalid | Verdict::Unknown) {
            return Vec::new();
        }
        conductor.world.keep();
        drop(conductor);
        vec![dir.keep()]
    }
}
