//! The pages of the guide, as they are built into the program.

/// Page of the guide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// Path below the root of the guide, without extension.
    pub path: &'static str,
    pub markdown: &'static str,
}

pub(crate) const SUMMARY: &str = include_str!("../SUMMARY.md");

macro_rules! page {
    ($path:literal) => {
        Page { path: $path, markdown: include_str!(concat!("../", $path, ".md")) }
    };
}

/// All pages.
pub(crate) const PAGES: &[Page] = &[
    page!("introduction"),
    page!("quickstart"),
    page!("sdks"),
    page!("opentelemetry"),
    page!("console"),
    page!("query-language"),
    page!("query-api"),
    page!("datasets-and-experiments"),
    page!("prompts-and-functions"),
    page!("running-prompts"),
    page!("judges"),
    page!("attachments"),
    page!("access-control"),
    page!("gateway"),
    page!("gateway-providers"),
    page!("gateway-budgets"),
    page!("gateway-cache"),
    page!("clusters"),
    page!("operations"),
    page!("limits"),
    page!("security"),
    page!("docker"),
    page!("settings"),
    page!("errors"),
    page!("errors/BadGatewayError"),
    page!("errors/BadRequestError"),
    page!("errors/ConflictError"),
    page!("errors/ForbiddenError"),
    page!("errors/GatewayTimeoutError"),
    page!("errors/GoneError"),
    page!("errors/HeaderTooLargeError"),
    page!("errors/InsufficientStorageError"),
    page!("errors/InternalServerError"),
    page!("errors/MethodNotAllowedError"),
    page!("errors/NotFoundError"),
    page!("errors/NotImplementedError"),
    page!("errors/PayloadTooLargeError"),
    page!("errors/RequestTimeoutError"),
    page!("errors/ServiceUnavailableError"),
    page!("errors/TooManyRequestsError"),
    page!("errors/UnauthorizedError"),
    page!("errors/UnsupportedMediaTypeError"),
];

/// All images, by path below the root of the guide.
pub(crate) const IMAGES: &[(&str, &str)] = &[("images/architecture.svg", include_str!("../images/architecture.svg"))];
