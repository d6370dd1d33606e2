//! A row as sent. Most of its bytes are input, output and metadata of any shape, which need no inspection before they
//! are stored. Reading writes them directly as canonical text, without a tree.
//!
//! Canonical text equals the serialization of a tree: no spaces, one spelling of each string and number, no duplicate
//! keys. Irregular text (a duplicate key, a key too long, nested too deep) becomes a tree, so that it is checked by the
//! same rules as any other field.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{DEPTH_MAX, KEY_BYTES_MAX};

/// Fields that may hold anything, or any object.
const TEXTS: [&str; 6] = ["input", "output", "expected", "metadata", "context", "error"];
/// Up to here the keys of an object are looked for one by one; above, by their hashes.
const KEYS_SEARCHED_MAX: usize = 16;
/// Buffer capacity for the texts of a row of the usual size. A row that fills less than half of it returns the rest.
const TEXT_BYTES_USUAL: usize = 2 << 10;
/// The level of a field's value, the row being the first.
const FIELD_LEVEL: usize = 2;

/// An item of a request's list of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum SentItem {
    Row(SentRow),
    /// Not a JSON object, so not a row.
    Other(Value),
}

impl SentItem {
    /// About what its document takes, if it is a row.
    pub fn bytes_about(&self) -> usize {
        match self {
            SentItem::Row(row) => row.bytes_about(),
            SentItem::Other(_) => 0,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentRow {
    /// Fields in the order in which they were sent; null for a field that is kept as text.
    pub(super) fields: Map<String, Value>,
    /// Range of each text in `text`.
    texts: Vec<(&'static str, Range<usize>)>,
    text: Vec<u8>,
}

impl SentRow {
    /// A field that is not one of those of any shape.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// Puts a field there, or another value in its place.
    pub fn set(&mut self, name: &str, value: Value) {
        self.put(name.to_owned(), value);
    }

    /// Returns whether a field of any shape is there and is not null.
    pub fn has_text(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text != b"null")
    }

    /// Takes a field out, unless it is kept as a text.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.shift_remove(name)
    }

    /// The JSON texts of the fields that are kept as such.
    pub fn each_text(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().filter_map(|(_, place)| self.text.get(place.clone()))
    }

    /// The other fields.
    pub fn each_value(&self) -> impl Iterator<Item = &Value> {
        self.fields.values()
    }

    /// The canonical text of a field that is kept as one.
    pub(super) fn text(&self, name: &str) -> Option<&[u8]> {
        let (_, place) = self.texts.iter().find(|(known, _)| *known == name)?;
        self.text.get(place.clone())
    }

    /// About what its document takes.
    pub fn bytes_about(&self) -> usize {
        const FIELD_BYTES: usize = 64;
        self.text.len() + self.fields.len() * FIELD_BYTES
    }

    /// Returns unused capacity: many rows may wait to be written, and small ones must not take as much memory as large
    /// ones.
    fn give_back(&mut self) {
        if self.text.len() < self.text.capacity() / 2 {
            self.text.shrink_to_fit();
        }
    }

    fn put(&mut self, name: String, value: Value) {
        self.texts.retain(|(known, _)| *known != name);
        self.fields.insert(name, value);
    }
}

impl From<Value> for SentItem {
    fn from(value: Value) -> SentItem {
        match value {
            Value::Object(fields) => SentItem::Row(SentRow { fields, ..SentRow::default() }),
            other => SentItem::Other(other),
        }
    }
}

/// A body with a list: an object with the list under the name given to `ListUnder`.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyOfList<T> {
    List(Vec<T>),
    /// So many items, more than are taken.
    TooMany(usize),
    /// The name is missing or null.
    Missing,
    /// The name has another value.
    Other(Value),
    /// The body is no object.
    NoObject(Value),
}

/// Reads a body with a list; members of other names are read and forgotten. Items beyond the most that are taken are
/// counted and not made: small ones take a hundred times their bytes.
#[derive(Clone, Copy, Debug)]
pub struct ListUnder<'n, T> {
    name: &'n str,
    items_max: usize,
    items: PhantomData<T>,
}

impl<'n, T> ListUnder<'n, T> {
    pub fn new(name: &'n str, items_max: usize) -> ListUnder<'n, T> {
        ListUnder { name, items_max, items: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for ListUnder<'_, T> {
    type Value = BodyOfList<T>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<BodyOfList<T>, D::Error> {
        from.deserialize_any(Shaped(self))
    }
}

impl<'de> Deserialize<'de> for SentItem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SentItem, D::Error> {
        from.deserialize_any(Shaped(RowShape))
    }
}

/// Expected list or object; any other value is returned as a value.
trait Shape<'de>: Sized {
    type Out;

    fn other(value: Value) -> Self::Out;

    fn map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Out, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Self::other)
    }

    fn seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Out, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(Self::other)
    }
}

struct Shaped<S>(S);

impl<'de, S: Shape<'de>> DeserializeSeed<'de> for Shaped<S> {
    type Value = S::Out;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Out, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, S: Shape<'de>> Visitor<'de> for Shaped<S> {
    type Value = S::Out;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<S::Out, A::Error> {
        self.0.map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<S::Out, A::Error> {
        self.0.seq(seq)
    }

    fn visit_bool<E>(self, value: bool) -> Result<S::Out, E> {
        Ok(S::other(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<S::Out, E> {
        Ok(S::other(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<S::Out, E> {
        Ok(S::other(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<S::Out, E> {
        Ok(S::other(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<S::Out, E> {
        Ok(S::other(value.into()))
    }

    fn visit_unit<E>(self) -> Result<S::Out, E> {
        Ok(S::other(Value::Null))
    }
}

impl<'de, T: Deserialize<'de>> Shape<'de> for ListUnder<'_, T> {
    type Out = BodyOfList<T>;

    fn other(value: Value) -> BodyOfList<T> {
        BodyOfList::NoObject(value)
    }

    fn map<A: MapAccess<'de>>(self, mut map: A) -> Result<BodyOfList<T>, A::Error> {
        let mut list = BodyOfList::Missing;
        while let Some(name) = map.next_key::<String>()? {
            if name == self.name {
                // Of two lists of one name the first goes before the second is made.
                drop(std::mem::replace(&mut list, BodyOfList::Missing));
                list = map.next_value_seed(Shaped(ListShape { items_max: self.items_max, items: PhantomData }))?;
            } else {
                let mut forgotten = Vec::new();
                let to = &mut Transcript { text: &mut forgotten, keys: Vec::new(), irregular: false };
                map.next_value_seed(Element { to, level: FIELD_LEVEL })?;
            }
        }
        Ok(list)
    }
}

struct ListShape<T> {
    items_max: usize,
    items: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Shape<'de> for ListShape<T> {
    type Out = BodyOfList<T>;

    fn other(value: Value) -> BodyOfList<T> {
        if value.is_null() { BodyOfList::Missing } else { BodyOfList::Other(value) }
    }

    fn seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<BodyOfList<T>, A::Error> {
        let mut list = Vec::new();
        while list.len() < self.items_max {
            match seq.next_element()? {
                Some(item) => list.push(item),
                None => return Ok(BodyOfList::List(list)),
            }
        }
        let mut more = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        Ok(if more == 0 { BodyOfList::List(list) } else { BodyOfList::TooMany(list.len() + more) })
    }
}

struct RowShape;

impl<'de> Shape<'de> for RowShape {
    type Out = SentItem;

    fn other(value: Value) -> SentItem {
        SentItem::Other(value)
    }

    fn map<A: MapAccess<'de>>(self, mut map: A) -> Result<SentItem, A::Error> {
        let mut row = SentRow::default();
        while let Some(field) = map.next_key_seed(FieldName)? {
            match field {
                Field::Other(name) => row.put(name, map.next_value()?),
                Field::Text(name) => {
                    let start = row.text.len();
                    if start == 0 {
                        row.text.reserve(TEXT_BYTES_USUAL);
                    }
                    let mut transcript = Transcript { text: &mut row.text, keys: Vec::new(), irregular: false };
                    map.next_value_seed(Element { to: &mut transcript, level: FIELD_LEVEL })?;
                    if transcript.irregular {
                        let value = serde_json::from_slice(&row.text[start..]).map_err(A::Error::custom)?;
                        row.text.truncate(start);
                        row.put(name.to_owned(), value);
                    } else {
                        row.put(name.to_owned(), Value::Null);
                        row.texts.push((name, start..row.text.len()));
                    }
                }
            }
        }
        row.give_back();
        Ok(SentItem::Row(row))
    }
}

enum Field {
    Text(&'static str),
    Other(String),
}

struct FieldName;

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Field, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Field, E> {
        let text = TEXTS.iter().find(|text| **text == name);
        Ok(text.map_or_else(|| Field::Other(name.to_owned()), |text| Field::Text(text)))
    }
}

#[derive(Debug)]
struct Transcript<'r> {
    text: &'r mut Vec<u8>,
    /// Ranges of the keys of all open objects in the text, those of the innermost last.
    keys: Vec<Range<usize>>,
    irregular: bool,
}

impl Transcript<'_> {
    fn put<E: Error>(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), E> {
        serde_json::to_writer(&mut *self.text, value).map_err(E::custom)
    }

    /// A string without escapes in its source needs none here.
    fn put_plain(&mut self, text: &str) {
        self.text.push(b'"');
        self.text.extend_from_slice(text.as_bytes());
        self.text.push(b'"');
    }

    /// Returns whether the innermost object, whose keys begin at `first`, already has this key.
    fn repeats(&self, first: usize, key: &Range<usize>, many: &mut Option<Hashes>) -> bool {
        let keys = &self.keys[first..];
        let text = |range: &Range<usize>| &self.text[range.clone()];
        if keys.len() < KEYS_SEARCHED_MAX {
            return keys.iter().any(|known| text(known) == text(key));
        }
        let hashes = many.get_or_insert_with(|| {
            let mut hashes = Hashes::default();
            for known in keys {
                hashes.insert(text(known));
            }
            hashes
        });
        // Two keys of one hash are taken for one: the tree then knows better.
        !hashes.insert(text(key))
    }
}

#[derive(Default)]
struct Hashes {
    hasher: RandomState,
    seen: HashSet<u64>,
}

impl Hashes {
    fn insert(&mut self, key: &[u8]) -> bool {
        self.seen.insert(self.hasher.hash_one(key))
    }
}

/// One value, written down as it is read.
struct Element<'t, 'r> {
    to: &'t mut Transcript<'r>,
    level: usize,
}

impl<'de> DeserializeSeed<'de> for Element<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.to.irregular |= self.level > DEPTH_MAX;
        let (first, mut many, to) = (self.to.keys.len(), None, self.to);
        to.text.push(b'{');
        loop {
            let start = to.text.len();
            if to.keys.len() > first {
                to.text.push(b',');
            }
            if map.next_key_seed(Key(to))?.is_none() {
                to.text.truncate(start);
                break;
            }
            let key = start + usize::from(to.keys.len() > first)..to.text.len();
            to.irregular |= key.len() > KEY_BYTES_MAX || to.repeats(first, &key, &mut many);
            to.keys.push(key);
            to.text.push(b':');
            map.next_value_seed(Element { to, level: self.level + 1 })?;
        }
        to.keys.truncate(first);
        to.text.push(b'}');
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.to.irregular |= self.level > DEPTH_MAX;
        self.to.text.push(b'[');
        let first = self.to.text.len();
        loop {
            let start = self.to.text.len();
            if start > first {
                self.to.text.push(b',');
            }
            if seq.next_element_seed(Element { to: self.to, level: self.level + 1 })?.is_none() {
                self.to.text.truncate(start);
                break;
            }
        }
        self.to.text.push(b']');
        Ok(())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.to.put_plain(text);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.to.put(text)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<(), E> {
        self.to.put(&truth)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.to.put(&number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.to.put(&number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.to.put(&number)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.to.text.extend_from_slice(b"null");
        Ok(())
    }
}

/// The key of a member, written down as it is read.
struct Key<'t, 'r>(&'t mut Transcript<'r>);

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        self.0.put_plain(text);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.put(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(row: &str) -> usize {
        match serde_json::from_str(row).expect("a row") {
            SentItem::Row(row) => row.text.capacity(),
            SentItem::Other(other) => panic!("{other} is no row"),
        }
    }

    #[test]
    fn a_small_row_keeps_no_room_for_a_usual_one() {
        assert!(capacity(r#"{"id":"a","input":1}"#) <= 16);
        assert_eq!(capacity(r#"{"id":"a","input":{"a":1,"a":2}}"#), 0, "what became a tree has no text");
        let usual = format!(r#"{{"input":"{}"}}"#, "x".repeat(TEXT_BYTES_USUAL - 100));
        assert_eq!(capacity(&usual), TEXT_BYTES_USUAL, "and a usual one is left where it is");
    }
}
