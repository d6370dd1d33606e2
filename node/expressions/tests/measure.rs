//! Cost per row of common filters and columns, over a million rows in batches as they come from storage.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use assay_node_btql::ast::Step;
use assay_node_btql::bound::{BoundExpr, Field, Output};
use assay_node_btql::{Env as Asked, bind, parse_text};
use assay_node_expressions::{Env, Program, Type};

const ROWS: usize = 1 << 20;
const BATCH: usize = 8_192;
/// The clock of a thread ticks every few milliseconds.
const TIMES: usize = 10;
const MODELS: [&str; 5] = ["gpt-4o", "gpt-4o-mini", "claude-sonnet", "claude-haiku", "gemini-flash"];
const START: i64 = 1_777_636_800_000_000;

fn bound(expr: &str) -> BoundExpr {
    let query = parse_text(&format!("select: {expr} as x | from: project_logs('P')")).expect("a query");
    match bind(&query, &Asked::default()).expect("it binds").output {
        Output::Rows { mut columns, .. } => columns.remove(0).1,
        other => panic!("{other:?}"),
    }
}

fn schema(field: &Field, steps: &[Step]) -> Option<(usize, Type)> {
    let Field::Column(name) = field else { return None };
    let key = match steps {
        [] => "",
        [Step::Key(key)] => key,
        _ => return None,
    };
    Some(match (*name, key) {
        ("created", "") => (0, Type::Created),
        ("metrics", "tokens") => (1, Type::Int),
        ("metrics", "start") => (2, Type::Float),
        ("metrics", "end") => (3, Type::Float),
        ("metrics", "duration") => (4, Type::Float),
        ("span_attributes", "name") => (5, Type::Text),
        ("span_attributes", "type") => (6, Type::Text),
        ("metadata", "") => (7, Type::Json),
        ("input", "") => (8, Type::Json),
        ("tags", "") => (9, Type::Json),
        _ => return None,
    })
}

/// One batch; a dictionary for the types of spans.
fn batch(number: usize) -> Vec<ArrayRef> {
    // Even but without order.
    let dice = |row: usize, sides: usize| (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17) % sides;
    let rows = || number * BATCH..(number + 1) * BATCH;
    let model = |row: usize| MODELS[dice(row, MODELS.len())];
    let start = |row: usize| START as f64 / 1e6 + row as f64;
    let ends = rows().map(|row| Some(start(row) + dice(row, 97) as f64 / 8.0));
    let nulls: Float64Array = rows().map(|_| None::<f64>).collect();
    let metadata = rows().map(|row| {
        let (model, user) = (model(row), dice(row, 5_000));
        Some(format!(r#"{{"user_id":"u{user}","env":"prod","model":"{model}","temperature":0.7,"version":"2026-05"}}"#))
    });
    let input = rows().map(|row| {
        let subject = if dice(row, 50) == 0 { "a refund of" } else { "the state of" };
        Some(format!(
            r#"{{"messages":[{{"role":"system","content":"You are an assistant of a shop, kind and brief."}},{{"role":"user","content":"Hello, I would like to know about {subject} my order no. {row}, which I made a week ago."}}]}}"#
        ))
    });
    let tags = rows().map(|row| (dice(row, 3) > 0).then(|| format!(r#"["staging","v{}"]"#, dice(row, 9))));
    let types: StringArray = ["llm", "task", "tool", "score"].into_iter().map(Some).collect();
    let places: Int32Array = rows().map(|row| Some(dice(row, 4) as i32)).collect();
    vec![
        Arc::new(rows().map(|row| Some(START + row as i64 * 1_000_000)).collect::<TimestampMicrosecondArray>()),
        Arc::new(rows().map(|row| (dice(row, 10) > 0).then(|| dice(row, 2_000) as i64)).collect::<Int64Array>()),
        Arc::new(rows().map(|row| Some(start(row))).collect::<Float64Array>()),
        Arc::new(ends.collect::<Float64Array>()),
        Arc::new(nulls),
        Arc::new(rows().map(|row| Some(model(row))).collect::<StringArray>()),
        Arc::new(DictionaryArray::new(places, Arc::new(types))),
        Arc::new(metadata.collect::<StringArray>()),
        Arc::new(input.collect::<StringArray>()),
        Arc::new(tags.collect::<StringArray>()),
    ]
}

/// Nanoseconds that this thread was on a processor: others that are busy count for nothing.
fn at_work() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a figure of Linux");
    stat.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

#[test]
#[ignore = "a measurement, on demand; run in release"]
fn a_row_costs() {
    let batches: Vec<Vec<ArrayRef>> = (0..ROWS / BATCH).map(batch).collect();
    for expr in [
        "metrics.tokens > 1000",
        "metrics.tokens > 1000.5",
        "metrics.tokens IN (7, 70, 700)",
        "metrics.start >= 1777636900.5",
        "created >= '2026-05-02' AND created < '2026-05-04'",
        "span_attributes.name = 'gpt-4o'",
        "span_attributes.name IN ('gpt-4o', 'claude-haiku')",
        "span_attributes.name LIKE 'gpt%'",
        "span_attributes.name LIKE '%mini%'",
        "span_attributes.name ILIKE '%MINI%'",
        "span_attributes.name ~ '^gpt-[0-9]o$'",
        "span_attributes.type = 'llm'",
        "span_attributes.type IN ('llm', 'tool')",
        "span_attributes.type = 'llm' AND metrics.tokens > 1000",
        "metadata.model = 'gpt-4o'",
        "metadata.model IN ('gpt-4o', 'claude-haiku')",
        "metadata.user_id = 'u7'",
        "metadata.temperature > 0.5",
        "input ILIKE '%refund%'",
        "input LIKE '%refund%'",
        "input MATCH 'refund'",
        "tags INCLUDES 'prod'",
        "tags INCLUDES 'v7'",
        "metrics.duration >= 6",
        "metrics.tokens + 1",
        "metrics.tokens / 2",
        "day(created)",
        "date_part('hour', created)",
        "lower(span_attributes.name)",
        "span_attributes.name || '-' || metrics.tokens",
        "CASE WHEN metrics.tokens > 1000 THEN 'many' ELSE 'few' END",
        "coalesce(metrics.tokens, 0)",
    ] {
        let program = Program::compile(&bound(expr), &schema, &Env::default()).expect("a program");
        let run = |batch: &Vec<ArrayRef>| match program.output() {
            Type::Bool => drop(black_box(program.run_filter(batch, BATCH).expect("a filter"))),
            _ => drop(black_box(program.run(batch, BATCH).expect("a column"))),
        };
        batches.iter().take(4).for_each(run);
        let begin = at_work();
        (0..TIMES).for_each(|_| batches.iter().for_each(run));
        println!("{:7.2} ns/row  {expr}", (at_work() - begin) / (TIMES * ROWS) as f64);
    }
}
