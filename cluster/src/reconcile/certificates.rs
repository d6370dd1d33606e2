//! The certificate that this node shows to others: made anew before it runs out, and taken from the node's directory where
//! an operator put another one there. Connections that stand stay as they are; those made from then on have it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::sleep;

use crate::Shared;
use crate::error::OpenError;

/// How often the files are read and the day is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) async fn run(shared: Arc<Shared>) {
    let mut said = None;
    loop {
        sleep(LOOK_EVERY).await;
        let looking = {
            let shared = Arc::clone(&shared);
            tokio::task::spawn_blocking(move || look(&shared))
        };
        let looked = looking.await.map_err(|error| error.to_string());
        let problem = looked.and_then(|looked| looked.map_err(|error| error.to_string())).err();
        // Half of a new pair is seen while the other half is on its way: each problem is said once.
        if problem != said {
            if let Some(problem) = &problem {
                tracing::error!(problem, "the files in tls/ cannot be used; the certificate in use stays");
            }
            said = problem;
        }
    }
}

/// Blocking.
fn look(shared: &Shared) -> Result<(), OpenError> {
    let Some(transport) = shared.net.transport() else { return Ok(()) };
    let kept = shared.keeping.identity()?.ok_or(OpenError::NoIdentity)?;
    let identity = shared.renewed(kept)?;
    if transport.identity() != identity {
        transport.set_identity(&identity)?;
        let left = identity.runs_out()?.duration_since(SystemTime::now()).unwrap_or_default();
        tracing::info!(seconds_left = left.as_secs(), "new connections to other nodes have another certificate");
    }
    Ok(())
}
