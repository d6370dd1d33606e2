//! Renewal of this node's certificate. It is issued again before it expires, or read from the node's directory if an
//! operator replaced it there. Existing connections keep the old certificate, and new ones use the new one.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::sleep;

use crate::Shared;
use crate::error::OpenError;

/// Interval at which the files and the expiry are checked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) async fn run(shared: Arc<Shared>) {
    let mut said = None;
    loop {
        sleep(LOOK_EVERY).await;
        let problem = look(&shared).await.map_err(|error| error.to_string()).err();
        // While an operator replaces both files, only one of them may be new. Each problem is logged once.
        if problem != said {
            if let Some(problem) = &problem {
                tracing::error!(problem, "the files in tls/ cannot be used; the certificate in use stays");
            }
            said = problem;
        }
        if let Err(error) = shared.tend_authorities().await {
            tracing::warn!(%error, "the maintenance of the cluster's certificate authority failed");
        }
    }
}

async fn look(shared: &Arc<Shared>) -> Result<(), OpenError> {
    let Some(transport) = shared.net.transport() else { return Ok(()) };
    let renewed = shared.renew().await;
    let identity = match &renewed {
        Ok(identity) => identity.clone(),
        Err(_) => shared.kept_identity().await?,
    };
    if transport.identity() != identity {
        transport.set_identity(&identity)?;
        let left = identity.runs_out()?.duration_since(SystemTime::now()).unwrap_or_default();
        tracing::info!(seconds_left = left.as_secs(), "new connections to other nodes use another certificate");
    }
    renewed.map(drop)
}
