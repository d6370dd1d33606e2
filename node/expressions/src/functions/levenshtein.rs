//! Levenshtein distance by Myers' algorithm over blocks of 64 characters. Each column of the distance table is held as
//! bits that say where it rises and where it falls (Hyyrö 2003).

use ahash::AHashMap;

use crate::bounds::Spent;

const BLOCK: usize = u64::BITS as usize;
const ASCII: usize = 128;
/// Cost of a step of one block, in bytes that could be read in that time.
const STEP_WORK: usize = 4;

/// Block of up to 64 characters of one text.
struct Block {
    ascii: [u64; ASCII],
    other: AHashMap<char, u64>,
    rises: u64,
    falls: u64,
    /// The bit of its last character.
    last: u64,
}

impl Block {
    fn new(chars: &[char]) -> Block {
        let mut block = Block {
            ascii: [0; ASCII],
            other: AHashMap::new(),
            rises: u64::MAX,
            falls: 0,
            last: 1 << (chars.len() - 1),
        };
        for (place, char) in chars.iter().enumerate() {
            match block.ascii.get_mut(*char as usize) {
                Some(places) => *places |= 1 << place,
                None => *block.other.entry(*char).or_default() |= 1 << place,
            }
        }
        block
    }

    /// Advances by one character of the other text. Takes the change of the distance above the block and returns the one
    /// below it.
    fn step(&mut self, char: char, above: i8) -> i8 {
        let places = match self.ascii.get(char as usize) {
            Some(places) => *places,
            None => self.other.get(&char).copied().unwrap_or(0),
        };
        let vertical = places | self.falls;
        let places = places | u64::from(above < 0);
        let equal = (((places & self.rises).wrapping_add(self.rises)) ^ self.rises) | places;
        let (up, down) = (self.falls | !(equal | self.rises), self.rises & equal);
        let below = i8::from(up & self.last != 0) - i8::from(down & self.last != 0);
        let (up, down) = ((up << 1) | u64::from(above > 0), (down << 1) | u64::from(above < 0));
        self.rises = down | !(vertical | up);
        self.falls = up & vertical;
        below
    }
}

/// Number of characters to insert, remove or replace; none if a bound of time or memory is exceeded.
pub(super) fn levenshtein(left: &str, right: &str, spent: &Spent<'_>) -> Option<usize> {
    if !spent.take((left.len() + right.len()) * size_of::<char>()) {
        return None;
    }
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let (short, long) = if left.len() <= right.len() { (&left, &right) } else { (&right, &left) };
    let before = short.iter().zip(long).take_while(|(one, other)| one == other).count();
    let (short, long) = (&short[before..], &long[before..]);
    let behind = short.iter().rev().zip(long.iter().rev()).take_while(|(one, other)| one == other).count();
    let (short, long) = (&short[..short.len() - behind], &long[..long.len() - behind]);
    if short.is_empty() {
        return Some(long.len());
    }
    if !spent.take(short.len().div_ceil(BLOCK) * size_of::<Block>()) {
        return None;
    }
    let mut blocks: Vec<Block> = short.chunks(BLOCK).map(Block::new).collect();
    let mut distance = short.len();
    for char in long {
        if !spent.works(blocks.len() * STEP_WORK) {
            return None;
        }
        match blocks.iter_mut().fold(1, |above, block| block.step(*char, above)) {
            1 => distance += 1,
            -1 => distance -= 1,
            _ => {}
        }
    }
    Some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation by the full table.
    fn slow(left: &str, right: &str) -> usize {
        let right: Vec<char> = right.chars().collect();
        let mut row: Vec<usize> = (0..=right.len()).collect();
        for (number, from) in left.chars().enumerate() {
            let mut diagonal = row[0];
            row[0] = number + 1;
            for (place, to) in right.iter().enumerate() {
                let replaced = diagonal + usize::from(from != *to);
                diagonal = row[place + 1];
                row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
            }
        }
        row[right.len()]
    }

    #[test]
    fn it_is_what_the_table_says() {
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for round in 0..400 {
            let alphabet: Vec<char> = ['a', 'b', 'ü', '日', 'c', 'd'].into_iter().take(2 + round % 5).collect();
            let mut text = |longest: usize| {
                let length = next(longest);
                (0..length).map(|_| alphabet[next(alphabet.len())]).collect::<String>()
            };
            let (left, right) = (text(300), text(if round % 2 == 0 { 300 } else { 70 }));
            assert_eq!(levenshtein(&left, &right, &Spent::new(None)), Some(slow(&left, &right)), "{left:?} {right:?}");
        }
    }
}
