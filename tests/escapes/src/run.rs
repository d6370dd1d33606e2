//! One run: all attempts against one server, beside a neighbour whose calls are timed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::act::perform;
use crate::attempt::{Attempt, AttemptList, Caller, Language, StepProject};
use crate::canaries::survivors;
use crate::neighbour::{NeighbourTimes, call_until};
use crate::verdict::{Verdict, judge};
use crate::world::{Setup, World, runtime};

/// Attempts at the same time: as many calls as the organization may run.
const ATTACKERS: usize = 4;
/// Time that the neighbour is timed alone, before the attempts and after them.
const ALONE: Duration = Duration::from_secs(3);
/// Time that survivors have to show themselves.
const SURVIVAL: Duration = Duration::from_secs(2);

/// Outcome of one attempt.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub attempt: Attempt,
    pub verdict: Verdict,
    pub took: Duration,
}

/// Outcome of a run.
#[derive(Debug)]
pub struct RunReport {
    pub setup: Setup,
    pub outcomes: Vec<Outcome>,
    /// What the machine shows besides the answers.
    pub complaints: Vec<String>,
    pub alone: NeighbourTimes,
    pub beside: NeighbourTimes,
    pub took: Duration,
}

/// Runs the attempts.
pub fn run(setup: Setup, list: &AttemptList) -> Result<RunReport> {
    let began = Instant::now();
    let mut world = World::start(setup)?;
    check_sandbox(&world, setup)?;
    let never = AtomicBool::new(false);
    // The first calls start a worker, and are not timed.
    call_until(&world, &never, Duration::from_millis(500));
    let mut alone = call_until(&world, &never, ALONE);
    let (outcomes, beside) = attacked(&world, list)?;
    std::thread::sleep(SURVIVAL);
    let mut complaints = survivors();
    complaints.extend(world.complaints());
    alone.extend(call_until(&world, &never, ALONE));
    complaints.extend(alone.failure.iter().chain(&beside.failure).cloned());
    let left = world.stop()?;
    complaints.extend(left.into_iter().map(|path| format!("the directory {path} is left")));
    Ok(RunReport { setup, outcomes, complaints, alone, beside, took: began.elapsed() })
}

/// Refuses to go on where functions run without the expected sandbox: attempts could harm this machine.
fn check_sandbox(world: &World, setup: Setup) -> Result<()> {
    let code = "import os\ndef handler():\n    return [os.getuid(), os.path.exists('/run/assay/stage')]";
    let body = json!({"inline_context": runtime(Language::Python), "code": code, "input": {}});
    let answer = world.send(&world.invocation(Caller::Attacker, StepProject::Own, &body))?;
    let text = answer.text();
    ensure!(answer.status == 200, "functions do not run: {} {text}\n{}", answer.status, world.log());
    let facts: (u32, bool) = serde_json::from_str(&text).with_context(|| format!("no facts: {text}"))?;
    ensure!(facts.0 != 0, "functions run as root");
    ensure!(facts.1 != setup.is_reduced, "functions run in another sandbox than `{}`: {text}", setup.name());
    Ok(())
}

/// Performs the attempts, some at a time, while the neighbour is timed.
fn attacked(world: &World, list: &AttemptList) -> Result<(Vec<Outcome>, NeighbourTimes)> {
    let (alone, together): (Vec<&Attempt>, Vec<&Attempt>) = list.attempts.iter().partition(|attempt| attempt.alone);
    let (waiting, alone) = (Mutex::new(VecDeque::from(together)), Mutex::new(VecDeque::from(alone)));
    let done = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| call_until(world, &is_over, Duration::MAX));
        let attackers: Vec<_> =
            (0..ATTACKERS).map(|_| scope.spawn(|| attack((world, list), &waiting, &done))).collect();
        let ended: Vec<_> = attackers.into_iter().map(|attacker| attacker.join()).collect();
        attack((world, list), &alone, &done);
        is_over.store(true, Ordering::Relaxed);
        let times = neighbour.join();
        if ended.iter().any(Result::is_err) {
            bail!("an attacker panicked");
        }
        times.or_else(|_| bail!("the neighbour panicked"))
    })?;
    let mut outcomes = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let place = |outcome: &Outcome| list.attempts.iter().position(|attempt| attempt.name == outcome.attempt.name);
    outcomes.sort_by_key(place);
    Ok((outcomes, beside))
}

fn attack((world, list): (&World, &AttemptList), waiting: &Mutex<VecDeque<&Attempt>>, done: &Mutex<Vec<Outcome>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(attempt) = next else { return };
        let began = Instant::now();
        let verdict = match perform(world, list, attempt) {
            Ok(answer) => judge(attempt, &answer, &world.secrets),
            Err(why) => Verdict::Unnamed(format!("no answer: {why:#}")),
        };
        let outcome = Outcome { attempt: attempt.clone(), verdict, took: began.elapsed() };
        done.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
    }
}
