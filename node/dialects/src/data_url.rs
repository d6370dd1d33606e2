//! Data URLs in base64, such as `data:image/png;base64,aGk=`, and the media types in them.
//!
//! Parameters of media types are left out in both directions, since some servers refuse them.

/// Returns the media type, without its parameters, and the base64 text. None if the URL is of another form.
pub fn parse_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((bare_media_type(head.strip_suffix(";base64")?), data))
}

/// Makes the URL of some base64 text.
pub fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{};base64,{data}", bare_media_type(media_type))
}

/// Returns a media type without its parameters.
pub fn bare_media_type(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
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
        assert_eq!(data_url("audio/l16; rate=24000;codec=pcm", "aGk="), "data:audio/l16;base64,aGk=");
    }
}
