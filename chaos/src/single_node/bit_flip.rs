//! One flipped bit in one file of a stopped node is detected or has no effect; a wrong or missing row is never silent.
//!
//! After a clean stop everything is below the watermark. After a kill only data above it may be lost, which was never
//! acknowledged, and the doctor must have called the log's tail torn.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use assay_storage_disk::RealDisk;
use assay_storage_log::Verdict as LogVerdict;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::capabilities;
use crate::directory_copies::copy;
use crate::report::Report;
use crate::single_node::dump::Dump;
use crate::single_node::harness::{self, Opened, Orders, StoreHarness, WorkerLife};
use crate::single_node::store_checks;
use crate::single_node::worker_history::{WorkerEvent, WorkerHistory};

/// Operations of each of two lives: the first leaves segments, the second marks on them, and a log that goes on behind.
const OPERATIONS: u32 = 350;
/// Each life seals everything soon after its start.
const SEAL_AFTER: Duration = Duration::from_millis(100);
const STOP_MAX: Duration = Duration::from_secs(60);
/// Opening and reading a flipped copy; longer is a hang.
const OPEN_MAX: Duration = Duration::from_secs(30);
/// Copies under examination at once.
const AT_ONCE: usize = 3;
/// One flip in so many is made after a kill instead of a clean stop.
const KILLED_ONE_IN: u32 = 5;
/// Range of the last records, counted from the end of the written part: these may be unacknowledged.
const LAST: Option<u64> = Some(1 << 10);
/// And these were acknowledged, most of them, and are in the log alone; how many that are is a matter of the last seal.
const RECENT: [Option<u64>; 2] = [Some(32 << 10), Some(128 << 10)];
/// After a kill mainly the log and its watermark are tested: their turns, in a round of turns.
const KILLED_TURNS: [(&str, Option<u64>); 8] = [
    ("log", LAST),
    ("log", None),
    ("watermark", None),
    ("log", RECENT[0]),
    ("kept state", None),
    ("log", RECENT[1]),
    ("watermark", None),
    ("segment", None),
];
/// After a clean stop the doctor runs for one flip in this many; after a kill for each.
const DOCTOR_ONE_IN: usize = 3;
/// Empty space is less worth a flip.
const TRIES_FOR_A_WRITTEN_BYTE: u32 = 4;

const KINDS: [&str; 10] =
    ["log", "watermark", "kept state", "segment", "ids", "marks", "blobs", "CURRENT", "FORMAT", "starts"];

#[derive(Clone, Debug)]
struct Flip {
    kind: &'static str,
    /// Below the data directory.
    file: PathBuf,
    offset: u64,
    bit: u8,
}

/// A stopped directory and what should be read from it.
#[derive(Debug)]
struct Subject {
    dir: PathBuf,
    killed: bool,
    expected: Dump,
    versions: Vec<(u8, u64)>,
    history: WorkerHistory,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Effect {
    None,
    Detected(String),
    /// Unacknowledged writes above the watermark are gone, as reported by the doctor.
    TailGone,
    Wrong(String),
}

pub fn run(seed: u64, flips: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    if flips as usize >= 2 * KINDS.len() {
        for kind in KINDS {
            report.coverage.want(&format!("flips in {kind}"), 1);
        }
        report.coverage.want("detected", u64::from(flips / 10));
    }
    if capabilities::assay_program().is_none() {
        report.runs.push(
            json!({ "note": "the program assay is not built beside this one; only the log's own check was asked" }),
        );
    }
    let killed = flips / KILLED_ONE_IN;
    after(&[(false, flips - killed), (true, killed)], seed, report)
}

/// All of them after a kill, half of them after another: what is in doubt then is the log.
pub fn run_after_kill(seed: u64, flips: u32, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    after(&[(true, flips / 2), (true, flips.div_ceil(2))], seed, report)
}

/// So many flips after each kind of end.
fn after(ends: &[(bool, u32)], seed: u64, report: &mut Report) -> anyhow::Result<Vec<PathBuf>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    report.coverage.want("flips", ends.iter().map(|(_, count)| u64::from(*count)).sum());
    let mut kept = Vec::new();
    for &(killed, count) in ends {
        if count == 0 {
            continue;
        }
        let mut scene = StoreHarness::new(rng.random(), None)?;
        let Some(subject) = prepare(&mut scene, killed, &mut rng, report)? else {
            kept.push(scene.keep());
            continue;
        };
        let before = report.findings.len();
        flip_all(&scene, &subject, count, &mut rng, report)?;
        if report.findings.len() > before {
            kept.push(scene.keep());
        }
    }
    Ok(kept)
}

/// A directory with every kind of file, stopped; none if it is not even right without a flip.
fn prepare(
    scene: &mut StoreHarness,
    killed: bool,
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> anyhow::Result<Option<Subject>> {
    if !live(scene, false, report)? || !live(scene, killed, report)? {
        return Ok(None);
    }
    let dir = scene.dir.clone();
    let versions = scene.versions(rng);
    let untouched = scene.work().join("untouched");
    copy(&dir, &untouched)?;
    let opened = scene.open(&untouched, &versions, STOP_MAX)?;
    std::fs::remove_dir_all(&untouched)?;
    let Opened::Whole(expected) = opened else {
        report.findings.push(format!("without any flip it does not open: {opened:?}"));
        return Ok(None);
    };
    let history = scene.history();
    let found = store_checks::all(&history, &expected);
    if !found.is_empty() {
        report.findings.extend(found.into_iter().map(|finding| format!("without any flip: {finding}")));
        return Ok(None);
    }
    crate::single_node::crash::count(scene, report);
    Ok(Some(Subject { dir, killed, expected: *expected, versions, history }))
}

/// One life of the worker, to a clean stop or to a kill; false where it did not go as it should.
fn live(scene: &mut StoreHarness, killed: bool, report: &mut Report) -> anyhow::Result<bool> {
    let operations = (!killed).then_some(OPERATIONS);
    let orders = Orders { operations, clients: Some(8), upkeep_after: Some(SEAL_AFTER), ..Orders::default() };
    let mut worker = scene.start_worker(&orders)?;
    if !scene.ready(&mut worker, report)? {
        return Ok(false);
    }
    let until = Instant::now() + STOP_MAX;
    if killed {
        let answers = std::cell::Cell::new(0);
        let enough = |said: &WorkerEvent| {
            answers.set(answers.get() + u32::from(matches!(said, WorkerEvent::Ok { .. })));
            answers.get() >= OPERATIONS / 2
        };
        scene.follow(&mut worker, until, enough)?;
        scene.kill(&mut worker, "before the flips")?;
        return Ok(true);
    }
    let (life, _) = scene.follow(&mut worker, until, |_| false)?;
    let status = worker.wait(until)?;
    if life == WorkerLife::Ended && status.is_some_and(|status| status.success()) {
        return Ok(true);
    }
    report.findings.push(format!("a clean stop ended with {status:?}: {}", worker.last_words()));
    Ok(false)
}

fn flip_all(
    scene: &StoreHarness,
    subject: &Subject,
    count: u32,
    rng: &mut ChaCha8Rng,
    report: &mut Report,
) -> anyhow::Result<()> {
    let files = files_by_kind(&subject.dir)?;
    let flips = (0..count).map(|number| choose(subject, &files, number, rng)).collect::<anyhow::Result<Vec<Flip>>>()?;
    let next = AtomicUsize::new(0);
    let effects = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(flip) = flips.get(number) else { break };
                    let place = scene.work().join(format!("flip-{number}"));
                    let asked = subject.killed || number.is_multiple_of(DOCTOR_ONE_IN);
                    let effect = examine(subject, flip, asked, &place);
                    effects.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, effect));
                }
            });
        }
    });
    let mut effects = effects.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    effects.sort_by_key(|(number, _)| *number);
    for (number, effect) in effects {
        tell(subject, &flips[number], effect, report);
    }
    Ok(())
}

fn tell(subject: &Subject, flip: &Flip, effect: anyhow::Result<Effect>, report: &mut Report) {
    let place = format!("{} byte {} bit {}", flip.file.display(), flip.offset, flip.bit);
    report.coverage.add("flips", 1);
    report.coverage.add(&format!("flips in {}", flip.kind), 1);
    let word = match &effect {
        Ok(Effect::None) => "no effect",
        Ok(Effect::Detected(words)) => {
            if words.contains("panicked") {
                report.coverage.add("detected by a panic", 1);
            }
            "detected"
        }
        Ok(Effect::TailGone) => "tail gone, and said so",
        Ok(Effect::Wrong(_)) => "wrong",
        Err(_) => "trouble",
    };
    report.coverage.add(word, 1);
    let words = match effect {
        Ok(Effect::Detected(words)) => words,
        Ok(Effect::Wrong(why)) => {
            let stop = if subject.killed { "a kill" } else { "a clean stop" };
            report.findings.push(format!("{place}, after {stop}: {why}"));
            why
        }
        Err(why) => {
            report.troubles.push(format!("{place}: {why:#}"));
            String::new()
        }
        Ok(_) => String::new(),
    };
    report
        .runs
        .push(json!({ "flip": place, "kind": flip.kind, "killed": subject.killed, "effect": word, "words": words }));
}

/// A kind by its turn, then any of its files, then any of its bits, written ones preferred. After a kill most
/// flips in the log are among its last records.
fn choose(
    subject: &Subject,
    files: &BTreeMap<&'static str, Vec<(PathBuf, u64)>>,
    number: u32,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<Flip> {
    let turns: Vec<(&'static str, Option<u64>)> = match subject.killed {
        true => KILLED_TURNS.iter().copied().filter(|(kind, _)| files.contains_key(kind)).collect(),
        false => files.keys().map(|kind| (*kind, None)).collect(),
    };
    let (kind, tail) = turns[number as usize % turns.len()];
    let of_kind = &files[kind];
    let newest = of_kind.iter().rev().find(|(file, _)| file.extension().is_some_and(|ending| ending == "raftlog"));
    let (file, length) =
        newest.filter(|_| tail.is_some()).or_else(|| of_kind.choose(rng)).context("a kind without files")?;
    let open = std::fs::File::open(subject.dir.join(file))?;
    let range = tail.map_or(Ok(0..*length), |bytes| written_tail(&open, *length, bytes))?;
    let mut offset = range.start;
    for _ in 0..TRIES_FOR_A_WRITTEN_BYTE {
        offset = rng.random_range(range.clone());
        let mut byte = [0];
        open.read_exact_at(&mut byte, offset)?;
        if byte != [0] {
            break;
        }
    }
    Ok(Flip { kind, file: file.clone(), offset, bit: rng.random_range(0..8) })
}

/// The last bytes before the zeros at a file's end.
fn written_tail(file: &std::fs::File, length: u64, bytes: u64) -> anyhow::Result<std::ops::Range<u64>> {
    let mut content = vec![0; usize::try_from(length)?];
    file.read_exact_at(&mut content, 0)?;
    let written = content.iter().rposition(|byte| *byte != 0).map_or(length, |last| last as u64 + 1);
    Ok(written.saturating_sub(bytes)..written)
}

/// Every file with content, below `dir`, by its kind.
fn files_by_kind(dir: &Path) -> anyhow::Result<BTreeMap<&'static str, Vec<(PathBuf, u64)>>> {
    let mut found: BTreeMap<&'static str, Vec<(PathBuf, u64)>> = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        for entry in std::fs::read_dir(dir.join(&below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let about = entry.metadata()?;
            if about.is_dir() {
                left.push(path);
            } else if let Some(kind) = kind_of(&path).filter(|_| about.len() > 0) {
                found.entry(kind).or_default().push((path, about.len()));
            }
        }
    }
    found.values_mut().for_each(|files| files.sort());
    if found.is_empty() {
        bail!("{} has no files to flip a bit in", dir.display());
    }
    Ok(found)
}

fn kind_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let below = |dir: &str| path.components().any(|part| part.as_os_str() == dir);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match (name, ending) {
        ("FORMAT", _) => Some("FORMAT"),
        ("CURRENT", _) => Some("CURRENT"),
        ("START" | "STARTS", _) => Some("starts"),
        (_, "watermark") => Some("watermark"),
        (_, "parquet") => Some("segment"),
        (_, "ids") => Some("ids"),
        (_, "marks") => Some("marks"),
        _ if below("kv") => Some("kept state"),
        _ if below("blobs") => Some("blobs"),
        _ if below("log") && name != "LOCK" => Some("log"),
        _ => None,
    }
}

/// Flips one bit of a copy, runs the doctor if wanted, and reads everything.
fn examine(subject: &Subject, flip: &Flip, asked: bool, place: &Path) -> anyhow::Result<Effect> {
    let dir = place.join("data");
    copy(&subject.dir, &dir)?;
    let file = OpenOptions::new().read(true).write(true).open(dir.join(&flip.file))?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, flip.offset)?;
    byte[0] ^= 1 << flip.bit;
    file.write_all_at(&byte, flip.offset)?;
    drop(file);
    let log = assay_storage_log::check(&RealDisk, &dir.join("log")).verdict;
    let doctor = if asked { doctor(&dir)? } else { None };
    let effect = match harness::open(&dir, &subject.versions, OPEN_MAX, &place.join("dump"))? {
        Opened::Hung => Effect::Wrong(format!("opening and reading took more than {} s", OPEN_MAX.as_secs())),
        Opened::Refused { status, words } => refused(&status, words, doctor),
        Opened::Whole(dump) if *dump == subject.expected => Effect::None,
        Opened::Whole(dump) => changed(subject, &dump, log, doctor),
    };
    if !matches!(effect, Effect::Wrong(_)) {
        std::fs::remove_dir_all(place)?;
    }
    Ok(effect)
}

/// Judges a refusal: it must name the reason, and the doctor must find the same.
fn refused(status: &str, words: String, doctor: Option<(i32, String)>) -> Effect {
    if words.is_empty() {
        return Effect::Wrong(format!("it ended without a word: {status}"));
    }
    if words.contains("WRONG") {
        return Effect::Wrong(words);
    }
    match doctor {
        Some((0, told)) => {
            Effect::Wrong(format!("it does not open ({words}), and the doctor found no problems: {told}"))
        }
        _ => Effect::Detected(words),
    }
}

/// Judges a readable but different state: allowed after a kill, for unacknowledged writes.
fn changed(subject: &Subject, dump: &Dump, log: LogVerdict, doctor: Option<(i32, String)>) -> Effect {
    if !subject.killed {
        let found = store_checks::all(&subject.history, dump);
        return Effect::Wrong(format!("after a clean stop it reads differently, in silence: {found:?}"));
    }
    let found = store_checks::all(&subject.history, dump);
    if !found.is_empty() {
        return Effect::Wrong(format!("acknowledged writes are wrong or gone, in silence: {found:?}"));
    }
    let said = doctor.is_none_or(|(_, told)| told.contains("ambiguous"));
    if log != LogVerdict::TornTail || !said {
        return Effect::Wrong(format!("unacknowledged writes are gone, and the log's check says {log:?}"));
    }
    Effect::TailGone
}

/// Returns the doctor's result for a directory, if the program exists.
fn doctor(dir: &Path) -> anyhow::Result<Option<(i32, String)>> {
    let Some(program) = capabilities::assay_program() else { return Ok(None) };
    let output =
        Command::new(program).arg("doctor").arg("--data-dir").arg(dir).output().context("starting the doctor")?;
    let code = output.status.code().with_context(|| format!("the doctor ended with {}", output.status))?;
    Ok(Some((code, String::from_utf8_lossy(&output.stdout).into_owned())))
}
