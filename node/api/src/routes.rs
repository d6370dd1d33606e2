//! Registration of routes, which maps each path to its handler.
//!
//! The table of the API decides whether the response to a path without a route is 501, 405 or 404.

use assay_node_api_descriptions as descriptions;
use assay_node_api_descriptions::invocations::INVOKE_PATHS;
use assay_node_console as console;
use assay_node_console::tail::{TailOf, tail};
use assay_node_evaluations_http::{handlers as evaluations, summaries as experiments};
use assay_node_functions::Definition;
use assay_node_gateway::paths;
use assay_node_http::openapi::Operation;
use assay_node_http::requests::caller::Call;
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::server::edge::Edge;
use assay_node_http::web::{self, Data, HttpRequest, HttpResponse, Method, ServiceConfig, header, resource, to};
use assay_node_identity::CONSOLE_CALLBACK;
use assay_node_langfuse_http::{self as langfuse, LANGFUSE_PATH};
use assay_node_mcp_http::{self as mcp, MCP_PATH, METADATA_PATH};
use assay_node_online_scoring_executor::operations as online_scoring;
use assay_node_query_http::{btql, downloads, jobs, parsing, running};
use assay_node_records::{Api, Changes, Kind as RecordKind, kinds};
use assay_storage_model::ObjectKind;

use crate::identity::{oauth, setup};
use crate::openapi::api_table::{PathLookup, lookup};
use crate::openapi::{self, suggestions};
use crate::records::{budgets, environments, secrets, simulated_users, snapshots, views};
use crate::route_table::{Routes, at, at_all_below, delete, get, patch, post, put};
use crate::{
    access, functions, guide, identity, records, registering, service, summaries, temporary_credentials, usage,
};
use assay_node_invocations_http::{gateway, invocations};
use assay_node_rows_http::otlp::http as otlp;
use assay_node_rows_http::rows::{bulk, restore, reviews};
use assay_node_rows_http::{files, rows};

/// Registers all routes of the API.
pub fn all(config: &mut ServiceConfig) {
    let mut routes = Routes::of(config);
    registered(&mut routes);
    routes.finish();
    register_pages(config);
}

/// Registers or lists all routes.
///
/// A family of routes is described at its registration, and [`single_operations`] describes single routes. A test in
/// `openapi` compares both.
pub fn registered(config: &mut Routes<'_>) {
    public(config);
    config.service(at("/openapi.json").route(get().to(service::document)));
    config.service(at("/docs").route(get().to(service::docs)));
    config.service(at("/docs/guide").route(get().to(guide::first_page)));
    config.service(at("/docs/guide/{name}").route(get().to(guide::named_page)));
    config.service(at("/docs/guide/errors/{name}").route(get().to(guide::error_page)));
    config.service(at("/docs/guide/images/{name}").route(get().to(guide::image)));
    config.service(at("/metrics").route(get().to(service::metrics)));
    config.service(at("/version").route(get().to(service::version)));
    config.service(at("/ping").route(get().to(identity::ping)));
    config.service(at("/api/apikey/login").route(post().to(identity::login)));
    config.service(at("/api/self/me").route(post().to(identity::me)));

    online_scoring_of(config);
    for kind in kinds::KINDS {
        if let Api::Shared(path, changes) = kind.api {
            records_of(config, path, kind, changes);
        }
    }
    snapshots_of(config);
    environments_of(config);
    views_of(config);
    simulated_users_of(config);
    secrets_of(config);
    config.service(at("/v1/gateway_budget/{id}/usage").route(get().to(budgets::usage)));
    access_of(config);
    tokens_of(config);
    definitions_of(config, "/v1/prompt", Definition::Prompt);
    definitions_of(config, "/v1/function", Definition::Function);
    registration_of(config);
    files_of(config);
    config.service(at("/otel/v1/traces").route(post().to(otlp::traces)));
    config.service(at("/otel/v1/logs").route(post().to(otlp::logs)));
    config.service(at("/otel/v1/metrics").route(post().to(otlp::metrics)));
    // OpenTelemetry exporters append these paths to an origin.
    config.service(at("/v1/traces").route(post().to(otlp::traces)));
    config.service(at("/v1/logs").route(post().to(otlp::logs)));
    config.service(at("/v1/metrics").route(post().to(otlp::metrics)));
    config.service(at("/insert-functions").route(post().to(functions::insert)));

    rows_of(config, "/v1/project_logs", ObjectKind::ProjectLogs);
    rows_of(config, "/v1/experiment", ObjectKind::Experiment);
    rows_of(config, "/v1/dataset", ObjectKind::Dataset);
    summaries_of(config);
    config.service(at("/v1/dataset/{id}/restore/preview").route(post().to(restore::preview)));
    config.service(at("/v1/dataset/{id}/restore").route(post().to(restore::restore)));
    config.service(
        at("/v1/review/{object_type}/{id}/{row_id}").route(put().to(reviews::put)).route(get().to(reviews::get)),
    );
    config.service(at("/v1/insert").route(post().to(rows::cross_insert)));
    config.service(at("/btql").route(post().to(btql)));
    config.service(at("/btql/async").route(post().to(jobs::make)));
    config.service(at("/btql/async/{id}").route(get().to(jobs::status)));
    config.service(at("/btql/async/{id}/result").route(get().to(jobs::result)));
    config.service(at("/v1/usage").route(get().to(usage::usage)));
    config.service(at("/v1/query/running").route(get().to(running::list)));
    config.service(at("/v1/query/{id}/cancel").route(post().to(running::cancel)));
    config.service(at("/logs3").route(post().to(rows::logs3)));
    console_of(config);
    invocations_of(config);
    evaluations_of(config);
    temporary_credentials::register(config);
    logins(config);
    mcp_of(config);
    gateway_of(config);
    config.default_service(to(unrouted));
}

/// Returns the descriptions of single routes. Families of routes are described at their registration.
pub fn single_operations() -> Vec<Operation> {
    let mut all = service::operations();
    all.extend(guide::operations());
    all.extend(identity::operations());
    all.extend(descriptions::identity::logins());
    all.extend(descriptions::identity::setups());
    all.extend(oauth::registration::operations());
    all.extend(mcp::operations());
    all.extend(views::operations());
    all.extend(secrets::operations());
    all.extend(budgets::operations());
    all.extend(descriptions::access::tokens());
    all.extend(environments::operations());
    all.extend(simulated_users::operations());
    all.extend(restore::operations());
    all.extend(reviews::operations());
    all.extend(bulk::operations());
    all.extend(descriptions::summaries::operations());
    all.extend(descriptions::access::acls());
    all.extend(descriptions::access::people());
    all.extend(descriptions::access::invitations());
    all.extend(descriptions::queries::operations());
    all.extend(descriptions::rows::operations());
    all.extend(functions::operations());
    all.extend(descriptions::registering::operations());
    all.extend(descriptions::files::operations());
    all.extend(descriptions::online_scoring::operations());
    all.extend(descriptions::otlp::operations());
    all.extend(descriptions::gateway::operations());
    all.extend(descriptions::invocations::operations());
    all.extend(descriptions::evaluations::operations());
    all.extend(temporary_credentials::operations());
    all.extend(usage::operations());
    all.extend(descriptions::console::operations());
    all.extend(descriptions::console::sessions());
    all.extend(descriptions::console::tails());
    all.extend(descriptions::queries::of_console());
    all.push(descriptions::queries::comparison());
    all
}

/// Registers the routes that pages of the console use in addition to the API.
fn console_of(config: &mut Routes<'_>) {
    config.service(at("/console/about").route(get().to(console::about::about)));
    config.service(at("/console/projects").route(get().to(console::about::projects)));
    config.service(
        at("/console/session")
            .route(post().to(console::sessions::open))
            .route(get().to(console::sessions::get))
            .route(delete().to(console::sessions::end)),
    );
    config.service(at("/console/login").route(get().to(console::login::start)));
    config.service(at("/console/login/link").route(get().to(console::login::link)));
    config.service(at(CONSOLE_CALLBACK).route(get().to(console::login::finish)));
    config.service(at("/console/access").route(get().to(console::access::explain)));
    config.service(at("/console/cluster").route(get().to(console::cluster::status)));
    config.service(at("/console/jobs").route(post().to(bulk::start)).route(get().to(bulk::list)));
    config.service(at("/console/jobs/{id}").route(get().to(bulk::get)).route(delete().to(bulk::cancel)));
    config.service(at("/console/usage").route(get().to(console::cluster::usage)));
    config.service(at("/console/parse").route(post().to(parsing::parsed)));
    config.service(at("/v1/project_logs/{id}/tail").route(get().to(|call| tail(TailOf::ProjectLogs, call))));
    config.service(at("/v1/experiment/{id}/tail").route(get().to(|call| tail(TailOf::Experiment, call))));
    config.service(at("/console/compare").route(post().to(console::comparison::compare)));
    config.service(at("/console/download").route(post().to(downloads::link)));
    config.service(at("/console/download/{ticket}").route(get().to(downloads::file)));
}

/// Registers the operations on rules of online scoring, before the routes of scores by their ids.
fn online_scoring_of(config: &mut Routes<'_>) {
    config.service(at("/v1/project_score/test").route(post().to(online_scoring::test)));
    config.service(at("/v1/project_score/{id}/status").route(get().to(online_scoring::status)));
    config.service(at("/v1/project_score/{id}/backfill").route(post().to(online_scoring::backfill)));
}

/// Registers the invocations of functions.
fn invocations_of(config: &mut Routes<'_>) {
    for path in INVOKE_PATHS {
        config.service(at(path).route(post().to(invocations::by_body)));
    }
    config.service(at("/v1/function/{id}/invoke").route(post().to(invocations::by_id)));
    config.service(at("/function/sandbox-list").route(post().to(invocations::sandboxes::list)));
}

/// Registers evaluations.
fn evaluations_of(config: &mut Routes<'_>) {
    config.service(at("/v1/eval").route(post().to(evaluations::start)).route(get().to(evaluations::list)));
    config.service(at("/function/eval").route(post().to(evaluations::start)));
    config.service(at("/v1/eval/remote-list").route(post().to(evaluations::remote_list)));
    config.service(at("/v1/eval/{id}").route(get().to(evaluations::get)));
    config.service(at("/v1/eval/{id}/cancel").route(post().to(evaluations::cancel)));
    config.service(at("/v1/eval/{id}/report").route(get().to(evaluations::report)));
}

/// Registers routes without a description: the console page, its files, browser reports, and Langfuse's API.
fn register_pages(config: &mut ServiceConfig) {
    let of = |path: &str| resource(path.to_owned()).default_service(to(unrouted));
    config
        .service(of("/console/csp").route(web::post().to(console::reports::report)))
        .service(of("/app").route(web::get().to(console::page)))
        .service(of("/app/assets/{path:.*}").route(web::get().to(console::asset)))
        .service(of("/app/{path:.*}").route(web::get().to(console::page)));
    // The reference of these operations is that of Langfuse.
    config.service(resource(format!("{LANGFUSE_PATH}/{{path:.*}}")).default_service(to(langfuse::serve)));
}

/// Registers the paths of the AI gateway, which share one handler and follow all other routes.
fn gateway_of(config: &mut Routes<'_>) {
    for prefix in paths::PREFIXES {
        for path in ["chat/completions", "completions", "auto", "embeddings"] {
            config.service(at(&format!("{prefix}/{path}")).route(post().to(gateway::calls::handle)));
        }
        config.service(at(prefix).route(get().to(gateway::calls::handle)));
        config.service(
            at_all_below(prefix).route(get().to(gateway::calls::handle)).route(post().to(gateway::calls::handle)),
        );
    }
    for path in paths::ROOT_PATHS {
        if path.ends_with("/models") {
            config.service(at(path).route(get().to(gateway::calls::handle)));
            config.service(
                at_all_below(path).route(get().to(gateway::calls::handle)).route(post().to(gateway::calls::handle)),
            );
        } else {
            config.service(at(path).route(post().to(gateway::calls::handle)));
        }
    }
}

/// Registers the named versions of datasets.
fn snapshots_of(config: &mut Routes<'_>) {
    config.service(
        at("/v1/dataset_snapshot")
            .route(post().to(snapshots::create))
            .route(put().to(snapshots::replace))
            .route(get().to(|call| records::list(&kinds::DATASET_SNAPSHOT, call))),
    );
    config.service(
        at("/v1/dataset_snapshot/{id}")
            .route(get().to(|call| records::get(&kinds::DATASET_SNAPSHOT, call)))
            .route(patch().to(|call, payload| records::patch(&kinds::DATASET_SNAPSHOT, call, payload)))
            .route(delete().to(|call| records::delete(&kinds::DATASET_SNAPSHOT, call))),
    );
    config.describe(|| openapi::records("/v1/dataset_snapshot", &kinds::DATASET_SNAPSHOT, Changes::ByPatchAndPut));
    config.service(at("/xact-id").route(get().to(snapshots::current)));
}

/// Registers the routes of older SDKs and JavaScript SDKs, which serve the same records as `/v1`.
fn registration_of(config: &mut Routes<'_>) {
    config
        .service(at("/api/project").route(get().to(registering::one_project)))
        .service(at("/api/project/register").route(post().to(registering::project)))
        .service(at("/api/project/get").route(post().to(registering::projects)))
        .service(at("/api/experiment/register").route(post().to(registering::experiment)))
        .service(at("/api/experiment/get").route(post().to(registering::experiments)))
        .service(at("/api/base_experiment/get_id").route(post().to(registering::base_experiment)))
        .service(at("/api/dataset/register").route(post().to(registering::dataset)))
        .service(at("/api/dataset/get").route(post().to(registering::datasets)))
        .service(at("/api/dataset_snapshot/register").route(post().to(registering::snapshot)))
        .service(
            at("/api/dataset_snapshot/get")
                .route(post().to(registering::list_snapshots))
                .route(get().to(registering::snapshots_by_query)),
        )
        .service(at("/api/project_automation/register").route(post().to(registering::automation)))
        .service(at("/api/organization/patch_id").route(post().to(registering::patch_organization)))
        .service(at("/api/self/get_object_info").route(post().to(registering::object_info)));
    for kind in [&kinds::DATASET_SNAPSHOT, &kinds::PROJECT_AUTOMATION] {
        let name = kind.name();
        let patched = at(&format!("/api/{name}/patch_id"))
            .route(post().to(move |call, payload| registering::patch(kind, call, payload)));
        let deleted = at(&format!("/api/{name}/delete_id"))
            .route(post().to(move |call, payload| registering::delete(kind, call, payload)));
        config.service(patched).service(deleted);
    }
}

/// Registers attachments, code of functions, and rows that are too large for one request.
///
/// The ticket in the last path is itself a credential, so callers need no other one.
fn files_of(config: &mut Routes<'_>) {
    config
        .service(at("/attachment").route(post().to(files::ask)).route(get().to(files::look)))
        .service(at("/attachment/status").route(post().to(files::note)))
        .service(at("/logs3/overflow").route(post().to(files::overflow)))
        .service(at("/function/code").route(post().to(files::code)))
        .service(at("/attachment/bytes/{ticket}").route(put().to(files::upload)).route(get().to(files::download)));
}

/// Registers the assignments of versions to environments.
fn environments_of(config: &mut Routes<'_>) {
    config.service(
        at("/environment-object/{object_type}/{id}")
            .route(get().to(environments::list))
            .route(post().to(environments::add)),
    );
    config.service(
        at("/environment-object/{object_type}/{id}/{slug}")
            .route(get().to(environments::get))
            .route(put().to(environments::set))
            .route(delete().to(environments::remove)),
    );
}

/// Registers views, which are addressed together with their objects.
fn views_of(config: &mut Routes<'_>) {
    config.service(
        at("/v1/view")
            .route(post().to(|call, payload| records::create(&kinds::VIEW, call, payload)))
            .route(put().to(|call, payload| records::replace(&kinds::VIEW, call, payload)))
            .route(get().to(views::list)),
    );
    config.service(
        at("/v1/view/{id}")
            .route(get().to(views::get))
            .route(patch().to(views::patch))
            .route(delete().to(views::delete)),
    );
}

/// Registers simulated users, whose project is in the path.
fn simulated_users_of(config: &mut Routes<'_>) {
    config.service(
        at("/v1/project/{project_id}/simulated_user")
            .route(post().to(simulated_users::create))
            .route(get().to(simulated_users::list)),
    );
    config.service(
        at("/v1/project/{project_id}/simulated_user/{id}")
            .route(get().to(simulated_users::get))
            .route(patch().to(simulated_users::patch))
            .route(delete().to(simulated_users::delete)),
    );
}

/// Registers the summaries of experiments and datasets.
fn summaries_of(config: &mut Routes<'_>) {
    config.service(at("/v1/experiment/{id}/summarize").route(get().to(experiments::experiment)));
    config.service(at("/v1/dataset/{id}/summarize").route(get().to(summaries::dataset)));
    // Older clients request the same summaries at these paths.
    config.service(at("/experiment-comparison2").route(get().to(experiments::comparison)));
    config.service(at("/dataset-summary").route(get().to(summaries::dataset_total)));
}

/// Registers the logins of people, who have no credential yet.
fn logins(config: &mut Routes<'_>) {
    config
        .service(at("/.well-known/oauth-authorization-server").route(get().to(oauth::metadata)))
        .service(at("/oauth/authorize").route(get().to(oauth::authorize)))
        .service(at("/oauth/callback").route(get().to(oauth::callback)))
        .service(at("/oauth/invitations").route(post().to(oauth::reply)))
        .service(at("/oauth/token").route(post().to(oauth::token)))
        .service(at("/oauth/revoke").route(post().to(oauth::revoke)))
        .service(at("/oauth/register").route(post().to(oauth::registration::register)))
        .service(at("/api/cli/wizard-session/create").route(post().to(setup::create)))
        .service(at("/api/cli/wizard-session/login").route(get().to(setup::login)))
        .service(at("/api/cli/wizard-session/allow").route(post().to(setup::allow)))
        .service(at("/api/cli/wizard-session/poll").route(get().to(setup::poll)));
}

/// Registers the MCP server, and the metadata by which its clients find the login.
fn mcp_of(config: &mut Routes<'_>) {
    config
        .service(at(MCP_PATH).route(post().to(mcp::post)))
        .service(at(METADATA_PATH).route(get().to(mcp::protected_resource)))
        .service(at(&format!("{METADATA_PATH}{MCP_PATH}")).route(get().to(mcp::protected_resource)));
}

/// Registers the routes of the separate port for metrics.
pub fn metrics_alone(config: &mut ServiceConfig) {
    let config = &mut Routes::of(config);
    public(config);
    config.service(at("/metrics").route(get().to(service::metrics_on_own_port)));
    config.default_service(to(unrouted));
}

/// Registers the routes that need no credential.
fn public(config: &mut Routes<'_>) {
    config.service(at("/v1").route(get().to(service::greeting)));
    config.service(at("/healthz").route(get().to(service::healthz)));
    config.service(at("/readyz").route(get().to(service::readyz)));
}

fn records_of(config: &mut Routes<'_>, path: &str, kind: &'static RecordKind, changes: Changes) {
    let mut many = at(path)
        .route(post().to(move |call, payload| records::create(kind, call, payload)))
        .route(get().to(move |call| records::list(kind, call)));
    if changes == Changes::ByPatchAndPut {
        many = many.route(put().to(move |call, payload| records::replace(kind, call, payload)));
    }
    let mut one = at(&format!("{path}/{{id}}"))
        .route(get().to(move |call| records::get(kind, call)))
        .route(delete().to(move |call| records::delete(kind, call)));
    if changes != Changes::Never {
        one = one.route(patch().to(move |call, payload| records::patch(kind, call, payload)));
    }
    config.service(many).service(one);
    config.describe(|| openapi::records(path, kind, changes));
}

fn definitions_of(config: &mut Routes<'_>, path: &str, definition: Definition) {
    let many = at(path)
        .route(post().to(move |call, payload| functions::create(definition, call, payload)))
        .route(put().to(move |call, payload| functions::replace(definition, call, payload)))
        .route(get().to(move |call| functions::list(definition, call)));
    let one = at(&format!("{path}/{{id}}"))
        .route(get().to(move |call| functions::get(definition, call)))
        .route(patch().to(move |call, payload| functions::patch(definition, call, payload)))
        .route(delete().to(move |call| functions::delete(definition, call)));
    config.service(many).service(one);
    config.describe(|| openapi::definitions(path, definition));
}

/// Registers the keys of AI providers.
fn secrets_of(config: &mut Routes<'_>) {
    let many = at("/v1/ai_secret")
        .route(post().to(|call, payload| records::create(&kinds::AI_SECRET, call, payload)))
        .route(put().to(|call, payload| records::replace(&kinds::AI_SECRET, call, payload)))
        .route(get().to(|call| records::list(&kinds::AI_SECRET, call)))
        .route(delete().to(secrets::delete));
    let one = at("/v1/ai_secret/{id}")
        .route(get().to(|call| records::get(&kinds::AI_SECRET, call)))
        .route(patch().to(|call, payload| records::patch(&kinds::AI_SECRET, call, payload)))
        .route(delete().to(|call| records::delete(&kinds::AI_SECRET, call)));
    config.service(many).service(one);
    config.service(at("/api/ai_secret/get").route(post().to(secrets::of_organization)));
}

/// Registers grants, users and organizations.
///
/// Paths with fixed words precede paths with ids, which would match these words too.
fn access_of(config: &mut Routes<'_>) {
    let acls = at("/v1/acl")
        .route(post().to(access::create_acl))
        .route(get().to(access::acls))
        .route(delete().to(access::delete_acl));
    let acl = at("/v1/acl/{id}")
        .route(get().to(|call| records::get(&kinds::ACL, call)))
        .route(delete().to(|call| records::delete(&kinds::ACL, call)));
    config
        .service(acls)
        .service(at("/v1/acl/batch_update").route(post().to(access::update_acls)))
        // One generated client uses this spelling.
        .service(at("/v1/acl/batch-update").route(post().to(access::update_acls)))
        .service(at("/v1/acl/list_org").route(get().to(access::acls_of_organization)))
        .service(acl)
        .service(at("/v1/user").route(get().to(access::users)))
        .service(at("/v1/user/{id}").route(get().to(access::user)))
        .service(at("/v1/organization").route(get().to(access::organizations)))
        .service(at("/v1/organization/api_keys").route(get().to(|call| records::list(&kinds::API_KEY, call))))
        .service(at("/v1/organization/members").route(patch().to(access::change_members)))
        .service(at("/v1/organization/invitations").route(get().to(access::invitations_of_organization)))
        .service(
            at("/v1/organization/{id}")
                .route(get().to(access::organization))
                .route(patch().to(access::patch_organization)),
        );
    config
        .service(at("/v1/invitation").route(get().to(access::invitations)))
        .service(at("/v1/invitation/{id}/accept").route(post().to(access::accept_invitation)))
        .service(at("/v1/invitation/{id}/decline").route(post().to(access::decline_invitation)));
}

/// Registers service tokens. Names are not unique, so both POST and PUT create another token.
fn tokens_of(config: &mut Routes<'_>) {
    let tokens = at("/v1/service_token")
        .route(post().to(|call, payload| records::create(&kinds::SERVICE_TOKEN, call, payload)))
        .route(put().to(|call, payload| records::create(&kinds::SERVICE_TOKEN, call, payload)))
        .route(get().to(|call| records::list(&kinds::SERVICE_TOKEN, call)))
        .route(delete().to(access::delete_service_token));
    let token = at("/v1/service_token/{id}")
        .route(get().to(|call| records::get(&kinds::SERVICE_TOKEN, call)))
        .route(delete().to(|call| records::delete(&kinds::SERVICE_TOKEN, call)));
    config.service(tokens).service(token);
}

fn rows_of(config: &mut Routes<'_>, path: &str, kind: ObjectKind) {
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
    config.describe(|| descriptions::rows::rows(path, kind));
}

/// Redirects browsers to the console, and programs to the description of the API.
fn first_page(request: &HttpRequest) -> HttpResponse {
    let accepted = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_served = request.app_data::<Data<Edge>>().is_some_and(|edge| edge.console.config.enabled);
    match is_served && accepted.contains("text/html") {
        true => HttpResponse::SeeOther().insert_header((header::LOCATION, "/app")).finish(),
        false => HttpResponse::Found().insert_header((header::LOCATION, "/docs")).finish(),
    }
}

/// Handles paths without a route. Only authenticated callers learn which operations are not supported yet.
pub async fn unrouted(request: HttpRequest) -> HandlerResult {
    let (method, path) = (request.method().clone(), request.path().to_owned());
    if path == "/" && (method == Method::GET || method == Method::HEAD) {
        return Ok(first_page(&request));
    }
    match lookup(method.as_str(), &path) {
        PathLookup::Operation => {
            let _who = Call::of(request).await?;
            Err(Refusal::new(
                ErrorKind::NotImplemented,
                format!("{method} {path} is part of the API, but this server does not support it yet"),
            ))
        }
        PathLookup::OtherMethods(methods) => {
            let allow = methods.join(", ");
            let mut refusal = Refusal::new(
                ErrorKind::MethodNotAllowed,
                format!("{path} does not support {method}; it supports {allow}"),
            );
            refusal.allow = Some(allow);
            Err(refusal)
        }
        PathLookup::Unknown => {
            Err(Refusal::new(ErrorKind::NotFound, format!("this path does not exist; {}", suggestions::hint(&path))))
        }
    }
}
