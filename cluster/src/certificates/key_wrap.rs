//! The master key as the cluster sees it: something that wraps the key of its certificate authority. What such a key is,
//! and where a node has it from, is for upper layers to know.

use std::fmt;

/// Wraps keys of the cluster with the master key that this node was given.
pub trait KeyWrap: Send + Sync + fmt::Debug {
    /// Makes a master key where this node has none. Asked of a node that founds a cluster, before it writes anything down.
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
