//! A call by someone who is known: what every handler but the public ones begins with. A handler that does not name
//! it has no principal, and so no way to ask for anything.

use std::ops::Deref;
use std::sync::Arc;

use actix_web::dev::Payload as RawPayload;
use actix_web::web::{Data, Payload, Query};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use assay_node_connections::Connection;
use futures::future::LocalBoxFuture;
use tokio::time::Instant;
use uuid::Uuid;

use crate::body::{self, Body};
use crate::caller::{AUTHORIZATION, Caller, IMPERSONATE, ORG_NAME, Said};
use crate::edge::Edge;
use crate::refusal::Refusal;
use crate::wait::Wait;

#[derive(Debug)]
pub struct Call {
    pub caller: Caller,
    pub request: HttpRequest,
}

/// What is asked of the rooms below is asked in the caller's name.
impl Deref for Call {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl FromRequest for Call {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<Call, Refusal>>;

    fn from_request(request: &HttpRequest, _: &mut RawPayload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Call::of(request).await })
    }
}

impl Call {
    pub async fn of(request: HttpRequest) -> Result<Call, Refusal> {
        let edge = request.app_data::<Data<Edge>>().cloned();
        let edge = edge.ok_or_else(|| Refusal::internal("a route without its edge"))?;
        let header = |name| request.headers().get(name).map(|value| value.as_bytes());
        let said =
            Said { authorization: header(AUTHORIZATION), org_name: header(ORG_NAME), impersonate: header(IMPERSONATE) };
        let caller = Caller::known(edge, said, wait_of(&request)).await?;
        if let Some(connection) = request.conn_data::<Arc<Connection>>() {
            caller.on(connection)?;
        }
        caller.admit(request.method().as_str(), request.match_info().as_str()).await?;
        Ok(Call { caller, request })
    }

    /// The `{id}` of the path.
    pub fn id(&self) -> Result<Uuid, Refusal> {
        let text = self.request.match_info().get("id").unwrap_or_default();
        let refuse = |_| Refusal::bad(format!("`{}` is not an id; ids are UUIDs", crate::shapes::shortened(text)));
        Uuid::parse_str(text).map_err(refuse)
    }

    /// Query parameters in their order, decoded. A name may come more than once.
    pub fn query(&self) -> Result<Vec<(String, String)>, Refusal> {
        let pairs = Query::<Vec<(String, String)>>::from_query(self.request.query_string());
        pairs.map(Query::into_inner).map_err(|error| Refusal::bad(format!("the query is malformed: {error}")))
    }

    pub async fn body_of_rows(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read(&self.edge, &self.applicant(), &self.request, payload, self.edge.config.body_bytes_max).await
    }

    /// A body of rows that may be packed, unpacked.
    pub async fn packed_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read_packed(&self.edge, &self.applicant(), &self.request, payload, self.edge.config.body_bytes_max).await
    }

    pub async fn small_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read(&self.edge, &self.applicant(), &self.request, payload, self.edge.config.small_body_bytes_max).await
    }
}

/// Returns the wait that the edge gave a request.
pub fn wait_of(request: &HttpRequest) -> Wait {
    let given = request.extensions().get::<Wait>().cloned();
    given.unwrap_or_else(|| Wait::of_request(Instant::now(), request.path(), None))
}
