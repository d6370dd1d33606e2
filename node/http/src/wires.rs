//! Settings of the wires of other products, by which their clients use this server unmodified.

use assay_storage_model::catalog::RecordKind;
use serde::{Deserialize, Serialize};

use crate::server::edge::Edge;

/// Header in which older clients of Phoenix send their key.
pub const PHOENIX_KEY: &str = "api_key";

/// Wires of other products.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WiresConfig {
    /// Whether Langfuse's SDKs may use this server under `/api/public`: `on`, `off` or `auto`.
    ///
    /// `auto` means on while the cluster has one organization. Set `on` before you add a second one.
    pub langfuse: WireSwitch,
    /// Whether Phoenix's clients may name projects and send keys in their own way: `on`, `off` or `auto`.
    pub phoenix: WireSwitch,
}

/// Switch of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireSwitch {
    #[default]
    Auto,
    On,
    Off,
}

impl WireSwitch {
    /// Returns whether the wire is on, given the number of organizations.
    pub fn is_on(self, organizations: impl FnOnce() -> usize) -> bool {
        match self {
            WireSwitch::On => true,
            WireSwitch::Off => false,
            WireSwitch::Auto => organizations() <= 1,
        }
    }
}

impl Edge {
    /// Returns the number of organizations that this node knows, up to two.
    fn organizations_up_to_two(&self) -> usize {
        self.records.catalog().peek(|view| view.all(RecordKind::ORGANIZATION).take(2).count())
    }

    pub fn speaks_langfuse(&self) -> bool {
        self.wires.langfuse.is_on(|| self.organizations_up_to_two())
    }

    pub fn speaks_phoenix(&self) -> bool {
        self.wires.phoenix.is_on(|| self.organizations_up_to_two())
    }

    /// Returns the credential of an export as a value of `Authorization`, which precedes the header of Phoenix.
    pub fn phoenix_credential(&self, authorization: Option<&[u8]>, key: Option<&[u8]>) -> Option<Vec<u8>> {
        let of_phoenix = || key.filter(|_| self.speaks_phoenix()).map(|key| [b"Bearer ".as_slice(), key].concat());
        authorization.map(<[u8]>::to_vec).or_else(of_phoenix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_on_for_one_organization_unless_it_is_set() {
        for (switch, one, two) in
            [(WireSwitch::Auto, true, false), (WireSwitch::On, true, true), (WireSwitch::Off, false, false)]
        {
            assert_eq!((switch.is_on(|| 1), switch.is_on(|| 2)), (one, two), "{switch:?}");
        }
    }
}
