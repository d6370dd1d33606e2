//! Which path does what. A path that no route takes is looked up in the table of the API: 501, 405 or 404.

mod identity;
mod later;
mod queries;
mod records;
mod rows;
mod service;

use actix_web::http::header;
use actix_web::web::{Data, ServiceConfig, delete, get, patch, post, resource, to};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, Resource};
use assay_node_records::{Kind as RecordKind, kinds};
use assay_storage_model::ObjectKind;
use serde::Serialize;

use crate::call::Call;
use crate::edge::Edge;
use crate::operations::{Known, lookup};
use crate::refusal::{Kind, Refusal};

pub type Answer = Result<HttpResponse, Refusal>;

/// Everything that clients are served.
pub fn all(config: &mut ServiceConfig) {
    public(config);
    config.service(at("/metrics").route(get().to(service::metrics)));
    config.service(at("/version").route(get().to(service::version)));
    config.service(at("/ping").route(get().to(identity::ping)));
    config.service(at("/api/apikey/login").route(post().to(identity::login)));
    config.service(at("/api/self/me").route(post().to(identity::me)));

    records_of(config, "/v1/project", &kinds::PROJECT, true);
    records_of(config, "/v1/experiment", &kinds::EXPERIMENT, true);
    records_of(config, "/v1/dataset", &kinds::DATASET, true);
    records_of(config, "/v1/api_key", &kinds::API_KEY, false);

    rows_of(config, "/v1/project_logs", ObjectKind::ProjectLogs);
    rows_of(config, "/v1/experiment", ObjectKind::Experiment);
    rows_of(config, "/v1/dataset", ObjectKind::Dataset);
    config.service(at("/v1/insert").route(post().to(rows::cross_insert)));
    config.service(at("/btql").route(post().to(queries::btql)));
    config.service(at("/btql/async").route(post().to(later::make)));
    config.service(at("/btql/async/{id}").route(get().to(later::status)));
    config.service(at("/btql/async/{id}/result").route(get().to(later::result)));
    config.service(at("/logs3").route(post().to(rows::logs3)));
    config.default_service(to(unrouted));
}

/// The port of its own that metrics may have.
pub fn metrics_alone(config: &mut ServiceConfig) {
    public(config);
    config.service(at("/metrics").route(get().to(service::metrics_on_own_port)));
    config.default_service(to(unrouted));
}

/// What needs no credential.
fn public(config: &mut ServiceConfig) {
    config.service(at("/v1").route(get().to(service::greeting)));
    config.service(at("/healthz").route(get().to(service::healthz)));
    config.service(at("/readyz").route(get().to(service::readyz)));
}

fn records_of(config: &mut ServiceConfig, path: &str, kind: &'static RecordKind, can_be_patched: bool) {
    let many = at(path)
        .route(post().to(move |call, payload| records::create(kind, call, payload)))
        .route(get().to(move |call| records::list(kind, call)));
    let mut one = at(&format!("{path}/{{id}}"))
        .route(get().to(move |call| records::get(kind, call)))
        .route(delete().to(move |call| records::delete(kind, call)));
    if can_be_patched {
        one = one.route(patch().to(move |call, payload| records::patch(kind, call, payload)));
    }
    config.service(many).service(one);
}

fn rows_of(config: &mut ServiceConfig, path: &str, kind: ObjectKind) {
    let insert = at(&format!("{path}/{{id}}/insert"));
    let fetch = at(&format!("{path}/{{id}}/fetch"));
    let feedback = at(&format!("{path}/{{id}}/feedback"));
    config
        .service(insert.route(post().to(move |call, payload| rows::insert(kind, call, payload))))
        .service(
            fetch
                .route(get().to(move |call| rows::fetch_by_query(kind, call)))
                .route(post().to(move |call, payload| rows::fetch_by_body(kind, call, payload))),
        )
        .service(feedback.route(post().to(move |call, payload| rows::feedback(kind, call, payload))));
}

/// A path, whose other methods are looked up.
fn at(path: &str) -> Resource {
    resource(path).default_service(to(unrouted))
}

/// A caller that is not known learns nothing of what is served and what is not.
async fn unrouted(request: HttpRequest) -> Answer {
    let (method, path) = (request.method().clone(), request.path().to_owned());
    match lookup(method.as_str(), &path) {
        Known::Operation => {
            let _who = Call::of(request).await?;
            Err(Refusal::new(Kind::NotImplemented, format!("{method} {path} is part of the API and is not served yet")))
        }
        Known::OtherMethods(methods) => {
            let allow = methods.join(", ");
            let mut refusal =
                Refusal::new(Kind::MethodNotAllowed, format!("{path} does not take {method}; it takes {allow}"));
            refusal.allow = Some(allow);
            Err(refusal)
        }
        Known::Unknown => Err(Refusal::new(Kind::NotFound, "there is nothing at this path")),
    }
}

/// Every success is a 200 with a JSON body.
pub fn json(value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value).map_err(Refusal::internal)?;
    Ok(json_builder().body(body))
}

pub fn json_builder() -> HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CONTENT_TYPE, "application/json"));
    answer
}

/// Names for handlers that know no caller.
type Shared = Data<Edge>;
