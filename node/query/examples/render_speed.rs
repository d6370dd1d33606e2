//! Measures rows rendered per second of processor time, and the memory that takes:
//! `cargo run --release -p assay-node-query --example render_speed [rows]`.

use assay_node_btql::bound::Kinds;
use assay_node_btql::schema::Column;
use assay_node_btql::values::Value;
use assay_node_query::Table;
use assay_node_query::render::{Format, RowWriter};

/// Number of rows in a part of a shard.
const AT_A_TIME: usize = 1000;
/// Number of distinct rows before they repeat.
const PAGES: usize = 40;
const ROWS: usize = 1_000_000;

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(ROWS);
    println!("{:8} {:8} {:>10} {:>9} {:>9} {:>9}", "rows", "format", "rows/s", "in MB/s", "out MB/s", "peak MiB");
    for (name, columns, row) in
        [("spans", spans(), span as fn(usize) -> Vec<Value<'static>>), ("numbers", numbers(), number)]
    {
        let page: Vec<_> = (0..AT_A_TIME * PAGES).map(row).collect();
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let json: usize = page.iter().flatten().map(|value| value.to_json().len()).sum();
        let table = |rows: &[Vec<Value<'_>>]| Table::from_rows(names.clone(), rows).expect("a table");
        let tables: Vec<Table> = page.chunks(AT_A_TIME).map(table).collect();
        for format in Format::ALL {
            measure(name, format, &columns, &tables, json / page.len(), rows);
        }
    }
}

fn measure(name: &str, format: Format, columns: &[Column], tables: &[Table], row_bytes: usize, rows: usize) {
    let mut writer = RowWriter::new(format, columns).expect("a writer");
    let (mut out, begin) = (0, processor_seconds());
    for part in tables.iter().cycle().take(rows / AT_A_TIME) {
        out += writer.rows(part).expect("it is written").len();
    }
    out += writer.finish().expect("an end").len();
    let seconds = processor_seconds() - begin;
    let megabytes = |bytes: f64| bytes / 1e6 / seconds;
    let read = (row_bytes * rows) as f64;
    println!(
        "{name:8} {:8} {:>10.0} {:>9.0} {:>9.0} {:>9}",
        format.name(),
        rows as f64 / seconds,
        megabytes(read),
        megabytes(out as f64),
        peak_mib()
    );
}

/// Returns the processor time of this thread.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let nanos: u64 = text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("nanoseconds");
    nanos as f64 / 1e9
}

/// Returns the next number of splitmix64.
fn mixed(seed: usize) -> u64 {
    let mut bits = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns the peak memory of the process.
fn peak_mib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).unwrap_or_default() >> 10
}

fn spans() -> Vec<Column> {
    let of = |name: &str, kinds| Column { name: name.into(), kinds, nullable: true };
    let mut columns: Vec<_> =
        ["id", "_xact_id", "_pagination_key", "span_id", "root_span_id"].map(|name| of(name, Kinds::Text)).into();
    columns.extend([
        of("created", Kinds::Time),
        of("is_root", Kinds::Boolean),
        of("tags", Kinds::Texts),
        of("span_parents", Kinds::Texts),
    ]);
    let documents = [
        "input",
        "output",
        "expected",
        "error",
        "metadata",
        "metrics",
        "scores",
        "span_attributes",
        "context",
        "origin",
    ];
    columns.extend(documents.map(|name| of(name, Kinds::Any)));
    columns
}

/// Returns a row of about two kilobytes, half of which are input and output.
fn span(n: usize) -> Vec<Value<'static>> {
    let text = |text: String| Value::Text(text.into());
    let object = |json: String| Value::Object(json.into());
    let id = |salt: usize| {
        text(format!("{:032x}", (n as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834 + salt as u128)))
    };
    let words = |salt: usize, count: usize| {
        let word = |at: usize| WORDS[(mixed(n * 1000 + salt * 100 + at) % WORDS.len() as u64) as usize];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    };
    vec![
        id(0),
        Value::Xact(1_000_196_000_000_000_000 + n as u64 / 100),
        text(format!("p{:020}", 7_564_805_807_003_992_067 + n as u64)),
        id(1),
        id(2),
        Value::Stored(1_700_000_000_000_000 + n as i64 * 1_234_000),
        Value::Boolean(n.is_multiple_of(5)),
        Value::Array(r#"["prod","eu"]"#.into()),
        Value::Null,
        Value::Array(
            format!(
                r#"[{{"role":"system","content":"{}"}},{{"role":"user","content":"{}\n\"{}\""}}]"#,
                words(1, 60),
                words(2, 40),
                words(3, 5)
            )
            .into(),
        ),
        text(format!("{}\n\n{} \"{}\"", words(4, 30), words(5, 60), words(6, 3))),
        Value::Null,
        Value::Null,
        object(format!(r#"{{"model":"model-{}","user":"u{}","temperature":0.{}}}"#, n % 5, n % 1000, n % 10)),
        object(format!(
            r#"{{"start":{}.25,"end":{}.75,"prompt_tokens":{},"completion_tokens":{}}}"#,
            1_700_000_000 + n,
            1_700_000_001 + n,
            n % 900,
            n % 300
        )),
        object(format!(r#"{{"Factuality":0.{},"Length":1}}"#, n % 100)),
        object(r#"{"name":"chat","type":"llm"}"#.into()),
        object(format!(r#"{{"caller_filename":"app.py","caller_lineno":{}}}"#, n % 400)),
        Value::Null,
    ]
}

fn numbers() -> Vec<Column> {
    let of = |name: &str, kinds| Column { name: name.into(), kinds, nullable: true };
    vec![
        of("id", Kinds::Text),
        of("created", Kinds::Time),
        of("tokens", Kinds::Integer),
        of("duration", Kinds::Number),
        of("score", Kinds::Number),
    ]
}

fn number(n: usize) -> Vec<Value<'static>> {
    vec![
        Value::Text(format!("{:016x}", (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).into()),
        Value::Stored(1_700_000_000_000_000 + n as i64 * 1_234_000),
        Value::Integer((n * 37 % 5000) as i64),
        Value::float(n as f64 * 0.0123),
        if n.is_multiple_of(3) { Value::Null } else { Value::float((n % 100) as f64 / 100.0) },
    ]
}

const WORDS: [&str; 24] = [
    "the",
    "answer",
    "of",
    "model",
    "question",
    "context",
    "is",
    "please",
    "summarize",
    "following",
    "document",
    "customer",
    "order",
    "and",
    "refund",
    "policy",
    "within",
    "thirty",
    "days",
    "assistant",
    "should",
    "never",
    "reveal",
    "secrets",
];
