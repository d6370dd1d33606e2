//! Writes the first inputs of every target, made from the cases and the corpus of `tests/api`: `seeds <folder>`.

mod bodies;
mod commands;
mod merges;
mod queries;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Larger ones slow the fuzzer down and show nothing that smaller ones do not.
const SEED_BYTES_MAX: usize = 8 << 10;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).context("name a folder for the seeds")?);
    let api = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api");
    let steps = bodies::steps(&api.join("cases"))?;
    put(&folder, "body", bodies::seeds(&steps, &api.join("corpus"))?)?;
    put(&folder, "fold", merges::texts(&steps))?;
    put(&folder, "command", commands::seeds())?;
    let noise: Vec<Vec<u8>> = (1..=24).map(|seed| noise(seed, 16 * seed as usize)).collect();
    put(&folder, "merge", noise.clone())?;
    put(&folder, "cursor", noise)?;
    let language = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../node/btql/tests/language");
    put(&folder, "query", queries::seeds(&language)?)
}

fn put(folder: &Path, target: &str, seeds: Vec<Vec<u8>>) -> Result<()> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let seeds: BTreeSet<Vec<u8>> = seeds.into_iter().filter(|seed| seed.len() <= SEED_BYTES_MAX).collect();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:04}")), seed)?;
    }
    println!("{target}: {} seeds", seeds.len());
    Ok(())
}

/// Choices for the targets that are made of them.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}
