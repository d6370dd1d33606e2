//! A client of the whole cluster: it has a home node, and switches to another one if that does not take its requests,
//! as behind a load balancer. After a while it returns.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::http::client::{Connection, HttpResponse, Target};

/// A node that could not be reached is tried again after this.
const COME_BACK: Duration = Duration::from_secs(3);
/// Pause if no node can be reached.
const NOBODY_WAIT: Duration = Duration::from_millis(20);
/// Time limit of a request; later it counts as failed for good.
pub const DELIVERED_WAIT_MAX: Duration = Duration::from_secs(120);
/// Failures that are described in words.
const TOLD_MAX: usize = 20;

#[derive(Debug)]
pub struct Roamer {
    connections: Vec<Connection>,
    home: usize,
    at: usize,
    left_at: Option<Instant>,
    began: Instant,
    /// The first few things that went wrong, in words.
    told: Vec<String>,
}

/// Result of one request.
#[derive(Debug)]
enum Called {
    Answered(HttpResponse),
    /// There was no connection: it was never sent.
    NotSent,
    /// The connection ended under it: the outcome is unknown.
    Broken(String),
}

/// A client's failed requests, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Troubles {
    /// 503 and 429 with `Retry-After`.
    pub refused: u64,
    /// The same without.
    pub refused_without_word: u64,
    pub not_sent: u64,
    pub broken: u64,
    /// Any other answer that is not 200.
    pub failed: u64,
}

impl Troubles {
    pub fn join(&mut self, other: Troubles) {
        self.refused += other.refused;
        self.refused_without_word += other.refused_without_word;
        self.not_sent += other.not_sent;
        self.broken += other.broken;
        self.failed += other.failed;
    }

    /// Returns the failures relevant to a client: everything except responses with a retry time, and requests that were
    /// never sent.
    pub fn failures(&self) -> u64 {
        self.refused_without_word + self.broken + self.failed
    }
}

impl Roamer {
    /// Creates a client with home node number `home`; its times are relative to `began`.
    pub fn new(targets: &Arc<Vec<Target>>, home: usize, began: Instant) -> Roamer {
        let home = home % targets.len();
        let connections = targets.iter().map(Connection::new).collect();
        Roamer { connections, home, at: home, left_at: None, began, told: Vec::new() }
    }

    /// Returns the current node, by its place.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn began(&self) -> Instant {
        self.began
    }

    /// Sends it, where it must elsewhere and again, until it is answered 200: the answer, and what was on the way.
    pub async fn deliver(&mut self, path: &str, body: &Bytes) -> anyhow::Result<(Vec<u8>, Troubles)> {
        let (first, mut troubles) = (Instant::now(), Troubles::default());
        while first.elapsed() < DELIVERED_WAIT_MAX {
            let node = self.at;
            match self.post(path, body).await {
                Called::Answered(answer) if answer.status == 200 => return Ok((answer.body, troubles)),
                Called::Answered(answer) => {
                    self.tell(node, &format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body)));
                    let counted = match (answer.status, answer.retry_after) {
                        (429 | 503, Some(_)) => &mut troubles.refused,
                        (429 | 503, None) => &mut troubles.refused_without_word,
                        _ => &mut troubles.failed,
                    };
                    *counted += 1;
                    sleep(answer.retry_after.unwrap_or(NOBODY_WAIT)).await;
                }
                Called::NotSent => {
                    troubles.not_sent += 1;
                    if troubles.not_sent > 1 {
                        sleep(NOBODY_WAIT).await;
                    }
                }
                Called::Broken(why) => {
                    self.tell(node, &why);
                    troubles.broken += 1;
                }
            }
        }
        bail!("{path} was not answered well within {} s: {troubles:?}", DELIVERED_WAIT_MAX.as_secs())
    }

    async fn post(&mut self, path: &str, body: &Bytes) -> Called {
        if self.left_at.is_some_and(|left| left.elapsed() >= COME_BACK) {
            (self.at, self.left_at) = (self.home, None);
        }
        let connection = &mut self.connections[self.at];
        if connection.open().await.is_err() {
            self.leave();
            return Called::NotSent;
        }
        match connection.post(path, body).await {
            Ok(answer) => Called::Answered(answer),
            Err(error) => {
                self.leave();
                Called::Broken(format!("{error:#}"))
            }
        }
    }

    /// The next request goes elsewhere.
    fn leave(&mut self) {
        self.at = (self.at + 1) % self.connections.len();
        self.left_at = Some(Instant::now());
    }

    fn tell(&mut self, node: usize, what: &str) {
        if self.told.len() < TOLD_MAX {
            self.told.push(format!("{:.3} s, node {}: {what}", self.began.elapsed().as_secs_f64(), node + 1));
        }
    }

    /// The first few things that went wrong, in words.
    pub fn told(self) -> Vec<String> {
        self.told
    }
}
