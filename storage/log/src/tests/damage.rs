//! Tests of changed bytes, torn tails, and old or missing files. Each is detected or has no effect.

use rand::{Rng, SeedableRng};

use super::*;
use crate::{Verdict, check};

/// Creates a log of four groups with votes, purges and a truncation, and closes it.
fn filled() -> (LogDir, BTreeMap<GroupId, (GroupState, Vec<LogRecord>)>) {
    let place = LogDir::new();
    let log = place.open().unwrap();
    for group in 1..5 {
        let group = log.group(GroupId(group));
        wait(|done| group.save_vote(b"a first vote".to_vec(), done)).unwrap();
        for index in 0..12 {
            wait(|done| group.append(records(index * 2, 2, index, 300), done)).unwrap();
        }
        wait(|done| group.purge(group.group().0 * 3, b"a note".to_vec(), done)).unwrap();
        wait(|done| group.truncate(20, done)).unwrap();
        wait(|done| group.append(records(20, 2, 99, 300), done)).unwrap();
        wait(|done| group.save_vote(b"the last vote".to_vec(), done)).unwrap();
        group.save_committed(b"committed".to_vec());
    }
    let whole = log.groups().into_iter().map(|id| (id, (log.group(id).state(), read_all(&log.group(id)).unwrap())));
    let whole = whole.collect();
    log.shutdown().unwrap();
    (place, whole)
}

/// Checks that the content is unchanged, or that damage is reported.
fn right_or_refused(place: &LogDir, whole: &BTreeMap<GroupId, (GroupState, Vec<LogRecord>)>) -> Result<bool, String> {
    let before = place.content();
    let report = check(&RealDisk, &place.log());
    let log = match place.open() {
        Ok(log) => log,
        Err(LogError::Corrupt(_)) => {
            let untouched = place.content() == before && report.verdict == Verdict::Corrupt;
            return if untouched { Ok(false) } else { Err(format!("refused, but changed, or {report}")) };
        }
        Err(error) => return Err(format!("not said to be corrupt: {error}")),
    };
    for (id, (state, records)) in whole {
        let group = log.group(*id);
        let now = GroupState { committed: state.committed.clone(), ..group.state() };
        if now != *state {
            return Err(format!("group {id}: {now:?} was {state:?}"));
        }
        match read_all(&group) {
            Ok(read) if read == *records => {}
            Ok(_) => return Err(format!("group {id}: wrong records")),
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

#[test]
fn a_flipped_bit_anywhere_is_seen_or_harmless() {
    let (place, whole) = filled();
    assert_eq!(right_or_refused(&place, &whole), Ok(true));
    let (place, whole) = filled();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let files: Vec<_> = place.content().into_iter().collect();
    let (mut seen, mut harmless) = (0, 0);
    for round in 0..200 {
        // Every eighth flip is in the watermark, and the others are spread over the log by size.
        let (path, mut bytes, bit) = if round % 8 == 0 {
            let (path, bytes) = files.iter().find(|(path, _)| path.ends_with("log.watermark")).unwrap().clone();
            let bit = rng.random_range(0..bytes.len() * 8);
            (path, bytes, bit)
        } else {
            let total: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
            let mut at = rng.random_range(0..total);
            let file = files.iter().find(|(_, bytes)| {
                let here = at < bytes.len();
                at -= if here { 0 } else { bytes.len() };
                here
            });
            let (path, bytes) = file.unwrap().clone();
            (path, bytes, at * 8 + rng.random_range(0..8))
        };
        bytes[bit / 8] ^= 1 << (bit % 8);
        let copy = place.copy();
        let name = path.file_name().unwrap();
        let target = if path.ends_with("log.watermark") { copy.watermark() } else { copy.log().join(name) };
        fs::write(target, bytes).unwrap();
        match right_or_refused(&copy, &whole) {
            Ok(true) => harmless += 1,
            Ok(false) => seen += 1,
            Err(what) => panic!("round {round}, {}, bit {bit}: {what}", path.display()),
        }
    }
    assert!(seen > 120, "{seen} seen, {harmless} harmless");
}

#[test]
fn a_torn_tail_above_the_watermark_is_cut_and_said() {
    let (place, whole) = filled();
    let files = place.content();
    let last = path_of(&files, ".raftlog").pop().unwrap();
    let mut torn = files[last].clone();
    let batch = torn[torn.len() - 60..].to_vec();
    torn.extend(&batch);
    fs::write(last, &torn).unwrap();
    let report = check(&RealDisk, &place.log());
    assert_eq!(report.verdict, Verdict::TornTail, "{report}");
    assert!(report.remarks.iter().any(|remark| remark.contains("torn")));
    assert_eq!(right_or_refused(&place, &whole), Ok(true));
    assert_eq!(check(&RealDisk, &place.log()).verdict, Verdict::Sound);
}

#[test]
fn a_tail_cut_at_any_byte_is_corruption_below_the_watermark() {
    let (place, whole) = filled();
    let files = place.content();
    let last = path_of(&files, ".raftlog").pop().unwrap();
    let whole_file = &files[last];
    for cut in (0..whole_file.len()).step_by(whole_file.len() / 40 + 1) {
        let copy = place.copy();
        fs::write(copy.log().join(last.file_name().unwrap()), &whole_file[..cut]).unwrap();
        // Only data written at closing follows the last acknowledged write.
        match right_or_refused(&copy, &whole) {
            Ok(right) => assert!(!right || cut + 400 > whole_file.len(), "cut at {cut} of {}", whole_file.len()),
            Err(what) => panic!("cut at {cut}: {what}"),
        }
    }
}

#[test]
fn a_stale_copy_of_a_log_file_is_seen_or_harmless() {
    let place = LogDir::new();
    let log = place.open().unwrap();
    let group = log.group(GroupId(1));
    let mut copies = Vec::new();
    for index in 0..60 {
        wait(|done| group.append(records(index, 1, 1, 500), done)).unwrap();
        if index % 7 == 3 {
            wait(|done| group.save_vote(format!("vote {index}").into_bytes(), done)).unwrap();
            copies.push(place.content());
        }
    }
    let whole = BTreeMap::from([(GroupId(1), (group.state(), read_all(&group).unwrap()))]);
    drop(group);
    log.shutdown().unwrap();
    let mut refused = 0;
    for old in copies {
        for (path, bytes) in old.iter().filter(|(path, _)| !path.ends_with("log.watermark")) {
            let copy = place.copy();
            fs::write(copy.log().join(path.file_name().unwrap()), bytes).unwrap();
            let right = right_or_refused(&copy, &whole).unwrap_or_else(|what| panic!("{}: {what}", path.display()));
            refused += usize::from(!right);
        }
    }
    assert!(refused >= 8, "{refused}");
}

#[test]
fn a_missing_file_or_watermark_is_corruption() {
    let (place, whole) = filled();
    let files = place.content();
    for path in files.keys().filter(|path| !path.ends_with("0000000000000001.rewrite")) {
        let copy = place.copy();
        let target =
            if path.ends_with("log.watermark") { copy.watermark() } else { copy.log().join(path.file_name().unwrap()) };
        fs::remove_file(target).unwrap();
        let result = right_or_refused(&copy, &whole);
        // The first files may hold only purged records.
        assert!(result == Ok(false) || path.ends_with("0000000000000001.raftlog"), "{}: {result:?}", path.display());
    }
    let copy = place.copy();
    fs::remove_dir_all(copy.log()).unwrap();
    fs::create_dir(copy.log()).unwrap();
    let error = copy.open().unwrap_err().to_string();
    assert!(error.contains("group 1") && error.contains("rebuilt") && error.contains("doctor"), "{error}");
}

#[test]
fn an_empty_place_opens_and_a_lone_watermark_is_no_damage() {
    let place = LogDir::new();
    drop(place.open().unwrap());
    fs::remove_dir_all(place.log()).unwrap();
    assert_eq!(place.open().unwrap().groups(), []);
}
