//! Measurements for decision 0002: CPU, bytes and latencies of segments on JSON-like rows of 2 KB.
//!
//! `cargo run --release -p assay-storage-segments --example figures -- [rows]`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_storage_disk::{RealDisk, SharedDisk};
use assay_storage_model::command::Action;
use assay_storage_model::segment::{FileKind, SegmentMeta};
use assay_storage_model::{ObjectKey, OrgId, PaginationKey, Xact};
use assay_storage_segments::merge::{MergeInput, merge};
use assay_storage_segments::{Codec, Columns, Segment, SegmentWriter, SoughtId, VersionRow, WriterOptions};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const GB: f64 = 1e9;

struct Row {
    key: u64,
    xact: u64,
    id: String,
    root: String,
    doc: Vec<u8>,
}

fn uuid(random: &mut ChaCha8Rng) -> String {
    let (a, b): (u64, u64) = (random.random(), random.random());
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xFFFF,
        a & 0xFFF,
        b >> 52,
        b & 0xFFFF_FFFF_FFFF
    )
}

/// Returns a span of about 2 KB with a few fields, tokens, scores and two texts.
fn document(random: &mut ChaCha8Rng, words: &[String], id: &str, root: &str) -> Vec<u8> {
    let text = |random: &mut ChaCha8Rng, bytes: usize| {
        let mut text = String::new();
        while text.len() < bytes {
            // Low numbers are frequent, like common words.
            let word = (words.len() as f64).powf(random.random::<f64>()) as usize;
            text.push_str(&words[word.min(words.len() - 1)]);
            text.push(' ');
        }
        text
    };
    let (input, output) = (text(random, 900), text(random, 500));
    let tokens: u32 = random.random_range(10..4000);
    let score: f64 = random.random();
    let start = 1_761_000_000.0 + random.random::<f64>() * 1e6;
    format!(
        r#"{{"id":"{id}","span_id":"{id}","root_span_id":"{root}","created":"2026-11-21T10:{:02}:{:02}.{:06}Z","span_attributes":{{"name":"chat completion","type":"llm"}},"input":[{{"role":"user","content":"{input}"}}],"output":[{{"role":"assistant","content":"{output}"}}],"metrics":{{"start":{start},"end":{},"prompt_tokens":{tokens},"completion_tokens":{}}},"scores":{{"factuality":{score}}},"tags":["production","v{}"],"metadata":{{"model":"model-{}","user":"{}","session":"{}"}}}}"#,
        random.random_range(0..60),
        random.random_range(0..60),
        random.random_range(0..1_000_000),
        start + score * 9.0,
        tokens / 3,
        random.random_range(0..9),
        random.random_range(0..6),
        random.random_range(0..10_000),
        uuid(random),
    )
    .into_bytes()
}

/// Returns rows, newest first, with ten in each trace.
fn rows(count: u64, seed: u64) -> Vec<Row> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let letters = b"etaoinshrdlucmfwypvbgkjqxz";
    let mut words = Vec::new();
    for _ in 0..5000 {
        let length = random.random_range(2..10);
        words.push(
            (0..length).map(|_| letters[(26.0_f64.powf(random.random::<f64>()) - 1.0) as usize] as char).collect(),
        );
    }
    let mut root = uuid(&mut random);
    let mut rows: Vec<Row> = (0..count)
        .map(|number| {
            if number % 10 == 0 {
                root = uuid(&mut random);
            }
            let id = uuid(&mut random);
            let doc = document(&mut random, &words, &id, &root);
            let xact = Xact::new(1_761_000_000, 0).0 + number / 10;
            Row { key: PaginationKey::new(Xact(xact), (number % 10) as u16).0, xact, id, root: root.clone(), doc }
        })
        .collect();
    rows.reverse();
    rows
}

fn object() -> ObjectKey {
    ObjectKey { org: OrgId("00000000-0000-0000-0000-000000000001".parse().expect("a uuid")), ..SegmentMeta::NO_OBJECT }
}

/// Returns the CPU time of this process's only thread.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    let nanoseconds = stat.split_whitespace().next().and_then(|field| field.parse::<f64>().ok()).expect("a number");
    nanoseconds / 1e9
}

fn write<'a>(
    disk: &SharedDisk,
    dir: &Path,
    seq: u64,
    codec: Codec,
    rows: impl Iterator<Item = &'a Row>,
) -> SegmentMeta {
    let options = WriterOptions { codec, ..WriterOptions::default() };
    let mut writer = SegmentWriter::create(Arc::clone(disk), dir, seq, options).expect("creates");
    for row in rows {
        let version = VersionRow {
            object: object(),
            key: PaginationKey(row.key),
            xact: Xact(row.xact),
            end: None,
            action: Action::Upsert,
            id: &row.id,
            span_id: &row.id,
            root_span_id: &row.root,
            is_root: false,
            created: row.xact as i64,
            doc: &row.doc,
            patch: None,
            rules: None,
            audit: None,
        };
        writer.push(&version).expect("pushes");
    }
    writer.finish(&[]).expect("finishes")
}

/// Measures reads of adjacent rows, as for a page of a hundred traces.
fn adjacent_rows(segment: &Segment) {
    const ROWS: u32 = 1000;
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut times = Vec::new();
    for _ in 0..100 {
        let first = random.random_range(0..segment.meta().rows - ROWS);
        let numbers: Vec<u32> = (first..first + ROWS).collect();
        let start = Instant::now();
        assert_eq!(segment.read(&numbers, Columns::Docs).expect("reads").len(), numbers.len());
        times.push(start.elapsed());
    }
    println!("  p50 of {ROWS} adjacent rows with documents: {:.2} ms", median(times) / 1e3);
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn lookups(segment: &Segment, rows: &[Row]) {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (mut find, mut absent, mut read, mut trace, mut below) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..2000 {
        let at = random.random_range(0..rows.len());
        let time = |times: &mut Vec<Duration>, work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            times.push(start.elapsed());
        };
        let row = &rows[at];
        time(&mut find, &mut || assert_eq!(segment.find(&SoughtId::new(object(), &row.id)).expect("finds").len(), 1));
        time(&mut absent, &mut || {
            assert_eq!(segment.find(&SoughtId::new(object(), &row.root)).expect("finds").len(), 0)
        });
        time(&mut read, &mut || assert_eq!(segment.read(&[at as u32], Columns::Docs).expect("reads")[0].doc, row.doc));
        time(&mut trace, &mut || {
            let found = segment.trace(object(), &row.root).expect("finds");
            assert_eq!(segment.read(&found, Columns::Docs).expect("reads").len(), found.len());
        });
        time(&mut below, &mut || {
            segment.first_row_below(object(), PaginationKey(row.key)).expect("finds");
        });
    }
    println!(
        "  p50 in us: find {:.1}, find what is absent {:.1}, read one row {:.1}, trace of ten with documents {:.1}, first row below {:.1}",
        median(find),
        median(absent),
        median(read),
        median(trace),
        median(below)
    );
}

/// Merges segments and opens the result.
fn merged(
    name: &str,
    disk: &SharedDisk,
    dir: &Path,
    options: WriterOptions,
    inputs: &[SegmentMeta],
    seq: u64,
) -> Arc<Segment> {
    let bytes: u64 = inputs.iter().map(|meta| meta.raw_bytes).sum();
    let start = cpu_seconds();
    let inputs: Vec<MergeInput> = inputs
        .iter()
        .map(|meta| MergeInput { segment: Segment::open(Arc::clone(disk), dir, meta).expect("opens"), ends: vec![] })
        .collect();
    let merged = merge(&inputs, &|_| true, Arc::clone(disk), dir, seq, options, &[]).expect("merges");
    println!("  merge of four, {name}: {:.2} CPU s per GB of documents", (cpu_seconds() - start) / (bytes as f64 / GB));
    Segment::open(Arc::clone(disk), dir, &merged.meta).expect("opens")
}

fn sizes(meta: &SegmentMeta) {
    let length = |kind| meta.file(kind).map_or(0, |file| file.length) as f64 / meta.raw_bytes as f64;
    let [rows, ids, words] = [FileKind::Rows, FileKind::Ids, FileKind::Words].map(length);
    println!("  parquet {rows:.3}, ids {ids:.3} and words {words:.3} of the documents");
}

fn reads(segment: &Arc<Segment>, rows: &[Row]) {
    println!("  in memory {:.2} bytes a row", segment.memory_bytes() as f64 / f64::from(segment.meta().rows));
    lookups(segment, rows);
    adjacent_rows(segment);
    for what in [Columns::Keys, Columns::Docs] {
        let cpu = cpu_seconds();
        let found: usize =
            segment.scan(0..segment.meta().rows, what).expect("scans").map(|rows| rows.expect("reads").len()).sum();
        assert_eq!(found, rows.len());
        let gb = segment.meta().raw_bytes as f64 / GB;
        println!("  scan of {what:?}: {:.2} CPU s per GB of documents", (cpu_seconds() - cpu) / gb);
    }
}

/// Searches a word of few blocks and a word of no block.
fn searches(segment: &Segment) {
    for word in ["factuality", "nowhere"] {
        let start = Instant::now();
        let found: usize = (0..segment.groups())
            .filter_map(|group| segment.rows_with_words(group, &[word]).expect("reads"))
            .map(|rows| rows.count_set_bits())
            .sum();
        let spent = start.elapsed().as_secs_f64() * 1e6 / segment.groups() as f64;
        println!("  rows that may have `{word}`: {found}, {spent:.0} us a row group");
    }
}

/// Measures the CPU time of reading each typed column whole.
fn typed_columns(segment: &Arc<Segment>) {
    let millions = f64::from(segment.meta().rows) / 1e6;
    for (typed, place) in segment.typed().iter().zip(segment.typed_places()) {
        let cpu = cpu_seconds();
        let values: usize = segment
            .batches(0..segment.meta().rows, &[place])
            .expect("scans")
            .map(|batch| batch.expect("reads").1.num_rows())
            .sum();
        assert_eq!(values, segment.meta().rows as usize);
        let spent = (cpu_seconds() - cpu) * 1e3 / millions;
        println!("  column {} of {:?}: {spent:.1} CPU ms per million rows", typed.path.join("."), typed.kind);
    }
}

fn main() {
    let count = std::env::args().nth(1).map_or(200_000, |text| text.parse().expect("a number of rows"));
    let dir: PathBuf = std::env::temp_dir().join(format!("assay-figures-{}", std::process::id()));
    let disk: SharedDisk = Arc::new(RealDisk);
    disk.create_dir_all(&dir).expect("a directory");
    let rows = rows(count, 1);
    println!("{} rows, {} bytes a document", rows.len(), rows[0].doc.len());
    for codec in [Codec::Lz4, Codec::Plain] {
        let mut cpu = Vec::new();
        for seq in 2..5 {
            let start = cpu_seconds();
            write(&disk, &dir, seq, codec, rows.iter());
            cpu.push(Duration::from_secs_f64(cpu_seconds() - start));
        }
        let meta = write(&disk, &dir, 1, codec, rows.iter());
        println!("{codec:?}: write {:.2} CPU s per GB of documents", median(cpu) / 1e6 / (meta.raw_bytes as f64 / GB));
        sizes(&meta);
        reads(&Segment::open(Arc::clone(&disk), &dir, &meta).expect("opens"), &rows);
        let quarter = rows.len() / 4;
        let options = WriterOptions { tier: 1, codec, columnar: false };
        let parts: Vec<SegmentMeta> = (0..4)
            .map(|part| write(&disk, &dir, 10 + part, codec, rows[part as usize * quarter..][..quarter].iter()))
            .collect();
        merged("one after the other", &disk, &dir, options, &parts, 20);
        let mixed: Vec<SegmentMeta> = (0..4)
            .map(|part| write(&disk, &dir, 30 + part, codec, rows.iter().skip(part as usize).step_by(4)))
            .collect();
        merged("row by row", &disk, &dir, options, &mixed, 40);
        if codec == Codec::Lz4 {
            println!("columnar, made of these");
            let columnar = WriterOptions { columnar: true, ..options };
            let segment = merged("row by row", &disk, &dir, columnar, &mixed, 50);
            sizes(segment.meta());
            reads(&segment, &rows);
            typed_columns(&segment);
            searches(&segment);
            let parts = [0, 1, 2, 3].map(|part| {
                let input = merged("(of one)", &disk, &dir, columnar, &parts[part..=part], 60 + part as u64);
                input.meta().clone()
            });
            merged("of columnar ones", &disk, &dir, columnar, &parts, 70);
        }
        disk.remove_dir_all(&dir).expect("removes");
        disk.create_dir_all(&dir).expect("a directory");
    }
    disk.remove_dir_all(&dir).expect("removes");
}
