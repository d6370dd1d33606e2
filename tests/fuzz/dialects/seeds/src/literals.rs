//! JSON in the sources of tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Upper bound of the source files of one dialect.
const FILES_MAX: usize = 200;

/// Returns the objects in all sources below a folder: those that are written out, without expressions in them.
pub fn objects(folder: &Path) -> Result<Vec<Map<String, Value>>> {
    let (mut folders, mut files, mut objects) = (vec![folder.to_owned()], 0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if files < FILES_MAX {
                files += 1;
                objects_of(&fs::read(&path)?, &mut objects);
            }
        }
    }
    Ok(objects)
}

fn objects_of(source: &[u8], objects: &mut Vec<Map<String, Value>>) {
    let mut at = 0;
    while at < source.len() {
        let mut parser = serde_json::Deserializer::from_slice(&source[at..]).into_iter::<Map<String, Value>>();
        match (source[at], parser.next()) {
            (b'{', Some(Ok(object))) if !object.is_empty() => {
                objects.push(object);
                at += parser.byte_offset();
            }
            _ => at += 1,
        }
    }
}

/// Returns recorded binary messages, as they are, and without their lengths and checksums.
pub fn frames(path: &Path) -> Result<Vec<Vec<u8>>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let cases: Vec<Value> = serde_json::from_str(&text)?;
    let mut seeds = Vec::new();
    for case in &cases {
        let bytes = from_hex(case["frame"].as_str().context("a frame")?)?;
        let number = |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
        let headers = number(4).context("a length")? as usize;
        let content = bytes.get(12..bytes.len() - 4).context("a message")?;
        let lengths = [u8::try_from(headers), u8::try_from(content.len() - headers)];
        if let [Ok(headers), Ok(payload)] = lengths {
            seeds.push([b"030004", &[headers, payload][..], content].concat());
        }
        seeds.push([b"020004", &bytes[..]].concat());
    }
    Ok(seeds)
}

fn from_hex(text: &str) -> Result<Vec<u8>> {
    let digits = |pair: &[u8]| anyhow::Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?);
    text.as_bytes().chunks(2).map(digits).collect()
}
