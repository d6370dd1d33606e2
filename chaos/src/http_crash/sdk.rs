//! The Python SDK as a client: a process that logs spans and survives every kill of the server, and the reports on its
//! requests. It pauses after the request left unanswered by the kill, so that the state can be read before the SDK
//! retries.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_test_clients::python;
use serde_json::Value;

use super::ledger::Ledger;
use super::server::API_KEY;
use crate::child_process::{Child, Next};

/// Script for the environment of `tests/clients`; its head documents its output.
const SCRIPT: &str = include_str!("spans.py");
/// A Python that starts, an SDK that logs in, rests between two tries: on a busy machine.
const WAIT: Duration = Duration::from_secs(60);

/// Behaviour of the SDK after a request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Default behaviour: unlimited retries.
    Patient,
    /// It gives the rows up.
    Hasty,
}

#[derive(Debug)]
pub struct Sdk {
    process: Child,
    orders: ChildStdin,
    pub project: String,
    pub account: Account,
}

/// Summary of its output.
#[derive(Debug, Default)]
pub struct Account {
    pub ledger: Ledger,
    /// It got no response to its last request, and sends nothing.
    waiting: bool,
    /// The rows of the request under way, and those that were acknowledged since the last flush.
    sent: Vec<String>,
    acknowledged: BTreeSet<String>,
    /// Flushes after which the SDK took its rows for kept.
    pub flushes: u64,
    /// Rows that it treats as stored without an acknowledgement.
    pub findings: Vec<String>,
}

impl Sdk {
    /// Returns when it has logged in.
    pub fn start(python: &Path, address: SocketAddr, dir: &Path, seed: u64, manner: Manner) -> anyhow::Result<Sdk> {
        let home = dir.join("home");
        std::fs::create_dir_all(&home)?;
        let mut command = python::command(python, &home, &format!("http://{address}"), API_KEY);
        // A flush that raises where rows were given up, and not a line in a log.
        command.env("BRAINTRUST_SYNC_FLUSH", "1");
        let manner_name = match manner {
            Manner::Patient => "patient",
            Manner::Hasty => {
                command.env("BRAINTRUST_NUM_RETRIES", "0");
                "hasty"
            }
        };
        command.args(["-c", SCRIPT, &seed.to_string(), manner_name]);
        let (process, orders) = Child::start_listening(command, &dir.join("sdk-stderr"))?;
        let mut sdk = Sdk { process, orders, project: String::new(), account: Account::default() };
        let said = sdk.next()?.with_context(|| format!("the SDK did not log in: {}", sdk.last_words()))?;
        sdk.project = said["project"].as_str().with_context(|| format!("not a project: {said}"))?.to_owned();
        Ok(sdk)
    }

    /// Follows it until a request of this life was answered, or one was not.
    pub fn until_it_writes(&mut self) -> anyhow::Result<()> {
        let mut answered = false;
        while !answered && !self.account.waiting {
            answered = self.follow()?.get("answer").is_some();
        }
        Ok(())
    }

    /// Follows it after a kill until it pauses. All earlier requests have had a response.
    pub fn until_it_waits(&mut self) -> anyhow::Result<()> {
        while !self.account.waiting {
            self.follow()?;
        }
        Ok(())
    }

    /// The server is there again, and what is in it has been read.
    pub fn go_on(&mut self) -> anyhow::Result<()> {
        self.order("go on")
    }

    /// Lets it bring its last rows to their end, one way or the other.
    pub fn end(&mut self) -> anyhow::Result<()> {
        self.order("end")?;
        while let Some(said) = self.next()? {
            self.account.take(&said)?;
            anyhow::ensure!(!self.account.waiting, "a living server did not answer the SDK: {said}");
        }
        let status = self.process.wait(Instant::now() + WAIT)?.context("the SDK's process does not end")?;
        anyhow::ensure!(status.success(), "the SDK's process ended with {status}: {}", self.last_words());
        Ok(())
    }

    pub fn last_words(&self) -> String {
        self.process.last_words()
    }

    fn order(&mut self, order: &str) -> anyhow::Result<()> {
        anyhow::ensure!(self.account.waiting, "the SDK's process waits for no order");
        self.account.waiting = false;
        writeln!(self.orders, "{order}").context("telling the SDK's process")
    }

    fn follow(&mut self) -> anyhow::Result<Value> {
        let said = self.next()?.with_context(|| format!("the SDK's process ended: {}", self.last_words()))?;
        self.account.take(&said)?;
        Ok(said)
    }

    /// Returns its next report; none when it has ended.
    fn next(&mut self) -> anyhow::Result<Option<Value>> {
        match self.process.next(Instant::now() + WAIT) {
            Next::Line(line) => {
                serde_json::from_str(&line).map(Some).with_context(|| format!("not understood: {line}"))
            }
            Next::Late => anyhow::bail!("the SDK's process says nothing: {}", self.last_words()),
            Next::Ended => Ok(None),
        }
    }
}

impl Account {
    fn take(&mut self, said: &Value) -> anyhow::Result<()> {
        if let Some(rows) = said["sends"].as_array() {
            self.ledger.sends(rows);
            self.sent = texts(rows.iter().map(|row| &row["id"]));
        } else if let Some(status) = said["answer"].as_u64() {
            match status {
                200 => {
                    self.ledger.acknowledged();
                    self.acknowledged.extend(std::mem::take(&mut self.sent));
                }
                429 | 507 => self.ledger.refused(),
                other => anyhow::bail!("rows of the SDK were answered {other}"),
            }
        } else if said.get("no_answer").is_some() {
            self.ledger.unanswered();
            self.waiting = true;
        } else if let Some(flushed) = said["flushed"].as_bool() {
            let acknowledged = std::mem::take(&mut self.acknowledged);
            if flushed {
                self.flushes += 1;
                let kept = texts(said["ids"].as_array().into_iter().flatten());
                let unsaid = kept.into_iter().filter(|id| !acknowledged.contains(id));
                self.findings.extend(unsaid.map(|id| format!("row {id} is kept for the SDK, and nobody said so")));
            }
        } else {
            anyhow::bail!("not understood: {said}");
        }
        Ok(())
    }
}

fn texts<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<String> {
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn account(lines: &[Value]) -> Account {
        let mut account = Account::default();
        for line in lines {
            account.take(line).expect("understood");
        }
        account
    }

    fn sends() -> Value {
        json!({ "sends": [{ "id": "a", "input": 1 }, { "id": "b", "input": 2 }] })
    }

    #[test]
    fn a_row_that_was_acknowledged_and_is_gone_is_found() {
        let mut told = account(&[sends(), json!({ "answer": 200 }), json!({ "flushed": true, "ids": ["a", "b"] })]);
        assert_eq!((told.findings.len(), told.flushes, told.waiting), (0, 1, false));
        assert!(told.ledger.check(&[json!({ "id": "a", "input": 1 })])[0].contains("row b was acknowledged"));
    }

    #[test]
    fn what_got_no_answer_is_whole_or_absent_and_there_once_when_it_is_sent_again() {
        let (a, b) = (json!({ "id": "a", "input": 1 }), json!({ "id": "b", "input": 2 }));
        let unanswered = || account(&[sends(), json!({ "no_answer": "reset" })]);
        assert!(unanswered().waiting);
        assert_eq!(unanswered().ledger.check(&[]), [""; 0]);
        assert!(unanswered().ledger.check(std::slice::from_ref(&a))[0].contains("1 of 2 rows"));
        let mut again = unanswered();
        assert_eq!(again.ledger.check(&[a.clone(), b.clone()]), [""; 0]);
        again.take(&sends()).expect("understood");
        again.take(&json!({ "answer": 200 })).expect("understood");
        assert_eq!(again.ledger.check(&[a.clone(), b.clone()]), [""; 0]);
        assert!(again.ledger.check(&[a.clone(), b, a])[0].contains("twice"));
    }

    #[test]
    fn rows_that_only_the_sdk_takes_for_kept_are_found() {
        let lines = [sends(), json!({ "answer": 429 }), json!({ "flushed": true, "ids": ["a", "never sent"] })];
        assert_eq!(account(&lines).findings.len(), 2);
        let given_up = [sends(), json!({ "no_answer": "reset" }), json!({ "flushed": false, "ids": ["a", "b"] })];
        assert_eq!(account(&given_up).findings.len(), 0);
        assert!(Account::default().take(&json!({ "answer": 500 })).is_err(), "no client may get that");
    }
}
