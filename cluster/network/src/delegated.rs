//! Services that are called on behalf of a principal. A principal is an opaque byte string of upper layers. It is sent
//! in front of the body, to a service of another name.
//!
//! Nodes before 0.5.0 send no principal and have only the service's plain name. They are called by that name, and their
//! calls are answered until every node names the principal.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use assay_storage_model::{NodeId, ObjectKey};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::network::Network;
use crate::service::{NoAnswer, Service};

/// Time for which a call without a principal is still answered once every node names one: the caller's copy of the
/// catalog may lack this node's feature.
pub const UNNAMED_ANSWERED_FOR: Duration = Duration::from_secs(30);
/// A principal is a few ids.
const PRINCIPAL_BYTES_MAX: usize = 4 << 10;

/// The two names of a service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceNames {
    /// The body alone, as before 0.5.0.
    pub plain: &'static str,
    /// Name of the service with a principal in front of the body.
    pub on_behalf: &'static str,
}

/// Requested access to objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectAccess {
    Read,
    Write,
}

/// Decides whether a principal may do something, with the catalog of this node.
pub trait Guard: Send + Sync + fmt::Debug + 'static {
    fn check(
        &self,
        principal: Bytes,
        access: ObjectAccess,
        objects: Vec<ObjectKey>,
    ) -> BoxFuture<'static, Result<(), String>>;
}

/// A service that is called on behalf of a principal. `principal` is none if the caller is a node before 0.5.0.
pub trait DelegatedService: Send + Sync + fmt::Debug + 'static {
    fn answer_for(
        &self,
        principal: Option<Bytes>,
        from: NodeId,
        body: Bytes,
        within: Duration,
    ) -> BoxFuture<'static, Result<Bytes, NoAnswer>>;
}

/// Service under one of its two names.
#[derive(Debug)]
struct NamedService {
    answers: Arc<dyn DelegatedService>,
    has_principal: bool,
}

impl Service for NamedService {
    fn answer(&self, from: NodeId, body: Bytes, within: Duration) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        if !self.has_principal {
            return self.answers.answer_for(None, from, body, within);
        }
        match split(body) {
            Some((principal, body)) => self.answers.answer_for(Some(principal), from, body, within),
            None => async { Err(NoAnswer::Refused("the request has no principal in front".into())) }.boxed(),
        }
    }
}

/// Length u16, principal, body.
pub(crate) fn join(principal: &[u8], body: &[u8]) -> Bytes {
    let mut joined = BytesMut::with_capacity(2 + principal.len() + body.len());
    joined.put_u16_le(u16::try_from(principal.len()).expect("a principal is a few ids"));
    joined.put_slice(principal);
    joined.put_slice(body);
    joined.freeze()
}

pub(crate) fn split(mut joined: Bytes) -> Option<(Bytes, Bytes)> {
    if joined.len() < 2 {
        return None;
    }
    let length = usize::from(joined.get_u16_le());
    if length == 0 || length > PRINCIPAL_BYTES_MAX || length > joined.len() {
        return None;
    }
    let principal = joined.split_to(length);
    Some((principal, joined))
}

impl Network {
    /// Registers the service under both of its names.
    pub fn serve_on_behalf(&self, names: ServiceNames, answers: Arc<dyn DelegatedService>) {
        self.serve(names.plain, Arc::new(NamedService { answers: Arc::clone(&answers), has_principal: false }));
        self.serve(names.on_behalf, Arc::new(NamedService { answers, has_principal: true }));
    }

    /// Checks by the guard whether a principal may access objects here.
    pub async fn check_access(
        &self,
        principal: Option<Bytes>,
        access: ObjectAccess,
        objects: Vec<ObjectKey>,
    ) -> Result<(), NoAnswer> {
        let Some(principal) = principal else {
            return match self.answers_unnamed() {
                true => Ok(()),
                false => Err(NoAnswer::Refused("the request names no principal".into())),
            };
        };
        // Before its start is done this node is asked again a moment later.
        let guard = self.guard().ok_or(NoAnswer::NotLeader { leader: None })?;
        guard.check(principal, access, objects).await.map_err(NoAnswer::Refused)
    }
}

impl ServiceNames {
    /// Returns the name and body of a call, with the principal in front if the called node reads it.
    pub fn addressed(self, reads_principals: bool, principal: &[u8], body: Bytes) -> (&'static str, Bytes) {
        if reads_principals { (self.on_behalf, join(principal, &body)) } else { (self.plain, body) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_travels_in_front_of_the_body() {
        for body in [&b""[..], b"body"] {
            let (principal, rest) = split(join(b"who", body)).expect("it reads");
            assert_eq!((&principal[..], &rest[..]), (&b"who"[..], body));
        }
        let long = join(&[7; PRINCIPAL_BYTES_MAX + 1], b"");
        for wrong in [Bytes::new(), Bytes::from_static(&[3, 0, 1]), Bytes::from_static(&[0, 0, 1]), long] {
            assert!(split(wrong).is_none());
        }
    }
}
