//! The one client for outbound calls, and its policy.
//!
//! The client refuses every call until the listeners of this node are known. From then on its policy is kept up to date with
//! what belongs to the cluster: a call must never reach that.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use assay_cluster::Cluster;
use assay_node_egress::{
    EgressClient, EgressConfig, EgressPolicy, EgressSettings, OutboundProxy, OwnEndpoints, TrustedRoots,
};
use assay_node_http::Server;
use assay_node_secrets::read_secret_file;

use crate::process::own_addresses;

/// Interval of the look for new nodes and addresses.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Returns the client, which refuses all calls until [`OutboundPolicy::open`]. Reads files.
pub fn client(settings: &EgressSettings) -> anyhow::Result<EgressClient> {
    let roots = roots(settings.ca_file.as_deref())?;
    let config = EgressConfig { proxy: proxy(settings)?, pool: settings.pool_limits(), ..EgressConfig::new(roots) };
    Ok(EgressClient::new(config, EgressPolicy::closed()))
}

/// Returns the authorities of the system and of a file. A node without any serves all but outbound https.
fn roots(ca_file: Option<&Path>) -> anyhow::Result<TrustedRoots> {
    let system = TrustedRoots::system().unwrap_or_else(|why| {
        tracing::warn!(%why, "outbound https calls trust no authorities of this system; name a file in egress.ca_file");
        TrustedRoots::none()
    });
    match ca_file {
        None => Ok(system),
        Some(file) => system.with_file(file).context("egress.ca_file"),
    }
}

fn proxy(settings: &EgressSettings) -> anyhow::Result<Option<OutboundProxy>> {
    let Some(url) = &settings.proxy else { return Ok(None) };
    let file = settings.proxy_authorization_file.as_deref();
    let authorization = file.map(|file| read_secret_file(file, "the value of Proxy-Authorization")).transpose();
    let authorization = authorization.context("egress.proxy_authorization_file")?;
    let proxy = OutboundProxy::new(url, authorization.as_ref().map(|secret| secret.expose()));
    Ok(Some(proxy.context("egress.proxy")?))
}

/// Policy of the client, and what it was made of.
#[derive(Debug)]
pub struct OutboundPolicy {
    client: EgressClient,
    settings: EgressSettings,
    cluster: Arc<Cluster>,
    own: OwnEndpoints,
}

impl OutboundPolicy {
    /// Lets the client call from now on, except for the listeners of this server and of the cluster.
    pub fn open(
        client: EgressClient,
        settings: &EgressSettings,
        server: &Server,
        cluster: Arc<Cluster>,
    ) -> anyhow::Result<OutboundPolicy> {
        let own = own_endpoints(listeners(server), &cluster);
        client.set_policy(EgressPolicy::new(settings, own.clone())?);
        Ok(OutboundPolicy { client, settings: settings.clone(), cluster, own })
    }

    /// Follows nodes that join and addresses that change, until it is dropped.
    pub async fn keep(mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(why) = self.look() {
                tracing::error!(%why, "the policy of outbound calls could not be renewed");
            }
        }
    }

    /// Renews the policy if something has changed.
    fn look(&mut self) -> anyhow::Result<()> {
        let own = own_endpoints(self.own.listeners.clone(), &self.cluster);
        if own != self.own {
            self.client.set_policy(EgressPolicy::new(&self.settings, own.clone())?);
            self.own = own;
        }
        Ok(())
    }
}

/// Returns the addresses of all listeners of this server.
fn listeners(server: &Server) -> Vec<SocketAddr> {
    let listeners = [
        server.addresses(),
        server.otlp_addresses(),
        server.metrics_addresses(),
        server.admin_addresses(),
        server.function_addresses(),
    ];
    listeners.concat()
}

fn own_endpoints(listeners: Vec<SocketAddr>, cluster: &Cluster) -> OwnEndpoints {
    let cluster_ports = cluster.peer_ports().into_iter().collect();
    OwnEndpoints { listeners, addresses: own_addresses::read(), cluster_ports }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_made_of_its_settings_or_names_the_wrong_one() {
        assert!(client(&EgressSettings::default()).is_ok());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let refused = |settings: EgressSettings| format!("{:#}", client(&settings).unwrap_err());
        let ca = EgressSettings { ca_file: Some(file.clone()), ..EgressSettings::default() };
        assert!(refused(ca.clone()).starts_with("egress.ca_file: "), "{}", refused(ca));
        let proxy = EgressSettings { proxy: Some("http://proxy.example:3128".into()), ..EgressSettings::default() };
        assert!(client(&proxy).is_ok());
        let authorized = EgressSettings { proxy_authorization_file: Some(file.clone()), ..proxy };
        let why = refused(authorized.clone());
        assert!(why.starts_with("egress.proxy_authorization_file: ") && why.contains("does not exist"), "{why}");
        assay_node_secrets::keep_secret_file(&file, &assay_node_auth::Secret::new("Basic dXNlcg==".into())).unwrap();
        assert!(client(&authorized).is_ok());
    }
}
