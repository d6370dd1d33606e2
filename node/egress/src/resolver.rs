//! Resolution of names, behind a trait so that tests can replace it.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// Upper bound of concurrent resolutions.
///
/// Each one occupies a thread until the system gives up, even without its caller. Names with silent servers must not
/// occupy all threads.
const RESOLUTIONS_MAX: usize = 64;

/// Source of the addresses of names. It is asked once for each call that opens a connection.
pub trait NameResolver: Debug + Send + Sync {
    /// Returns all addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Resolver of the system.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    permits: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> SystemResolver {
        SystemResolver { permits: Arc::new(Semaphore::new(RESOLUTIONS_MAX)) }
    }
}

impl NameResolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async move {
            let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            // This is similar to `tokio::net::lookup_host`, but holds the permit as long as the thread.
            let resolving = tokio::task::spawn_blocking(move || {
                let found = (name.as_str(), 0).to_socket_addrs()?;
                let addresses = found.map(|address| address.ip()).collect();
                drop(permit);
                Ok(addresses)
            });
            resolving.await.map_err(io::Error::other)?
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = SystemResolver::default().resolve("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
