//! Files of a source, read a slice at a time.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Context;
use assay_node_importers::{RECORD_BYTES_MAX, RecordForm, SLICE_BYTES, SourceAnswer, SourceRequest, csv_head, slice};
use serde_json::{Value, json};

use crate::parquet_rows::ParquetReader;

/// Upper bound of the files of a directory.
const FILES_MAX: usize = 100_000;
/// Upper bound of the nesting of folders.
const FOLDERS_DEEP_MAX: usize = 16;

/// Directory or file of a source.
#[derive(Debug)]
pub struct FileSource {
    root: PathBuf,
    /// Parquet file that is being read, which has no position to continue from cheaply.
    parquet: Option<ParquetReader>,
}

impl FileSource {
    pub fn new(root: &Path) -> anyhow::Result<FileSource> {
        anyhow::ensure!(root.try_exists()?, "{} does not exist", root.display());
        Ok(FileSource { root: root.to_owned(), parquet: None })
    }

    /// Answers a request for files.
    pub fn answer(&mut self, request: &SourceRequest) -> anyhow::Result<SourceAnswer> {
        match request {
            SourceRequest::Files => self.list(),
            SourceRequest::Records { file, form, offset } => {
                let path = self.path(file);
                self.records(&path, *form, *offset).with_context(|| path.display().to_string())
            }
            _ => anyhow::bail!("this source has files only"),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        if self.root.is_file() { self.root.clone() } else { self.root.join(file) }
    }

    fn list(&self) -> anyhow::Result<SourceAnswer> {
        let mut files = Vec::new();
        if self.root.is_file() {
            files.push(self.root.file_name().unwrap_or_default().to_string_lossy().into_owned());
        } else {
            collect(&self.root, "", FOLDERS_DEEP_MAX, &mut files)?;
        }
        let records = files.into_iter().map(|file| json!({"file": file})).collect::<Vec<Value>>();
        Ok(SourceAnswer { status: 200, records, ..SourceAnswer::default() })
    }

    fn records(&mut self, path: &Path, form: RecordForm, offset: u64) -> anyhow::Result<SourceAnswer> {
        if form == RecordForm::Parquet {
            if self.parquet.as_ref().is_none_or(|reader| !reader.is_at(path, offset)) {
                self.parquet = Some(ParquetReader::open(path, offset)?);
            }
            let Some(reader) = &mut self.parquet else { anyhow::bail!("the file is not open") };
            let (records, next_offset) = reader.records()?;
            return Ok(SourceAnswer { status: 200, records, next_offset, ..SourceAnswer::default() });
        }
        let mut file = File::open(path)?;
        let head = match form {
            RecordForm::Csv if offset > 0 => {
                let mut start = vec![0; SLICE_BYTES];
                let read = read_up_to(&mut file, &mut start)?;
                csv_head(&start[..read])
            }
            _ => None,
        };
        let mut size = SLICE_BYTES;
        loop {
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = vec![0; size];
            let read = read_up_to(&mut file, &mut bytes)?;
            let is_last = read < size;
            let found = slice(form, &bytes[..read], (offset, is_last), head.as_deref()).map_err(anyhow::Error::msg)?;
            if found.consumed == 0 && !is_last {
                anyhow::ensure!(size < RECORD_BYTES_MAX, "a record at byte {offset} is longer than {RECORD_BYTES_MAX}");
                size *= 2;
                continue;
            }
            let next = offset + found.consumed as u64;
            anyhow::ensure!(found.consumed > 0 || read == 0, "a record at byte {offset} is incomplete");
            let is_end = is_last && found.consumed == read;
            let (body, records) = (found.message, found.records);
            return Ok(SourceAnswer { status: 200, body, records, next_offset: (!is_end).then_some(next) });
        }
    }
}

fn read_up_to(file: &mut File, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read(&mut bytes[read..])? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

fn collect(folder: &Path, prefix: &str, depth: usize, files: &mut Vec<String>) -> anyhow::Result<()> {
    anyhow::ensure!(depth > 0, "{} has folders within folders too deep", folder.display());
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let below = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if entry.path().is_dir() {
            collect(&entry.path(), &below, depth - 1, files)?;
        } else {
            anyhow::ensure!(files.len() < FILES_MAX, "{} has more than {FILES_MAX} files", folder.display());
            files.push(below);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_folders_are_listed_and_read_to_their_end() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("traces")).unwrap();
        let lines: String = (0..1200).map(|n| format!("{{\"n\": {n}}}\n")).collect();
        fs::write(dir.path().join("traces/1.jsonl"), lines).unwrap();
        let mut source = FileSource::new(dir.path()).unwrap();
        assert_eq!(source.answer(&SourceRequest::Files).unwrap().records, [json!({"file": "traces/1.jsonl"})]);
        let (mut offset, mut found) = (0, Vec::new());
        loop {
            let request = SourceRequest::Records { file: "traces/1.jsonl".into(), form: RecordForm::Lines, offset };
            let answer = source.answer(&request).unwrap();
            found.extend(answer.records);
            let Some(next) = answer.next_offset else { break };
            offset = next;
        }
        assert_eq!(found.len(), 1200);
        assert_eq!(found[1199], json!({"n": 1199}));
    }
}
