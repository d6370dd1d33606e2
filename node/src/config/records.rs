//! Settings of invitations and of the number of records.

use assay_node_identity::Invitations;
use assay_node_records::RecordRules;
use serde::{Deserialize, Serialize};

/// Membership of people in organizations. All nodes of a cluster should have the same settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeopleConfig {
    /// `accept`: a person who belongs to another organization joins by accepting an invitation. `join`: such a person
    /// joins at once, so an owner of one organization can add users of any other.
    pub invitations: Invitations,
}

/// Upper bounds of records, all of which every node has in memory. A request for more is answered with 400.
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
