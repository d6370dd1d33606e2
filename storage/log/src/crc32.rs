//! CRC-32 (IEEE), as used in raft-engine's files, computed sixteen bytes at a time. Our own checksums are CRC32C, which
//! the processor implements.

const POLYNOMIAL: u32 = 0xedb8_8320;
const STEP_BYTES: usize = 16;

static TABLES: [[u32; 256]; STEP_BYTES] = tables();

const fn tables() -> [[u32; 256]; STEP_BYTES] {
    let mut tables = [[0; 256]; STEP_BYTES];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut step = 1;
    while step < STEP_BYTES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[step - 1][byte];
            tables[step][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        step += 1;
    }
    tables
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0u32;
    let (steps, rest) = bytes.as_chunks::<STEP_BYTES>();
    for step in steps {
        let mut mixed = *step;
        for (byte, of_sum) in mixed.iter_mut().zip(sum.to_le_bytes()) {
            *byte ^= of_sum;
        }
        sum = 0;
        for (place, byte) in mixed.iter().enumerate() {
            sum ^= TABLES[STEP_BYTES - 1 - place][*byte as usize];
        }
    }
    for byte in rest {
        sum = sum >> 8 ^ TABLES[0][((sum ^ u32::from(*byte)) & 0xff) as usize];
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_check_values_come_out_at_every_length() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
        assert_eq!(crc32(&[0; 32]), 0x190a_55ad);
    }
}
