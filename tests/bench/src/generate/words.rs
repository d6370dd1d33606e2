//! English-like text: fragments of sentences from word tables, drawn with frequencies like those of real text (Zipf). A
//! sentence is four copies out of one table, so writing text costs little more than a memcpy, and still compresses like
//! text. Everything here is plain ASCII or UTF-8 that JSON need not escape, except for the escapes already written out.

use std::sync::OnceLock;

use super::dice::{Dice, hex};

const NOUNS: &str = "customer order invoice account answer question model request document ticket agent team \
product report payment service refund policy user context summary message record database project release error \
contract address delivery shipment subscription dataset experiment prompt response token budget meeting schedule \
campaign warehouse supplier manager engineer password device network server package feature discount receipt \
statement balance insurance claim appointment hospital patient doctor medicine recipe ingredient kitchen hotel \
flight passenger luggage airport station ticket window calendar reminder deadline estimate proposal draft chapter \
paragraph sentence translation language dictionary grammar lesson teacher student university library article \
journal reference citation hypothesis measurement temperature pressure sensor battery engine vehicle bridge road \
river mountain island weather forecast storm season harvest farmer market vendor price quantity inventory catalog \
category review rating comment feedback complaint resolution escalation transcript conversation assistant function \
parameter variable exception deployment cluster replica latency throughput dashboard alert incident timeline owner \
regulation committee council election budget treaty court judge witness evidence verdict café résumé naïveté";
const ADJECTIVES: &str = "new open current previous second large small final pending early late original complete \
missing correct wrong recent detailed monthly annual external internal public private urgent broken useful \
expensive cheap reliable fragile secure weak strong simple complex hidden visible local remote similar different \
customized automatic manual temporary permanent duplicate unique average unusual frequent rare technical legal \
medical financial regional national global historical modern ancient digital electronic environmental seasonal \
experimental theoretical practical relevant irrelevant ambiguous precise approximate quarterly overdue refundable";
const VERBS: &str = "needs has shows contains requires receives sends updates returns explains describes follows \
includes mentions confirms cancels changes checks creates closes reviews requests approves rejects replaces \
compares measures reports matches supports uses ignores finds keeps moves delivers cites translates summarizes \
estimates schedules postpones escalates resolves investigates documents verifies forwards calculates predicts \
reschedules contradicts supplements authorizes reimburses acknowledges reconciles invalidates";
const ADVERBS: &str = "usually already still only also never often quickly carefully automatically recently \
apparently probably directly partially eventually separately immediately consistently explicitly reluctantly \
occasionally independently";
const PREPOSITIONS: &str = "for of in with about from after before without under during within against between \
beyond toward regarding throughout alongside";
const DETERMINERS: &str = "the a this our their your every that another each her his its some any";
const STARTS: &str = "The This Our If,the When,a Because,the Please,note,that,the Each After,the Although,the A \
According,to,the,policy,the Unless,the In,practice,the As,discussed,the However,the For,example,the I,think,the";

/// Fragments of each of the four places in a sentence. Rare ones recur seldom enough to cost a compressor bytes.
const FRAGMENTS: usize = 8192;
/// Draws the table distinguishes; a power of two, 15 bits of one random number.
const DRAWS: usize = 1 << 15;
/// Seed of the vocabulary, which is the same for every stream; only the random walks through it differ.
const VOCABULARY_SEED: u64 = 0x00A5_5A7E;

#[derive(Debug)]
pub struct Vocabulary {
    /// All fragments, one after the other.
    text: String,
    /// Start of fragment `place * FRAGMENTS + rank`; one more at the end.
    starts: Vec<u32>,
    /// Ranks by draw.
    ranks: Vec<u16>,
}

impl Vocabulary {
    pub fn shared() -> &'static Vocabulary {
        static SHARED: OnceLock<Vocabulary> = OnceLock::new();
        SHARED.get_or_init(Vocabulary::new)
    }

    fn new() -> Vocabulary {
        let mut dice = Dice::new(VOCABULARY_SEED);
        let (mut text, mut starts) = (String::new(), vec![0]);
        for place in 0..4 {
            for _ in 0..FRAGMENTS {
                fragment(place, &mut dice, &mut text);
                starts.push(u32::try_from(text.len()).expect("a few hundred kilobytes"));
            }
        }
        Vocabulary { text, starts, ranks: zipf_ranks(FRAGMENTS, DRAWS) }
    }

    /// Appends sentences until `bytes` are reached (over by less than a sentence's last fragment).
    pub fn write(&self, bytes: usize, dice: &mut Dice, out: &mut Vec<u8>) {
        let end = out.len() + bytes;
        while out.len() < end {
            let draws = dice.roll();
            for place in 0..4 {
                out.extend_from_slice(self.fragment(place, (draws >> (15 * place)) as usize));
                if out.len() >= end {
                    return;
                }
            }
            // One sentence in four is followed by a reference, as real ones are; it does not compress.
            if draws >> 60 < 4 {
                out.extend_from_slice(b"Reference ");
                out.extend_from_slice(&hex(dice.roll()));
                out.extend_from_slice(b". ");
            }
        }
    }

    fn fragment(&self, place: usize, draw: usize) -> &[u8] {
        let at = place * FRAGMENTS + usize::from(self.ranks[draw % DRAWS]);
        &self.text.as_bytes()[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

fn fragment(place: usize, dice: &mut Dice, out: &mut String) {
    match place {
        0 => {
            out.push_str(&pick(STARTS, dice).replace(',', " "));
            described_noun(dice, out);
        }
        1 => {
            if dice.below(3) == 0 {
                word(ADVERBS, dice, out);
            }
            word(VERBS, dice, out);
        }
        2 => {
            word(DETERMINERS, dice, out);
            described_noun(dice, out);
        }
        _ => {
            word(PREPOSITIONS, dice, out);
            word(DETERMINERS, dice, out);
            described_noun(dice, out);
            out.push_str(["; ", ". ", ". ", ". ", ". ", "? ", ".\\n", ", \\\"as agreed\\\". "][dice.below(8) as usize]);
        }
    }
}

fn described_noun(dice: &mut Dice, out: &mut String) {
    if dice.below(5) < 2 {
        word(ADJECTIVES, dice, out);
    }
    word(NOUNS, dice, out);
}

fn word(table: &str, dice: &mut Dice, out: &mut String) {
    out.push(' ');
    out.push_str(pick(table, dice));
}

/// A word of a table; the first ones more often than the last.
fn pick<'a>(table: &'a str, dice: &mut Dice) -> &'a str {
    let words = table.split_ascii_whitespace();
    let count = words.clone().count();
    let at = dice.unit() * dice.unit().sqrt() * count as f64;
    words.clone().nth(at as usize).unwrap_or("the")
}

/// `draws` entries that name rank r in proportion to `1 / sqrt(r + 1)`: with the words inside the fragments
/// skewed as well, letters compress three to four times, as chat transcripts do. (A root is exact everywhere; a
/// power is not.)
fn zipf_ranks(ranks: usize, draws: usize) -> Vec<u16> {
    let weight = |rank: usize| 1.0 / ((rank + 1) as f64).sqrt();
    let total: f64 = (0..ranks).map(weight).sum();
    let mut table = Vec::with_capacity(draws);
    let mut reached = 0.0;
    for rank in 0..ranks {
        reached += weight(rank);
        let end = (reached / total * draws as f64).round() as usize;
        let rank = u16::try_from(rank).expect("fewer fragments than a u16 holds");
        table.resize(end.min(draws).max(table.len()), rank);
    }
    table.resize(draws, 0);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_like_english_and_is_valid_inside_json() {
        let mut out = vec![b'"'];
        Vocabulary::shared().write(10_000, &mut Dice::new(1), &mut out);
        out.push(b'"');
        let text: String = serde_json::from_slice(&out).expect("a JSON string");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!((4.0..9.0).contains(&(text.len() as f64 / words.len() as f64)), "letters a word");
        let the = words.iter().filter(|word| word.eq_ignore_ascii_case("the")).count();
        assert!((0.03..0.25).contains(&(the as f64 / words.len() as f64)), "{the} of {}", words.len());
    }

    #[test]
    fn text_is_as_long_as_asked_for_or_one_fragment_more() {
        for bytes in [0, 1, 10, 999, 5000] {
            let mut out = Vec::new();
            Vocabulary::shared().write(bytes, &mut Dice::new(7), &mut out);
            assert!((bytes..bytes + 80).contains(&out.len()), "{} for {bytes}", out.len());
        }
    }

    #[test]
    fn the_first_rank_is_drawn_far_more_often_than_the_last() {
        let ranks = zipf_ranks(FRAGMENTS, DRAWS);
        let count = |wanted: u16| ranks.iter().filter(|rank| **rank == wanted).count();
        assert!(count(0) > 20 * count(1000).max(1), "{} and {}", count(0), count(1000));
    }
}
