//! Comparison of two releases: queries to two programs in turns, each on rows of its own that are the same.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Serialize;

use super::assay::Ours;
use super::measurements::Runs;
use super::queries::{EXPORT, Question};
use super::query_result::difference;
use super::{Loaded, QueryOptions, named, questions_of};
use crate::report::median;

/// Runs of one question on one program before the other program has its turn.
const TURN: Runs = Runs { least: 7, most: 51, seconds: 0.7 };
const EXPORT_TURN: Runs = Runs { least: 1, most: 1, seconds: 0.0 };

/// Medians of the turns at one question, in milliseconds: the earlier program's and the later one's.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Turns(Vec<[f64; 2]>);

impl Turns {
    /// Later by earlier, the median of all turns.
    pub fn ratio(&self) -> f64 {
        median(self.0.iter().map(|[earlier, later]| later / earlier))
    }

    pub fn medians(&self) -> [f64; 2] {
        [0, 1].map(|side| median(self.0.iter().map(|turn| turn[side])))
    }
}

/// One program with all rows, and its queries.
struct ReleaseSide {
    ours: Ours,
    loaded: Loaded,
}

impl ReleaseSide {
    fn start(program: &Path, options: &QueryOptions, home: &Path) -> anyhow::Result<ReleaseSide> {
        std::fs::create_dir_all(home).with_context(|| format!("creating {}", home.display()))?;
        let mut ours = Ours::start(program, &home.join("data"), None)?;
        let loaded = Loaded::new(&ours, options)?;
        eprintln!("{}: all rows in {:.0} s", program.display(), loaded.seconds);
        ours.settled()?;
        Ok(ReleaseSide { ours, loaded })
    }

    fn texts(&self, question: &Question) -> Vec<String> {
        self.loaded.facts.texts(&named(question.ours, &self.loaded.objects))
    }

    fn turn(&mut self, question: &Question, export: &Path) -> anyhow::Result<f64> {
        let texts = self.texts(question);
        let times = match question.name == EXPORT {
            true => {
                let (times, files) = self.ours.export(&texts[0], export, EXPORT_TURN)?;
                files.iter().try_for_each(std::fs::remove_file)?;
                times
            }
            false => self.ours.ask(&texts, TURN)?.0,
        };
        Ok(times.p50())
    }
}

/// Runs each query `pairs` times on both programs, which take turns at going first. Different results are an error.
pub fn in_turns(
    earlier: &Path,
    options: &QueryOptions,
    pairs: usize,
    dir: &Path,
) -> anyhow::Result<BTreeMap<&'static str, Turns>> {
    let later = options.program.as_ref().context("the program assay")?;
    // Loaded one after the other: neither has less of the machine.
    let mut sides = [
        ReleaseSide::start(earlier, options, &dir.join("earlier"))?,
        ReleaseSide::start(later, options, &dir.join("later"))?,
    ];
    let mut found = BTreeMap::new();
    for question in questions_of(options) {
        let mut turns = Turns::default();
        for pair in 0..pairs {
            let mut turn = [0.0; 2];
            let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                turn[side] = sides[side].turn(question, &dir.join("export")).context(question.name)?;
            }
            turns.0.push(turn);
        }
        let [earlier, later] = turns.medians();
        eprintln!("{}: {earlier:.2} and {later:.2} ms, {:.3} times", question.name, turns.ratio());
        same(&mut sides, question)?;
        found.insert(question.name, turns);
    }
    sides.into_iter().try_for_each(|side| side.ours.stop())?;
    Ok(found)
}

fn same(sides: &mut [ReleaseSide; 2], question: &Question) -> anyhow::Result<()> {
    if question.name == EXPORT {
        return Ok(());
    }
    let mut answers = Vec::new();
    for side in sides {
        let texts = side.texts(question);
        answers.push(side.ours.ask(&texts[..1], Runs { least: 0, most: 0, seconds: 0.0 })?.1);
    }
    let differs = difference(&answers[0][0], &answers[1][0], question.is_ordered);
    ensure!(
        differs.is_none(),
        "{}: the programs gave different answers: {}",
        question.name,
        differs.unwrap_or_default()
    );
    Ok(())
}
