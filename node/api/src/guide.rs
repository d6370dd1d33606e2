//! Handlers of the user guide, whose pages need no credential and run no scripts.

use assay_node_http::openapi::{Operation, text};
use assay_node_http::responses::HandlerResult;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::web::{HttpRequest, HttpResponse, HttpResponseBuilder, header};
use serde_json::json;

/// Tag of the operations in the OpenAPI document.
const TAG: &str = "Service";
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub async fn first_page() -> HandlerResult {
    page("")
}

pub async fn named_page(request: HttpRequest) -> HandlerResult {
    page(last_part(&request))
}

pub async fn error_page(request: HttpRequest) -> HandlerResult {
    page(&format!("errors/{}", last_part(&request)))
}

pub async fn image(request: HttpRequest) -> HandlerResult {
    let path = format!("images/{}", last_part(&request));
    let image = assay_node_guide::image(&path).ok_or_else(|| absent(&path))?;
    let style = "default-src 'none'; style-src 'unsafe-inline'";
    Ok(response(image.content_type, style).body(image.bytes))
}

fn page(path: &str) -> HandlerResult {
    let page = assay_node_guide::page(path).ok_or_else(|| absent(path))?;
    Ok(response("text/html; charset=utf-8", POLICY).body(page))
}

fn last_part(request: &HttpRequest) -> &str {
    request.match_info().get("name").unwrap_or_default()
}

fn response(content_type: &str, policy: &str) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, content_type));
    response.insert_header((header::CONTENT_SECURITY_POLICY, policy));
    response.insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    response
}

fn absent(path: &str) -> Refusal {
    Refusal::new(
        ErrorKind::NotFound,
        format!("the guide has no page `{path}`; {} lists the pages", assay_node_guide::ROOT),
    )
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let html =
        |path: &str, summary: &str| Operation::new("get", path, TAG, summary).public().answers_as("text/html", text());
    vec![
        html("/docs/guide", "The first page of the user guide"),
        html("/docs/guide/{name}", "A page of the user guide")
            .part("name", text())
            .also_refuses(&[ErrorKind::NotFound]),
        html("/docs/guide/errors/{name}", "The page of an error code")
            .part("name", json!({"type": "string", "enum": ErrorKind::ALL.map(ErrorKind::name)}))
            .also_refuses(&[ErrorKind::NotFound]),
        Operation::new("get", "/docs/guide/images/{name}", TAG, "An image of the user guide")
            .part("name", text())
            .public()
            .answers_as("image/svg+xml", text())
            .answers_as("image/webp", json!({"type": "string", "format": "binary"}))
            .also_refuses(&[ErrorKind::NotFound]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_code_has_a_page() {
        for kind in ErrorKind::ALL {
            let page = assay_node_guide::page(&format!("errors/{}", kind.name()));
            let page = page.unwrap_or_else(|| panic!("{} has no page", kind.name()));
            assert!(page.contains(kind.status().as_str()), "{}: its page names its status", kind.name());
        }
    }
}
