//! Invitations, which are beyond the contract: people who belong to another organization are asked before they join.

use serde_json::{Value, json};

use super::alone::names;
use super::operation::{Operation, objects, reference, text, uuid};

pub fn operations() -> Vec<Operation> {
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
