//! Writes the first inputs of the targets: `seeds <folder>`. They are made of the JSON objects in the tests of the
//! dialects, and of the answers and streams of the scripted model servers.

#![allow(dead_code, reason = "the model servers use more of their modules")]

mod event_stream;
mod literals;
mod scripted;
mod templates;

#[path = "../../../../providers/src/anthropic.rs"]
mod anthropic;
#[path = "../../../../providers/src/bedrock.rs"]
mod bedrock;
#[path = "../../../../providers/src/chat.rs"]
mod chat;
#[path = "../../../../providers/src/gemini.rs"]
mod gemini;
#[path = "../../../../providers/src/responses.rs"]
mod responses;
#[path = "../../../../providers/src/script.rs"]
mod script;
#[path = "../../../../providers/src/sse.rs"]
mod sse;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Upper bound of the bytes of a seed: larger ones slow the fuzzer down and show little.
const SEED_BYTES_MAX: usize = 8 << 10;

/// Format of a model server, or of a client too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Number of the format in the head of an input.
    pub number: usize,
    /// Folder of its tests.
    pub folder: &'static str,
}

pub const CHAT: Format = Format { number: 0, folder: "chat" };
pub const RESPONSES: Format = Format { number: 1, folder: "responses" };
pub const ANTHROPIC: Format = Format { number: 2, folder: "anthropic" };
pub const GEMINI: Format = Format { number: 3, folder: "gemini" };
pub const CONVERSE: Format = Format { number: 4, folder: "converse" };

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("name a folder for the seeds")?);
    let dialects = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../node/dialects");
    let (mut requests, mut answers, mut streams, mut events) =
        (vec![], scripted::answers(), scripted::streams(), vec![]);
    for format in [CHAT, RESPONSES, ANTHROPIC, GEMINI, CONVERSE] {
        for object in literals::objects(&dialects.join(format.folder).join("src"))? {
            requests.extend(templates::requests(format, &object));
            answers.extend(templates::answers(format, &object));
            streams.extend(templates::streams(format, &object));
        }
    }
    events.extend(streams.iter().step_by(8).map(|stream| [b"000004", &stream[6..]].concat()));
    events.extend(literals::frames(&dialects.join("converse/src/tests/golden/frames.json"))?);
    put(&folder, "request", requests)?;
    put(&folder, "answer", answers)?;
    put(&folder, "stream", streams)?;
    put(&folder, "events", events)
}

fn put(folder: &Path, target: &str, seeds: Vec<Vec<u8>>) -> Result<()> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let seeds: BTreeSet<Vec<u8>> = seeds.into_iter().filter(|seed| seed.len() <= SEED_BYTES_MAX).collect();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:05}")), seed)?;
    }
    println!("{target}: {} seeds", seeds.len());
    Ok(())
}
