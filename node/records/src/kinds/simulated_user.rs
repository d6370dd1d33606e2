//! Simulated user: a persona that talks to an agent in a trial, with its goals and tone.

use assay_node_shapes::{MOST_POSITIVE, Member, Shape};
use assay_storage_model::catalog::RecordKind;
use serde_json::Value;

use super::{LINE, NAME, PROSE};
use crate::draft;
use crate::kind::{Api, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch};

pub static SIMULATED_USER: Kind = Kind {
    name: "simulated_user",
    record: RecordKind::SIMULATED_USER,
    naming: Naming::Unique,
    api: Api::Own,
    export: Export::Never,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::required("instructions", PROSE, OnPatch::Replaced),
        Field::optional("goal", PROSE, OnPatch::Replaced),
        Field::required("voice_config", VOICE, OnPatch::Replaced),
    ],
    filters: &[("simulated_user_name", Filter::Name), ("name", Filter::Name), ("project_id", Filter::ProjectId)],
    join: Some(|state, object| {
        let project = draft::id_in(object, "project_id").and_then(|id| state.get(RecordKind::PROJECT, id));
        let org = project.and_then(|project| project.org);
        object.insert("org_id".into(), org.map_or(Value::Null, |org| org.to_string().into()));
    }),
    ..Kind::plain(Home::Project, Guard::Project)
};

const VOICE: Shape = Shape::Closed(&[
    Member::required("voice_id", LINE),
    Member::optional("accent", LINE),
    Member::optional("language", LINE),
    Member::optional("speaking_rate", Shape::Number { min: 0.0, max: MOST_POSITIVE }),
]);
