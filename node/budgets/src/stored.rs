//! JSON encoding of ledgers in their records.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use thiserror::Error;
use uuid::Uuid;

use crate::amounts::BudgetAmounts;
use crate::ledger::{BudgetLedger, BudgetWriter, ReservedGroup, WriterReservations};
use crate::window::BudgetWindow;

/// Error for an unreadable ledger, which indicates a fault of the program or its disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the ledger of the budget cannot be read: `{path}` is missing or invalid")]
pub struct LedgerError {
    pub path: &'static str,
}

impl BudgetLedger {
    pub fn encode(&self) -> Vec<u8> {
        let group = |(until, group): (&i64, &ReservedGroup)| {
            json!({"until": until, "calls": group.calls, "usd_nanos": group.amounts.nano_usd,
                "tokens": group.amounts.tokens})
        };
        let writer = |(id, own): (&BudgetWriter, &WriterReservations)| {
            let reserved: Vec<Value> = own.groups.iter().map(group).collect();
            json!({"id": id.0.to_string(), "batch": own.batch, "at": own.wrote_ms, "reserved": reserved})
        };
        let writers: Vec<Value> = self.writers.iter().map(writer).collect();
        let stored = json!({
            "window": self.window.word(),
            "begins": self.begins_ms,
            "usd_nanos": self.spent.nano_usd,
            "tokens": self.spent.tokens,
            "requests": self.requests,
            "writers": writers,
        });
        stored.to_string().into_bytes()
    }

    pub fn decode(body: &[u8]) -> Result<BudgetLedger, LedgerError> {
        let stored: Value = serde_json::from_slice(body).map_err(|_| LedgerError { path: "" })?;
        let stored = stored.as_object().ok_or(LedgerError { path: "" })?;
        let window = text(stored, "window")?;
        let mut writers = BTreeMap::new();
        for writer in list(stored, "writers")? {
            let writer = writer.as_object().ok_or(LedgerError { path: "writers" })?;
            let id = Uuid::parse_str(text(writer, "id")?).map_err(|_| LedgerError { path: "id" })?;
            writers.insert(BudgetWriter(id), reservations(writer)?);
        }
        Ok(BudgetLedger {
            window: BudgetWindow::parse(window).ok_or(LedgerError { path: "window" })?,
            begins_ms: time(stored, "begins")?,
            spent: amounts(stored)?,
            requests: count(stored, "requests")?,
            writers,
        })
    }
}

fn reservations(writer: &Map<String, Value>) -> Result<WriterReservations, LedgerError> {
    let mut groups = BTreeMap::new();
    for group in list(writer, "reserved")? {
        let group = group.as_object().ok_or(LedgerError { path: "reserved" })?;
        let reserved = ReservedGroup { calls: count(group, "calls")?, amounts: amounts(group)? };
        groups.insert(time(group, "until")?, reserved);
    }
    Ok(WriterReservations { batch: count(writer, "batch")?, wrote_ms: time(writer, "at")?, groups })
}

fn amounts(of: &Map<String, Value>) -> Result<BudgetAmounts, LedgerError> {
    Ok(BudgetAmounts { nano_usd: count(of, "usd_nanos")?, tokens: count(of, "tokens")? })
}

fn count(of: &Map<String, Value>, path: &'static str) -> Result<u64, LedgerError> {
    of.get(path).and_then(Value::as_u64).ok_or(LedgerError { path })
}

fn time(of: &Map<String, Value>, path: &'static str) -> Result<i64, LedgerError> {
    of.get(path).and_then(Value::as_i64).ok_or(LedgerError { path })
}

fn text<'a>(of: &'a Map<String, Value>, path: &'static str) -> Result<&'a str, LedgerError> {
    of.get(path).and_then(Value::as_str).ok_or(LedgerError { path })
}

fn list<'a>(of: &'a Map<String, Value>, path: &'static str) -> Result<&'a Vec<Value>, LedgerError> {
    of.get(path).and_then(Value::as_array).ok_or(LedgerError { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_survives_its_record() {
        let amounts = BudgetAmounts { nano_usd: u64::MAX, tokens: 3 };
        let groups = BTreeMap::from([(5000, ReservedGroup { calls: 2, amounts })]);
        let own = WriterReservations { batch: 9, wrote_ms: -1, groups };
        let ledger = BudgetLedger {
            window: BudgetWindow::Day,
            begins_ms: 86_400_000,
            spent: amounts,
            requests: 4,
            writers: BTreeMap::from([(BudgetWriter(Uuid::from_u128(1)), own)]),
        };
        assert_eq!(BudgetLedger::decode(&ledger.encode()), Ok(ledger));
    }

    #[test]
    fn a_damaged_ledger_names_the_field() {
        for (body, path) in [
            ("", ""),
            ("[]", ""),
            ("{}", "window"),
            (r#"{"window":"day"}"#, "writers"),
            (r#"{"window":"year","writers":[]}"#, "window"),
            (r#"{"window":"day","writers":[{"id":1}]}"#, "id"),
            (r#"{"window":"day","writers":[],"begins":0,"usd_nanos":-1}"#, "usd_nanos"),
        ] {
            assert_eq!(BudgetLedger::decode(body.as_bytes()), Err(LedgerError { path }), "{body}");
        }
    }
}
