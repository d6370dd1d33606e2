//! Encoding of result rows between nodes: an Arrow IPC stream of one batch with values, order keys and ranks.
//!
//! ```text
//! v0 .. vn  values            metadata `assay.type`: the type of the cells in the language
//! k0 .. kn  order keys        the same
//! place, xact, object, key, nth   the rest of the rank, UInt64
//! ```
//! Each batch contains its types, because stored columns have the types of their units, which a plan does not know.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, Schema};
use assay_node_btql::values::Value;
use assay_node_expressions::Type;

use crate::EngineError;
use crate::results::batch::RankedBatch;
use crate::results::column::{CellType, ResultColumn};
use crate::rows::rank::Rank;

/// Metadata key of the type of a field's cells.
const TYPE_KEY: &str = "assay.type";
const RANK_COLUMNS: [&str; 5] = ["place", "xact", "object", "key", "nth"];
/// Names of types between nodes, which never change.
const TYPES: [(CellType, &str); 13] = [
    (CellType::Typed(Type::Null), "null"),
    (CellType::Typed(Type::Bool), "bool"),
    (CellType::Typed(Type::Int), "int"),
    (CellType::Typed(Type::Float), "float"),
    (CellType::Typed(Type::Wide), "wide"),
    (CellType::Typed(Type::Text), "text"),
    (CellType::Typed(Type::Time), "time"),
    (CellType::Typed(Type::Created), "created"),
    (CellType::Typed(Type::Xact), "xact"),
    (CellType::Typed(Type::Key), "key"),
    (CellType::Typed(Type::Interval), "interval"),
    (CellType::Typed(Type::Json), "json"),
    (CellType::Mixed, "mixed"),
];

/// Appends rows as an Arrow IPC stream.
pub(crate) fn encode(batch: &RankedBatch, out: Vec<u8>) -> Result<Vec<u8>, EngineError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    let mut put = |name: String, column: &ResultColumn| {
        let metadata = HashMap::from([(TYPE_KEY.to_owned(), name_of(column.ty()).to_owned())]);
        fields.push(Field::new(name, column.ty().data_type(), true).with_metadata(metadata));
        arrays.push(Arc::clone(column.array()));
    };
    batch.columns.iter().enumerate().for_each(|(number, column)| put(format!("v{number}"), column));
    for (number, key) in order_keys(&batch.ranks)?.iter().enumerate() {
        put(format!("k{number}"), key);
    }
    for (number, name) in RANK_COLUMNS.into_iter().enumerate() {
        fields.push(Field::new(name, DataType::UInt64, false));
        let numbers = batch.ranks.iter().map(|rank| rank_numbers(rank)[number]);
        arrays.push(Arc::new(UInt64Array::from_iter_values(numbers)) as ArrayRef);
    }
    let schema = Arc::new(Schema::new(fields));
    let encoded = || {
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let mut writer = StreamWriter::try_new(out, &schema)?;
        writer.write(&batch)?;
        writer.into_inner()
    };
    encoded().map_err(|_: ArrowError| EngineError::LongColumn)
}

/// Decodes rows of `width` columns with `keys` order keys.
pub(crate) fn decode(bytes: impl Into<Buffer>, width: usize, keys: usize) -> Result<RankedBatch, EngineError> {
    let mut bytes: Buffer = bytes.into();
    let mut decoder = StreamDecoder::new();
    let batch = decoder.decode(&mut bytes).map_err(|_| EngineError::Damaged)?.ok_or(EngineError::Damaged)?;
    // The end of the stream shows that nothing was cut off.
    let more = decoder.decode(&mut bytes).map_err(|_| EngineError::Damaged)?;
    decoder.finish().map_err(|_| EngineError::Damaged)?;
    if more.is_some() || !bytes.is_empty() || batch.num_columns() != width + keys + RANK_COLUMNS.len() {
        return Err(EngineError::Damaged);
    }
    let schema = batch.schema();
    let column = |number: usize| {
        let name = schema.field(number).metadata().get(TYPE_KEY).ok_or(EngineError::Damaged)?;
        let (ty, _) = TYPES.iter().find(|(_, known)| known == name).ok_or(EngineError::Damaged)?;
        ResultColumn::checked(Arc::clone(batch.column(number)), *ty)
    };
    let columns = (0..width).map(column).collect::<Result<_, _>>()?;
    let sort = (width..width + keys).map(column).collect::<Result<Vec<_>, EngineError>>()?;
    let numbers = (width + keys..batch.num_columns()).map(|number| {
        let array = batch.column(number).as_primitive_opt::<UInt64Type>();
        array.filter(|array| array.null_count() == 0).ok_or(EngineError::Damaged)
    });
    let numbers = numbers.collect::<Result<Vec<_>, EngineError>>()?;
    let rank = |row: usize| {
        let number = |column: usize| numbers[column].value(row);
        let small = |column: usize| u32::try_from(number(column)).map_err(|_| EngineError::Damaged);
        Ok(Rank {
            sort: sort.iter().map(|key| key.value(row).into_owned()).collect(),
            place: number(0),
            xact: number(1),
            object: small(2)?,
            key: number(3),
            nth: small(4)?,
        })
    };
    let ranks = (0..batch.num_rows()).map(rank).collect::<Result<_, EngineError>>()?;
    Ok(RankedBatch { ranks, columns })
}

fn order_keys(ranks: &[Rank]) -> Result<Vec<ResultColumn>, EngineError> {
    let keys = ranks.first().map_or(0, |rank| rank.sort.len());
    let column = |key: usize| {
        let values: Vec<Value<'_>> = ranks.iter().map(|rank| rank.sort[key].view()).collect();
        ResultColumn::from_values(&values)
    };
    (0..keys).map(column).collect()
}

fn rank_numbers(rank: &Rank) -> [u64; 5] {
    [rank.place, rank.xact, rank.object.into(), rank.key, rank.nth.into()]
}

fn name_of(ty: CellType) -> &'static str {
    TYPES.iter().find(|(known, _)| *known == ty).map_or("mixed", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> RankedBatch {
        let row = |number: u64, value: Value<'static>, sort: Value<'static>| {
            let rank = Rank { sort: vec![sort], place: number, xact: 2, object: 3, key: number, nth: 5 };
            (rank, vec![value, Value::Text("é".into())])
        };
        let rows = vec![
            row(1, Value::Object("{\"a\":[1]}".into()), Value::Integer(7)),
            row(2, Value::Null, Value::Null),
            row(3, Value::Stored(9), Value::Text("x".into())),
        ];
        RankedBatch::from_rows(rows, 2).expect("a batch")
    }

    #[test]
    fn batches_read_back_with_their_ranks() {
        let batch = batch();
        let bytes = encode(&batch, Vec::new()).expect("it is encoded");
        let read = decode(bytes, 2, 1).expect("it is decoded");
        assert_eq!(read.ranks, batch.ranks);
        for (read, written) in read.columns.iter().zip(&batch.columns) {
            assert_eq!(read.ty(), written.ty());
            assert_eq!(read.array(), written.array());
        }
    }

    #[test]
    fn damage_is_noticed() {
        let bytes = encode(&batch(), Vec::new()).expect("it is encoded");
        for end in (0..bytes.len()).step_by(7) {
            assert!(decode(bytes[..end].to_vec(), 2, 1).is_err(), "cut at {end} of {}", bytes.len());
        }
        assert!(decode(bytes.clone(), 1, 1).is_err() && decode(bytes.clone(), 2, 2).is_err());
        let longer = [bytes, vec![0; 8]].concat();
        assert!(decode(longer, 2, 1).is_err());
    }

    #[test]
    fn each_type_has_a_name() {
        let names: std::collections::BTreeSet<&str> = TYPES.iter().map(|(_, name)| *name).collect();
        assert_eq!(names.len(), TYPES.len());
    }
}
