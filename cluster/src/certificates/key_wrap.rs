//! Interface to the master key: it wraps the key of the cluster's certificate authority. Its kind and origin are left
//! to upper layers.

use std::fmt;

/// Wraps keys of the cluster with the master key that this node was given.
pub trait KeyWrap: Send + Sync + fmt::Debug {
    /// Makes a master key if this node has none. Called on a node that bootstraps a cluster, before it writes anything.
    fn make(&self) -> Result<(), String>;

    /// Ids of the master keys that this node has, the one in use first.
    fn ids(&self) -> Vec<String>;

    /// Wraps a text with the master key in use. It opens only under the same label.
    fn wrap(&self, label: &str, plain: &str) -> Result<String, String>;

    /// Opens what any of the master keys of this node has wrapped.
    fn unwrap(&self, label: &str, wrapped: &str) -> Result<String, String>;

    /// The id of the master key that opens this; none where it does not read.
    fn id_of(&self, wrapped: &str) -> Option<String>;
}
