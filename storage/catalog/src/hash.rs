//! FNV-1a in 64 and 128 bits: a fixed hash that reveals values changed by a faulty disk or replica.
//!
//! It does not protect against deliberate collisions. Pages have the store's own checksums.

const OFFSET_64: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME_64: u64 = 0x100_0000_01B3;
const OFFSET_128: u128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D;
const PRIME_128: u128 = 0x100_0000_0000_0000_0000_013B;

pub fn hash64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET_64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME_64))
}

/// Hash of several pieces, which equals the hash of their concatenation.
#[derive(Debug)]
pub struct Hash128(u128);

impl Default for Hash128 {
    fn default() -> Self {
        Hash128(OFFSET_128)
    }
}

impl Hash128 {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME_128));
    }

    pub fn finish(&self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_hold() {
        assert_eq!(hash64(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(hash64(b"foobar"), 0x85944171F73967E8);
        let mut hash = Hash128::default();
        hash.update(b"foo");
        hash.update(b"bar");
        assert_eq!(hash.finish(), 0x343E_1662_793C_64BF_6F0D_3597_BA44_6F18);
    }
}
