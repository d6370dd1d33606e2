//! One file's bytes: as seen now, as durable, and which blocks differ.

use std::collections::BTreeSet;

use super::Dice;

/// The unit that a power cut keeps, loses or tears, in bytes.
const BLOCK_BYTES: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Numbers of blocks written since the last sync.
    dirty: BTreeSet<usize>,
}

impl Content {
    pub fn len(&self) -> u64 {
        self.current.len() as u64
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = offset as usize;
        let end = start + bytes.len();
        if end > self.current.len() {
            self.set_len(end as u64);
        }
        self.current[start..end].copy_from_slice(bytes);
        self.mark(start, end);
    }

    /// False if the file ends before the buffer is full.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(buffer.len() as u64) else { return false };
        if end > self.len() {
            return buffer.is_empty();
        }
        buffer.copy_from_slice(&self.current[offset as usize..end as usize]);
        true
    }

    pub fn set_len(&mut self, length: u64) {
        let before = self.current.len();
        let length = length as usize;
        self.current.resize(length, 0);
        if length > before {
            self.mark(before, length);
        }
    }

    pub fn sync(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for block in std::mem::take(&mut self.dirty) {
            let start = (block * BLOCK_BYTES).min(self.current.len());
            let end = (start + BLOCK_BYTES).min(self.current.len());
            self.durable[start..end].copy_from_slice(&self.current[start..end]);
        }
    }

    /// False if the file has no such bit.
    pub fn flip(&mut self, bit: u64) -> bool {
        let Ok(at) = usize::try_from(bit / 8) else { return false };
        let mask = 1 << (bit % 8);
        if let Some(byte) = self.durable.get_mut(at) {
            *byte ^= mask;
        }
        match self.current.get_mut(at) {
            Some(byte) => *byte ^= mask,
            None => return false,
        }
        true
    }

    pub fn after_power_cut(&self, dice: &mut Dice) -> Content {
        let length = self.length_after_power_cut(dice);
        let mut found = self.durable.clone();
        found.resize(length, 0);
        for block in &self.dirty {
            let start = (block * BLOCK_BYTES).min(length);
            let end = (start + BLOCK_BYTES).min(length);
            // Old, new before a tear, new behind a tear, new.
            let size = end - start;
            let tear = (dice.next() as usize) % (size + 1);
            let new = match dice.choose(4) {
                0 => continue,
                1 => start..start + tear,
                2 => start + tear..end,
                _ => start..end,
            };
            for at in new {
                found[at] = self.current.get(at).copied().unwrap_or(0);
            }
        }
        Content { current: found.clone(), durable: found, dirty: BTreeSet::new() }
    }

    fn length_after_power_cut(&self, dice: &mut Dice) -> usize {
        let (old, new) = (self.durable.len(), self.current.len());
        if old == new {
            return new;
        }
        let between = old.min(new) + (dice.next() as usize) % (old.abs_diff(new) + 1);
        match dice.choose(3) {
            0 => old,
            1 => between,
            _ => new,
        }
    }

    fn mark(&mut self, start: usize, end: usize) {
        self.dirty.extend(start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES));
    }
}
