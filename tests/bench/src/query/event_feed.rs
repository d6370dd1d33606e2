//! Feed of events, one after the other and never all at once: as bodies of inserts for us, and as lines of a file that
//! the others load. Both are made from the same stream, so all engines have the same rows.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use assay_bench::generate::GeneratedEvents;
use bytes::Bytes;

/// Rows of one insert; fewer where they are large.
const ROWS_PER_BODY: usize = 100;
const BODY_BYTES_MAX: usize = 448 << 10;

/// A stream of events that follows from a seed.
pub trait Feed {
    /// Appends the next event as JSON text without a line's end, and returns its id; none at the end.
    fn next(&mut self, out: &mut Vec<u8>) -> Option<String>;
}

/// The next body, or none when all rows are in bodies; and the bytes of its rows alone.
pub fn next_body(feed: &mut dyn Feed) -> Option<(GeneratedEvents, u64)> {
    let (mut body, mut ids, mut rows_bytes) = (b"{\"events\":[".to_vec(), Vec::new(), 0);
    while ids.len() < ROWS_PER_BODY && body.len() < BODY_BYTES_MAX {
        let before = body.len();
        if !ids.is_empty() {
            body.push(b',');
        }
        let Some(id) = feed.next(&mut body) else {
            body.truncate(before);
            break;
        };
        rows_bytes += (body.len() - before) as u64;
        ids.push(id);
    }
    body.extend_from_slice(b"]}");
    (!ids.is_empty()).then(|| (GeneratedEvents { body: Bytes::from(body), ids, merges: 0 }, rows_bytes))
}

/// Writes every event as a line; their bytes.
pub fn write_lines(feed: &mut dyn Feed, path: &Path) -> anyhow::Result<u64> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let (mut file, mut line, mut bytes) = (BufWriter::with_capacity(1 << 20, file), Vec::new(), 0);
    while feed.next(&mut line).is_some() {
        line.push(b'\n');
        file.write_all(&line)?;
        bytes += line.len() as u64;
        line.clear();
    }
    file.flush()?;
    Ok(bytes)
}

#[cfg(test)]
pub mod tests {
    use serde_json::Value;

    use super::*;

    /// All events of a feed, parsed.
    pub fn all(mut feed: impl Feed) -> Vec<Value> {
        let (mut events, mut text) = (Vec::new(), Vec::new());
        while let Some(id) = feed.next(&mut text) {
            let event: Value = serde_json::from_slice(&text).expect("JSON");
            assert_eq!(event["id"], id.as_str());
            events.push(event);
            text.clear();
        }
        events
    }

    struct Count(u32);

    impl Feed for Count {
        fn next(&mut self, out: &mut Vec<u8>) -> Option<String> {
            self.0 = self.0.checked_sub(1)?;
            write!(out, "{{\"id\":\"{}\"}}", self.0).expect("memory takes it");
            Some(self.0.to_string())
        }
    }

    #[test]
    fn bodies_and_lines_hold_every_row_once() {
        let (mut feed, mut sizes) = (Count(250), Vec::new());
        while let Some((events, bytes)) = next_body(&mut feed) {
            let body: Value = serde_json::from_slice(&events.body).expect("JSON");
            let ids: Vec<&str> = body["events"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|event| &event["id"])
                .map(|id| id.as_str().expect("a text"))
                .collect();
            assert_eq!(ids, events.ids);
            assert!(bytes > 0);
            sizes.push(ids.len());
        }
        assert_eq!(sizes, [100, 100, 50]);
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("rows");
        let bytes = write_lines(&mut Count(250), &path).expect("written");
        let text = std::fs::read_to_string(&path).expect("a file");
        assert_eq!((text.lines().count(), text.len() as u64), (250, bytes));
    }
}
