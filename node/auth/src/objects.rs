//! Permissions, types of objects, and the containment of objects.

use assay_storage_model::OrgId;
use uuid::Uuid;

macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$inner])* $variant),+
        }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// Names in the API, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            pub fn parse(word: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }
        }
    };
}

words! {
    /// Action on an object.
    Permission {
        Create = "create",
        Read = "read",
        Update = "update",
        Delete = "delete",
        CreateAcls = "create_acls",
        ReadAcls = "read_acls",
        UpdateAcls = "update_acls",
        DeleteAcls = "delete_acls",
    }
}

words! {
    /// Type of an object of grants, also used as a restriction of grants.
    ObjectType {
        Organization = "organization",
        Project = "project",
        Experiment = "experiment",
        Dataset = "dataset",
        Prompt = "prompt",
        PromptSession = "prompt_session",
        Group = "group",
        Role = "role",
        /// Members of an organization, with its id.
        OrgMember = "org_member",
        /// Logs of a project, with its id.
        ProjectLog = "project_log",
        /// All projects of an organization, with its id.
        OrgProject = "org_project",
        /// Audit log of an organization, with its id.
        OrgAuditLogs = "org_audit_logs",
        ProjectGroup = "project_group",
        AiSecret = "ai_secret",
        /// All AI secrets of an organization, with its id.
        OrgAiSecret = "org_ai_secret",
    }
}

impl ObjectType {
    /// Returns the type of the objects that this collective type stands for.
    pub fn members(self) -> Option<ObjectType> {
        match self {
            ObjectType::OrgProject => Some(ObjectType::Project),
            ObjectType::OrgAiSecret => Some(ObjectType::AiSecret),
            _ => None,
        }
    }

    /// Returns whether a grant with this restriction applies to objects of the other type.
    pub fn covers(self, other: ObjectType) -> bool {
        self == other || self.members() == Some(other)
    }

    /// Returns the types that a grant on this type reaches: its own and those of contained objects.
    pub fn below(self) -> Vec<ObjectType> {
        use ObjectType::{
            AiSecret, Dataset, Experiment, OrgAiSecret, OrgProject, Organization, Project, ProjectGroup, ProjectLog,
            Prompt, PromptSession,
        };
        const IN_PROJECT: [ObjectType; 6] = [Project, Experiment, Dataset, Prompt, PromptSession, ProjectLog];
        match self {
            Organization => ObjectType::ALL.to_vec(),
            Project => IN_PROJECT.to_vec(),
            OrgProject | ProjectGroup => IN_PROJECT.into_iter().chain([self]).collect(),
            OrgAiSecret => vec![OrgAiSecret, AiSecret],
            other => vec![other],
        }
    }

    /// Returns whether an organization has exactly one object of this type, under its own id.
    pub fn is_of_organization(self) -> bool {
        use ObjectType::{OrgAiSecret, OrgAuditLogs, OrgMember, OrgProject, Organization};
        matches!(self, Organization | OrgMember | OrgProject | OrgAuditLogs | OrgAiSecret)
    }
}

/// Object of an action: its type, and the objects whose grants reach it, starting with itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub org: OrgId,
    pub object: ObjectType,
    reached_by: Vec<(ObjectType, Uuid)>,
}

impl Target {
    /// Returns the target for an organization, or for a singleton in it.
    pub fn of_organization(object: ObjectType, org: OrgId) -> Target {
        let mut reached_by = vec![(object, org.0)];
        if object != ObjectType::Organization {
            reached_by.push((ObjectType::Organization, org.0));
        }
        Target { org, object, reached_by }
    }

    /// Returns the target for an object directly in an organization. Without an id the object is to be created.
    pub fn in_organization(object: ObjectType, id: Option<Uuid>, org: OrgId) -> Target {
        let all = ObjectType::ALL.iter().copied().find(|all| all.members() == Some(object));
        let own = id.map(|id| (object, id));
        let above = [(ObjectType::Organization, org.0)];
        Target { org, object, reached_by: own.into_iter().chain(all.map(|all| (all, org.0))).chain(above).collect() }
    }

    /// Returns the target for an object in a project. Without an id the object is to be created.
    pub fn in_project(object: ObjectType, id: Option<Uuid>, project: Uuid, org: OrgId) -> Target {
        let above = Target::in_organization(ObjectType::Project, Some(project), org).reached_by;
        let own = id.map(|id| (object, id));
        Target { org, object, reached_by: own.into_iter().chain(above).collect() }
    }

    pub fn reached_by(&self) -> &[(ObjectType, Uuid)] {
        &self.reached_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for one in ObjectType::ALL {
            assert_eq!(ObjectType::parse(one.word()), Some(*one));
        }
        for one in Permission::ALL {
            assert_eq!(Permission::parse(one.word()), Some(*one));
        }
        assert_eq!((ObjectType::parse("projects"), Permission::parse("")), (None, None));
    }

    #[test]
    fn a_thing_is_reached_from_all_that_it_is_in() {
        let (org, project, own) = (OrgId(Uuid::from_u128(1)), Uuid::from_u128(2), Uuid::from_u128(3));
        let said = |target: &Target| -> Vec<(&str, u128)> {
            target.reached_by().iter().map(|(object, id)| (object.word(), id.as_u128())).collect()
        };
        let above = [("project", 2), ("org_project", 1), ("organization", 1)];
        let dataset = Target::in_project(ObjectType::Dataset, Some(own), project, org);
        assert_eq!(said(&dataset), [&[("dataset", 3)], &above[..]].concat());
        assert_eq!(said(&Target::in_project(ObjectType::Dataset, None, project, org)), above);
        assert_eq!(said(&Target::in_organization(ObjectType::Project, Some(project), org)), above);
        assert_eq!(said(&Target::in_organization(ObjectType::Project, None, org)), above[1..]);
        let role = Target::in_organization(ObjectType::Role, Some(own), org);
        assert_eq!(said(&role), [("role", 3), ("organization", 1)]);
        assert_eq!(said(&Target::of_organization(ObjectType::Organization, org)), [("organization", 1)]);
        let members = Target::of_organization(ObjectType::OrgMember, org);
        assert_eq!(said(&members), [("org_member", 1), ("organization", 1)]);
    }
}
