//! MCP server: a server with tools for a project.

use assay_node_shapes::Shape;
use assay_storage_model::catalog::RecordKind;

use super::{NAME, PROSE, URL};
use crate::kind::{Api, Changes, Export, Field, Filter, Guard, Home, Kind, Naming, OnPatch, made_by};

pub static MCP_SERVER: Kind = Kind {
    name: "mcp_server",
    record: RecordKind::MCP_SERVER,
    naming: Naming::Unique,
    api: Api::Shared("/v1/mcp_server", Changes::ByPatchAndPut),
    export: Export::AfterRows,
    fields: &[
        Field::required("project_id", Shape::Uuid, OnPatch::Fixed),
        Field::ours("user_id", Shape::Uuid, OnPatch::Fixed),
        Field::required("name", NAME, OnPatch::Replaced),
        Field::optional("description", PROSE, OnPatch::Replaced),
        Field::required("url", URL, OnPatch::Replaced),
    ],
    filters: &[
        ("mcp_server_name", Filter::Name),
        ("name", Filter::Name),
        ("project_name", Filter::ProjectName),
        ("project_id", Filter::ProjectId),
    ],
    has_deleted_at: true,
    complete: made_by,
    ..Kind::plain(Home::Project, Guard::Project)
};
