//! Errors of the gateway itself, which can be written in all wire formats.

use assay_node_budgets::BudgetRefusal;
use assay_node_dialects::form::{Extra, ModelError, ModelErrorKind};
use assay_node_dialects::{Dialect, DialectError};
use assay_node_models::attempts::GiveUpReason;
use assay_node_models::resolution::ResolutionError;
use serde_json::Value;

use crate::form::FormError;
use crate::translation::write_error;

/// Refusal or failure of a call by the gateway.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", error.message)]
pub struct GatewayError {
    pub status: u16,
    pub error: Box<ModelError>,
    pub retry_after_s: Option<u64>,
    /// Headers with the limits of the budget that refused the call.
    pub limits: Vec<(&'static str, String)>,
}

impl GatewayError {
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> GatewayError {
        let error = ModelError {
            kind: ModelErrorKind::of_status(status),
            message: message.into(),
            code: Some(code.to_owned()),
            param: None,
            extra: Extra::default(),
        };
        GatewayError { status, error: Box::new(error), retry_after_s: None, limits: Vec::new() }
    }

    /// Returns the error for an invalid request.
    pub fn invalid(message: impl Into<String>) -> GatewayError {
        GatewayError::new(400, "invalid_request", message)
    }

    /// Returns the error for a call that a budget refuses.
    pub(crate) fn of_budget(refusal: &BudgetRefusal) -> GatewayError {
        let mut error = GatewayError::new(refusal.status(), refusal.code(), refusal.to_string());
        error.retry_after_s = refusal.retry_after_seconds();
        error.limits = refusal.rate_limits().pairs();
        error
    }

    /// Returns the body of the response in the wire format of the client.
    pub fn body(&self, dialect: Dialect) -> Value {
        write_error(dialect, self.status, &self.error)
    }

    /// Returns the error for a call whose attempts ended with a reason.
    pub(crate) fn of_reason(reason: GiveUpReason, now_ms: u64) -> GatewayError {
        let (status, code) = reason.response().unwrap_or((502, "upstream_error"));
        let message = match reason {
            GiveUpReason::Unreachable => "no model server could be reached",
            GiveUpReason::Uncertain { is_late: true } => "the model server did not answer in time",
            GiveUpReason::Uncertain { is_late: false } => {
                "the connection to the model server broke; it may have executed the request"
            }
            GiveUpReason::ProviderAuth => {
                "the provider refused the secret that this server has for it: an administrator has to renew it"
            }
            GiveUpReason::BadResponse { .. } => "the model server answered with an unusable response",
            GiveUpReason::Cooling { .. } => "all servers of this model are at their limits: try again later",
            GiveUpReason::Exhausted { .. } => "the model servers failed, and the time for retries is over",
            GiveUpReason::Interrupted => "the model server ended its answer early",
            GiveUpReason::ClientGone => "client disconnected",
        };
        let mut error = GatewayError::new(status, code, message);
        if let GiveUpReason::Cooling { until_ms } = reason {
            error.retry_after_s = Some(until_ms.saturating_sub(now_ms).div_ceil(1000).max(1));
        }
        error
    }
}

impl From<FormError> for GatewayError {
    fn from(error: FormError) -> GatewayError {
        GatewayError::invalid(error.to_string())
    }
}

impl From<DialectError> for GatewayError {
    fn from(error: DialectError) -> GatewayError {
        let (code, param) = match &error {
            DialectError::Malformed { path, .. } => ("invalid_request", Some(path.clone())),
            DialectError::Unsupported { path, .. } => ("unsupported_parameter", Some(path.clone())),
            DialectError::TooMany { .. } => ("invalid_request", None),
            DialectError::Stream(_) => ("upstream_error", None),
        };
        let mut refusal = GatewayError::new(400, code, error.to_string());
        refusal.error.param = param;
        refusal
    }
}

impl From<ResolutionError> for GatewayError {
    fn from(error: ResolutionError) -> GatewayError {
        let message = error.to_string();
        match error {
            ResolutionError::ModelNotFound { .. } => {
                let mut refusal = GatewayError::new(404, "model_not_found", message);
                refusal.error.param = Some("model".to_owned());
                refusal
            }
            ResolutionError::NotCallable { .. } => GatewayError::new(400, "provider_not_callable", message),
            ResolutionError::TooManyProviders => GatewayError::new(400, "too_many_providers", message),
        }
    }
}
