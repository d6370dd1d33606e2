//! What the configuration says of how people join organizations, and of how many records there may be.

use assay_node_identity::Invitations;
use assay_node_records::RecordRules;
use serde::{Deserialize, Serialize};

/// How people join organizations. All nodes of a cluster should have the same.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeopleConfig {
    /// `accept`: a person who belongs to another organization joins by accepting an invitation. `join`: such a person
    /// joins at once, so an owner of one organization can add users of any other.
    pub invitations: Invitations,
}

/// How many records there may be in memory, which every node has all of. Beyond it a request that makes one is answered 400.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordsConfig {
    /// Upper bound of the API keys of one user in one organization, and of the service tokens of one account.
    pub keys_per_user_max: usize,
    /// Upper bound of the records of one kind in one organization, such as projects, datasets and members.
    pub per_organization_max: usize,
    /// The same bound for experiments, grants, keys and tokens.
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

pub fn rules(records: &RecordsConfig) -> RecordRules {
    RecordRules {
        keys_per_user_max: records.keys_per_user_max,
        per_organization_max: records.per_organization_max,
        per_organization_many_max: records.per_organization_many_max,
    }
}
