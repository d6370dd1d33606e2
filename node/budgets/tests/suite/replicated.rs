//! Budgets in the catalog of a cluster of one node.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use assay_cluster::{Cluster, ClusterConfig, HomeError, LogConfig, OnFatal, OpenError};
use assay_node_auth::Ledger;
use assay_node_budgets::{BudgetUsage, Budgets, ReplicatedBudgets};
use assay_node_records::Records;
use assay_node_records::mechanism::By;
use assay_storage_model::OrgId;
use assay_storage_model::catalog::{CatalogCommand, DeleteRecord, Expect, PutRecord, RecordKind, UniqueKey};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::memory::{ORG, call, price};

const BUDGET: Uuid = Uuid::from_u128(9);

/// Audit log that nothing may be written to.
#[derive(Debug)]
struct NoAudit;

impl Ledger for NoAudit {
    fn append<'l>(
        &'l self,
        _: OrgId,
        entry: Map<String, Value>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'l>> {
        panic!("reservations are not audited: {entry:?}")
    }
}

async fn open(dir: &Path) -> Arc<Cluster> {
    let config = || ClusterConfig {
        data_dir: dir.to_owned(),
        shards: 4,
        log: LogConfig { file_bytes: 1 << 20, budget_bytes: 8 << 20, ..LogConfig::default() },
        on_fatal: OnFatal::call(|why| panic!("{why}")),
        ..ClusterConfig::default()
    };
    // A cluster that was shut down lets go of its directory a moment later.
    for _ in 0..500 {
        match Cluster::open(config()).await {
            Err(OpenError::Home(HomeError::Locked(_))) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return Arc::new(opened.expect("opens")),
        }
    }
    panic!("the directory stays locked");
}

async fn budgets(cluster: &Arc<Cluster>) -> (ReplicatedBudgets, Budgets) {
    let records = Records::new(Arc::clone(cluster), Arc::new(NoAudit));
    records.catalog().fence().await.expect("the catalog elects its leader");
    let catalog = ReplicatedBudgets(records.catalog().clone());
    (catalog.clone(), Budgets::new(Arc::new(catalog), Handle::current()))
}

async fn propose(catalog: &ReplicatedBudgets, command: CatalogCommand) {
    catalog.0.propose_one(By::System, command).await.expect("the catalog takes it");
}

fn put_rule(limit_usd: f64) -> CatalogCommand {
    let body = json!({"scope": {"type": "org", "id": ORG.0}, "window": "total", "limit_usd": limit_usd,
        "action": "reject", "allow_unpriced": false});
    put_body(&body)
}

fn put_body(body: &Value) -> CatalogCommand {
    CatalogCommand::Put(PutRecord {
        kind: RecordKind::GATEWAY_BUDGET,
        id: BUDGET,
        org: Some(ORG),
        expect: Expect::Any,
        keys: vec![UniqueKey::new("gateway_budget.name/test", "b")],
        body: body.to_string().into_bytes(),
        at: 1,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_a_ledger_and_it_outlives_both() {
    const PRICE: u64 = 1_000_000;
    let dir = tempfile::tempdir().expect("a directory");
    let cluster = open(dir.path()).await;
    let (catalog, first) = budgets(&cluster).await;
    propose(&catalog, put_rule(0.02)).await;
    let (_, second) = budgets(&cluster).await;
    let calls = (0..60).map(|number| {
        let node = if number % 2 == 0 { first.clone() } else { second.clone() };
        tokio::spawn(async move {
            let Ok(admitted) = node.admit(call(PRICE)).await else { return 0 };
            admitted.settle(price(PRICE)).await.expect("durable");
            1
        })
    });
    let mut made = 0;
    for call in calls.collect::<Vec<_>>() {
        made += call.await.expect("no panic");
    }
    assert_eq!(made, 20);
    cluster.shutdown().await.expect("closes");
    drop((catalog, first, second, cluster));

    let cluster = open(dir.path()).await;
    let (catalog, again) = budgets(&cluster).await;
    let usage = BudgetUsage::find(BUDGET, &catalog).expect("is there").expect("is readable");
    assert_eq!((usage.totals.spent.nano_usd, usage.is_exceeded()), (20 * PRICE, true));
    again.admit(call(PRICE)).await.expect_err("used up before the restart");
    propose(&catalog, put_rule(0.021)).await;
    again.admit(call(PRICE)).await.expect("the limit was raised").settle(price(PRICE)).await.expect("durable");
    // A newer version may write rules that this one cannot read. Their ledgers stay.
    propose(&catalog, put_body(&json!({"scope": {"type": "team", "id": BUDGET}}))).await;
    assert_eq!(again.sweep().await, Ok(0));
    let delete = DeleteRecord { kind: RecordKind::GATEWAY_BUDGET, id: BUDGET, expect: Expect::Any };
    propose(&catalog, CatalogCommand::Delete(delete)).await;
    assert!(!again.admit(call(PRICE)).await.expect("no budget").is_counted());
    assert_eq!(again.sweep().await, Ok(1));
    cluster.shutdown().await.expect("closes");
}
