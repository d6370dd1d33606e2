//! Node bundles: one CommonJS text in UTF-8, plain or as one gzip member.

use std::io::{self, Read};

use flate2::bufread::GzDecoder;

use crate::error::BundleRefusal;
use crate::unpack::{BundleSink, MeteredSink};

/// Name of the text of a Node bundle in its directory.
pub const NODE_BUNDLE_FILE: &str = "bundle.cjs";

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// Check of UTF-8 over chunks, which may divide a character.
#[derive(Debug, Default)]
struct Utf8Check {
    /// Beginning of a character whose rest is in the next chunk, at most 3 bytes between chunks.
    pending: Vec<u8>,
    /// Bytes of complete characters.
    valid: u64,
}

/// Reads the text. Each client sends one gzip member; more of them, or other bytes, are refused.
pub(super) fn read_text<S: BundleSink>(stored: &[u8], sink: &mut MeteredSink<'_, S>) -> Result<(), S::Error> {
    if stored.starts_with(ZIP_MAGIC) {
        return Err(BundleRefusal::ZipForNode.into());
    }
    if !stored.starts_with(GZIP_MAGIC) {
        return write_text(&mut &*stored, sink);
    }
    let mut decoder = GzDecoder::new(stored);
    write_text(&mut decoder, sink)?;
    match decoder.into_inner().len() {
        0 => Ok(()),
        bytes => Err(BundleRefusal::AfterGzip { bytes }.into()),
    }
}

fn write_text<S: BundleSink>(source: &mut impl Read, sink: &mut MeteredSink<'_, S>) -> Result<(), S::Error> {
    let mut check = Utf8Check::default();
    let damage = |error: io::Error| BundleRefusal::Gzip(error.to_string());
    let bytes = sink.file(NODE_BUNDLE_FILE, false, source, damage, |chunk| check.add(chunk))?;
    check.finish()?;
    if bytes == 0 { Err(BundleRefusal::Empty.into()) } else { Ok(()) }
}

impl Utf8Check {
    fn add(&mut self, chunk: &[u8]) -> Result<(), BundleRefusal> {
        self.pending.extend_from_slice(chunk);
        let (valid, is_invalid) = match std::str::from_utf8(&self.pending) {
            Ok(text) => (text.len(), false),
            Err(error) => (error.valid_up_to(), error.error_len().is_some()),
        };
        self.valid += valid as u64;
        self.pending.drain(..valid);
        if is_invalid { Err(self.refusal()) } else { Ok(()) }
    }

    fn finish(&self) -> Result<(), BundleRefusal> {
        if self.pending.is_empty() { Ok(()) } else { Err(self.refusal()) }
    }

    fn refusal(&self) -> BundleRefusal {
        BundleRefusal::NotUtf8 { offset: self.valid }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(chunks: &[&[u8]]) -> Result<(), BundleRefusal> {
        let mut check = Utf8Check::default();
        chunks.iter().try_for_each(|chunk| check.add(chunk))?;
        check.finish()
    }

    #[test]
    fn a_character_that_is_cut_at_the_end_is_refused() {
        assert_eq!(check(&[b"ab", "\u{20ac}".as_bytes()]), Ok(()));
        assert_eq!(check(&[b"ab", &"\u{20ac}".as_bytes()[..2]]), Err(BundleRefusal::NotUtf8 { offset: 2 }));
    }

    proptest! {
        #[test]
        fn chunks_are_judged_as_their_concatenation(
            text in "[a\u{e9}\u{20ac}\u{1f600}]{0,12}",
            broken in proptest::option::of((0_usize..48, any::<u8>())),
            cuts in prop::collection::vec(0_usize..48, 0..4),
        ) {
            let mut bytes = text.into_bytes();
            if let Some((at, byte)) = broken && at < bytes.len() {
                bytes[at] = byte;
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let expected = std::str::from_utf8(&bytes).map(|_| ());
            let expected = expected.map_err(|error| BundleRefusal::NotUtf8 { offset: error.valid_up_to() as u64 });
            prop_assert_eq!(check(&chunks), expected);
        }
    }
}
