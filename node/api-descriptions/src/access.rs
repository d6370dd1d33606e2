//! Description of access for the OpenAPI document: service tokens, grants, users, organizations, invitations.

use assay_node_http::openapi::{Operation, maybe_id, names, objects, reference, some_text, text, uuid};
use assay_node_identity::MEMBERS_AT_ONCE_MAX;
use assay_node_records::{ACLS_AT_ONCE_MAX, describe_organization, describe_user, kinds};
use serde_json::{Value, json};

use crate::families::{Family, filtered, paged};

const ACLS: &str = "Acls";
const ORGANIZATIONS: &str = "Organizations";

/// Describes service tokens. Names are not unique: POST and PUT both make another one.
pub fn tokens() -> Vec<Operation> {
    let family = Family::new("/v1/service_token", "service_token", kinds::SERVICE_TOKEN.describe());
    let by_id = json!({"type": "object", "required": ["id"], "properties": {"id": uuid()}});
    vec![
        family.with_key("post"),
        family.with_key("put"),
        family.list(),
        family.get(),
        family.delete(),
        family.delete_by(by_id),
    ]
}

/// Describes grants.
pub fn acls() -> Vec<Operation> {
    let family = Family::new("/v1/acl", "acl", kinds::ACL.describe());
    let (object_type, object_id) = (family.said.filters[0].1.clone(), family.said.filters[1].1.clone());
    let list = |path: &str, summary: &str| paged(Operation::new("get", path, ACLS, summary), None);
    let shown = |operation: Operation| operation.with("Acl", family.said.answer.clone());
    let of_object = list("/v1/acl", "List the grants on an object, newest first");
    let of_object = of_object.must_ask("object_type", object_type).must_ask("object_id", object_id);
    let of_object = filtered(of_object, &family.said.filters[2..]);
    let of_organization = list("/v1/acl/list_org", "List the grants in an organization, newest first");
    let of_organization = filtered(of_organization, &family.said.filters);
    let update = |path: &str, summary: &str| {
        let list =
            json!({"type": "array", "nullable": true, "items": reference("CreateAcl"), "maxItems": ACLS_AT_ONCE_MAX});
        let done = |name: &str| json!({"type": "array", "items": reference(name)});
        let body = json!({"type": "object", "properties": {"add_acls": list, "remove_acls": list}});
        let answer = json!({"type": "object", "required": ["added_acls", "removed_acls"],
            "properties": {"added_acls": done("Acl"), "removed_acls": done("DeletedAcl")}});
        let operation = Operation::new("post", path, ACLS, summary).with("CreateAcl", family.said.create.clone());
        shown(operation).takes(body).answers(answer)
    };
    vec![
        family.create(),
        shown(of_object).answers(objects(&reference("Acl"))),
        family.delete_by(reference("CreateAcl")),
        update("/v1/acl/batch_update", "Add and remove several grants at once"),
        update("/v1/acl/batch-update", "Add and remove several grants at once (alternative path of one client)"),
        // No object around it, as clients have it.
        shown(of_organization).answers(json!({"type": "array", "items": reference("Acl")})),
        family.get(),
        family.delete(),
    ]
}

/// Describes users, organizations and their members.
pub fn people() -> Vec<Operation> {
    let user = |operation: Operation| operation.with("User", describe_user());
    let mut users =
        paged(Operation::new("get", "/v1/user", "Users", "List the users of an organization, newest first"), None);
    for name in ["given_name", "family_name", "email"] {
        users = users.asks(name, text());
    }
    let (patch, shown) = describe_organization();
    let organization = |operation: Operation| operation.with("Organization", shown.clone());
    let one = |method, summary: &str| {
        let operation = Operation::new(method, "/v1/organization/{id}", ORGANIZATIONS, summary).of("organization");
        organization(operation).answers(reference("Organization"))
    };
    let organizations =
        paged(Operation::new("get", "/v1/organization", ORGANIZATIONS, "List the caller's organizations"), None);
    let keys = kinds::API_KEY.describe();
    let key_list =
        Operation::new("get", "/v1/organization/api_keys", ORGANIZATIONS, "List API keys of members, newest first");
    let key_list = filtered(paged(key_list, keys.list_default), &keys.filters).with("ApiKey", keys.answer);
    let members = Operation::new("patch", "/v1/organization/members", ORGANIZATIONS, "Invite users and remove them");
    vec![
        user(users).answers(objects(&reference("User"))),
        user(Operation::new("get", "/v1/user/{id}", "Users", "Get a user").of("user")).answers(reference("User")),
        organization(organizations).answers(objects(&reference("Organization"))),
        one("get", "Get an organization"),
        one("patch", "Change an organization").with("PatchOrganization", patch).takes(reference("PatchOrganization")),
        key_list.answers(objects(&reference("ApiKey"))),
        members.takes(members_body()).answers(members_answer()),
    ]
}

/// Describes invitations, which are beyond the contract: people of another organization are asked before they join.
pub fn invitations() -> Vec<Operation> {
    const TAG: &str = "Invitations";
    let time = json!({"type": "string", "format": "date-time"});
    let shown = |fields: Value| json!({"type": "object", "required": names(&fields), "properties": fields});
    let own = shown(json!({"id": uuid(), "org_id": uuid(), "org_name": text(), "invited_by": text(), "created": time}));
    let groups = json!({"type": "array", "items": uuid()});
    let sent =
        shown(json!({"id": uuid(), "email": text(), "group_ids": groups, "invited_by": text(), "created": time}));
    let reply = |word: &str, status: &str, summary: &str| {
        let status = json!({"type": "string", "enum": [status]});
        let answer = shown(json!({"id": uuid(), "org_id": uuid(), "org_name": text(), "status": status}));
        Operation::new("post", format!("/v1/invitation/{{id}}/{word}"), TAG, summary).of("invitation").answers(answer)
    };
    vec![
        Operation::new("get", "/v1/invitation", TAG, "List the caller's own pending invitations")
            .with("Invitation", own)
            .answers(objects(&reference("Invitation"))),
        reply("accept", "accepted", "Join the organization that invited the caller"),
        reply("decline", "declined", "Decline an invitation of the caller"),
        Operation::new("get", "/v1/organization/invitations", TAG, "List the pending invitations of an organization")
            .asks("org_name", text())
            .with("SentInvitation", sent)
            .answers(objects(&reference("SentInvitation"))),
    ]
}

fn members_body() -> Value {
    let list = |item: Value| json!({"type": "array", "nullable": true, "items": item, "maxItems": MEMBERS_AT_ONCE_MAX});
    let maybe = |schema: Value| {
        let mut schema = schema;
        schema["nullable"] = true.into();
        schema
    };
    let email = json!({"type": "string", "pattern": r"^[^@\s]+@\S+$"});
    let account = json!({"type": "object", "required": ["name"], "properties": {"name": some_text(), "token_name": maybe(text())}});
    let invited = json!({
        "ids": list(uuid()), "emails": list(email), "service_accounts": list(account), "send_invite_emails": {"type": "boolean", "nullable": true},
        "group_ids": list(uuid()), "group_names": list(text()), "group_id": maybe(uuid()), "group_name": maybe(text()),
    });
    let removed = json!({"ids": list(uuid()), "emails": list(text())});
    json!({"type": "object", "properties": {
        "invite_users": {"type": "object", "nullable": true, "properties": invited},
        "remove_users": {"type": "object", "nullable": true, "properties": removed},
        "org_name": maybe(text()), "org_id": maybe_id(),
    }})
}

fn members_answer() -> Value {
    let maybe = json!({"type": "string", "nullable": true});
    let fields = json!({"id": uuid(), "email": text(), "api_key": maybe, "token_name": maybe});
    let user = json!({"type": "object", "required": ["id", "email"], "properties": fields});
    json!({
        "type": "object", "required": ["status", "org_id", "send_email_error", "added_users"],
        "properties": {
            "status": {"type": "string", "enum": ["success"]}, "org_id": text(),
            "send_email_error": {"type": "string", "nullable": true}, "added_users": {"type": "array", "items": user},
        },
    })
}
