//! Compression of responses for clients that accept it.

use std::io::{self, Write};

use actix_web::http::header::{self, HeaderMap};
use assay_node_query::render::Compressor;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Lowest size of a response that is worth compressing.
pub const PACKED_BYTES_MIN: usize = 1 << 10;

/// Encoder of the bytes of a response.
#[derive(Debug)]
pub enum Packing {
    Plain,
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Packing {
    /// Returns a gzip encoder if the client's `Accept-Encoding` allows it, or else no encoder.
    pub fn of(headers: &HeaderMap) -> Packing {
        let asked = headers.get_all(header::ACCEPT_ENCODING).filter_map(|value| value.to_str().ok());
        let listed: Vec<(&str, bool)> = asked.flat_map(|asked| asked.split(',')).map(listed).collect();
        // An entry for gzip itself takes precedence over the wildcard.
        let accepts = |name: &str| {
            let mut weights = listed.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).peekable();
            weights.peek().is_some().then(|| weights.any(|(_, is_accepted)| *is_accepted))
        };
        if accepts("gzip").or_else(|| accepts("*")).unwrap_or(false) { Packing::gzip() } else { Packing::Plain }
    }

    fn gzip() -> Packing {
        Packing::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::fast())))
    }

    /// Returns the value of `Content-Encoding`.
    pub fn name(&self) -> Option<&'static str> {
        matches!(self, Packing::Gzip(_)).then_some("gzip")
    }

    /// Encodes bytes, and returns the output so far, which may be empty.
    pub fn put(&mut self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        match self {
            Packing::Plain => Ok(bytes),
            Packing::Gzip(encoder) => {
                encoder.write_all(&bytes)?;
                Ok(std::mem::take(encoder.get_mut()))
            }
        }
    }

    /// Ends the encoding, and returns the remaining output.
    pub fn end(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Packing::Plain => Ok(Vec::new()),
            Packing::Gzip(encoder) => {
                encoder.try_finish()?;
                Ok(std::mem::take(encoder.get_mut()))
            }
        }
    }
}

/// Returns the name of an entry of `Accept-Encoding`, and whether its weight is above 0.
fn listed(entry: &str) -> (&str, bool) {
    let mut parts = entry.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = |part: &str| {
        let (name, value) = part.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("q") { value.trim().parse::<f32>().ok() } else { None }
    };
    (name, parts.find_map(weight) != Some(0.0))
}

impl Compressor for Packing {
    fn put(&mut self, bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
        Packing::put(self, bytes)
    }

    fn end(&mut self) -> std::io::Result<Vec<u8>> {
        Packing::end(self)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use actix_web::http::header::HeaderValue;

    use super::*;

    fn asked(text: &str) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(text).expect("a header"));
        Packing::of(&headers).name()
    }

    #[test]
    fn who_takes_gzip_gets_it() {
        for takes in ["gzip", "br, GZIP;q=0.5", "deflate, *", "gzip, deflate", "*;q=0, gzip", "br;q=0, *;q=0.1"] {
            assert_eq!(asked(takes), Some("gzip"), "{takes}");
        }
        for not in ["", "br", "gzip;q=0", "identity", "gzip; q=0.0", "gzip;q=0, *", "*, GZIP; Q = 0.000", "*;q=0"] {
            assert_eq!(asked(not), None, "{not}");
        }
        assert_eq!(Packing::of(&HeaderMap::new()).name(), None);
    }

    #[test]
    fn what_was_packed_in_parts_is_whole() {
        let mut packing = Packing::gzip();
        let mut packed = Vec::new();
        for part in 0..200 {
            packed.extend(packing.put(format!("part {part} ").repeat(500).into_bytes()).expect("packs"));
        }
        packed.extend(packing.end().expect("ends"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("unpacks");
        let expected: String = (0..200).map(|part| format!("part {part} ").repeat(500)).collect();
        assert_eq!(text, expected);
        assert!(packed.len() * 10 < text.len());
    }
}
