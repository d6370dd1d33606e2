//! Measurements on demand: `cargo test --release -p assay-storage-log -- --ignored --nocapture measure`.

use std::time::Instant;

use raft_engine::{Config, Engine, LogBatch, ReadableSize};

use super::*;
use crate::frame::Frame;
use crate::recovery_scan::survey;

const GROUPS: u64 = 16;
const ENTRY_BYTES: usize = 1 << 20;

/// Returns rows as JSON text, so that compression has an effect.
fn entry(seed: u64) -> Bytes {
    let mut text = String::new();
    let mut row = seed;
    while text.len() < ENTRY_BYTES {
        row = row.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text += &format!(
            r#"{{"id":"{row:016x}","span_id":"{:016x}","metrics":{{"tokens":{},"cost":0.{}}},"input":"what is {row}","tags":["a","b"]}}"#,
            row >> 3,
            row >> 50,
            row >> 44
        );
    }
    Bytes::from(text)
}

fn rate(what: &str, bytes: usize, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!("{what}: {:.2} s, {:.0} MB/s", seconds, bytes as f64 / 1e6 / seconds);
}

#[test]
#[ignore = "measures half a gibibyte; run in release"]
fn measure_writing_opening_and_reading_back() {
    let place = LogDir::new();
    let payload = entry(1);
    for (bytes, count) in [(ENTRY_BYTES, 30), (2048, 3000)] {
        let place = LogDir::new();
        let log = Log::open(disk(), &place.log(), LogConfig::default()).unwrap();
        let since = Instant::now();
        write_all(&log, &payload.slice(..bytes), count);
        rate(&format!("log, {GROUPS} threads, {bytes} bytes"), GROUPS as usize * count as usize * bytes, since);
        drop(log);
        for threshold in [0, 8 << 10] {
            raw_engine(&payload.slice(..bytes), count, threshold);
        }
    }
    let log = Log::open(disk(), &place.log(), LogConfig::default()).unwrap();
    write_all(&log, &payload, 32);
    let total = GROUPS as usize * 32 * ENTRY_BYTES;
    drop(log);
    let since = Instant::now();
    survey(&raft_engine::env::DefaultFileSystem, &place.log()).unwrap();
    rate("survey", total, since);
    let since = Instant::now();
    let log = Log::open(disk(), &place.log(), LogConfig::default()).unwrap();
    rate("open", total, since);
    let since = Instant::now();
    let log = &log;
    std::thread::scope(|scope| {
        for group in 0..GROUPS {
            scope.spawn(move || read_all(&log.group(GroupId(group))).unwrap());
        }
    });
    rate("replay by one thread a group", total, since);
}

fn write_all(log: &Log, payload: &Bytes, count: u64) {
    std::thread::scope(|scope| {
        for group in 0..GROUPS {
            let group = log.group(GroupId(group));
            scope.spawn(move || {
                for index in 0..count {
                    let record = LogRecord { index, term: 1, payload: payload.clone() };
                    wait(|done| group.append(vec![record], done)).unwrap();
                }
            });
        }
    });
}

fn raw_engine(payload: &Bytes, count: u64, threshold: u64) {
    let place = LogDir::new();
    let config = Config {
        dir: place.log().to_str().unwrap().to_string(),
        batch_compression_threshold: ReadableSize(threshold),
        target_file_size: ReadableSize(64 << 20),
        enable_log_recycle: false,
        ..Config::default()
    };
    let engine = &Engine::open(config).unwrap();
    let since = Instant::now();
    std::thread::scope(|scope| {
        for group in 0..GROUPS {
            scope.spawn(move || {
                for index in 0..count {
                    let record = LogRecord { index, term: 1, payload: payload.clone() };
                    let mut batch = LogBatch::default();
                    batch.add_entries::<Frame>(group, &[Frame::of(GroupId(group), &record, 0)]).unwrap();
                    engine.write(&mut batch, true).unwrap();
                }
            });
        }
    });
    let bytes = GROUPS as usize * count as usize * payload.len();
    rate(&format!("raft-engine alone, compressed from {threshold}, {} bytes", payload.len()), bytes, since);
}
