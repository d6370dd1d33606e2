//! Pages and images of the guide, built into the program.

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

/// Pages of the guide.
pub(crate) const PAGES: &[Page] = &[
    page!("introduction"),
    page!("quickstart"),
    page!("install"),
    page!("sdks"),
    page!("opentelemetry"),
    page!("coming-from-langfuse"),
    page!("import"),
    page!("console"),
    page!("query-language"),
    page!("query-api"),
    page!("datasets-and-experiments"),
    page!("prompts-and-functions"),
    page!("running-prompts"),
    page!("scorers"),
    page!("judges"),
    page!("code-functions"),
    page!("online-scoring"),
    page!("evaluations-from-ci"),
    page!("coding-agents"),
    page!("attachments"),
    page!("access-control"),
    page!("gateway"),
    page!("gateway-providers"),
    page!("gateway-budgets"),
    page!("gateway-cache"),
    page!("clusters"),
    page!("operations"),
    page!("monitoring"),
    page!("backups"),
    page!("limits"),
    page!("security"),
    page!("sandbox"),
    page!("docker"),
    page!("kubernetes"),
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

/// Returns the paths of all pages below the root of the guide, with their Markdown.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|page| (page.path, page.markdown))
}

/// Image of the guide.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Path below the root of the guide.
    path: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
}

macro_rules! picture {
    ($name:literal) => {
        Image {
            path: concat!("images/", $name, ".webp"),
            content_type: "image/webp",
            bytes: include_bytes!(concat!("../images/", $name, ".webp")),
        }
    };
}

/// Images of the guide. The command `npm run pictures` in `node/console` produces the screenshots of the console.
const IMAGES: &[Image] = &[
    Image {
        path: "images/architecture.svg",
        content_type: "image/svg+xml",
        bytes: include_bytes!("../images/architecture.svg"),
    },
    picture!("console-logs-light"),
    picture!("console-logs-dark"),
    picture!("console-trace-light"),
    picture!("console-trace-dark"),
    picture!("console-comparison-light"),
    picture!("console-comparison-dark"),
];

/// Returns the image at a path below the root of the guide.
pub fn image(path: &str) -> Option<&'static Image> {
    IMAGES.iter().find(|image| image.path == path)
}
