//! Catalog in memory: the truth of all nodes, and a copy for each that may lag. Writes may get lost, fail, or have an
//! unknown outcome, by the dice of a seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use assay_node_budgets::catalog::{LedgerPut, LedgerPutOutcome, StoredLedger};
use assay_node_budgets::{
    BudgetAction, BudgetAmounts, BudgetCall, BudgetCatalog, BudgetLimits, BudgetRule, BudgetScope, BudgetUsage,
    BudgetWindow, Budgets,
};
use assay_storage_model::OrgId;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

pub const ORG: OrgId = OrgId(Uuid::from_u128(1));
pub const PROJECT: Uuid = Uuid::from_u128(2);
pub const USER: Uuid = Uuid::from_u128(3);
pub const SECRET: Uuid = Uuid::from_u128(4);
const NOW_MS: i64 = 1_795_806_331_250;

type Ledgers = BTreeMap<Uuid, StoredLedger>;

#[derive(Default)]
struct Truth {
    revision: u64,
    ledgers: Ledgers,
    rules_version: u64,
    rules: Vec<BudgetRule>,
}

/// What all nodes share.
pub struct Shared {
    truth: Mutex<Truth>,
    began: Instant,
    dice: AtomicU64,
    /// Percentage of writes that fail or have an unknown outcome.
    faults: AtomicU64,
    down: AtomicBool,
    /// Requests to the catalog: writes and fences.
    pub asked: AtomicU64,
}

/// Copy of one node.
pub struct NodeCatalog {
    pub shared: Arc<Shared>,
    copy: Mutex<Ledgers>,
}

impl Shared {
    pub fn new(seed: u64, rules: Vec<BudgetRule>) -> Arc<Shared> {
        Arc::new(Shared {
            truth: Mutex::new(Truth { rules, ..Truth::default() }),
            began: Instant::now(),
            dice: AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            faults: AtomicU64::new(0),
            down: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        })
    }

    pub fn node(self: &Arc<Shared>) -> Budgets {
        Budgets::new(self.catalog(), Handle::current())
    }

    pub fn catalog(self: &Arc<Shared>) -> Arc<NodeCatalog> {
        Arc::new(NodeCatalog { shared: Arc::clone(self), copy: Mutex::new(self.truth.lock().ledgers.clone()) })
    }

    pub fn set_faults(&self, percent: u64) {
        self.faults.store(percent, Ordering::Relaxed);
    }

    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    pub fn set_rules(&self, rules: Vec<BudgetRule>) {
        let mut truth = self.truth.lock();
        truth.rules = rules;
        truth.rules_version += 1;
    }

    /// What every copy shows at last.
    pub fn usage(self: &Arc<Shared>, budget: u128) -> BudgetUsage {
        let found = BudgetUsage::find(Uuid::from_u128(budget), &*self.catalog());
        found.expect("the budget is there").expect("its ledger can be read")
    }

    /// Returns a number below `bound`.
    pub fn dice(&self, bound: u64) -> u64 {
        let mut value = self.dice.load(Ordering::Relaxed);
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        self.dice.store(value, Ordering::Relaxed);
        (value >> 16) % bound
    }

    async fn travel(&self) {
        sleep(Duration::from_micros(200 + self.dice(3000))).await;
    }

    fn write(&self, put: &LedgerPut) -> bool {
        let mut truth = self.truth.lock();
        if truth.ledgers.get(&put.budget).map(|stored| stored.revision) != put.expect {
            return false;
        }
        truth.revision += 1;
        let stored = StoredLedger { revision: truth.revision, body: put.body.clone() };
        truth.ledgers.insert(put.budget, stored);
        true
    }
}

impl NodeCatalog {
    fn catch_up(&self) {
        let newest = self.shared.truth.lock().ledgers.clone();
        *self.copy.lock() = newest;
    }

    async fn propose(&self, put: LedgerPut) -> LedgerPutOutcome {
        let shared = &self.shared;
        shared.asked.fetch_add(1, Ordering::Relaxed);
        shared.travel().await;
        if shared.down.load(Ordering::Relaxed) {
            return LedgerPutOutcome::NotWritten("no leader".into());
        }
        if shared.dice(100) < shared.faults.load(Ordering::Relaxed) {
            match shared.dice(4) {
                0 => return LedgerPutOutcome::NotWritten("busy".into()),
                1 => {}
                2 => drop(shared.write(&put)),
                _ => {
                    let shared = Arc::clone(shared);
                    tokio::spawn(async move {
                        sleep(Duration::from_millis(shared.dice(200))).await;
                        shared.write(&put);
                    });
                }
            }
            return LedgerPutOutcome::Unknown("the leader is gone".into());
        }
        let written = shared.write(&put);
        shared.travel().await;
        self.catch_up();
        if written { LedgerPutOutcome::Written } else { LedgerPutOutcome::Stale }
    }
}

impl BudgetCatalog for NodeCatalog {
    fn rules_version(&self) -> u64 {
        self.shared.truth.lock().rules_version
    }

    fn rules(&self) -> Vec<BudgetRule> {
        self.shared.truth.lock().rules.clone()
    }

    fn ledger(&self, budget: Uuid) -> Option<StoredLedger> {
        self.copy.lock().get(&budget).cloned()
    }

    fn ledgers(&self) -> Vec<(Uuid, u64)> {
        self.copy.lock().iter().map(|(budget, stored)| (*budget, stored.revision)).collect()
    }

    fn fence(&self) -> BoxFuture<'_, Result<(), String>> {
        async {
            self.shared.asked.fetch_add(1, Ordering::Relaxed);
            self.shared.travel().await;
            if self.shared.down.load(Ordering::Relaxed) {
                return Err("no leader".into());
            }
            self.catch_up();
            Ok(())
        }
        .boxed()
    }

    fn put(&self, put: LedgerPut) -> BoxFuture<'_, LedgerPutOutcome> {
        self.propose(put).boxed()
    }

    fn delete(&self, budget: Uuid, revision: u64) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let mut truth = self.shared.truth.lock();
            if truth.ledgers.get(&budget).is_some_and(|stored| stored.revision == revision) {
                truth.ledgers.remove(&budget);
            }
            Ok(())
        }
        .boxed()
    }

    fn now_ms(&self) -> i64 {
        NOW_MS + i64::try_from(self.shared.began.elapsed().as_millis()).expect("a short test")
    }
}

/// A budget of the organization without an end, which rejects.
pub fn rule(id: u128, limits: BudgetLimits) -> BudgetRule {
    BudgetRule {
        id: Uuid::from_u128(id),
        org: ORG,
        scope: BudgetScope::Organization,
        window: BudgetWindow::Total,
        limits,
        action: BudgetAction::Reject,
        allow_unpriced: false,
    }
}

pub fn usd_limit(nano_usd: u64) -> BudgetLimits {
    BudgetLimits { nano_usd: Some(nano_usd), ..BudgetLimits::default() }
}

pub fn call(estimate: u64) -> BudgetCall {
    BudgetCall {
        org: ORG,
        project: Some(PROJECT),
        user: Some(USER),
        service_account: None,
        api_key: None,
        temporary: None,
        model: "gpt-4o".into(),
        estimate_nano_usd: Some(estimate),
        estimate_tokens: 10,
        timeout: Duration::from_secs(60),
    }
}

pub fn price(nano_usd: u64) -> BudgetAmounts {
    BudgetAmounts { nano_usd, tokens: 1 }
}
