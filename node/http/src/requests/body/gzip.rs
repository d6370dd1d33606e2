//! Decompression of bodies in gzip, which may consist of several members.

use std::io::Read;

use assay_node_limits::Budget;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use super::Body;
use crate::requests::background::in_background;
use crate::responses::refusal::{ErrorKind, Refusal};

impl Body {
    /// Decompresses the body, which may have at most `bytes_max` bytes then.
    pub(super) async fn unpacked(self, budget: &Budget, bytes_max: usize) -> Result<Body, Refusal> {
        let Body { bytes: packed, mut held, who, parsed } = self;
        let too_large = || {
            let why = format!("the decompressed body is larger than {bytes_max} bytes");
            Refusal::new(ErrorKind::TooLarge, why)
        };
        let claimed = claimed_bytes(&packed, bytes_max);
        // The reservation comes first, because the decompressed body may be a thousand times as large.
        who.grow(budget, &mut held, claimed as u64).await?;
        let first = packed.clone();
        let bytes = match in_background(move || unpack(&first, claimed)).await? {
            Some(bytes) => bytes,
            None if claimed < bytes_max => {
                who.grow(budget, &mut held, (bytes_max - claimed) as u64).await?;
                in_background(move || unpack(&packed, bytes_max)).await?.ok_or_else(too_large)?
            }
            None => return Err(too_large()),
        };
        held.shrink(held.amount().saturating_sub(bytes.len() as u64));
        Ok(Body { bytes, held, who, parsed })
    }
}

/// Returns the decompressed size that a gzip body claims in its last four bytes, up to `bytes_max`.
///
/// The claim may be false. In a body of several members it is that of the last one.
fn claimed_bytes(packed: &[u8], bytes_max: usize) -> usize {
    let last = packed.last_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length) as usize);
    if last >= packed.len() { last.min(bytes_max) } else { bytes_max }
}

/// Decompresses a body; `None` if it has more than `most` bytes.
fn unpack(packed: &[u8], most: usize) -> Result<Option<Bytes>, Refusal> {
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(packed).take(most as u64 + 1);
    let read = reader.read_to_end(&mut unpacked);
    read.map_err(|why| Refusal::bad(format!("the body is not valid gzip: {why}")))?;
    Ok((unpacked.len() <= most).then(|| unpacked.into()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use assay_node_limits::{Holder, Refusals};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tokio::time::Instant;

    use super::*;
    use crate::requests::admission::Applicant;
    use crate::requests::wait::{REQUEST_WAIT, Wait};

    const BYTES_MAX: usize = 1 << 20;

    fn member(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("packs");
        encoder.finish().expect("packs")
    }

    async fn unpacked(packed: Vec<u8>) -> Result<Body, Refusal> {
        let budget = Budget::new("test", 8 << 20, &Refusals::default());
        let held = budget.try_acquire(Holder::ANONYMOUS, packed.len() as u64).expect("memory is free");
        let who = Applicant { holder: Holder::ANONYMOUS, wait: Wait::new(Instant::now() + REQUEST_WAIT) };
        let body = Body { bytes: packed.into(), held, who, parsed: budget.clone() };
        body.unpacked(&budget, BYTES_MAX).await
    }

    /// The size of the last member was taken for that of the body, which was refused as too large.
    #[actix_web::test]
    async fn a_body_of_several_members_is_whole() {
        let (first, last) = (vec![b'a'; 100_000], vec![b'b'; 1_000]);
        let packed = [member(&first), member(&last)].concat();
        assert!(claimed_bytes(&packed, BYTES_MAX) < first.len(), "the claim is that of the last member");
        let body = unpacked(packed).await.expect("unpacks");
        assert_eq!(body.bytes, [first, last].concat());
        assert_eq!(body.held.amount(), body.bytes.len() as u64);
    }

    #[actix_web::test]
    async fn the_limit_applies_to_all_members_together() {
        let half = member(&vec![b'a'; BYTES_MAX / 2]);
        assert!(unpacked([half.clone(), half.clone()].concat()).await.is_ok());
        let refused = unpacked([half.clone(), half, member(b"a")].concat()).await.expect_err("too large");
        assert_eq!(refused.kind, ErrorKind::TooLarge);
        assert!(refused.message.contains(&BYTES_MAX.to_string()), "{}", refused.message);
        assert_eq!(unpacked(b"nonsense".to_vec()).await.expect_err("no gzip").kind, ErrorKind::BadRequest);
    }
}
