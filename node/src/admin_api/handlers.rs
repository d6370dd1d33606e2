//! Handlers of the administrators' API. The socket, the HTTP listener and `assay admin` on a stopped node call the same ones.

use std::time::Duration;

use assay_cluster::{Cluster, OperateError};
use assay_node_identity::{Identity, InvitationReply};
use assay_node_langfuse::public_key;
use assay_node_organization_deletion::delete_organization;
use assay_storage_model::NodeId;
use serde_json::{Value, json};

use super::drain_warning::drain_warning;
use super::requests::{AdminCommand, ClusterRequest, SocketReply};

/// Reason for which an operation on the cluster was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterRefusal {
    /// The state of the cluster does not allow it.
    State(String),
    /// The catalog is unavailable. A retry is safe; the operation may have been carried out.
    Unavailable(String),
}

impl ClusterRefusal {
    pub fn why(self) -> String {
        match self {
            ClusterRefusal::State(why) | ClusterRefusal::Unavailable(why) => why,
        }
    }
}

impl From<OperateError> for ClusterRefusal {
    fn from(error: OperateError) -> ClusterRefusal {
        match error {
            OperateError::Write(_) | OperateError::Fence(_) => ClusterRefusal::Unavailable(error.to_string()),
            _ => ClusterRefusal::State(error.to_string()),
        }
    }
}

/// Carries out an operation on the cluster.
pub async fn execute_cluster_request(cluster: &Cluster, request: ClusterRequest) -> Result<Value, ClusterRefusal> {
    if request != ClusterRequest::Status {
        tracing::info!(?request, "an operator requested an operation");
    }
    let what = match request {
        ClusterRequest::Token { minutes } => {
            let token = cluster.make_token(Duration::from_secs(minutes.saturating_mul(60))).await?;
            return Ok(json!({ "token": token }));
        }
        ClusterRequest::Status => {
            let status = serde_json::to_value(cluster.status().await);
            return status.map_err(|error| ClusterRefusal::State(error.to_string()));
        }
        ClusterRequest::Drain { node } => {
            cluster.drain(NodeId(node)).await?;
            if let Some(warning) = drain_warning(cluster, NodeId(node)).await {
                return Ok(json!({ "done": format!("node {node} leads no groups"), "warning": warning }));
            }
            format!("node {node} leads no groups and may be stopped")
        }
        ClusterRequest::Undrain { node } => {
            cluster.undrain(NodeId(node)).await?;
            format!("node {node} may lead again")
        }
        ClusterRequest::Remove { node } => {
            cluster.remove(NodeId(node)).await?;
            format!("node {node} is removed; `assay cluster status --wait` waits until its replicas are rebuilt")
        }
        ClusterRequest::Finalize => {
            let confirmed = cluster.finalize_upgrade().await?;
            let names: Vec<String> = confirmed.into_iter().collect();
            match names.is_empty() {
                true => "nothing is left to confirm".to_owned(),
                false => format!("the upgrade is final; the cluster may use: {}", names.join(", ")),
            }
        }
        ClusterRequest::Replace { old, new } => {
            cluster.replace(NodeId(old), NodeId(new)).await?;
            format!("node {new} replaces node {old}; `assay cluster status --wait` waits until that is complete")
        }
    };
    Ok(json!({ "done": what }))
}

/// Carries out a command of `assay admin`, other than exports and imports.
pub async fn execute_admin_command(identity: &Identity, command: AdminCommand) -> SocketReply {
    let done = match command {
        AdminCommand::Organizations => identity.admin_organizations().await,
        AdminCommand::CreateOrganization { name, owner } => identity.admin_create_organization(&name, &owner).await,
        AdminCommand::DeleteOrganization { name, confirm } if name != confirm => {
            return SocketReply::Refused(format!(
                "`--confirm {confirm}` is not the name `{name}`: nothing was deleted"
            ));
        }
        AdminCommand::DeleteOrganization { name, .. } => delete_organization(identity.records(), &name).await,
        AdminCommand::Users { organization } => identity.admin_users(&organization).await,
        AdminCommand::CreateUser { email, organization } => identity.admin_create_user(&organization, &email).await,
        AdminCommand::Invitations { organization, user } => {
            identity.admin_invitations(organization.as_deref(), user.as_deref()).await
        }
        AdminCommand::AcceptInvitation { id } => identity.admin_reply_to_invitation(id, InvitationReply::Accept).await,
        AdminCommand::DeclineInvitation { id } => {
            identity.admin_reply_to_invitation(id, InvitationReply::Decline).await
        }
        AdminCommand::Keys { organization } => identity.admin_keys(&organization).await,
        AdminCommand::CreateKey { name, organization, user } => {
            identity.admin_create_key(&organization, &user, &name).await
        }
        AdminCommand::DeleteKey { id } => identity.admin_delete_key(id).await,
        AdminCommand::CreateServiceAccount { name, organization } => {
            identity.admin_create_service_account(&organization, &name).await
        }
        AdminCommand::CreateLangfuseKey { name, organization, project } => {
            let made = identity.admin_create_project_account(&organization, &project, &name).await;
            made.map(|account| {
                let mut pair = account.described;
                pair["public_key"] = public_key(account.project).into();
                if let Some(token) = pair.as_object_mut().and_then(|pair| pair.shift_remove("service_token")) {
                    pair["secret_key"] = token;
                }
                pair
            })
        }
        AdminCommand::ServiceTokens { organization } => identity.admin_service_tokens(&organization).await,
        AdminCommand::CreateServiceToken { name, organization, account } => {
            identity.admin_create_service_token(&organization, &account, &name).await
        }
        AdminCommand::DeleteServiceToken { id } => identity.admin_delete_service_token(id).await,
        AdminCommand::RotateMasterKey => identity.records().secrets().rotate_master_key().await,
        AdminCommand::RotateSecrets => identity.records().secrets().rotate_secrets().await,
        AdminCommand::ExportOrganization { .. } | AdminCommand::ImportOrganization { .. } => {
            return SocketReply::Refused("exports and imports are not served by this operation".into());
        }
    };
    done.map_or_else(|refused| SocketReply::Refused(refused.to_string()), SocketReply::Done)
}
