//! The queried spans, as SDKs send them: traces of four to sixteen spans over thirty days, and one of 3,000.
//!
//! They contain the values that queries need, with known frequencies:
//!
//! | what | how often |
//! |---|---|
//! | users | 10,000, the first of them by far the most often |
//! | an error | 2 % of the spans, in half of these a text and in half an object |
//! | `metadata.incident` | one span in 100,000 |
//! | the word [`RARE_WORD`] in the input | one span in 10,000 |
//! | `refund`, `invoice` and other nouns in the input | most long texts |
//!
//! Searched words never begin a sentence: there a line's end, written `\n` in JSON text, would precede them, and a
//! search in the raw text would see another word.

use std::fmt::Write as _;
use std::io::Write as _;

use assay_bench::generate::START_MICROS;
use assay_bench::generate::dice::{Dice, derive, hex};
use assay_bench::generate::words::Vocabulary;
use assay_storage_model::event::format_micros;

use super::event_feed::Feed;

pub const RARE_WORD: &str = "quetzalcoatlus";
const RARE_WORD_EVERY: u64 = 10_000;
const INCIDENT_EVERY: u64 = 100_000;
const ERROR_EVERY: u64 = 50;
const USERS: f64 = 10_000.0;
pub const BIG_TRACE_SPANS: u64 = 3000;
const TRACE_SPANS_MIN: u64 = 4;
const TRACE_SPANS_MAX: u64 = 16;
/// Number of remembered traces, to be looked up by their ids.
const TRACES_KEPT: u64 = 64;
const WINDOW_MICROS: i64 = 30 * 24 * 3_600_000_000;
/// A prime, so that no two spans of a run are of the same moment: where rows are sorted by time none is tied.
const SPAN_MICROS: i64 = 9001;
/// Bytes of the texts in input and output; all else of a span is about 730 bytes.
const TEXT_BYTES_MIN: u64 = 720;
const TEXT_BYTES_MAX: u64 = 1936;

const MODELS: [&str; 6] = ["large-chat-2", "large-chat-2-mini", "swift-3", "reasoner-1", "swift-3-long", "open-70b"];
const ENVIRONMENTS: [&str; 4] = ["production", "production", "staging", "development"];
const REGIONS: [&str; 4] = ["eu-west-1", "us-east-1", "us-west-2", "ap-south-1"];
const TAGS: [&str; 8] = ["billing", "support", "beta", "triage", "vip", "multilingual", "regression", "nightly"];
const ROOTS: [&str; 3] = ["answer_question", "handle_ticket", "review_document"];
const CALLS: [&str; 8] = ["plan", "draft", "revise", "summarize", "classify", "extract", "rerank", "translate"];
const TOOLS: [&str; 6] =
    ["search_documents", "lookup_order", "fetch_account", "run_calculation", "send_message", "read_calendar"];
const SCORERS: [&str; 4] = ["factuality", "relevance", "politeness", "completeness"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanKind {
    Task,
    Llm,
    Tool,
    Score,
}

impl SpanKind {
    fn at(place: u64) -> SpanKind {
        match place {
            0 => SpanKind::Task,
            _ => [SpanKind::Score, SpanKind::Llm, SpanKind::Tool, SpanKind::Llm][(place % 4) as usize],
        }
    }

    fn name(self) -> &'static str {
        match self {
            SpanKind::Task => "task",
            SpanKind::Llm => "llm",
            SpanKind::Tool => "tool",
            SpanKind::Score => "score",
        }
    }
}

/// Common properties of the spans of a trace.
#[derive(Debug)]
struct Trace {
    number: u64,
    spans: u64,
    created: i64,
    root: String,
    model: &'static str,
    user: u64,
    environment: &'static str,
}

#[derive(Debug)]
pub struct Spans {
    seed: u64,
    rows: u64,
    /// Made so far.
    row: u64,
    place: u64,
    trace: Option<Trace>,
    has_big: bool,
    kept: Vec<String>,
    big: String,
}

impl Spans {
    pub fn new(seed: u64, rows: u64) -> Spans {
        let big = root_id(derive(seed, u64::MAX));
        Spans { seed, rows, row: 0, place: 0, trace: None, has_big: false, kept: Vec::new(), big }
    }

    /// Root span ids from all over the spans made so far.
    pub fn traces(&self) -> &[String] {
        &self.kept
    }

    pub fn big_trace(&self) -> &str {
        &self.big
    }

    fn next_trace(&mut self) -> Trace {
        let number = self.trace.as_ref().map_or(0, |trace| trace.number + 1);
        let seed = derive(self.seed, number);
        let mut dice = Dice::new(seed);
        let left = self.rows - self.row;
        // In the middle of all, so that neither end is where it is found.
        let is_big = !self.has_big && self.row >= self.rows / 2 && left >= BIG_TRACE_SPANS;
        self.has_big |= is_big;
        let usual = TRACE_SPANS_MIN + dice.below(TRACE_SPANS_MAX - TRACE_SPANS_MIN + 1);
        let root = if is_big { self.big.clone() } else { root_id(seed) };
        if !is_big && self.row >= self.kept.len() as u64 * (self.rows / TRACES_KEPT) {
            self.kept.push(root.clone());
        }
        Trace {
            number,
            spans: if is_big { BIG_TRACE_SPANS } else { usual.min(left) },
            created: START_MICROS + self.row as i64 * (WINDOW_MICROS / self.rows as i64),
            root,
            model: MODELS[skewed(MODELS.len() as f64, &mut dice)],
            user: skewed(USERS, &mut dice) as u64,
            environment: one_of(&ENVIRONMENTS, &mut dice),
        }
    }
}

impl Feed for Spans {
    fn next(&mut self, out: &mut Vec<u8>) -> Option<String> {
        if self.row == self.rows {
            return None;
        }
        if self.trace.as_ref().is_none_or(|trace| trace.spans == self.place) {
            let trace = self.next_trace();
            (self.trace, self.place) = (Some(trace), 0);
        }
        let trace = self.trace.as_ref()?;
        let span = Span {
            number: self.row,
            seed: derive(self.seed ^ 1, self.row),
            kind: SpanKind::at(self.place),
            id: span_id(self.seed, self.row),
            parent: (self.place > 0).then(|| span_id(self.seed, self.row - self.place)),
            created: trace.created + self.place as i64 * SPAN_MICROS,
            trace,
        };
        span.render(out);
        (self.row, self.place) = (self.row + 1, self.place + 1);
        Some(span.row_id())
    }
}

struct Span<'a> {
    number: u64,
    seed: u64,
    kind: SpanKind,
    id: String,
    parent: Option<String>,
    created: i64,
    trace: &'a Trace,
}

impl Span<'_> {
    fn row_id(&self) -> String {
        let (a, b) = (derive(self.seed, 1), derive(self.seed, 2));
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }

    fn render(&self, out: &mut Vec<u8>) {
        let mut dice = Dice::new(self.seed);
        let text = TEXT_BYTES_MIN + dice.below(TEXT_BYTES_MAX - TEXT_BYTES_MIN + 1);
        put(
            out,
            format_args!(
                "{{\"id\":\"{}\",\"span_id\":\"{}\",\"root_span_id\":\"{}\",\"created\":\"{}\"",
                self.row_id(),
                self.id,
                self.trace.root,
                format_micros(self.created)
            ),
        );
        if let Some(parent) = &self.parent {
            put(out, format_args!(",\"span_parents\":[\"{parent}\"]"));
        }
        put(
            out,
            format_args!(
                ",\"span_attributes\":{{\"name\":\"{}\",\"type\":\"{}\"}}",
                self.name(&mut dice),
                self.kind.name()
            ),
        );
        self.metadata(&mut dice, out);
        self.metrics(&mut dice, out);
        self.judged(&mut dice, out);
        let input = if self.kind == SpanKind::Tool { text / 4 } else { text * 6 / 10 };
        self.input(input as usize, &mut dice, out);
        self.output((text - input) as usize, &mut dice, out);
        out.push(b'}');
    }

    fn name(&self, dice: &mut Dice) -> &'static str {
        match self.kind {
            SpanKind::Task => one_of(&ROOTS, dice),
            SpanKind::Llm => one_of(&CALLS, dice),
            SpanKind::Tool => one_of(&TOOLS, dice),
            SpanKind::Score => self.scorer(),
        }
    }

    fn scorer(&self) -> &'static str {
        SCORERS[(self.number % SCORERS.len() as u64) as usize]
    }

    fn metadata(&self, dice: &mut Dice, out: &mut Vec<u8>) {
        let trace = self.trace;
        put(
            out,
            format_args!(
                ",\"metadata\":{{\"model\":\"{}\",\"user_id\":\"user_{:05}\",\"environment\":\"{}\",\"session_id\":\"{}\"",
                trace.model,
                trace.user,
                trace.environment,
                &trace.root[..16]
            ),
        );
        put(
            out,
            format_args!(
                ",\"request\":{{\"region\":\"{}\",\"attempt\":{},\"cached\":{},\"temperature\":0.{}}},\"build\":\"2026.09.{}\"",
                one_of(&REGIONS, dice),
                1 + dice.below(3),
                dice.below(2) == 0,
                1 + dice.below(9),
                1 + dice.below(28)
            ),
        );
        if self.number % INCIDENT_EVERY == 4242 {
            put(out, format_args!(",\"incident\":\"INC-{}\"", self.number));
        }
        out.push(b'}');
    }

    fn metrics(&self, dice: &mut Dice, out: &mut Vec<u8>) {
        let start = self.created / 1000;
        // Long ones are rare: the square of the dice, up to nine seconds.
        let lasted = 20 + (9000.0 * dice.unit() * dice.unit()) as i64;
        let end = start + if self.kind == SpanKind::Task { lasted + 9 * self.trace.spans as i64 } else { lasted };
        put(out, format_args!(",\"metrics\":{{\"start\":{},\"end\":{}", Seconds(start), Seconds(end)));
        if self.kind == SpanKind::Llm {
            let (prompt, completion) = (100 + dice.below(4000), 1 + dice.below(900));
            put(
                out,
                format_args!(
                    ",\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"tokens\":{},\"estimated_cost\":0.{:06}",
                    prompt + completion,
                    3 * prompt + 15 * completion
                ),
            );
        }
        out.push(b'}');
    }

    /// Scores, tags, error.
    fn judged(&self, dice: &mut Dice, out: &mut Vec<u8>) {
        let score = Thousandths(dice.below(1001));
        match self.kind {
            SpanKind::Score => put(out, format_args!(",\"scores\":{{\"{}\":{score}}}", self.scorer())),
            SpanKind::Task => put(out, format_args!(",\"scores\":{{\"helpfulness\":{score}}}")),
            _ => {}
        }
        let tags = dice.below(3);
        if self.kind == SpanKind::Task && tags > 0 {
            let first = dice.below(TAGS.len() as u64) as usize;
            put(out, format_args!(",\"tags\":[\"{}\"", TAGS[first]));
            if tags > 1 {
                put(out, format_args!(",\"{}\"", TAGS[(first + 1) % TAGS.len()]));
            }
            out.push(b']');
        }
        match (dice.below(ERROR_EVERY), dice.below(2)) {
            (0, 0) => put(out, format_args!(",\"error\":\"rate limited after {} tries\"", 1 + dice.below(5))),
            (0, _) => put(out, format_args!(",\"error\":{{\"type\":\"timeout\",\"seconds\":{}}}", 1 + dice.below(60))),
            _ => {}
        }
    }

    fn input(&self, bytes: usize, dice: &mut Dice, out: &mut Vec<u8>) {
        const SYSTEM: &str =
            "You are a helpful assistant. QueryResult from the documents given, and name the ones you used.";
        let (opening, closing) = match self.kind {
            SpanKind::Task => ("{\"question\":\"", "\"}"),
            SpanKind::Llm => ("[{\"role\":\"system\",\"content\":\"", "\"}]"),
            SpanKind::Tool => ("{\"limit\":10,\"query\":\"", "\"}"),
            SpanKind::Score => ("{\"output\":\"", "\"}"),
        };
        put(out, format_args!(",\"input\":{opening}"));
        if self.kind == SpanKind::Llm {
            put(out, format_args!("{SYSTEM}\"}},{{\"role\":\"user\",\"content\":\""));
        }
        if self.number % RARE_WORD_EVERY == 1234 {
            put(out, format_args!("About the {RARE_WORD} of old. "));
        }
        Vocabulary::shared().write(bytes, dice, out);
        out.extend_from_slice(closing.as_bytes());
    }

    fn output(&self, bytes: usize, dice: &mut Dice, out: &mut Vec<u8>) {
        let (opening, closing) = match self.kind {
            SpanKind::Task => ("\"", "\""),
            SpanKind::Llm => ("[{\"role\":\"assistant\",\"content\":\"", "\"}]"),
            SpanKind::Tool => ("{\"documents\":[{\"text\":\"", "\"}]}"),
            SpanKind::Score => ("{\"rationale\":\"", "\"}"),
        };
        put(out, format_args!(",\"output\":{opening}"));
        Vocabulary::shared().write(bytes, dice, out);
        out.extend_from_slice(closing.as_bytes());
    }
}

/// Milliseconds, written as seconds.
pub struct Seconds(pub i64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Written as a fraction.
pub struct Thousandths(pub u64);

impl std::fmt::Display for Thousandths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

pub fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes what is written");
}

pub fn one_of<'a>(choices: &[&'a str], dice: &mut Dice) -> &'a str {
    choices[dice.below(choices.len() as u64) as usize]
}

/// Below `count`; the first ones far more often than the last.
pub fn skewed(count: f64, dice: &mut Dice) -> usize {
    let unit = dice.unit();
    (count * unit * unit * unit) as usize
}

pub fn root_id(seed: u64) -> String {
    let mut id = String::with_capacity(32);
    for part in [3, 4] {
        let _ = write!(id, "{:016x}", derive(seed, part));
    }
    id
}

pub fn span_id(seed: u64, row: u64) -> String {
    String::from_utf8_lossy(&hex(derive(seed ^ 2, row))).into_owned()
}
