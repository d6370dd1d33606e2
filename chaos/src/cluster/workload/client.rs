//! Client of a run: its connections to every node, and the records of each request before and after it.
//!
//! Another node at each request, a bounded wait, and no retry that the history does not show. A page of a read may come
//! from another node than the one before.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::rows::{Fold, Rows, body_of, found, total, write_of};
use super::shared::{ClientContext, NodeAt, Object, Patience};
use crate::cluster::recording::events::{Row, RunEvent};
use crate::http_client::{HttpClient as Connection, HttpResponse};

/// A page has many rows, and an unoptimised build takes its time.
const PAGE_WAIT: Duration = Duration::from_secs(8);
/// Rows of a page.
const PAGE: u64 = 500;
/// Nodes tried for one page before the read fails.
const PAGE_TRIES: usize = 4;
/// Pages of one read; an object has a few thousand rows.
const PAGES_MAX: usize = 200;
/// Pause after a refusal or a broken connection, so that a dead node is not called in a busy loop.
const REST: Duration = Duration::from_millis(100);
/// Upper limit of `Retry-After` that a careful client waits for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);
/// Rows that carry this text in place of what they should be are shown so.
const WHY_BYTES_MAX: usize = 200;

const VERSION: &str = "x-bt-version";
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";
const RETRY_AFTER: &str = "retry-after";
/// Beginning of the description of a request that timed out.
pub const NO_ANSWER: &str = "no answer within";

/// Result of a request.
#[derive(Debug)]
pub enum Called {
    Answered(HttpResponse),
    /// There was no connection: it was never sent.
    NotSent(String),
    /// Unknown outcome.
    Broken(String),
}

/// Result of a write, as far as its client can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Ok,
    Fail,
    /// 409.
    Conflict,
    Info,
}

/// A write on its way.
#[derive(Clone, Debug)]
pub struct Sending<'a> {
    pub object: &'a Object,
    pub write: u64,
    pub key: Option<u64>,
    pub rows: &'a [Row],
}

#[derive(Debug)]
pub struct Client {
    pub number: u32,
    pub stage: Arc<ClientContext>,
    pub rng: ChaCha8Rng,
    connections: BTreeMap<u8, Connection>,
    turn: usize,
    /// Node of every request, if set.
    pub pinned: Option<NodeAt>,
    /// The node of the last request, if that request failed.
    failed_at: Option<u8>,
    /// The id under which this client last saw each write.
    seen: HashMap<u64, u64>,
}

impl Client {
    pub fn new(number: u32, stage: Arc<ClientContext>, seed: u64) -> Client {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let turn = rng.random_range(0..1000);
        Client {
            number,
            stage,
            rng,
            connections: BTreeMap::new(),
            turn,
            pinned: None,
            failed_at: None,
            seen: HashMap::new(),
        }
    }

    /// Another node than the last, if there is one.
    pub fn another(&mut self) -> anyhow::Result<NodeAt> {
        if let Some(pinned) = self.pinned {
            return Ok(pinned);
        }
        let mut nodes = self.stage.nodes();
        if let Some(failed) = self.failed_at.filter(|_| self.stage.patience.careful()) {
            let away = self.stage.away();
            nodes.retain(|at| at.node != failed && Some(at.node) != away);
        }
        self.turn += 1;
        nodes.get(self.turn % nodes.len().max(1)).copied().context("no node takes requests")
    }

    /// One request to one node.
    pub fn call(&mut self, at: NodeAt, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Called {
        let called = self.send(at, method, path, headers, body);
        let went = matches!(&called, Called::Answered(answer) if answer.status < 429);
        self.failed_at = (!went).then_some(at.node);
        called
    }

    fn send(&mut self, at: NodeAt, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Called {
        let wait = self.stage.patience.wait;
        let wait = if path.ends_with("/fetch") { wait.max(PAGE_WAIT) } else { wait };
        let mut connection = match self.connections.remove(&at.node).filter(Connection::is_open) {
            Some(connection) => connection,
            None => match Connection::connect(at.address, &self.stage.key, wait) {
                Ok(connection) => connection,
                Err(why) => {
                    std::thread::sleep(REST);
                    return Called::NotSent(format!("{why:#}"));
                }
            },
        };
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        if let Err(why) = connection.set_wait(wait) {
            return Called::NotSent(format!("{why:#}"));
        }
        match connection.send(method, path, headers, &bytes) {
            Ok(answer) => {
                if answer.status >= 429 {
                    std::thread::sleep(self.rest(&answer));
                }
                if answer.header("connection") != Some("close") {
                    self.connections.insert(at.node, connection);
                }
                Called::Answered(answer)
            }
            Err(why) => Called::Broken(broken(&why, wait)),
        }
    }

    /// The pause after an answer that refuses a request.
    fn rest(&self, answer: &HttpResponse) -> Duration {
        let asked = answer.header(RETRY_AFTER).filter(|_| self.stage.patience.careful());
        let seconds = asked.and_then(|seconds| seconds.parse().ok());
        seconds.map_or(REST, |seconds| Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
    }

    /// Writes rows to another node: once, unless clients are careful.
    pub fn write(&mut self, sending: &Sending<'_>) -> anyhow::Result<Ended> {
        let Patience { tries, .. } = self.stage.patience;
        let mut sending = sending.clone();
        if tries > 1 {
            // Only a write with a key may be sent twice.
            sending.key.get_or_insert(sending.write);
        }
        let at = self.another()?;
        let mut ended = self.write_at(at, &sending);
        for _ in 1..tries {
            if self.failed_at.is_none() {
                break;
            }
            let at = self.another()?;
            ended = self.write_at(at, &sending);
        }
        Ok(ended)
    }

    pub fn write_at(&mut self, at: NodeAt, sending: &Sending<'_>) -> Ended {
        let op = self.stage.journal.operation();
        self.write_as(op, at, sending)
    }

    /// Sends a write as operation `op`, a number that the caller must have drawn.
    pub fn write_as(&mut self, op: u64, at: NodeAt, sending: &Sending<'_>) -> Ended {
        let Sending { object, write, key, rows } = sending;
        let said = RunEvent::Write {
            op,
            client: self.number,
            node: at.node,
            object: object.name.clone(),
            write: *write,
            key: *key,
            rows: rows.to_vec(),
        };
        self.stage.journal.say(said);
        let key = key.map(|key| format!("key-{key}"));
        let headers: Vec<(&str, &str)> = key.iter().map(|key| (IDEMPOTENCY_KEY, key.as_str())).collect();
        let called = self.call(at, "POST", &format!("{}/insert", object.path), &headers, &body_of(rows));
        let (said, ended) = end_of_write(op, rows, called);
        said.into_iter().for_each(|said| self.stage.journal.say(said));
        ended
    }

    /// Reads a whole object, the newest or at a version; the version it was read at.
    pub fn read(&mut self, object: &Arc<Object>, version: Option<u64>) -> anyhow::Result<Option<SeenWrite>> {
        let at = self.another()?;
        let mut seen = self.read_at(at, object, version);
        for _ in 1..self.stage.patience.tries {
            if self.failed_at.is_none() {
                break;
            }
            let at = self.another()?;
            seen = self.read_at(at, object, version);
        }
        Ok(seen)
    }

    /// The first page comes from this node, later ones from any.
    pub fn read_at(&mut self, at: NodeAt, object: &Arc<Object>, version: Option<u64>) -> Option<SeenWrite> {
        let op = self.stage.journal.operation();
        let (client, name) = (self.number, object.name.clone());
        self.stage.journal.say(RunEvent::Read { op, client, node: at.node, object: name, version });
        match self.pages(op, at, object, version) {
            Ok(whole) => {
                self.stage.journal.keep(op, &whole.rows, self.pinned.is_some());
                let seen = self.newly_seen(&whole.rows);
                self.stage.journal.say(RunEvent::Found {
                    op,
                    version: whole.version,
                    raw: whole.raw,
                    fold: Fold::of(&whole.rows).text(),
                    rows: whole.rows.len(),
                    total: total(&whole.rows),
                    seen,
                });
                self.stage.remember(object, whole.version);
                Some(SeenWrite { op, version: whole.version })
            }
            Err(given_up) => {
                let GivenUp { status, why } = given_up;
                self.stage.journal.say(RunEvent::Info { op, status, why });
                None
            }
        }
    }

    fn pages(&mut self, op: u64, first: NodeAt, object: &Object, version: Option<u64>) -> Result<Whole, GivenUp> {
        let path = format!("{}/fetch", object.path);
        let (mut cursor, mut at, mut whole) = (Value::Null, first, Whole::default());
        let mut hasher = DefaultHasher::new();
        for page in 0..PAGES_MAX {
            let asked = version.filter(|_| page == 0).map(|version| version.to_string());
            let body = json!({ "limit": PAGE, "cursor": cursor, "version": asked });
            let answer = self.page(op, &mut at, &path, &body)?;
            let read_at = answer.header(VERSION).and_then(|text| text.parse().ok());
            let Some(read_at) = read_at.filter(|read_at| page == 0 || *read_at == whole.version) else {
                return Err(self.odd(op, answer.status, format!("a page of another version, or of none: {read_at:?}")));
            };
            whole.version = read_at;
            for event in answer.body["events"].as_array().into_iter().flatten() {
                event.to_string().hash(&mut hasher);
                let Some((id, state)) = found(event) else {
                    return Err(self.odd(op, answer.status, format!("no row: {event}")));
                };
                if whole.rows.insert(id.clone(), state).is_some() {
                    return Err(self.odd(op, answer.status, format!("the row {id} came twice")));
                }
            }
            cursor = answer.body["cursor"].clone();
            if cursor.is_null() {
                whole.raw = format!("{:016x}", hasher.finish());
                return Ok(whole);
            }
            // A careful client stays: a page that fails would be a failure that the history does not have.
            if !self.stage.patience.careful() {
                let next = self.another().map_err(|why| GivenUp { status: None, why: format!("{why:#}") })?;
                if Some(next.node) != self.stage.deaf() {
                    at = next;
                }
            }
        }
        Err(self.odd(op, 200, format!("more than {PAGES_MAX} pages")))
    }

    /// Reads one page; if a node fails, the next one is tried. The first page of a read from a named node comes only
    /// from that node, so that each node is tested. So does every page of a careful client, which retries the read
    /// instead.
    fn page(&mut self, op: u64, at: &mut NodeAt, path: &str, body: &Value) -> Result<HttpResponse, GivenUp> {
        let once = body["cursor"].is_null() || self.stage.patience.careful();
        let tries = if once { 1 } else { PAGE_TRIES };
        let mut given_up = GivenUp { status: None, why: String::new() };
        for _ in 0..tries {
            match self.call(*at, "POST", path, &[], body) {
                Called::Answered(answer) if answer.status == 200 => return Ok(answer),
                Called::Answered(answer) => {
                    let why = message(&answer);
                    if !matches!(answer.status, 429 | 503 | 507) {
                        return Err(self.odd(op, answer.status, why));
                    }
                    given_up = GivenUp { status: Some(answer.status), why };
                }
                Called::NotSent(why) | Called::Broken(why) => given_up = GivenUp { status: None, why },
            }
            *at = self.another().map_err(|why| GivenUp { status: None, why: format!("{why:#}") })?;
        }
        Err(given_up)
    }

    /// Records a forbidden response; the operation ends as unknown.
    pub fn odd(&self, op: u64, status: u16, why: String) -> GivenUp {
        self.stage.journal.say(RunEvent::Odd { op, status, why: why.clone() });
        GivenUp { status: Some(status), why }
    }

    fn newly_seen(&mut self, rows: &Rows) -> Vec<(u64, u64)> {
        let mut new = Vec::new();
        for (id, row) in rows {
            if let Some(write) = write_of(id)
                && self.seen.insert(write, row.xact) != Some(row.xact)
            {
                new.push((write, row.xact));
            }
        }
        new
    }
}

/// A read that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenWrite {
    pub op: u64,
    pub version: u64,
}

/// A read that came to no end.
#[derive(Debug)]
pub struct GivenUp {
    pub status: Option<u16>,
    pub why: String,
}

#[derive(Debug, Default)]
struct Whole {
    version: u64,
    raw: String,
    rows: Rows,
}

/// Returns the record of a write's response, and its result for the client.
fn end_of_write(op: u64, rows: &[Row], called: Called) -> (Vec<RunEvent>, Ended) {
    let answer = match called {
        Called::NotSent(why) => return (vec![RunEvent::Fail { op, status: None, why }], Ended::Fail),
        Called::Broken(why) => return (vec![RunEvent::Info { op, status: None, why }], Ended::Info),
        Called::Answered(answer) => answer,
    };
    let (status, why) = (answer.status, message(&answer));
    match status {
        200 if ids_fit(&answer.body, rows) => (vec![RunEvent::Ok { op }], Ended::Ok),
        200 => {
            let why = format!("other rows are named than were sent: {why}");
            (vec![RunEvent::Odd { op, status, why }, RunEvent::Ok { op }], Ended::Ok)
        }
        409 => (vec![RunEvent::Fail { op, status: Some(status), why }], Ended::Conflict),
        429 | 507 => (vec![RunEvent::Fail { op, status: Some(status), why }], Ended::Fail),
        503 => (vec![RunEvent::Info { op, status: Some(status), why }], Ended::Info),
        400..=499 => {
            let odd = RunEvent::Odd { op, status, why: why.clone() };
            (vec![odd, RunEvent::Fail { op, status: Some(status), why }], Ended::Fail)
        }
        _ => {
            let odd = RunEvent::Odd { op, status, why: why.clone() };
            (vec![odd, RunEvent::Info { op, status: Some(status), why }], Ended::Info)
        }
    }
}

/// Describes a connection error. A timeout is named as such: the system's text is that a resource is temporarily
/// unavailable.
fn broken(why: &anyhow::Error, wait: Duration) -> String {
    let late = why.downcast_ref::<std::io::Error>().is_some_and(|why| why.kind() == ErrorKind::WouldBlock);
    if late { format!("{NO_ANSWER} {wait:?}") } else { format!("{why:#}") }
}

fn ids_fit(body: &Value, rows: &[Row]) -> bool {
    let named = body["row_ids"].as_array().map(Vec::as_slice).unwrap_or_default();
    named.len() == rows.len() && named.iter().zip(rows).all(|(id, row)| id.as_str() == Some(&row.id))
}

/// The sentence of a refusal, or the start of what came instead.
pub fn message(answer: &HttpResponse) -> String {
    let text = answer.body["Message"].as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
    text.chars().take(WHY_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::own;
    use super::*;

    fn end(status: u16, body: Value) -> (Vec<RunEvent>, Ended) {
        end_of_write(7, &[own(1, 0)], Called::Answered(HttpResponse { status, headers: Vec::new(), body }))
    }

    #[test]
    fn only_what_was_refused_for_sure_is_a_failure() {
        assert_eq!(end(200, json!({ "row_ids": ["w1-0"] })).1, Ended::Ok);
        for (status, ended) in [(429, Ended::Fail), (507, Ended::Fail), (409, Ended::Conflict), (503, Ended::Info)] {
            let (said, found) = end(status, json!({ "Message": "m" }));
            assert!(found == ended && said.len() == 1, "{status}: {said:?}");
        }
        assert_eq!(end_of_write(7, &[], Called::Broken("cut".into())).1, Ended::Info);
        assert_eq!(end_of_write(7, &[], Called::NotSent("refused".into())).1, Ended::Fail);
    }

    #[test]
    fn what_no_write_may_be_answered_is_odd() {
        for status in [400, 401, 404, 418, 500, 501] {
            assert!(matches!(end(status, json!({})).0[..], [RunEvent::Odd { .. }, _]), "{status}");
        }
        assert!(matches!(end(200, json!({ "row_ids": ["w2-0"] })).0[..], [RunEvent::Odd { .. }, RunEvent::Ok { .. }]));
    }
}
