//! SHA-256 of data in pieces, for checksums that other programs compute as well.

use std::fmt;

use ring::digest::{Context, SHA256};

#[derive(Clone)]
pub struct Sha256(Context);

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sha256")
    }
}

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256(Context::new(&SHA256))
    }
}

impl Sha256 {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> [u8; 32] {
        let mut sum = [0; 32];
        sum.copy_from_slice(self.0.finish().as_ref());
        sum
    }

    /// Returns 64 hexadecimal digits.
    pub fn hex(self) -> String {
        use fmt::Write;
        self.finish().iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_abc_is_the_known_one() {
        let mut sum = Sha256::default();
        sum.update(b"a");
        sum.update(b"bc");
        assert_eq!(sum.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
