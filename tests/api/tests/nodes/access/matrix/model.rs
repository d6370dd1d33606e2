//! Model of access, following decision 11 only: grants, containment, and the expected response. It is independent of
//! the product's implementation.

/// Target of a grant: a type, and an id.
pub type On = (&'static str, String);

pub fn on(object: &'static str, id: &str) -> On {
    (object, id.to_owned())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub on: On,
    pub permission: &'static str,
    pub only: Option<&'static str>,
}

/// Target of an act: its type, itself, and all its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetObject {
    pub object: &'static str,
    pub within: Vec<On>,
}

impl TargetObject {
    /// An organization, or what there is one of in each.
    pub fn of_organization(object: &'static str, org: &str) -> TargetObject {
        let mut within = vec![on(object, org)];
        if object != "organization" {
            within.push(on("organization", org));
        }
        TargetObject { object, within }
    }

    /// Returns an object directly in an organization; without an id it is to be made.
    pub fn in_organization(object: &'static str, id: Option<&str>, org: &str) -> TargetObject {
        let mut within: Vec<On> = id.map(|id| on(object, id)).into_iter().collect();
        match object {
            "project" => within.push(on("org_project", org)),
            "ai_secret" => within.push(on("org_ai_secret", org)),
            _ => {}
        }
        within.push(on("organization", org));
        TargetObject { object, within }
    }

    /// The same in a project.
    pub fn in_project(object: &'static str, id: Option<&str>, project: &str, org: &str) -> TargetObject {
        let mut within: Vec<On> = id.map(|id| on(object, id)).into_iter().collect();
        within.extend(TargetObject::in_organization("project", Some(project), org).within);
        TargetObject { object, within }
    }
}

/// Identity of the caller.
#[derive(Clone, Debug)]
pub enum CallerIdentity {
    /// Shows nothing, or nothing that is known.
    Unknown,
    /// Owns another organization.
    Stranger,
    /// Claims to act as a user without permission to do so.
    Pretender,
    Member(Vec<Grant>),
}

/// Returns whether one of the grants is on the object and gives this permission.
pub fn may(grants: &[Grant], permission: &str, thing: &TargetObject) -> bool {
    let is_about = |grant: &Grant| {
        let covers = match grant.only {
            None => true,
            Some("org_project") => thing.object == "project" || thing.object == "org_project",
            Some(only) => thing.object == only,
        };
        covers && thing.within.contains(&grant.on)
    };
    grants.iter().any(|grant| grant.permission == permission && is_about(grant))
}

/// Returns whether there is any grant on it or on its containers: then its existence is no secret.
pub fn reaches(grants: &[Grant], thing: &TargetObject) -> bool {
    grants.iter().any(|grant| thing.within.contains(&grant.on))
}

/// Rows, which are granted apart from what is shown of their object where that is a project.
#[derive(Clone, Debug)]
pub struct RowsAct {
    pub thing: TargetObject,
    pub project: Option<TargetObject>,
}

/// Requirement of a request.
#[derive(Clone, Debug)]
pub enum Rule {
    /// All of these permissions on what is there.
    Act {
        needs: &'static [&'static str],
        on: TargetObject,
    },
    /// This permission where something is to be made; `gate` is what it is to be in, where that has to be named by its id.
    Make {
        needs: &'static str,
        on: TargetObject,
        gate: Option<TargetObject>,
    },
    /// Makes an existing object or replaces it: `needs` applies to the existing one, `make` to the request.
    Taken {
        needs: &'static [&'static str],
        on: TargetObject,
        make: (&'static str, TargetObject),
        gate: Option<TargetObject>,
        alone: bool,
    },
    /// In a list if it may be read.
    List {
        needs: &'static str,
        on: TargetObject,
    },
    /// In a list of all members of the organization.
    Listed,
    /// Among the rows of a query over a whole organization, if all of these may be read.
    Among {
        of: Vec<TargetObject>,
    },
    Rows {
        needs: &'static str,
        rows: RowsAct,
    },
    /// A change of rows by what is in a project: it has to be open to the caller, who also may read and change the rows.
    RowsBy {
        needs: &'static str,
        on: TargetObject,
        rows: RowsAct,
    },
    /// Queries answer 403 where others answer 404.
    Query {
        of: Vec<TargetObject>,
    },
    /// A tool of the MCP server: where it may not read all of these, its result is an error with status 200.
    Tool {
        of: Vec<TargetObject>,
    },
    /// A job that was created before and is read later.
    Later {
        of: TargetObject,
    },
    /// A grant on a thing: made, read, deleted.
    MakeGrant {
        on: TargetObject,
    },
    Grant {
        needs: &'static str,
        on: TargetObject,
    },
    /// Removal among several grants, where a missing one is ignored.
    RemoveGrant {
        on: TargetObject,
    },
    /// A list from this on.
    From {
        on: TargetObject,
    },
    /// Something is made with the name of what is there.
    Naming {
        on: TargetObject,
        make: (&'static str, TargetObject),
        gate: Option<TargetObject>,
    },
    /// Permitted to all members of the organization, or to no one.
    Anybody,
    Nobody,
    /// Description and members of the organization: every member may see that it exists.
    Members {
        needs: &'static str,
        on: TargetObject,
    },
    /// The keys of others.
    Key {
        needs: &'static str,
        on: TargetObject,
    },
}

impl Rule {
    /// Returns whether the permission is relevant.
    pub fn asks(&self, permission: &str) -> bool {
        match self {
            Rule::Act { needs, .. } => needs.contains(&permission),
            Rule::Taken { needs, make, .. } => needs.contains(&permission) || make.0 == permission,
            Rule::Make { needs, .. } | Rule::List { needs, .. } => *needs == permission,
            Rule::Rows { needs, .. } | Rule::RowsBy { needs, .. } => *needs == permission,
            Rule::Grant { needs, .. } | Rule::Members { needs, .. } => *needs == permission,
            Rule::Key { needs, .. } => *needs == permission || permission == "read_acls",
            Rule::Tool { .. } => permission == "read",
            Rule::Query { .. } | Rule::Later { .. } | Rule::Among { .. } | Rule::From { .. } => permission == "read",
            Rule::MakeGrant { .. } => permission == "create_acls",
            Rule::RemoveGrant { .. } => permission == "delete_acls",
            Rule::Naming { make, .. } => make.0 == permission || permission == "read",
            Rule::Listed | Rule::Anybody | Rule::Nobody => false,
        }
    }
}

/// Expected response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Open,
    /// A list that leaves it out.
    Absent,
    Unauthorized,
    /// Like a missing object.
    Missing,
    Forbidden,
    /// A name in use by an object that the caller may not see: 409, and 400 for environments.
    Taken,
    /// 400, as of what is not there.
    Unknown,
}

use Expected::{Absent, Forbidden, Missing, Open, Taken, Unauthorized, Unknown};

pub fn expected(identity: &CallerIdentity, rule: &Rule) -> Expected {
    match identity {
        CallerIdentity::Unknown => Unauthorized,
        CallerIdentity::Pretender => Forbidden,
        CallerIdentity::Stranger => match rule {
            Rule::List { .. } | Rule::Listed | Rule::RemoveGrant { .. } | Rule::Tool { .. } => Absent,
            Rule::From { .. } => Unknown,
            Rule::Query { .. } | Rule::Among { .. } => Forbidden,
            _ => Missing,
        },
        CallerIdentity::Member(grants) => of_member(grants, rule),
    }
}

fn open_or(may: bool, shut: Expected) -> Expected {
    if may { Open } else { shut }
}

/// Returns the response to a request that reads rows and then needs a permission on them.
fn read_and(grants: &[Grant], needs: &'static str, rows: &RowsAct) -> Expected {
    match of_member(grants, &Rule::Rows { needs: "read", rows: rows.clone() }) {
        Open => of_member(grants, &Rule::Rows { needs, rows: rows.clone() }),
        shut => shut,
    }
}

fn of_member(grants: &[Grant], rule: &Rule) -> Expected {
    let may = |permission: &str, thing: &TargetObject| may(grants, permission, thing);
    let all = |needs: &[&str], thing: &TargetObject| needs.iter().all(|permission| may(permission, thing));
    let shut = |thing: &TargetObject| if may("read", thing) { Forbidden } else { Missing };
    let is_hidden = |gate: &Option<TargetObject>| gate.as_ref().is_some_and(|gate| !reaches(grants, gate));
    match rule {
        Rule::Act { needs, on } if all(needs, on) => Open,
        Rule::Act { on, .. } => shut(on),
        Rule::Make { gate, .. } | Rule::Taken { gate, .. } | Rule::Naming { gate, .. } if is_hidden(gate) => Missing,
        Rule::Make { needs, on, .. } => open_or(may(needs, on), Forbidden),
        // Who may not make one is told nothing of what is there.
        Rule::Taken { make: (needs, into), alone: true, .. } => {
            if may(needs, into) {
                Taken
            } else {
                Forbidden
            }
        }
        Rule::Taken { needs, on, make, .. } => match (all(needs, on), may("read", on), may(make.0, &make.1)) {
            (true, ..) => Open,
            (false, false, true) => Taken,
            _ => Forbidden,
        },
        Rule::List { needs, on } => open_or(may(needs, on), Absent),
        Rule::Among { of } | Rule::Tool { of } => open_or(of.iter().all(|thing| may("read", thing)), Absent),
        Rule::Rows { needs, rows } if may(needs, &rows.thing) => Open,
        Rule::Rows { rows, .. } => {
            let seen = may("read", &rows.thing) || rows.project.as_ref().is_some_and(|project| may("read", project));
            if seen { Forbidden } else { Missing }
        }
        Rule::RowsBy { needs, on, .. } if !may(needs, on) => shut(on),
        Rule::RowsBy { needs, rows, .. } => read_and(grants, needs, rows),
        Rule::Query { of } => open_or(of.iter().all(|thing| may("read", thing)), Forbidden),
        Rule::Later { of } => open_or(may("read", of), Missing),
        Rule::MakeGrant { on } if may("create_acls", on) => Open,
        Rule::MakeGrant { on } => {
            if reaches(grants, on) {
                Forbidden
            } else {
                Missing
            }
        }
        Rule::Grant { needs, on } if may(needs, on) => Open,
        Rule::Grant { on, .. } => {
            if may("read_acls", on) {
                Forbidden
            } else {
                Missing
            }
        }
        Rule::RemoveGrant { on } => match (may("delete_acls", on), may("read_acls", on)) {
            (true, _) => Open,
            (false, true) => Forbidden,
            _ => Absent,
        },
        Rule::From { on } => open_or(may("read", on), Unknown),
        Rule::Naming { on, make, .. } => match (may(make.0, &make.1), may("read", on)) {
            (true, true) => Open,
            (true, false) => Unknown,
            _ => Forbidden,
        },
        Rule::Anybody | Rule::Listed => Open,
        Rule::Nobody => Forbidden,
        Rule::Members { needs, on } => open_or(may(needs, on), Forbidden),
        Rule::Key { on, .. } if !may("read_acls", on) => Missing,
        Rule::Key { needs, on } => open_or(may(needs, on), Forbidden),
    }
}
