//! Tests of failing writes and syncs: they are never acknowledged or retried, and no acknowledged write is lost.

use std::sync::mpsc;

use assay_storage_disk::{Fault, FaultPlan, FaultyDisk, Operation};
use rand::SeedableRng;

use super::*;
use crate::faulty::{FaultFileSystem, FileFault};
use crate::{Verdict, check};

/// Acknowledged state per group: the last index and the vote.
type Acknowledged = BTreeMap<u64, (u64, Vec<u8>)>;

/// Appends and votes in three groups until the log fails or the steps are done.
fn work(log: &Log, steps: u64) -> (Acknowledged, Option<u64>) {
    hush();
    let mut acknowledged = Acknowledged::new();
    for step in 0..steps {
        for id in 0..3 {
            let group = log.group(GroupId(id));
            let vote = format!("vote {step}").into_bytes();
            let (sender, receiver) = mpsc::channel();
            let sender2 = sender.clone();
            group.append(records(step * 3, 3, step, 200), Box::new(move |result| sender.send(result).unwrap()));
            group.save_vote(vote.clone(), Box::new(move |result| sender2.send(result).unwrap()));
            match (receiver.recv().unwrap(), receiver.recv().unwrap()) {
                (Ok(()), Ok(())) => acknowledged.insert(id, (step * 3 + 2, vote)),
                (Ok(()), Err(_)) => {
                    // The append was in the previous round.
                    acknowledged.entry(id).or_default().0 = step * 3 + 2;
                    return (acknowledged, Some(step));
                }
                (Err(_), _) => return (acknowledged, Some(step)),
            };
        }
    }
    (acknowledged, None)
}

/// Suppresses the output of raft-engine's panic after a failed sync, which these tests expect.
fn hush() {
    static HUSHED: std::sync::Once = std::sync::Once::new();
    HUSHED.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() != Some("assay-log") {
                hook(info);
            }
        }));
    });
}

fn assert_kept(place: &LogDir, acknowledged: &Acknowledged, what: &str) {
    let log = place.open().unwrap_or_else(|error| panic!("{what}: {error}"));
    for (id, (last, vote)) in acknowledged {
        let group = log.group(GroupId(*id));
        let state = group.state();
        assert!(state.last.is_some_and(|(index, _)| index >= *last), "{what}: {state:?}, acknowledged {last}");
        let number = |vote: &[u8]| String::from_utf8_lossy(vote)[5..].parse::<u64>().unwrap();
        assert!(vote.is_empty() || state.vote.is_some_and(|kept| number(&kept) >= number(vote)), "{what}");
        let read = read_all(&group).unwrap_or_else(|error| panic!("{what}: {error}"));
        for record in read {
            assert_eq!(record, records(record.index, 1, record.index / 3, 200)[0], "{what}");
        }
    }
}

#[test]
fn after_any_failed_write_nothing_is_acknowledged_and_nothing_acknowledged_is_lost() {
    for fault in [FileFault::Broken, FileFault::Torn, FileFault::Full] {
        for nth in (1..60).step_by(9) {
            let place = LogDir::new();
            let files = FaultFileSystem::new();
            let log = Log::open_with(disk(), &place.log(), SMALL, files.clone()).unwrap();
            files.fail_writes(nth, u64::MAX, fault);
            let (acknowledged, failed_at) = work(&log, 30);
            let what = format!("{fault:?} at write {nth}");
            assert!(failed_at.is_some() && log.failed().is_some(), "{what}");
            let refused = wait(|done| log.group(GroupId(9)).save_vote(vec![1], done));
            assert!(matches!(refused, Err(LogError::Failed(_))), "{what}");
            assert_kept(&place.copy(), &acknowledged, &what);
        }
    }
}

#[test]
fn after_one_failed_sync_nothing_is_taken_although_the_next_would_succeed() {
    for nth in (1..60).step_by(7) {
        let place = LogDir::new();
        let files = FaultFileSystem::new();
        let log = Log::open_with(disk(), &place.log(), SMALL, files.clone()).unwrap();
        files.fail_syncs(nth, 1);
        let (acknowledged, failed_at) = work(&log, 60);
        let what = format!("sync {nth}");
        assert!(failed_at.is_some() && log.failed().is_some_and(|why| why.contains("EIO")), "{what}");
        let after = files.syncs();
        assert!(wait(|done| log.group(GroupId(0)).save_vote(vec![1], done)).is_err());
        assert!(log.shutdown().is_err());
        assert_eq!(files.syncs(), after, "{what}: a failed sync is not tried again");
        assert_kept(&place.copy(), &acknowledged, &what);
    }
}

#[test]
fn a_disk_that_is_full_once_loses_nothing_and_the_log_goes_on_in_a_new_file() {
    let place = LogDir::new();
    let files = FaultFileSystem::new();
    let log = Log::open_with(disk(), &place.log(), SMALL, files.clone()).unwrap();
    files.fail_writes(7, 1, FileFault::Full);
    let (acknowledged, failed_at) = work(&log, 20);
    assert_eq!((failed_at, log.failed()), (None, None));
    assert_kept(&place.copy(), &acknowledged, "full once");
}

#[test]
fn a_watermark_that_cannot_be_written_fails_the_log() {
    for (operation, nth) in [(Operation::WriteAt, 1), (Operation::WriteAt, 20), (Operation::Sync, 2)] {
        let place = LogDir::new();
        let faulty = Arc::new(FaultyDisk::new(disk(), FaultPlan::none()));
        let log = Log::open(faulty.clone(), &place.log(), SMALL).unwrap();
        faulty.set_plan(FaultPlan::fail(operation, nth, Fault::InputOutput));
        let (acknowledged, failed_at) = work(&log, 30);
        assert!(failed_at.is_some() && log.failed().is_some(), "{operation:?} {nth}");
        assert_kept(&place.copy(), &acknowledged, "watermark");
    }
}

#[test]
fn a_process_that_is_killed_at_any_moment_keeps_what_it_acknowledged() {
    let place = LogDir::new();
    let log = place.open().unwrap();
    let group = log.group(GroupId(4));
    for index in 0..40 {
        wait(|done| group.append(records(index, 1, index, 300), done)).unwrap();
        if index % 10 == 5 {
            wait(|done| group.truncate(index - 2, done)).unwrap();
            let copy = place.copy().open().unwrap();
            assert_eq!(copy.group(GroupId(4)).state().last, Some((index - 3, index - 3)));
            wait(|done| group.append(records(index - 2, 3, index, 300), done)).unwrap();
        }
        let killed = place.copy();
        let copy = killed.open().unwrap();
        assert_eq!(copy.group(GroupId(4)).state().last, Some((index, index)), "{index}");
        assert_eq!(read_all(&copy.group(GroupId(4))).unwrap(), read_all(&group).unwrap());
    }
}

/// Returns records as `work` writes them, three to a term.
fn thirds(from: u64, count: u64) -> Vec<LogRecord> {
    (from..from + count).flat_map(|index| records(index, 1, index / 3, 200)).collect()
}

/// Returns the files after a power cut. Each sector that differs between `synced` and `written` reached the disk or
/// not.
fn power_cut(rng: &mut ChaCha8Rng, synced: &LogDir, written: &LogDir) -> LogDir {
    let cut = synced.copy();
    let old = synced.content();
    for (path, new) in written.content() {
        let name = path.file_name().unwrap();
        let (was, target) = match path.ends_with("log.watermark") {
            true => (synced.watermark(), cut.watermark()),
            false => (synced.log().join(name), cut.log().join(name)),
        };
        let was = old.get(&was).cloned().unwrap_or_default();
        let mut bytes = vec![0; if rng.random_bool(0.8) { new.len() } else { was.len() }];
        for (sector, bytes) in bytes.chunks_mut(512).enumerate() {
            let from = if rng.random_bool(0.5) { &new } else { &was };
            let from = from.get(sector * 512..).unwrap_or_default();
            let length = bytes.len().min(from.len());
            bytes[..length].copy_from_slice(&from[..length]);
        }
        fs::write(target, bytes).unwrap();
    }
    cut
}

#[test]
fn a_power_cut_in_a_round_of_many_groups_loses_only_what_was_not_acknowledged() {
    hush();
    let mut torn = 0;
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let place = LogDir::new();
        let files = FaultFileSystem::new();
        let config = LogConfig { budget_bytes: 1 << 20, file_bytes: 64 << 10, ..SMALL };
        let log = Log::open_with(disk(), &place.log(), config, files.clone()).unwrap();
        let mut acknowledged = Acknowledged::new();
        for id in 0..3 {
            wait(|done| log.group(GroupId(id)).append(thirds(0, 9), done)).unwrap();
            acknowledged.insert(id, (8, Vec::new()));
        }
        let synced = place.copy();
        // The next sync fails, so no write of its round was acknowledged.
        files.fail_syncs(1, 1);
        let (sender, receiver) = mpsc::channel();
        for id in 0..3 {
            let sender = sender.clone();
            let done = Box::new(move |result: Result<(), LogError>| sender.send(result).unwrap());
            log.group(GroupId(id)).append(thirds(9, 12), done);
        }
        assert!((0..3).all(|_| receiver.recv().unwrap().is_err()), "seed {seed}");
        let cut = power_cut(&mut rng, &synced, &place.copy());
        torn += usize::from(check(&RealDisk, &cut.log()).verdict == Verdict::TornTail);
        assert_kept(&cut, &acknowledged, &format!("seed {seed}"));
    }
    assert!(torn > 20, "{torn} of 40 were torn");
}
