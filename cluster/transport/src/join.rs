//! Call of a node that is not in the cluster yet. It has no certificate and no id, only the content of its token.

use std::sync::Arc;

use assay_storage_model::ClusterId;
use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use crate::call::{Call, CallError};
use crate::call_headers::{self, Form};
use crate::certificate_names::any_name;
use crate::connection::{Connection, DialTarget, NoAnswer, only_frame};
use crate::frame::{Frame, check_size};
use crate::identity::client_without_certificate;
use crate::peer_counters::Traffic;
use crate::refusal::{Refusal, RefusalCode};

/// Calls an open service of any node of the cluster at `address` (`host:port`).
///
/// The node must present a certificate of the cluster by the given authority. The lane of the call is ignored.
pub async fn join_call(authority_pem: &str, cluster: ClusterId, address: &str, call: Call) -> Result<Bytes, CallError> {
    let ends = Instant::now() + call.within();
    let bad = |why: String| CallError::Refused(Refusal::new(RefusalCode::BadRequest, why));
    check_size(&call.body).map_err(bad)?;
    let tls = client_without_certificate(authority_pem).map_err(|error| CallError::NotReached(error.to_string()))?;
    let goal = DialTarget {
        address,
        name: &any_name(cluster),
        tls: Arc::new(tls),
        headers: call_headers::lasting(cluster, None, None),
        within: call.within(),
        traffic: Arc::new(Traffic::default()),
    };
    let connection = timeout_at(ends, Connection::make(goal)).await;
    let connection = connection.map_err(|_| CallError::NotReached(format!("{address}: no connection in time")))??;
    let left = ends.saturating_duration_since(Instant::now());
    let request = connection.request(Form::Call, call.service, (call.address, None), left, Frame::Body(call.body));
    let sent = timeout_at(ends, connection.send(request.map_err(CallError::Refused)?)).await;
    let frames = match sent {
        Ok(Ok(frames)) => frames,
        Ok(Err(NoAnswer::NotSent(why))) => return Err(CallError::NotReached(why)),
        Ok(Err(NoAnswer::Lost(why))) => return Err(CallError::Lost(why)),
        Err(_) => return Err(CallError::Lost("no response in time".into())),
    };
    match only_frame(frames, ends).await {
        Ok(Frame::Body(body)) => Ok(body),
        Ok(Frame::Refused(refusal)) => Err(CallError::Refused(refusal)),
        Ok(frame) => Err(CallError::Lost(format!("answered with {frame:?}"))),
        Err(NoAnswer::NotSent(why) | NoAnswer::Lost(why)) => Err(CallError::Lost(why)),
    }
}
