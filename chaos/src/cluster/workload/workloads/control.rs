//! W8: a setting of a project as a register that clients read and write concurrently. Every value is written once, so
//! that a read identifies its write.

use std::sync::{Arc, Mutex, PoisonError};

use rand::Rng;
use serde_json::{Value, json};

use super::{Work, made};
use crate::cluster::recording::events::{Ask, ControlReply, Phase, RunEvent};
use crate::cluster::workload::client::{Called, Client, message};

const REGISTERS: u32 = 2;
const NAMED: &str = "register of settings ";
/// Operations on one register: the search for an order gets no more.
const OPERATIONS_MAX: u32 = 1500;

#[derive(Debug)]
struct SettingRegister {
    name: String,
    project: String,
    operations: u32,
    generation: u32,
}

#[derive(Clone, Debug)]
pub struct SettingRegisters(Arc<Vec<Mutex<SettingRegister>>>);

impl SettingRegisters {
    pub fn make(client: &mut Client) -> anyhow::Result<SettingRegisters> {
        let registers: anyhow::Result<Vec<Mutex<SettingRegister>>> =
            (0..REGISTERS).map(|number| Ok(Mutex::new(register(client, number, 0)?))).collect();
        Ok(SettingRegisters(Arc::new(registers?)))
    }

    pub fn client(&self) -> SettingRegisters {
        self.clone()
    }
}

fn register(client: &mut Client, number: u32, generation: u32) -> anyhow::Result<SettingRegister> {
    let name = format!("{NAMED}{number}-{generation}");
    let project = made(client, "/v1/project", &json!({ "name": name }))?;
    client.stage.uses(&name);
    Ok(SettingRegister { name, project, operations: 0, generation })
}

impl Work for SettingRegisters {
    fn works_on(&self) -> Option<String> {
        Some(NAMED.to_owned())
    }

    fn turn(&mut self, client: &mut Client) -> anyhow::Result<()> {
        let number = client.rng.random_range(0..self.0.len());
        let (name, project) = {
            let mut register = self.0[number].lock().unwrap_or_else(PoisonError::into_inner);
            register.operations += 1;
            if register.operations > OPERATIONS_MAX && client.stage.phase() == Phase::Storm {
                let next = self::register(client, u32::try_from(number)?, register.generation + 1)?;
                client.stage.retire(&register.name);
                *register = next;
            }
            (register.name.clone(), register.project.clone())
        };
        let path = format!("/v1/project/{project}");
        let op = client.stage.journal.operation();
        let well = if client.rng.random_bool(0.5) {
            let body = json!({ "settings": { "comparison_key": op.to_string() } });
            ask(client, op, &name, Ask::Set { value: op }, "PATCH", &path, &body, |_| Some(ControlReply::Done))?
        } else {
            ask(client, op, &name, Ask::Get, "GET", &path, &Value::Null, value)?
        };
        client.stage.went(&name, well.is_some());
        Ok(())
    }
}

fn value(body: &Value) -> Option<ControlReply> {
    match &body["settings"]["comparison_key"] {
        Value::Null => Some(ControlReply::Value { value: None }),
        Value::String(text) => Some(ControlReply::Value { value: Some(text.parse().ok()?) }),
        _ => None,
    }
}

/// Sends one request to the control plane; returns its result if it is known. `read` extracts it from the body of a
/// 200.
#[expect(clippy::too_many_arguments, reason = "a request and what is said of it")]
pub fn ask(
    client: &mut Client,
    op: u64,
    key: &str,
    ask: Ask,
    method: &str,
    path: &str,
    body: &Value,
    read: impl Fn(&Value) -> Option<ControlReply>,
) -> anyhow::Result<Option<ControlReply>> {
    let at = client.another()?;
    let mortal = !matches!(ask, Ask::Set { .. } | Ask::Get | Ask::Make);
    client.stage.journal.say(RunEvent::Ask { op, client: client.number, node: at.node, key: key.to_owned(), ask });
    let answer = match client.call(at, method, path, &[], body) {
        Called::Answered(answer) => answer,
        Called::NotSent(why) => {
            client.stage.journal.say(RunEvent::Fail { op, status: None, why });
            return Ok(None);
        }
        Called::Broken(why) => {
            client.stage.journal.say(RunEvent::Info { op, status: None, why });
            return Ok(None);
        }
    };
    let (status, why) = (answer.status, message(&answer));
    let told = match status {
        200 => {
            let mut told = read(&answer.body);
            if let Some(ControlReply::Made { found, .. }) = &mut told {
                *found = answer.header("x-bt-found-existing") == Some("true");
            }
            told
        }
        404 if mortal => Some(ControlReply::Dead),
        _ => None,
    };
    match (&told, status) {
        (Some(told), _) => client.stage.journal.say(RunEvent::Told { op, told: told.clone() }),
        (None, 429 | 507) => client.stage.journal.say(RunEvent::Fail { op, status: Some(status), why }),
        (None, 503) => client.stage.journal.say(RunEvent::Info { op, status: Some(status), why }),
        (None, _) => {
            let given_up = client.odd(op, status, why);
            client.stage.journal.say(RunEvent::Info { op, status: given_up.status, why: given_up.why });
        }
    }
    Ok(told)
}
