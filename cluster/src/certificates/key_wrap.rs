//! Interface to the master key, which wraps the key of the cluster's certificate authority. Upper layers decide on its
//! kind and origin.

use std::fmt;

/// Wraps keys of the cluster with the master key of this node.
pub trait KeyWrap: Send + Sync + fmt::Debug {
    /// Creates a master key if this node has none. Called on a node that bootstraps a cluster, before it writes
    /// anything.
    fn make(&self) -> Result<(), String>;

    /// Returns the ids of this node's master keys, the current one first.
    fn ids(&self) -> Vec<String>;

    /// Wraps a text with the current master key. It can be unwrapped only under the same label.
    fn wrap(&self, label: &str, plain: &str) -> Result<String, String>;

    /// Unwraps a text that any of this node's master keys wrapped.
    fn unwrap(&self, label: &str, wrapped: &str) -> Result<String, String>;

    /// Returns the id of the master key that wrapped a text, or `None` if the text cannot be decoded.
    fn id_of(&self, wrapped: &str) -> Option<String>;
}
