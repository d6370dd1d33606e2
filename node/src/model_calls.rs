//! Parts of the AI gateway that are the cluster's: cached answers, budgets, and what cools.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use assay_cluster::Cluster;
use assay_node_budgets::Budgets;
use assay_node_cooling_exchange::CoolingExchange;
use assay_node_egress::EgressClient;
use assay_node_gateway::{Gateway, GatewayParts};
use assay_node_models::catalog::{Catalog, CatalogSources};
use assay_node_records::Records;
use assay_node_response_cache::{
    CACHE_DIRECTORY, CacheClock, CacheLimits, CacheSettings, ClusterCachePeers, DataKeys, ResponseCache, serve_cache,
};
use assay_storage_disk::RealDisk;
use tokio::runtime::Handle;

use crate::config::Config;

/// Starts the gateway with the parts that it shares with other nodes.
pub async fn start_gateway(
    config: &Config,
    (egress, models, budgets): (EgressClient, Catalog, &Budgets),
    cluster: &Arc<Cluster>,
    records: &Records,
) -> anyhow::Result<Gateway> {
    let mut parts = GatewayParts::new(egress, config.gateway.clone(), models, Handle::current());
    let cooling = CoolingExchange::start(cluster, Arc::clone(&parts.cooling));
    parts.on_cooling = Some(Box::new(move |upstream| cooling.changed(upstream)));
    if config.gateway.cache {
        parts.cache = Some(response_cache(config, cluster, records).await?);
    }
    parts.budgets = Some(budgets.clone());
    Ok(Gateway::new(parts))
}

/// Opens the cache of model responses in the data directory.
async fn response_cache(config: &Config, cluster: &Arc<Cluster>, records: &Records) -> anyhow::Result<ResponseCache> {
    let limits = CacheLimits {
        bytes_max: config.gateway.cache_bytes_max,
        organization_bytes_max: config.gateway.cache_organization_bytes_max,
        ..CacheLimits::default()
    };
    let settings = CacheSettings {
        disk: Arc::new(RealDisk),
        directory: config.store.data_dir.join(CACHE_DIRECTORY),
        limits,
        keys: Arc::new(DataKeys::new(records.secrets().clone())),
        peers: Arc::new(ClusterCachePeers::new(Arc::clone(cluster))),
        clock: CacheClock::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        }),
        runtime: Handle::current(),
    };
    let opened = tokio::task::spawn_blocking(move || ResponseCache::open(settings)).await?;
    let cache = opened.context("cannot open the cache of model responses")?;
    serve_cache(cluster, &cache);
    Ok(cache)
}

/// Returns the catalog of models, with the operator's prices and models over the built-in ones.
pub fn catalog(config: &Config) -> anyhow::Result<Catalog> {
    let read = |file: Option<&Path>, setting: &str| {
        let text = file.filter(|file| !file.as_os_str().is_empty()).map(std::fs::read_to_string).transpose();
        text.with_context(|| format!("{setting}: the file cannot be read"))
    };
    let prices = read(Some(&config.queries.prices), "queries.prices")?;
    let models = read(config.gateway.catalog_file.as_deref(), "gateway.catalog_file")?;
    let sources = CatalogSources { operator_prices: prices.as_deref(), operator_models: models.as_deref() };
    Catalog::new(sources).context("gateway.catalog_file")
}
