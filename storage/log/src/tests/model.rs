//! Model test of the log against a map. Reads return all acknowledged writes, before and after a reopen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_storage_model::GroupId;
use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::faulty::FaultFileSystem;
use crate::{Purged, Verdict, check};

#[derive(Clone, Debug, Default)]
struct Model {
    records: BTreeMap<u64, LogRecord>,
    next: u64,
    purged: Option<Purged>,
    vote: Option<Vec<u8>>,
    committed: Option<Vec<u8>>,
}

impl Model {
    fn assert_same(&self, group: &GroupLog, what: &str) {
        let state = group.state();
        let last = self.records.last_key_value().map(|(index, record)| (*index, record.term));
        assert_eq!(state.last, last, "{what}");
        assert_eq!(state.first, self.records.first_key_value().map_or(self.next, |(index, _)| *index), "{what}");
        assert_eq!(state.purged, self.purged, "{what}");
        assert_eq!(state.vote, self.vote, "{what}");
        let read = read_all(group).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(read.iter().eq(self.records.values()), "{what}: other records");
    }
}

#[test]
fn random_histories_agree_with_a_map_over_many_openings() {
    for seed in 0..6 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let place = LogDir::new();
        let mut log = place.open().unwrap();
        let mut models = BTreeMap::<GroupId, Model>::new();
        for step in 0..200 {
            let id = GroupId(rng.random_range(0..5));
            let model = models.entry(id).or_default();
            one_operation(&mut rng, &log.group(id), model, step);
            model.assert_same(&log.group(id), &format!("seed {seed} step {step}"));
            match rng.random_range(0..40) {
                0 => {
                    log.shutdown().unwrap();
                    assert_eq!(check(&RealDisk, &place.log()).verdict, Verdict::Sound);
                    log = place.open().unwrap();
                    for (id, model) in &models {
                        assert_eq!(log.group(*id).state().committed, model.committed);
                    }
                }
                1 => {
                    drop(log);
                    log = place.open().unwrap();
                    // A committed position that was not yet on disk is behind, never ahead.
                    models.iter_mut().for_each(|(id, model)| model.committed = log.group(*id).state().committed);
                }
                2..6 => {
                    log.pinned();
                }
                _ => continue,
            }
            for (id, model) in &models {
                model.assert_same(&log.group(*id), &format!("seed {seed} step {step}, after"));
            }
        }
    }
}

fn one_operation(rng: &mut ChaCha8Rng, group: &GroupLog, model: &mut Model, step: u64) {
    match rng.random_range(0..20) {
        0..10 => {
            let records = random_records(rng, model.next, step, 700);
            model.next += records.len() as u64;
            model.records.extend(records.iter().map(|record| (record.index, record.clone())));
            wait(|done| group.append(records, done)).unwrap();
        }
        10..12 => {
            let first = model.records.first_key_value().map_or(model.next, |(index, _)| *index);
            let from = rng.random_range(first..=model.next);
            model.records.split_off(&from);
            model.next = from;
            wait(|done| group.truncate(from, done)).unwrap();
        }
        12..15 => {
            let Some((first, _)) = model.records.first_key_value() else { return };
            let up_to = rng.random_range(*first..model.next);
            model.records = model.records.split_off(&(up_to + 1));
            purge(group, model, up_to);
        }
        15 => {
            // A snapshot from another replica makes the log skip records.
            let up_to = model.next + rng.random_range(0..50);
            model.records.clear();
            model.next = up_to + 1;
            purge(group, model, up_to);
        }
        16..18 => {
            let vote = format!("vote {step}").into_bytes();
            model.vote = Some(vote.clone());
            wait(|done| group.save_vote(vote, done)).unwrap();
        }
        18 => {
            let committed = format!("committed {step}").into_bytes();
            model.committed = Some(committed.clone());
            group.save_committed(committed);
        }
        _ if rng.random_range(0..4) == 0 => {
            *model = Model::default();
            wait(|done| group.remove(done)).unwrap();
        }
        _ => {}
    }
}

fn purge(group: &GroupLog, model: &mut Model, up_to: u64) {
    let note = format!("note of {up_to}").into_bytes();
    model.purged = Some(Purged { index: up_to, note: note.clone() });
    wait(|done| group.purge(up_to, note, done)).unwrap();
}

#[test]
fn many_groups_that_append_at_once_share_their_syncs() {
    let place = LogDir::new();
    let files = FaultFileSystem::new();
    let log = Log::open_with(disk(), &place.log(), LogConfig::default(), files.clone()).unwrap();
    for group in 0..64 {
        wait(|done| log.group(GroupId(group)).append(records(0, 1, 1, 10), done)).unwrap();
    }
    let before = files.syncs();
    let answered = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for group in 0..64 {
            let (log, answered) = (log.clone(), answered.clone());
            scope.spawn(move || {
                for index in 1..6 {
                    wait(|done| log.group(GroupId(group)).append(records(index, 1, 1, 2000), done)).unwrap();
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    let syncs = files.syncs() - before;
    assert_eq!(answered.load(Ordering::SeqCst), 320);
    assert!(syncs * 4 < 320, "{syncs} syncs for 320 appends");
}

#[test]
fn a_committed_position_alone_costs_no_sync_and_survives_a_shutdown() {
    let place = LogDir::new();
    let files = FaultFileSystem::new();
    let log = Log::open_with(disk(), &place.log(), SMALL, files.clone()).unwrap();
    let group = log.group(GroupId(3));
    wait(|done| group.append(records(0, 2, 1, 10), done)).unwrap();
    let before = files.syncs();
    for committed in 0..50u8 {
        group.save_committed(vec![committed]);
    }
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert_eq!(files.syncs(), before);
    log.shutdown().unwrap();
    assert!(matches!(wait(|done| group.save_vote(vec![1], done)), Err(LogError::Closed)));
    assert!(matches!(group.read(0, 1, 10), Err(LogError::Closed)));
    assert_eq!(place.open().unwrap().group(GroupId(3)).state().committed, Some(vec![49]));
}

#[test]
fn entries_of_a_mebibyte_come_back_and_reads_are_bounded_but_never_empty() {
    let place = LogDir::new();
    let log = Log::open(disk(), &place.log(), LogConfig::default()).unwrap();
    let group = log.group(GroupId(16));
    let large = |index: u64| LogRecord { index, term: 1, payload: Bytes::from(vec![index as u8; 1 << 20]) };
    wait(|done| group.append((0..12).map(large).collect(), done)).unwrap();
    wait(|done| group.append(records(12, 4, 1, 100), done)).unwrap();
    assert_eq!(group.read(0, 16, 1).unwrap(), [large(0)]);
    assert_eq!(group.read(3, 16, (5 << 20) / 2).unwrap(), [large(3), large(4)]);
    assert_eq!(group.read(11, 100, 2 << 20).unwrap().len(), 5);
    assert_eq!(group.read(16, 100, 1).unwrap(), []);
    assert_eq!(group.read(5, 5, 1).unwrap(), []);
    wait(|done| group.purge(4, b"note".to_vec(), done)).unwrap();
    assert!(matches!(group.read(4, 16, 1), Err(LogError::Purged { first: 5, .. })));
    log.shutdown().unwrap();
    assert_eq!(place.open().unwrap().group(GroupId(16)).read(5, 6, 1).unwrap(), [large(5)]);
}

#[test]
fn what_does_not_fit_is_refused_and_the_log_goes_on() {
    let place = LogDir::new();
    let log = place.open().unwrap();
    let group = log.group(GroupId(1));
    wait(|done| group.append(records(5, 3, 1, 10), done)).unwrap();
    let refused = |result| assert!(matches!(result, Err(LogError::Refused(_))), "{result:?}");
    refused(wait(|done| group.append(records(9, 1, 1, 10), done)));
    refused(wait(|done| group.append(records(7, 1, 1, 10), done)));
    refused(wait(|done| group.save_vote(vec![0; 5000], done)));
    refused(wait(|done| group.purge(2, vec![], done)));
    refused(wait(|done| group.purge(u64::MAX, vec![], done)));
    refused(wait(|done| log.group(GroupId(u64::MAX)).append(records(0, 1, 1, 1), done)));
    wait(|done| group.purge(6, vec![], done)).unwrap();
    refused(wait(|done| group.truncate(6, done)));
    wait(|done| group.truncate(100, done)).unwrap();
    wait(|done| group.append(vec![], done)).unwrap();
    wait(|done| group.append(records(8, 1, 2, 10), done)).unwrap();
    assert_eq!((group.state().first, group.state().last, log.failed()), (7, Some((8, 2)), None));
    assert_eq!(log.groups(), [GroupId(1)]);
    let again = Log::open(disk(), &place.log(), SMALL).unwrap_err();
    assert!(again.to_string().contains("another process"), "{again}");
}

#[test]
fn files_are_given_back_once_their_groups_are_purged() {
    let place = LogDir::new();
    let log = place.open().unwrap();
    let (busy, quiet) = (log.group(GroupId(1)), log.group(GroupId(2)));
    wait(|done| quiet.append(records(0, 3, 1, 10), done)).unwrap();
    wait(|done| quiet.save_vote(b"mine".to_vec(), done)).unwrap();
    for index in 0..400 {
        wait(|done| busy.append(records(index, 1, 1, 1000), done)).unwrap();
    }
    let full = log.bytes();
    assert_eq!(log.pinned(), [GroupId(1)], "the quiet group is copied, the busy one is named");
    wait(|done| busy.purge(395, b"sealed".to_vec(), done)).unwrap();
    assert_eq!(log.pinned(), []);
    assert!(log.bytes() * 4 < full, "{} of {full} bytes", log.bytes());
    drop((busy, quiet, log));
    let log = place.open().unwrap();
    assert_eq!(read_all(&log.group(GroupId(2))).unwrap(), records(0, 3, 1, 10));
    assert_eq!(log.group(GroupId(2)).state().vote, Some(b"mine".to_vec()));
    assert_eq!(read_all(&log.group(GroupId(1))).unwrap(), records(396, 4, 1, 1000));
}

#[test]
fn what_the_engine_copies_and_copies_again_is_surveyed_as_the_engine_replays_it() {
    let place = LogDir::new();
    let config = LogConfig { budget_bytes: 256 << 10, file_bytes: 64 << 10, batch_bytes_max: 64 << 10, ..SMALL };
    let mut log = Log::open(disk(), &place.log(), config.clone()).unwrap();
    let (mut busy, mut marked) = (0, false);
    for cycle in 0..24u64 {
        for id in 0..3 {
            // The 15 live records of 10 KiB exceed one batch of the engine's copy, so it marks several batches as one.
            let quiet = log.group(GroupId(id));
            wait(|done| quiet.append(records(cycle * 5, 5, cycle, 10_000), done)).unwrap();
            if cycle > 2 {
                wait(|done| quiet.purge(cycle * 5 - 11, format!("{cycle}").into_bytes(), done)).unwrap();
            }
        }
        let group = log.group(GroupId(9));
        for _ in 0..8 {
            wait(|done| group.append(records(busy, 1, 1, 40_000), done)).unwrap();
            busy += 1;
        }
        wait(|done| group.purge(busy - 1, vec![], done)).unwrap();
        log.pinned();
        let rewritten =
            place.content().into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "rewrite"));
        marked |= rewritten.into_iter().any(|(_, bytes)| bytes.windows(3).any(|bytes| bytes == b"__\x01"));
        if cycle % 3 == 2 {
            drop(group);
            drop(log);
            assert_eq!(check(&RealDisk, &place.log()).problems, Vec::<String>::new());
            log = Log::open(disk(), &place.log(), config.clone()).unwrap();
        }
        for id in 0..3 {
            let first = if cycle > 2 { cycle * 5 - 10 } else { 0 };
            let expected: Vec<_> =
                (first..cycle * 5 + 5).flat_map(|index| records(index, 1, index / 5, 10_000)).collect();
            assert_eq!(read_all(&log.group(GroupId(id))).unwrap(), expected, "cycle {cycle}");
        }
    }
    assert!(marked, "the engine never marked batches as belonging together");
}
