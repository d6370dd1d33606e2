//! Sources of a query: the objects that it names and that its caller must be allowed to read.

use assay_node_auth::{Permission, Principal};
use assay_node_btql::columns::{Kind as SourceKind, Named};
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_identity::Identity;
use assay_node_query::{AskError, Bounded, Home, Masks};
use assay_node_records::{Kind as RecordKind, ObjectHome, Records, RecordsError, kinds};
use assay_storage_model::{ObjectKind, OrgId};
use uuid::Uuid;

use crate::masks::masks;

/// Upper bound of the number of objects in one query.
const OBJECTS_MAX: usize = 1000;

/// Maps a missing object to the refusal for an unreadable object, as clients of queries expect.
fn unseen(why: RecordsError) -> Refusal {
    match why {
        RecordsError::NotFound(why) => Refusal::new(ErrorKind::Forbidden, why),
        other => other.into(),
    }
}

/// Sources of a query, all of which the caller may read.
///
/// They are distinct objects in the order of the query, and single prompts in these objects.
pub(crate) struct Sources {
    pub homes: Vec<Home>,
    prompts: Vec<Uuid>,
    audited: Vec<OrgId>,
}

impl Sources {
    /// Checks again, after the rows were read, that the caller may read all sources.
    pub async fn still(&self, records: &Records, who: &Principal) -> Result<(), Refusal> {
        for org in &self.audited {
            records.audit_log(who, *org).await.map_err(unseen)?;
        }
        if self.prompts.is_empty() && self.audited.is_empty() {
            let objects: Vec<_> = self.homes.iter().map(|home| home.object).collect();
            return records.still(who, &objects, Permission::Read).await.map_err(unseen);
        }
        for prompt in &self.prompts {
            records.prompt(who, *prompt, Permission::Read).await.map_err(unseen)?;
        }
        Ok(())
    }

    /// Returns the caller's masks for the projects of the sources.
    pub fn masks(&self, records: &Records, who: &Principal) -> Result<Masks, Refusal> {
        masks(records, who, self.homes.iter().map(|home| (home.org, home.project_id)))
    }

    fn add(&mut self, home: &ObjectHome) -> Result<(), Refusal> {
        let home = Home { object: home.key, org: home.org, project_id: home.project_id };
        if !self.homes.contains(&home) {
            self.homes.push(home);
        }
        if self.homes.len() > OBJECTS_MAX {
            return Err(Refusal::bad(format!("the query names more than {OBJECTS_MAX} objects: name fewer")));
        }
        Ok(())
    }
}

pub(crate) async fn sources(identity: &Identity, who: &Principal, bounded: &Bounded) -> Result<Sources, Refusal> {
    let records = identity.records();
    let meant = bounded.sources();
    if meant.names.len() > OBJECTS_MAX + 1 {
        let said = format!("the query names {} objects; the maximum is {OBJECTS_MAX}", meant.names.len());
        return Err(Refusal::bad(said));
    }
    let mut sources = Sources { homes: Vec::new(), prompts: Vec::new(), audited: Vec::new() };
    let (kind, record): (ObjectKind, &'static RecordKind) = match meant.kind {
        SourceKind::ProjectLogs => (ObjectKind::ProjectLogs, &kinds::PROJECT),
        SourceKind::Experiment => (ObjectKind::Experiment, &kinds::EXPERIMENT),
        SourceKind::Dataset => (ObjectKind::Dataset, &kinds::DATASET),
        SourceKind::Playground => (ObjectKind::PlaygroundLogs, &kinds::PROMPT_SESSION),
        SourceKind::Prompt | SourceKind::Function => match meant.named {
            Named::Each => {
                prompts(records, who, meant.names, &mut sources).await?;
                return Ok(sources);
            }
            Named::OfOrganizations => {
                prompts_of_organizations(identity, who, meant.names, &mut sources).await?;
                return Ok(sources);
            }
            Named::OfProjects | Named::InProject => (ObjectKind::ProjectPrompts, &kinds::PROJECT),
        },
        SourceKind::AuditLog => {
            audit_logs(identity, who, meant.names, &mut sources).await?;
            return Ok(sources);
        }
        other => {
            let what =
                format!("queries over {other:?} rows are part of the API, but this server does not support them yet");
            return Err(AskError::NotServed(what).into());
        }
    };
    let (project, names) = match (meant.named, meant.names) {
        (Named::InProject, [project, names @ ..]) => {
            (Some(id_of(records, who, &kinds::PROJECT, project, None).await?), names)
        }
        (_, names) => (None, names),
    };
    for name in names {
        let id = id_of(records, who, record, name, project).await?;
        let home = records.object(who, kind, id, Permission::Read).await;
        sources.add(&home.map_err(|why| unread(record.name(), id, why))?)?;
    }
    Ok(sources)
}

fn unread(what: &str, id: Uuid, why: RecordsError) -> Refusal {
    match why {
        RecordsError::NotFound(_) => Refusal::new(
            ErrorKind::Forbidden,
            format!("Missing read access to {what} id {id}, or the {what} does not exist"),
        ),
        other => other.into(),
    }
}

/// Adds single prompts or functions by id, because their names are not unique.
async fn prompts(records: &Records, who: &Principal, ids: &[String], sources: &mut Sources) -> Result<(), Refusal> {
    for id in ids {
        let wrong = |_| Refusal::bad(format!("`{}` is not the id of a prompt or function", shortened(id)));
        let id = Uuid::parse_str(id).map_err(wrong)?;
        let place = records.prompt(who, id, Permission::Read).await.map_err(|why| unread("prompt", id, why))?;
        sources.add(&place.home)?;
        sources.prompts.push(id);
    }
    Ok(())
}

/// Adds the prompts of all projects in the organizations whose prompts the caller may read.
async fn prompts_of_organizations(
    identity: &Identity,
    who: &Principal,
    names: &[String],
    sources: &mut Sources,
) -> Result<(), Refusal> {
    for org in organizations(identity, who, names).await? {
        for home in identity.records().projects_with_prompts(who, org).await? {
            sources.add(&home)?;
        }
    }
    Ok(())
}

/// Adds the audit log of each organization.
async fn audit_logs(
    identity: &Identity,
    who: &Principal,
    names: &[String],
    sources: &mut Sources,
) -> Result<(), Refusal> {
    for org in organizations(identity, who, names).await? {
        sources.add(&identity.records().audit_log(who, org).await.map_err(unseen)?)?;
        sources.audited.push(org);
    }
    Ok(())
}

/// Returns the organizations with the given ids or names.
async fn organizations(identity: &Identity, who: &Principal, names: &[String]) -> Result<Vec<OrgId>, Refusal> {
    let own = identity.organizations(who).await?;
    let found = names.iter().map(|name| {
        let org = own.iter().find(|org| org.name == *name || org.id.to_string() == name.to_lowercase());
        let missing = || format!("no organization `{}` is visible to this credential", shortened(name));
        org.map(|org| org.id).ok_or_else(|| Refusal::new(ErrorKind::Forbidden, missing()))
    });
    found.collect()
}

/// Resolves an id or a name (D-33).
///
/// A UUID is an id. Any other text must be the name of exactly one record.
async fn id_of(
    records: &Records,
    who: &Principal,
    kind: &'static RecordKind,
    name: &str,
    project: Option<Uuid>,
) -> Result<Uuid, Refusal> {
    if let Ok(id) = Uuid::parse_str(name) {
        return Ok(id);
    }
    let found = records.named(who, kind, name, project).await?;
    let shown = shortened(name);
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Refusal::bad(format!("no {} has the name `{shown}`, and it is not an id", kind.name()))),
        several => {
            let ids: Vec<String> = several.iter().map(Uuid::to_string).collect();
            let ids = ids.join(", ");
            Err(Refusal::bad(format!("several {}s have the name `{shown}`: use one of their ids: {ids}", kind.name())))
        }
    }
}
