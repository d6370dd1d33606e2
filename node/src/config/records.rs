//! Settings of invitations and of the number of records.

use assay_node_identity::Invitations;
use assay_node_records::RecordRules;
use serde::{Deserialize, Serialize};

/// How people join organizations. All nodes of a cluster should have the same.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeopleConfig {
    /// `accept`: people who belong to another organization are invited, and join when they accept. `join`: they join at once, so
    /// that whoever owns any organization can make a user of any other its member.
    pub invitations: Invitations,
}

/// How many records there may be in memory, which every node has all of. Beyond it a request that makes one is answered 400.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordsConfig {
    /// API keys of one user in one organization; service tokens of one account.
    pub keys_per_user_max: usize,
    /// Records of one kind in one organization, as projects, datasets, members.
    pub per_organization_max: usize,
    /// The same of experiments, grants, keys and tokens, which there are more of.
    pub per_organization_many_max: usize,
}

impl Default for RecordsConfig {
    fn default() -> Self {
        let rules = RecordRules::default();
        RecordsConfig {
            keys_per_user_max: rules.keys_per_user_max,
            per_organization_max: rules.per_organization_max,
            per_organization_many_max: rules.per_organization_many_max,
        }
    }
}

impl RecordsConfig {
    /// Returns the rules for the catalog.
    pub fn rules(&self) -> RecordRules {
        RecordRules {
            keys_per_user_max: self.keys_per_user_max,
            per_organization_max: self.per_organization_max,
            per_organization_many_max: self.per_organization_many_max,
        }
    }
}
