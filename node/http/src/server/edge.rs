//! Edge: the middleware of every request, and the state that all workers share.
//!
//! The middleware sets the trace id and the span, limits headers and time, catches panics, and adds CORS headers and
//! metrics.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::HeaderValue;
use actix_web::http::{ConnectionType, Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, HttpResponse};
use assay_node_auth::{Asker, Job};
use assay_node_code_forwarding::CodeForwarding;
use assay_node_connections::Connection;
use assay_node_files::Files;
use assay_node_functions::Functions;
use assay_node_gateway::Gateway;
use assay_node_identity::{Identity, LoginGate};
use assay_node_limits::{Quotas, RateLimiter};
use assay_node_objects::Objects;
use assay_node_query::Queries;
use assay_node_records::Records;
use assay_node_runner::CodeHost;
use assay_node_usage::UsageMeter;
use futures::FutureExt;
use tokio::time::Instant;
use tracing::Instrument;

use crate::access_log::{log_response, request_span};
use crate::config::HttpConfig;
use crate::requests::admission::Budgets;
use crate::requests::unread_body::Unread;
use crate::requests::wait::{STAINLESS_TIMEOUT, Wait};
use crate::responses::finishing::{Finishing, changes};
use crate::responses::in_use_body::in_use_until_end;
use crate::responses::refusal::{ErrorKind, Refusal};
use crate::responses::response_body::SLOW_READERS;
use crate::responses::response_headers::ResponseHeaders;
use crate::server::admin::AdminListener;
use crate::server::metrics::ServerMetrics;
use crate::server::service_state::ServiceState;
use crate::{App, Console, Health, WiresConfig};

/// Paths that are served even if all regular connections are in use.
const HEALTH: [&str; 2] = ["/healthz", "/readyz"];

/// Time limit for the start of a response to a model call. The gateway has its own, lower limits.
const MODEL_CALL_TIME_MAX: Duration = Duration::from_secs(32 * 60);

/// Path of uploads and downloads of files, before their ticket.
const FILES: &str = "/attachment/bytes/";
/// Time limit of an upload. Its ticket is valid as long, and its minimum rate ends one that stalls.
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(3600);

/// State that all workers share.
pub struct Edge {
    pub records: Records,
    pub identity: Identity,
    pub objects: Objects,
    pub functions: Functions,
    pub files: Files,
    pub queries: Queries,
    pub config: HttpConfig,
    pub wires: WiresConfig,
    pub counts: ServerMetrics,
    pub budgets: Budgets,
    pub rates: RateLimiter,
    pub quotas: Quotas,
    pub(crate) admin: Option<AdminListener>,
    pub logins: Option<LoginGate>,
    pub gateway: Gateway,
    /// Code functions.
    pub code: CodeHost,
    /// Calls of code that other nodes run.
    pub code_forwarding: CodeForwarding,
    /// Usage of organizations and credentials.
    pub usage: Arc<UsageMeter>,
    pub console: Console,
    /// State of the services of the API.
    pub state: ServiceState,
    calls_models: fn(&str) -> bool,
    service_metrics: fn(&Edge) -> String,
    health: Arc<dyn Fn() -> Health + Send + Sync>,
    metrics: Arc<dyn Fn() -> String + Send + Sync>,
    draining: AtomicBool,
}

impl Edge {
    pub fn new(app: App) -> Edge {
        Edge {
            functions: Functions::new(app.identity.records().clone(), app.objects.clone()),
            files: Files::new(app.objects.on_behalf_of(&Asker::Job(Job::Files))),
            records: app.identity.records().clone(),
            identity: app.identity,
            objects: app.objects,
            queries: app.queries,
            counts: ServerMetrics::default(),
            budgets: Budgets::new(&app.config),
            rates: app.rates,
            quotas: app.quotas,
            config: app.config,
            wires: app.wires,
            admin: app.admin.map(AdminListener::new),
            logins: app.provider.map(LoginGate::new),
            gateway: app.gateway,
            code: app.code,
            code_forwarding: app.code_forwarding,
            usage: app.usage,
            console: app.console,
            state: ServiceState::default(),
            calls_models: app.services.calls_models,
            service_metrics: app.services.metrics_text,
            health: app.health,
            metrics: app.metrics,
            draining: AtomicBool::new(false),
        }
    }

    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Returns the health of the node, which is not ready while it drains.
    pub fn health(&self) -> Health {
        let mut health = (self.health)();
        if self.is_draining() {
            health.ready = false;
            health.notes.push("this node is shutting down and drains its connections".into());
        }
        health
    }

    pub fn metrics_text(&self) -> String {
        let Budgets { bodies, answers, refusals, .. } = &self.budgets;
        let mut text = self.counts.text(bodies.reading().held, answers.reading().held);
        let calls = self.gateway.memory();
        let others = self.queries.budgets().into_iter().chain([(calls.name(), calls.reading())]);
        text.push_str(&self.budgets.text(others.collect()));
        text.push_str(&ServerMetrics::slow_readers(refusals.total(SLOW_READERS)));
        text.push_str(&self.rates.text());
        text.push_str(&self.gateway.metrics_text());
        text.push_str(&(self.service_metrics)(self));
        text.push_str(&(self.metrics)());
        text
    }
}

/// Outermost middleware. It must complete the headers of all errors, because nothing outside of it could add them.
pub async fn around<B: MessageBody + 'static>(
    edge: Data<Edge>,
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let headers = ResponseHeaders::of(&request);
    let connection = request.request().conn_data::<Arc<Connection>>().cloned();
    let in_use = connection.as_ref().map(Connection::begin);
    let _under_way = edge.counts.begin();
    let began = Instant::now();
    let span = request_span(&headers.trace, request.method().as_str(), &headers.path);
    let unread = Unread::watch(&mut request);
    let served = serve(&edge, &headers, request, next).instrument(span.clone()).await;
    let served = match (served, unread) {
        (Ok(response), Some(unread)) => Ok(response.map_body(|_, body| unread.discarded_behind(body))),
        (Err(error), Some(unread)) => {
            unread.keep();
            Err(error)
        }
        (served, None) => served,
    };
    let served = served.map(|response| response.map_body(|_, body| in_use_until_end(body, in_use)));
    let status = served.as_ref().map_or_else(|error| error.as_response_error().status_code(), ServiceResponse::status);
    let took = began.elapsed();
    edge.counts.answered(status.as_u16(), took);
    span.in_scope(|| log_response(status.as_u16(), took));
    served
}

async fn serve<B: MessageBody + 'static>(
    edge: &Edge,
    headers: &ResponseHeaders,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_reserve = request.request().conn_data::<Arc<Connection>>().is_some_and(|connection| connection.is_reserve());
    if request.method() == Method::OPTIONS && headers.is_for_browsers() {
        let mut answer = headers.put_on(HttpResponse::Ok().finish());
        if is_reserve || edge.is_draining() {
            answer.head_mut().set_connection_type(ConnectionType::Close);
        }
        return Ok(request.into_response(answer));
    }
    if is_reserve && !HEALTH.contains(&request.path()) {
        let mut refused = refused(headers, full()).error_response();
        refused.head_mut().set_connection_type(ConnectionType::Close);
        return Ok(request.into_response(refused));
    }
    let head_bytes = head_bytes(&request);
    if head_bytes > edge.config.head_bytes_max {
        let max = edge.config.head_bytes_max;
        let why = format!("the request line and headers have {head_bytes} bytes; the maximum is {max}");
        return Err(refused(headers, Refusal::new(ErrorKind::HeadTooLarge, why)));
    }
    let timeout = request.headers().get(STAINLESS_TIMEOUT).map(HeaderValue::as_bytes);
    let wait = Wait::of_request(Instant::now(), request.path(), timeout);
    request.extensions_mut().insert(wait.clone());
    let (limit, changes) = match (edge.calls_models)(request.path()) {
        true => (MODEL_CALL_TIME_MAX, false),
        false if is_upload(&request) => (UPLOAD_TIME_MAX, true),
        false => (edge.config.request_time_max(), changes(&request)),
    };
    let handled = AssertUnwindSafe(async move { next.call(request).await }).catch_unwind();
    let handled = Finishing::new(handled, changes, wait.clone(), limit);
    let mut response = match wait.limit(limit, handled).await {
        Some(Ok(Ok(response))) => with_headers(headers, response),
        Some(Ok(Err(error))) => return Err(refused(headers, refusal_of(&error))),
        Some(Err(panic)) => return Err(refused(headers, panicked(edge, &*panic))),
        None => return Err(refused(headers, too_late())),
    };
    if is_reserve || edge.is_draining() {
        response.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    Ok(response)
}

/// Counts and logs a panic. The refusal does not reveal its message.
pub fn panicked(edge: &Edge, panic: &(dyn Any + Send)) -> Refusal {
    ServerMetrics::add(&edge.counts.panics, 1);
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    Refusal::internal(format!("panic: {said}"))
}

/// Refuses a request on a reserve connection, which serves only health checks.
pub fn full() -> Refusal {
    Refusal::new(
        ErrorKind::Unavailable,
        "all connections of this node are in use; try again in a moment, or use another node",
    )
}

/// Refuses a request whose time limit has passed.
pub fn too_late() -> Refusal {
    let why = "the request timed out; its writes may have been done";
    Refusal::new(ErrorKind::Unavailable, why)
}

fn is_upload(request: &ServiceRequest) -> bool {
    request.method() == Method::PUT && request.path().starts_with(FILES)
}

fn head_bytes(request: &ServiceRequest) -> usize {
    let uri = request.uri();
    let line = uri.path_and_query().map_or(0, |target| target.as_str().len());
    // Each header line has four more bytes: a colon, a space, and the line end.
    line + request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>()
}

fn with_headers<B: MessageBody + 'static>(
    headers: &ResponseHeaders,
    response: ServiceResponse<B>,
) -> ServiceResponse<BoxBody> {
    let body = response.response().error().map(|error| match error.as_error::<Refusal>() {
        Some(refusal) => headers.body_of(refusal),
        None => headers.body_of(&refusal_of(error)),
    });
    let (request, response) = response.into_parts();
    let response = match body {
        Some(body) => response.set_body(body).map_into_boxed_body(),
        None => response.map_into_boxed_body(),
    };
    ServiceResponse::new(request, headers.put_on(response))
}

fn refused(headers: &ResponseHeaders, mut refusal: Refusal) -> Error {
    refusal.headers = Some(Box::new(headers.clone()));
    refusal.into()
}

/// Converts an error of the framework.
fn refusal_of(error: &Error) -> Refusal {
    let status = error.as_response_error().status_code();
    match status {
        StatusCode::NOT_FOUND => Refusal::not_found("this path"),
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(ErrorKind::TooLarge, error.to_string()),
        status if status.is_client_error() => Refusal::bad(error.to_string()),
        _ => Refusal::internal(error),
    }
}

impl std::fmt::Debug for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edge").field("config", &self.config).field("draining", &self.draining).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::http::header;
    use actix_web::test::{TestRequest, init_service, read_body};
    use actix_web::web;
    use assay_cluster::{Cluster, ClusterConfig};
    use assay_node_bulk_jobs::BulkJobs;
    use assay_node_egress::{EgressClient, EgressConfig, EgressPolicy, EgressSettings, OwnEndpoints, TrustedRoots};
    use assay_node_gateway::{GatewayParts, GatewaySettings};
    use assay_node_limits::ObjectUsages;
    use assay_node_models::catalog::Catalog;
    use assay_node_objects::{AuditLog, ObjectLimits, node_clock};
    use assay_node_query::{Prices, QueryLimits};
    use assay_storage_model::OrgId;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use serde_json::Value;
    use tokio::runtime::Handle;

    use super::*;
    use crate::{ClusterReadings, ConsoleConfig, Services};

    /// Readings without a cluster.
    #[derive(Debug)]
    struct NoReadings;

    impl ClusterReadings for NoReadings {
        fn status(&self) -> BoxFuture<'static, Value> {
            async { Value::Null }.boxed()
        }

        fn usage(&self, _: OrgId) -> BoxFuture<'static, ObjectUsages> {
            async { ObjectUsages::default() }.boxed()
        }
    }

    const NO_SERVICES: Services = Services {
        api: |_| {},
        metrics: |_| {},
        calls_models: |_| false,
        exports: |_| unreachable!("no listener of gRPC is bound"),
        background: |_| async {}.boxed(),
        metrics_text: |_| String::new(),
    };

    fn console(cluster: &Arc<Cluster>) -> Console {
        Console {
            config: ConsoleConfig::default(),
            cluster: "0a1b2c3d".into(),
            node: "1".into(),
            readings: Arc::new(NoReadings),
            jobs: BulkJobs::start(cluster),
        }
    }

    async fn takes_longer() -> &'static str {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        "{}"
    }

    /// Returns the response of a handler that panics, hangs or takes long, and the number of counted panics.
    async fn answered(request: TestRequest) -> (u16, Value, u64) {
        let dir = tempfile::tempdir().expect("a directory");
        let cluster = ClusterConfig { data_dir: dir.path().join("data"), shards: 4, ..ClusterConfig::default() };
        let cluster = Arc::new(Cluster::open(cluster).await.expect("a cluster"));
        let objects = Objects::start(Arc::clone(&cluster), ObjectLimits::default(), node_clock(&cluster));
        let config = HttpConfig { request_seconds_max: 1, body_seconds_max: 1, ..HttpConfig::default() };
        let health = Health { live: true, ready: true, notes: Vec::new(), shortfalls: Vec::new() };
        let policy = EgressPolicy::new(&EgressSettings::default(), OwnEndpoints::default()).expect("a policy");
        let edge = Data::new(Edge::new(App {
            identity: Identity::new(Records::new(Arc::clone(&cluster), Arc::new(AuditLog::new(objects.clone())))),
            objects: objects.clone(),
            queries: Queries::start(
                Arc::clone(&cluster),
                QueryLimits::default(),
                Prices::standard().clone(),
                node_clock(&cluster),
            )
            .expect("a folder"),
            health: Arc::new(move || health.clone()),
            metrics: Arc::new(String::new),
            config,
            wires: WiresConfig::default(),
            rates: RateLimiter::default(),
            quotas: Quotas::default(),
            admin: None,
            provider: None,
            gateway: Gateway::new(GatewayParts::new(
                EgressClient::new(EgressConfig::new(TrustedRoots::none()), policy),
                GatewaySettings::default(),
                Catalog::built_in().clone(),
                Handle::current(),
            )),
            code: CodeHost::off(dir.path().join("functions")),
            code_forwarding: CodeForwarding::start(&cluster, Handle::current()),
            usage: UsageMeter::open(&cluster, node_clock(&cluster)).expect("a folder"),
            console: console(&cluster),
            services: NO_SERVICES,
        }));
        let panics = || async { if true { panic!("a secret of the inside") } else { "" } };
        let hangs = || async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ""
        };
        let app = actix_web::App::new()
            .app_data(edge.clone())
            .wrap(actix_web::middleware::from_fn(around))
            .route("/panics", web::get().to(panics))
            .route("/hangs", web::get().to(hangs))
            .route("/attachment/bytes/ticket", web::put().to(takes_longer));
        // Like the framework, this converts an error of the outermost layer to a response.
        let service = init_service(app).await;
        let request = request.insert_header((header::ORIGIN, "https://a.example"));
        let (status, headers, body) = match actix_web::dev::Service::call(&service, request.to_request()).await {
            Ok(answer) => (answer.status(), answer.headers().clone(), read_body(answer).await),
            Err(error) => {
                let answer = error.error_response();
                let (status, headers) = (answer.status(), answer.headers().clone());
                let body = actix_web::body::to_bytes(answer.into_body()).await.expect("a body");
                (status, headers, body)
            }
        };
        assert!(headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "dressed like any other");
        objects.shutdown().await;
        cluster.shutdown().await.expect("closed");
        let body = serde_json::from_slice(&body).expect("JSON");
        (status.as_u16(), body, edge.counts.panics.load(Ordering::Relaxed))
    }

    #[actix_web::test]
    async fn a_panic_ends_its_request_with_a_500_that_does_not_say_what_happened() {
        let (status, body, panics) = answered(TestRequest::get().uri("/panics")).await;
        assert_eq!((status, panics), (500, 1));
        assert_eq!(body["Code"], "InternalServerError");
        assert!(!body.to_string().contains("secret"), "{body}");
    }

    #[actix_web::test]
    async fn a_request_that_hangs_is_answered_as_unknown() {
        let (status, body, panics) = answered(TestRequest::get().uri("/hangs")).await;
        assert_eq!((status, panics), (503, 0));
        assert_eq!(body["Path"], "/hangs");
    }

    #[actix_web::test]
    async fn an_upload_may_take_longer_than_other_requests() {
        let (status, body, _) = answered(TestRequest::put().uri("/attachment/bytes/ticket")).await;
        assert_eq!((status, body), (200, serde_json::json!({})));
    }
}
