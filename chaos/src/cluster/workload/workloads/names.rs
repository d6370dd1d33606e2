//! W9: experiments are made, written to, dropped and made again under a few names, by several concurrent clients.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rand::Rng;
use serde_json::{Value, json};

use super::Work;
use super::control::ask;
use crate::cluster::recording::events::{Ask, ControlReply, Phase};
use crate::cluster::workload::client::Client;
use crate::cluster::workload::shared::ClientContext;

const NAMES: u32 = 2;
const NAMED: &str = "name ";
/// Operations on one name: the search for an order gets no more.
const OPERATIONS_MAX: u32 = 1200;
/// Experiments of a name that are still queried, including dead ones.
const IDS_MAX: usize = 4;
/// Rows of one page; an experiment is dropped long before it has as many.
const PAGE: u64 = 1000;

#[derive(Debug)]
struct NamedExperiment {
    name: String,
    operations: u32,
    generation: u32,
    ids: VecDeque<String>,
}

#[derive(Clone, Debug)]
pub struct NamePool {
    project: Arc<str>,
    names: Arc<Vec<Mutex<NamedExperiment>>>,
}

impl NamePool {
    pub fn new(stage: &ClientContext, project: &Arc<str>) -> NamePool {
        let names = (0..NAMES).map(|number| Mutex::new(name(stage, number, 0))).collect();
        NamePool { project: Arc::clone(project), names: Arc::new(names) }
    }

    pub fn client(&self) -> NamePool {
        self.clone()
    }

    /// The name to use now, and its experiments, newest last.
    fn enter(&self, client: &Client, number: usize) -> anyhow::Result<(String, Vec<String>)> {
        let mut held = self.names[number].lock().unwrap_or_else(PoisonError::into_inner);
        held.operations += 1;
        if held.operations > OPERATIONS_MAX && client.stage.phase() == Phase::Storm {
            client.stage.retire(&held.name);
            *held = name(&client.stage, u32::try_from(number)?, held.generation + 1);
        }
        Ok((held.name.clone(), held.ids.iter().cloned().collect()))
    }

    /// Remembers an experiment of a name, unless another client has replaced the name since.
    fn remember(&self, number: usize, name: &str, id: &str) {
        let mut current = self.names[number].lock().unwrap_or_else(PoisonError::into_inner);
        if current.name == name {
            current.remember(id);
        }
    }
}

impl NamedExperiment {
    fn remember(&mut self, id: &str) {
        if !self.ids.iter().any(|known| known == id) {
            self.ids.push_back(id.to_owned());
            if self.ids.len() > IDS_MAX {
                self.ids.pop_front();
            }
        }
    }
}

fn name(stage: &ClientContext, number: u32, generation: u32) -> NamedExperiment {
    let name = format!("{NAMED}{number}-{generation}");
    stage.uses(&name);
    NamedExperiment { name, operations: 0, generation, ids: VecDeque::new() }
}

impl Work for NamePool {
    fn works_on(&self) -> Option<String> {
        Some(NAMED.to_owned())
    }

    fn turn(&mut self, client: &mut Client) -> anyhow::Result<()> {
        let number = client.rng.random_range(0..self.names.len());
        let (name, ids) = self.enter(client, number)?;
        let op = client.stage.journal.operation();
        let id = match ids.len() {
            0 => None,
            // Mostly the newest; the others should be dead.
            count if client.rng.random_bool(0.8) => ids.get(count - 1).cloned(),
            count => ids.get(client.rng.random_range(0..count)).cloned(),
        };
        let chance = client.rng.random_range(0..100);
        let told = match id {
            Some(id) if chance < 75 => one(client, op, &name, id, chance)?,
            _ => {
                let body = json!({ "project_id": &*self.project, "name": name });
                let made =
                    |body: &Value| Some(ControlReply::Made { id: body["id"].as_str()?.to_owned(), found: false });
                let told = ask(client, op, &name, Ask::Make, "POST", "/v1/experiment", &body, made)?;
                if let Some(ControlReply::Made { id, .. }) = &told {
                    self.remember(number, &name, id);
                }
                told
            }
        };
        client.stage.went(&name, told.is_some());
        Ok(())
    }
}

/// Something is done with one experiment, which may be dead.
fn one(client: &mut Client, op: u64, name: &str, id: String, chance: u32) -> anyhow::Result<Option<ControlReply>> {
    let path = format!("/v1/experiment/{id}");
    let alive = |_: &Value| Some(ControlReply::Alive);
    match chance {
        0..15 => ask(client, op, name, Ask::Drop { id }, "DELETE", &path, &Value::Null, alive),
        15..35 => ask(client, op, name, Ask::Look { id }, "GET", &path, &Value::Null, alive),
        35..60 => {
            let body = json!({ "events": [{ "id": format!("e{op}"), "metadata": { "of": id } }] });
            ask(client, op, name, Ask::Put { id }, "POST", &format!("{path}/insert"), &body, alive)
        }
        _ => {
            let body = json!({ "limit": PAGE });
            let own = id.clone();
            let rows = move |body: &Value| rows_of(&own, body);
            ask(client, op, name, Ask::Rows { id }, "POST", &format!("{path}/fetch"), &body, rows)
        }
    }
}

/// Returns the operations that wrote the existing rows.
fn rows_of(id: &str, body: &Value) -> Option<ControlReply> {
    let (mut ops, mut odd) = (Vec::new(), Vec::new());
    for event in body["events"].as_array()? {
        let op = event["id"].as_str().and_then(|text| text.strip_prefix('e')?.parse().ok());
        match op.filter(|_| event["metadata"]["of"] == id) {
            Some(op) => ops.push(op),
            None => odd.push(event["id"].to_string()),
        }
    }
    Some(ControlReply::Rows { ops, odd })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_adds_nothing_to_the_next_name() {
        let current = NamedExperiment { name: "next".into(), operations: 0, generation: 1, ids: VecDeque::new() };
        let names = NamePool { project: "p".into(), names: Arc::new(vec![Mutex::new(current)]) };
        names.remember(0, "last", "an experiment of the last name");
        names.remember(0, "next", "an experiment of this name");
        let current = names.names[0].lock().unwrap();
        assert_eq!(current.ids, ["an experiment of this name"]);
    }
}
