//! One span, made from its number alone: its name, size and document. Any row can be made again at any time, in whole
//! or in its two steps.
//!
//! R1: start and finish share no member but `metrics`, whose members differ; folding the finish into the start
//!     gives the whole, value for value.

use assay_storage_model::event::format_micros;
use uuid::Builder;

use super::dice::{Dice, derive, hex};
use super::words::Vocabulary;
use super::{Profile, SPANS_PER_TRACE};

/// Users that rows name.
pub const USERS: u64 = 10_000;
/// The largest document; with its write's overhead it still fits one log entry.
pub const DOC_BYTES_MAX: usize = 1_000_000;
const EVEN_BYTES: f64 = 2048.0;
const EVEN_SPREAD: f64 = 0.10;
/// Log-normal sizes: with this median and deviation, cut at both ends, their mean is 2,048.
const MIXED_MEDIAN_BYTES: f64 = 540.0;
const MIXED_SIGMA: f64 = 1.55;
/// Text every row has, however small it is meant to be.
const TEXT_BYTES_MIN: usize = 48;
/// Below this a row goes without caller context and without the longer part of its metadata.
const FULL_BYTES_MIN: usize = 1300;
/// A trace starts this long after the one before it in the same object.
const TRACE_MICROS: i64 = 180_000;
const SPAN_MICROS: i64 = 9_000;
/// Chat messages and retrieved documents are cut into pieces of about this size.
const PIECE_BYTES: usize = 900;

const MODELS: [&str; 6] =
    ["large-chat-2", "large-chat-2-mini", "reasoner-1", "open-70b-instruct", "swift-3", "swift-3-long"];
const ENVIRONMENTS: [&str; 3] = ["production", "staging", "development"];
const REGIONS: [&str; 4] = ["eu-west-1", "us-east-1", "us-west-2", "ap-south-1"];
const TAGS: [&str; 8] = ["billing", "support", "beta", "triage", "vip", "multilingual", "regression", "nightly"];
const TOOLS: [&str; 4] = ["search_documents", "lookup_order", "fetch_account", "run_calculation"];
const SCORERS: [&str; 4] = ["factuality", "relevance", "politeness", "completeness"];

/// Kind of a span, by its position in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Task,
    Eval,
    Llm,
    Tool,
    Score,
}

impl Kind {
    fn at(place: u64, in_experiment: bool) -> Kind {
        match place {
            0 if in_experiment => Kind::Eval,
            0 => Kind::Task,
            1 | 3 | 5 | 7 => Kind::Llm,
            2 | 4 | 6 => Kind::Tool,
            _ => Kind::Score,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::Eval => "eval",
            Kind::Llm => "llm",
            Kind::Tool => "tool",
            Kind::Score => "score",
        }
    }

    /// Bytes of everything that is not text, for a full and for a lean document.
    fn scaffold(self) -> (usize, usize) {
        match self {
            Kind::Task | Kind::Eval => (795, 531),
            Kind::Llm => (910, 643),
            Kind::Tool => (874, 606),
            Kind::Score => (871, 605),
        }
    }
}

/// Part of a row's life in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    Start,
    Finish,
}

/// One row before it is rendered: its names and sizes.
#[derive(Clone, Debug)]
pub struct Row {
    pub number: u64,
    pub kind: Kind,
    /// Written in two steps, a start and a merge.
    pub two_steps: bool,
    /// The merge comes long after the start.
    pub late: bool,
    /// About how many bytes the whole document has.
    pub bytes: usize,
    /// Microseconds since the epoch, UTC.
    pub created: i64,
    seed: u64,
    id: [u8; 36],
    span: [u8; 16],
    parent: Option<[u8; 16]>,
    root: [u8; 32],
}

/// Common properties of the rows of one object.
#[derive(Clone, Debug)]
pub struct Family {
    pub seed: u64,
    pub profile: Profile,
    pub in_experiment: bool,
    pub merges: f64,
    pub late_merges: f64,
    pub start_micros: i64,
}

impl Family {
    pub fn row(&self, number: u64) -> Row {
        let (trace, place) = (number / SPANS_PER_TRACE, number % SPANS_PER_TRACE);
        let seed = derive(self.seed, number);
        let mut dice = Dice::new(seed);
        let mut row = Row {
            number,
            kind: Kind::at(place, self.in_experiment),
            two_steps: dice.unit() < self.merges,
            late: dice.unit() < self.late_merges,
            bytes: self.profile.bytes(&mut dice),
            created: self.start_micros + trace as i64 * TRACE_MICROS + place as i64 * SPAN_MICROS,
            seed,
            id: [0; 36],
            span: span_id(self.seed, number),
            parent: (place > 0).then(|| span_id(self.seed, trace * SPANS_PER_TRACE)),
            root: [0; 32],
        };
        row.id = row_id(self.seed, number);
        row.root = root_span_id(self.seed, trace);
        row
    }
}

pub fn row_id(family_seed: u64, number: u64) -> [u8; 36] {
    let mut dice = Dice::new(derive(family_seed, number));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&dice.roll().to_le_bytes());
    bytes[8..].copy_from_slice(&dice.roll().to_le_bytes());
    let mut text = [0; 36];
    Builder::from_random_bytes(bytes).into_uuid().as_hyphenated().encode_lower(&mut text);
    text
}

pub fn root_span_id(family_seed: u64, trace: u64) -> [u8; 32] {
    let seed = derive(family_seed, trace ^ u64::MAX);
    let mut text = [0; 32];
    text[..16].copy_from_slice(&hex(seed));
    text[16..].copy_from_slice(&hex(derive(seed, 1)));
    text
}

fn span_id(family_seed: u64, number: u64) -> [u8; 16] {
    hex(derive(family_seed, number.wrapping_mul(3).wrapping_add(1 << 60)))
}

impl Profile {
    fn bytes(self, dice: &mut Dice) -> usize {
        let wanted = match self {
            Profile::Even => EVEN_BYTES * (1.0 + EVEN_SPREAD * (2.0 * dice.unit() - 1.0)),
            Profile::Mixed => MIXED_MEDIAN_BYTES * (MIXED_SIGMA * dice.normal()).exp(),
        };
        (wanted as usize).min(DOC_BYTES_MAX)
    }
}

impl Row {
    pub fn id(&self) -> &str {
        ascii(&self.id)
    }

    pub fn span_id(&self) -> &str {
        ascii(&self.span)
    }

    pub fn root_span_id(&self) -> &str {
        ascii(&self.root)
    }

    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// Returns an upper bound of the bytes from `render`; `render_event` adds the row's identity in a second step.
    pub fn bytes_max(&self, part: Part) -> usize {
        let whole = self.bytes.max(self.kind.scaffold().1 + TEXT_BYTES_MIN) + 512;
        let text = self.texts();
        match part {
            Part::Whole => whole,
            Part::Start => whole - text.1,
            Part::Finish => whole - text.0,
        }
    }

    /// Appends the document, JSON text.
    pub fn render(&self, part: Part, words: &Vocabulary, out: &mut Vec<u8>) {
        out.push(b'{');
        if part != Part::Finish {
            self.start_members(words, out);
        }
        if part == Part::Whole {
            out.push(b',');
        }
        if part != Part::Start {
            self.finish_members(words, out);
        }
        out.extend_from_slice(b",\"metrics\":{");
        self.metrics(part, out);
        out.extend_from_slice(b"}}");
    }

    /// Appends the row as a client sends it: the second step with `_is_merge`, and with the ids of the first.
    pub fn render_event(&self, part: Part, words: &Vocabulary, out: &mut Vec<u8>) {
        out.push(b'{');
        self.place(out);
        if part == Part::Finish {
            out.extend_from_slice(b",\"_is_merge\":true");
        } else {
            self.start_fields(words, out);
        }
        if part != Part::Start {
            out.push(b',');
            self.finish_members(words, out);
        }
        out.extend_from_slice(b",\"metrics\":{");
        self.metrics(part, out);
        out.extend_from_slice(b"}}");
    }

    fn full(&self) -> bool {
        self.bytes >= FULL_BYTES_MIN
    }

    /// Bytes of text in the input and in the output.
    fn texts(&self) -> (usize, usize) {
        let (full, lean) = self.kind.scaffold();
        let text = self.bytes.saturating_sub(if self.full() { full } else { lean }).max(TEXT_BYTES_MIN);
        let input = match self.kind {
            Kind::Task | Kind::Eval => text * 3 / 10,
            Kind::Llm => text * 7 / 10,
            Kind::Tool => (text / 10).min(400),
            Kind::Score => text * 6 / 10,
        };
        (input, text - input)
    }

    fn start_members(&self, words: &Vocabulary, out: &mut Vec<u8>) {
        self.place(out);
        let is_root: &[u8] = if self.is_root() { b",\"is_root\":true" } else { b",\"is_root\":false" };
        out.extend_from_slice(is_root);
        self.start_fields(words, out);
    }

    fn start_fields(&self, words: &Vocabulary, out: &mut Vec<u8>) {
        let mut dice = Dice::new(derive(self.seed, 1));
        out.extend_from_slice(b",\"input\":");
        self.input(words, &mut dice, out);
        out.extend_from_slice(b",\"metadata\":{\"model\":\"");
        let model = MODELS[dice.below(dice_skew(MODELS.len())).min(MODELS.len() as u64 - 1) as usize];
        out.extend_from_slice(model.as_bytes());
        out.extend_from_slice(b"\",\"user_id\":\"user_");
        decimal(100_000 + dice.below(USERS), out);
        out.extend_from_slice(b"\",\"environment\":\"");
        out.extend_from_slice(one_of(&ENVIRONMENTS, &mut dice));
        out.push(b'"');
        if self.full() {
            self.nested_metadata(&mut dice, out);
        }
        out.extend_from_slice(b"},\"tags\":");
        tags(&mut dice, out);
        if self.full() {
            self.context(&mut dice, out);
        }
        self.attributes(out);
    }

    /// Writes the identity of the row, in front as the edge stores it.
    fn place(&self, out: &mut Vec<u8>) {
        let created = format_micros(self.created);
        let members: [(&[u8], &[u8]); 4] = [
            (b"\"id\":\"", &self.id),
            (b"\",\"created\":\"", created.as_bytes()),
            (b"\",\"span_id\":\"", &self.span),
            (b"\",\"root_span_id\":\"", &self.root),
        ];
        for (opening, value) in members {
            out.extend_from_slice(opening);
            out.extend_from_slice(value);
        }
        out.extend_from_slice(b"\",\"span_parents\":");
        match &self.parent {
            Some(parent) => {
                out.extend_from_slice(b"[\"");
                out.extend_from_slice(parent);
                out.extend_from_slice(b"\"]");
            }
            None => out.extend_from_slice(b"null"),
        }
    }

    fn input(&self, words: &Vocabulary, dice: &mut Dice, out: &mut Vec<u8>) {
        let bytes = self.texts().0;
        match self.kind {
            Kind::Task | Kind::Eval => text_member(b"{\"question\":\"", bytes, words, dice, out),
            Kind::Tool => {
                text_member(b"{\"query\":\"", bytes, words, dice, out);
                out.extend_from_slice(b",\"limit\":10,\"filters\":{\"language\":\"en\",\"archived\":false}");
            }
            Kind::Score => {
                text_member(b"{\"output\":\"", bytes / 2, words, dice, out);
                text_member(b",\"expected\":\"", bytes - bytes / 2, words, dice, out);
            }
            Kind::Llm => return messages(bytes, words, dice, out),
        }
        out.push(b'}');
    }

    fn nested_metadata(&self, dice: &mut Dice, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"session_id\":\"");
        out.extend_from_slice(&self.root[..16]);
        out.extend_from_slice(b"\",\"request\":{\"region\":\"");
        out.extend_from_slice(one_of(&REGIONS, dice));
        out.extend_from_slice(b"\",\"attempt\":");
        decimal(1 + dice.below(3), out);
        out.extend_from_slice(b",\"flags\":{\"cache\":");
        out.extend_from_slice(if dice.below(2) == 0 { b"true" } else { b"false" });
        out.extend_from_slice(b",\"temperature\":0.");
        decimal(1 + dice.below(9), out);
        out.extend_from_slice(b"},\"build\":\"2026.11.");
        decimal(1 + dice.below(28), out);
        out.extend_from_slice(b"\"}");
    }

    fn context(&self, dice: &mut Dice, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"context\":{\"caller_functionname\":\"run_");
        out.extend_from_slice(self.kind.name().as_bytes());
        out.extend_from_slice(b"_step\",\"caller_filename\":\"/srv/app/agents/pipeline/");
        out.extend_from_slice(self.kind.name().as_bytes());
        out.extend_from_slice(b".py\",\"caller_lineno\":");
        decimal(20 + dice.below(400), out);
        out.push(b'}');
    }

    fn attributes(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"span_attributes\":{\"name\":\"");
        out.extend_from_slice(match self.kind {
            Kind::Task => b"answer_question",
            Kind::Eval => b"eval",
            Kind::Llm => b"Chat Completion",
            Kind::Tool => TOOLS[(self.number / 2 % 4) as usize].as_bytes(),
            Kind::Score => SCORERS[(self.number % 4) as usize].as_bytes(),
        });
        out.extend_from_slice(b"\",\"type\":\"");
        out.extend_from_slice(self.kind.name().as_bytes());
        out.extend_from_slice(b"\",\"exec_counter\":");
        decimal(self.number, out);
        out.push(b'}');
    }

    fn finish_members(&self, words: &Vocabulary, out: &mut Vec<u8>) {
        let mut dice = Dice::new(derive(self.seed, 2));
        let bytes = self.texts().1;
        out.extend_from_slice(b"\"output\":");
        match self.kind {
            Kind::Task | Kind::Eval => quoted(bytes, words, &mut dice, out),
            Kind::Llm => {
                text_member(b"[{\"role\":\"assistant\",\"content\":\"", bytes, words, &mut dice, out);
                out.extend_from_slice(b",\"finish_reason\":\"stop\"}]");
            }
            Kind::Tool => documents(bytes, words, &mut dice, out),
            Kind::Score => {
                text_member(b"{\"rationale\":\"", bytes, words, &mut dice, out);
                out.extend_from_slice(b",\"choice\":\"");
                out.push(b'A' + dice.below(5) as u8);
                out.extend_from_slice(b"\"}");
            }
        }
        out.extend_from_slice(b",\"error\":null,\"scores\":{");
        if matches!(self.kind, Kind::Score | Kind::Eval | Kind::Task) {
            out.push(b'"');
            out.extend_from_slice(SCORERS[(self.number % 4) as usize].as_bytes());
            out.extend_from_slice(b"\":");
            fraction(dice.below(101) * 10, out);
        }
        out.push(b'}');
    }

    fn metrics(&self, part: Part, out: &mut Vec<u8>) {
        let mut dice = Dice::new(derive(self.seed, 3));
        let (lasted, prompt, completion) = (20_000 + dice.below(9_000_000) as i64, dice.below(4000), dice.below(900));
        if part != Part::Finish {
            out.extend_from_slice(b"\"start\":");
            seconds(self.created, out);
        }
        if part == Part::Whole {
            out.push(b',');
        }
        if part == Part::Start {
            return;
        }
        out.extend_from_slice(b"\"end\":");
        seconds(self.created + lasted, out);
        if self.kind == Kind::Llm {
            out.extend_from_slice(b",\"prompt_tokens\":");
            decimal(prompt, out);
            out.extend_from_slice(b",\"completion_tokens\":");
            decimal(completion, out);
            out.extend_from_slice(b",\"tokens\":");
            decimal(prompt + completion, out);
        }
    }
}

fn dice_skew(choices: usize) -> u64 {
    // A few throws fall behind the last choice and are counted to it, so models are not all equally frequent.
    choices as u64 + 3
}

fn messages(bytes: usize, words: &Vocabulary, dice: &mut Dice, out: &mut Vec<u8>) {
    const SYSTEM: &[u8] =
        b"[{\"role\":\"system\",\"content\":\"You are a helpful assistant. Answer from the documents given, \
name the ones you used, and say so when they do not hold the answer.\"}";
    let mut left = bytes;
    if left > SYSTEM.len() + TEXT_BYTES_MIN {
        out.extend_from_slice(SYSTEM);
        left -= SYSTEM.len();
        out.push(b',');
    } else {
        out.push(b'[');
    }
    let mut from_user = true;
    loop {
        let (piece, before) = (if left > 2 * PIECE_BYTES { PIECE_BYTES } else { left }, out.len());
        let opening: &[u8] =
            if from_user { b"{\"role\":\"user\",\"content\":\"" } else { b"{\"role\":\"assistant\",\"content\":\"" };
        text_member(opening, piece.saturating_sub(opening.len() + 3), words, dice, out);
        out.push(b'}');
        // Pieces run over by part of a sentence; the next ones are asked for less.
        left = left.saturating_sub(out.len() - before);
        if piece < PIECE_BYTES || left < PIECE_BYTES / 2 {
            break;
        }
        out.push(b',');
        from_user = !from_user;
    }
    out.push(b']');
}

fn documents(bytes: usize, words: &Vocabulary, dice: &mut Dice, out: &mut Vec<u8>) {
    const FRAME: usize = b"{\"id\":\"doc-100000\",\"score\":0.123,\"text\":\"\"},".len();
    out.extend_from_slice(b"{\"documents\":[");
    let mut left = bytes;
    loop {
        let (piece, before) = (if left > 2 * PIECE_BYTES { PIECE_BYTES } else { left }, out.len());
        out.extend_from_slice(b"{\"id\":\"doc-");
        decimal(100_000 + dice.below(900_000), out);
        out.extend_from_slice(b"\",\"score\":");
        fraction(dice.below(1000), out);
        text_member(b",\"text\":\"", piece.saturating_sub(FRAME), words, dice, out);
        out.push(b'}');
        // Pieces run over by part of a sentence; the next ones are asked for less.
        left = left.saturating_sub(out.len() - before);
        if piece < PIECE_BYTES || left < PIECE_BYTES / 2 {
            break;
        }
        out.push(b',');
    }
    out.extend_from_slice(b"]}");
}

fn text_member(opening: &[u8], bytes: usize, words: &Vocabulary, dice: &mut Dice, out: &mut Vec<u8>) {
    out.extend_from_slice(opening);
    words.write(bytes, dice, out);
    out.push(b'"');
}

fn quoted(bytes: usize, words: &Vocabulary, dice: &mut Dice, out: &mut Vec<u8>) {
    text_member(b"\"", bytes, words, dice, out);
}

fn tags(dice: &mut Dice, out: &mut Vec<u8>) {
    let count = dice.below(3);
    let first = dice.below(TAGS.len() as u64);
    out.push(b'[');
    for at in 0..count {
        if at > 0 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(TAGS[((first + at) % TAGS.len() as u64) as usize].as_bytes());
        out.push(b'"');
    }
    out.push(b']');
}

fn one_of(choices: &[&'static str], dice: &mut Dice) -> &'static [u8] {
    choices[dice.below(choices.len() as u64) as usize].as_bytes()
}

/// A number of thousandths as `0.125`, `0.5` or `1`.
fn fraction(thousandths: u64, out: &mut Vec<u8>) {
    if thousandths >= 1000 {
        out.push(b'1');
    } else {
        out.extend_from_slice(b"0.");
        out.extend([thousandths / 100, thousandths / 10 % 10, thousandths % 10].map(|digit| b'0' + digit as u8));
    }
}

/// Microseconds as seconds with three decimals, as SDKs send them.
fn seconds(micros: i64, out: &mut Vec<u8>) {
    let millis = u64::try_from(micros).unwrap_or(0) / 1000;
    decimal(millis / 1000, out);
    out.push(b'.');
    out.extend([millis / 100 % 10, millis / 10 % 10, millis % 10].map(|digit| b'0' + digit as u8));
}

fn decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("made of hexadecimal digits and dashes")
}
