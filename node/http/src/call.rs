//! A call by someone who is known: what every handler but the public ones begins with. A handler that does not name
//! it has no principal, and so no way to ask for anything.

use std::ops::Deref;
use std::time::Duration;

use actix_web::dev::Payload as RawPayload;
use actix_web::web::{Data, Payload, Query};
use actix_web::{FromRequest, HttpRequest};
use assay_node_query::{PERMIT_WAIT, Who};
use futures::future::LocalBoxFuture;
use uuid::Uuid;

use crate::body::{self, Body};
use crate::caller::{AUTHORIZATION, Caller, IMPERSONATE, ORG_NAME, Said};
use crate::edge::Edge;
use crate::refusal::Refusal;

/// Seconds after which the client gives up, as generated clients say it.
const CLIENT_TIMEOUT: &str = "x-stainless-timeout";
/// What an answer needs to reach its client before that.
const ON_THE_WAY: Duration = Duration::from_secs(1);

/// How long a request may wait whose client gives up after so many seconds.
fn patience(client_seconds: Option<f64>) -> Duration {
    let client = client_seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    let client = client.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    client.map_or(PERMIT_WAIT, |client| client.saturating_sub(ON_THE_WAY).min(PERMIT_WAIT))
}

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
        let caller = Caller::known(edge, said).await?;
        caller.admit(request.method().as_str(), request.match_info().as_str()).await?;
        Ok(Call { caller, request })
    }

    /// In whose name a query is asked, and how long its client waits.
    pub fn who(&self) -> Who {
        Who { holder: self.caller.holder(), patience: self.patience() }
    }

    /// How long the request may wait before it is refused: [`PERMIT_WAIT`], or a second less than its client waits.
    pub fn patience(&self) -> Duration {
        let said = self.request.headers().get(CLIENT_TIMEOUT).and_then(|value| value.to_str().ok());
        patience(said.and_then(|text| text.trim().parse().ok()))
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
        body::read(&self.edge, &self.request, payload, self.edge.config.body_bytes_max).await
    }

    /// A body of rows that may be packed, unpacked.
    pub async fn packed_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read_packed(&self.edge, &self.request, payload, self.edge.config.body_bytes_max).await
    }

    pub async fn small_body(&self, payload: Payload) -> Result<Body, Refusal> {
        body::read(&self.edge, &self.request, payload, self.edge.config.small_body_bytes_max).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_no_longer_than_its_client() {
        let seconds = Duration::from_secs;
        assert_eq!(patience(None), PERMIT_WAIT);
        assert_eq!(patience(Some(600.0)), PERMIT_WAIT);
        assert_eq!(patience(Some(8.0)), seconds(7));
        assert_eq!(patience(Some(0.5)), seconds(0));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(patience(Some(wrong)), PERMIT_WAIT, "{wrong}");
        }
    }
}
