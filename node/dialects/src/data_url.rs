//! Data URLs in base64, such as `data:image/png;base64,aGk=`.

/// Returns the media type, without its parameters, and the base64 text. None if the URL is of another form.
pub fn parse_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    Some((media_type.split(';').next().unwrap_or_default(), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_the_media_type_are_left_out() {
        assert_eq!(parse_data_url("data:image/png;base64,aGk="), Some(("image/png", "aGk=")));
        assert_eq!(parse_data_url("data:text/plain;charset=utf-8;base64,aGk="), Some(("text/plain", "aGk=")));
        assert_eq!(parse_data_url("data:;base64,"), Some(("", "")));
        for other in ["data:text/plain,a", "data:a,b;base64,c", "https://a.example/;base64,a", ""] {
            assert_eq!(parse_data_url(other), None, "{other}");
        }
    }
}
