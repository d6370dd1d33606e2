//! HTML pages for people who log in, without scripts.

use assay_node_http::responses::response_headers::HTML;
use assay_node_http::web::{HttpResponse, StatusCode, header};

/// HTML page for a user, without scripts.
#[derive(Debug)]
pub(crate) struct Page<'p> {
    pub title: &'p str,
    pub heading: &'p str,
    /// Plain text.
    pub why: &'p str,
    /// HTML after the text.
    pub more: String,
    /// Whether the page has a form that this server receives.
    pub has_form: bool,
}

impl<'p> Page<'p> {
    pub fn not_logged_in(why: &'p str) -> Page<'p> {
        Page { title: "Not logged in", heading: "You are not logged in", why, more: String::new(), has_form: false }
    }

    pub fn back_to(self, url: &str) -> Page<'p> {
        let more = format!("<p><a href=\"{}\">Back to your program</a></p>", escaped(url));
        Page { more, ..self }
    }
}

pub(crate) fn page(status: StatusCode, page: &Page<'_>) -> HttpResponse {
    const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    // Browsers also apply `form-action` to redirects after a form, and a login ends at the client's URL.
    const POLICY_OF_FORMS: &str =
        "default-src 'none'; base-uri 'none'; form-action 'self' http: https:; frame-ancestors 'none'";
    let Page { title, heading, why, more, has_form } = page;
    let text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body>\
         <h1>{heading}</h1><p>{}</p>{more}</body></html>\n",
        escaped(why)
    );
    let policy = if *has_form { POLICY_OF_FORMS } else { POLICY };
    let mut answer = HttpResponse::build(status);
    answer.insert_header((header::CONTENT_TYPE, HTML)).insert_header((header::CONTENT_SECURITY_POLICY, policy));
    answer.insert_header((header::REFERRER_POLICY, "no-referrer"));
    answer.body(text)
}

pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_what_it_is_told_as_text() {
        assert_eq!(escaped("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }
}
