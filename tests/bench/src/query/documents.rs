//! Documents of JSONBench's shape, events of the Bluesky network, generated from a seed: two days of them. Each is the
//! metadata of a row.

use assay_bench::generate::START_MICROS;
use assay_bench::generate::dice::{Dice, derive};
use assay_bench::generate::words::Vocabulary;
use assay_storage_model::event::format_micros;

use super::event_feed::Feed;
use super::spans::{put, skewed};

/// Whether an event is wrapped in a row for inserts, or alone for the other engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapped {
    /// `{"id": ..., "metadata": {the event}}`, as it is inserted.
    Row,
    /// The event alone.
    No,
}

const WINDOW_MICROS: u64 = 2 * 24 * 3_600_000_000;
/// Events for each one that writes.
const EVENTS_PER_WRITER: u64 = 8;
/// Collections of commits, and how many of a thousand each has.
const COLLECTIONS: [(&str, u64); 8] = [
    ("app.bsky.feed.like", 460),
    ("app.bsky.graph.follow", 240),
    ("app.bsky.feed.post", 120),
    ("app.bsky.feed.repost", 90),
    ("app.bsky.graph.block", 40),
    ("app.bsky.graph.listitem", 25),
    ("app.bsky.actor.profile", 20),
    ("app.bsky.feed.threadgate", 5),
];
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[derive(Debug)]
pub struct Documents {
    seed: u64,
    rows: u64,
    row: u64,
    wrapped: Wrapped,
}

impl Documents {
    pub fn new(seed: u64, rows: u64, wrapped: Wrapped) -> Documents {
        Documents { seed: derive(seed, u64::MAX - 2), rows, row: 0, wrapped }
    }

    fn event(&self, dice: &mut Dice, time: u64, out: &mut Vec<u8>) {
        let writers = (self.rows / EVENTS_PER_WRITER).max(1) as f64;
        let did = key(derive(self.seed ^ 1, skewed(writers, dice) as u64), 24);
        put(out, format_args!("{{\"did\":\"did:plc:{did}\",\"time_us\":{time},\"kind\":"));
        match dice.below(100) {
            0 => put(
                out,
                format_args!(
                    "\"account\",\"account\":{{\"active\":true,\"did\":\"did:plc:{did}\",\"seq\":{},\"time\":\"{}\"}}}}",
                    self.row,
                    format_micros(time as i64)
                ),
            ),
            1 => put(
                out,
                format_args!(
                    "\"identity\",\"identity\":{{\"did\":\"did:plc:{did}\",\"handle\":\"{}.bsky.social\",\"seq\":{}}}}}",
                    key(dice.roll(), 9),
                    self.row
                ),
            ),
            _ => commit(dice, time, out),
        }
    }
}

impl Feed for Documents {
    fn next(&mut self, out: &mut Vec<u8>) -> Option<String> {
        if self.row == self.rows {
            return None;
        }
        let mut dice = Dice::new(derive(self.seed, self.row));
        // No two of them are of the same moment: where rows are sorted by time none is tied.
        let every = (WINDOW_MICROS / self.rows).max(1);
        let time = START_MICROS as u64 + self.row * every + dice.below(every);
        let id = format!("event-{}", self.row);
        if self.wrapped == Wrapped::Row {
            let created = format_micros(time as i64);
            put(out, format_args!("{{\"id\":\"{id}\",\"created\":\"{created}\",\"metadata\":"));
        }
        self.event(&mut dice, time, out);
        if self.wrapped == Wrapped::Row {
            out.push(b'}');
        }
        self.row += 1;
        Some(id)
    }
}

fn commit(dice: &mut Dice, time: u64, out: &mut Vec<u8>) {
    let operation =
        ["create", "create", "create", "create", "create", "create", "create", "create", "create", "delete"];
    let operation = operation[dice.below(operation.len() as u64) as usize];
    let collection = collection(dice.below(1000));
    put(
        out,
        format_args!(
            "\"commit\",\"commit\":{{\"rev\":\"{}\",\"operation\":\"{operation}\",\"collection\":\"{collection}\",\"rkey\":\"{}\"",
            key(dice.roll(), 13),
            key(dice.roll(), 13)
        ),
    );
    if operation == "create" {
        let created = format_micros(time as i64 - 250_000);
        put(out, format_args!(",\"record\":{{\"$type\":\"{collection}\",\"createdAt\":\"{created}\""));
        record(collection, dice, out);
        put(out, format_args!("}},\"cid\":\"bafyrei{}\"", key(dice.roll(), 52)));
    }
    out.extend_from_slice(b"}}");
}

/// Writes the content of a record besides its type and time.
fn record(collection: &str, dice: &mut Dice, out: &mut Vec<u8>) {
    match collection {
        "app.bsky.feed.post" => {
            out.extend_from_slice(b",\"langs\":[\"en\"],\"text\":\"");
            let bytes = 40 + dice.below(220) as usize;
            Vocabulary::shared().write(bytes, dice, out);
            out.push(b'"');
        }
        "app.bsky.feed.like" | "app.bsky.feed.repost" => put(
            out,
            format_args!(
                ",\"subject\":{{\"cid\":\"bafyrei{}\",\"uri\":\"at://did:plc:{}/app.bsky.feed.post/{}\"}}",
                key(dice.roll(), 52),
                key(dice.roll(), 24),
                key(dice.roll(), 13)
            ),
        ),
        _ => put(out, format_args!(",\"subject\":\"did:plc:{}\"", key(dice.roll(), 24))),
    }
}

fn collection(draw: u64) -> &'static str {
    let mut upto = 0;
    let found = COLLECTIONS.iter().find(|(_, share)| {
        upto += share;
        draw < upto
    });
    found.map_or(COLLECTIONS[0].0, |(name, _)| name)
}

/// Letters as in the network's own keys.
fn key(seed: u64, letters: usize) -> String {
    let mut dice = Dice::new(seed);
    (0..letters).map(|_| char::from(BASE32[dice.below(32) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::event_feed::tests::all;
    use super::*;

    #[test]
    fn events_have_the_shape_that_is_asked_about() {
        let rows = all(Documents::new(5, 4000, Wrapped::Row));
        let events: Vec<_> = rows.iter().map(|row| &row["metadata"]).collect();
        let commits: Vec<_> = events.iter().filter(|event| event["kind"] == "commit").collect();
        assert!((3800..4000).contains(&commits.len()), "{}", commits.len());
        let collections: BTreeSet<_> = commits.iter().map(|event| event["commit"]["collection"].as_str()).collect();
        assert!(collections.len() >= COLLECTIONS.len() - 1 && !collections.contains(&None));
        let times: BTreeSet<_> = events.iter().map(|event| event["time_us"].as_u64()).collect();
        assert_eq!(times.len(), rows.len());
        let mean = events.iter().map(|event| event.to_string().len()).sum::<usize>() / events.len();
        assert!((300..600).contains(&mean), "{mean} bytes");
    }

    #[test]
    fn an_event_is_the_same_alone_and_in_its_row() {
        let (mut rows, mut alone) = (Documents::new(5, 50, Wrapped::Row), Documents::new(5, 50, Wrapped::No));
        let (mut row, mut event) = (Vec::new(), Vec::new());
        while rows.next(&mut row).is_some() && alone.next(&mut event).is_some() {
            let row_text = String::from_utf8_lossy(&row);
            assert!(row_text.ends_with(&format!(",\"metadata\":{}}}", String::from_utf8_lossy(&event))), "{row_text}");
            row.clear();
            event.clear();
        }
    }
}
