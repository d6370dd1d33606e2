//! Expressions and queries as nobody would write them.

use assay_node_btql::ast::{
    Amount, At, Binary, Call, Expr, From, InferClause, Interval, Logic, Node, Path, PivotClause, Query, Quotes, Sample,
    Select, SelectItem, Shape, Sort, Source, Step, Type, Unary, Unit, UnpivotClause,
};
use proptest::prelude::*;
use proptest::{collection, option};
use serde_json::{Number, Value};

fn expr(node: Node) -> Expr {
    Expr::new(At::default(), node)
}

/// Names with and without need of quotes, words of the language among them.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_][a-z0-9_]{0,6}",
        2 => prop::sample::select(vec![
            "id", "input", "metadata", "scores", "tags", "created", "select", "from", "end", "limit", "filter", "not",
            "null", "like", "match", "isnull", "interval", "desc", "as", "shape", "seed", "nulls", "distinct", "case",
        ]).prop_map(str::to_owned),
        2 => "\\PC{1,6}",
        1 => "[`'\"\\\\ .%$]{1,4}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
        (-20i64..20).prop_map(Number::from),
        prop::sample::select(vec![0.0, -0.0, 0.5, 1e300, 5.0]).prop_filter_map("finite", Number::from_f64),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        "\\PC{0,8}|[a'\"\\\\%_\n]{0,6}".prop_map(Value::String),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            collection::vec((name(), inner), 0..3).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![3 => name().prop_map(Step::Key), 1 => (-3i64..4).prop_map(Step::Index)];
    collection::vec(step, 0..3)
}

/// As a parser makes it: a name that needs quotes has some.
fn path() -> impl Strategy<Value = Path> {
    (name(), steps(), any::<bool>()).prop_map(|(first, more, quoted)| {
        let plain = ["id", "input", "metadata", "scores", "tags", "created"].contains(&first.as_str());
        let steps = std::iter::once(Step::Key(first)).chain(more).collect();
        Path { steps, quotes: if plain && !quoted { Quotes::None } else { Quotes::Name } }
    })
}

fn function() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "count",
        "sum",
        "lower",
        "any_span",
        "filter_spans",
        "coalesce",
        "date",
        "left",
        "replace",
    ])
    .prop_map(str::to_owned)
}

pub fn expression() -> impl Strategy<Value = Expr> {
    let unit = prop::sample::select(Unit::ALL.to_vec());
    let leaf = prop_oneof![
        3 => value().prop_map(Node::Literal),
        4 => path().prop_map(Node::Path),
        1 => (-100i64..100, unit).prop_map(|(value, unit)| Node::Interval(Interval { value, unit })),
        1 => Just(Node::Call(Call { name: "count".into(), args: vec![expr(Node::Star)], distinct: false })),
        1 => Just(Node::Call(Call { name: "current_date".into(), args: Vec::new(), distinct: false })),
    ];
    leaf.prop_map(expr).prop_recursive(4, 24, 3, |inner| {
        let of = || inner.clone().prop_map(Box::new);
        let binary = prop::sample::select(Binary::ALL.to_vec());
        let unary = prop::sample::select(vec![Unary::Not, Unary::IsNull, Unary::IsNotNull]);
        let types = vec![Type::Text, Type::Boolean, Type::Integer, Type::Number, Type::Date, Type::Timestamp, Type::Json];
        let distinct = |args: &[Expr], wanted: bool| wanted && !args.is_empty();
        prop_oneof![
            4 => (binary, of(), inner.clone()).prop_map(|(binary, left, right)| {
                // What IN looks into is an array, or a path to one.
                let fits = binary != Binary::In || matches!(right.node, Node::Path(_) | Node::Array(_) | Node::Literal(Value::Array(_)));
                let right = if fits { right } else { expr(Node::array(vec![right])) };
                Node::Binary(binary, left, Box::new(right))
            }),
            3 => (any::<bool>(), collection::vec(inner.clone(), 2..4)).prop_map(|(and, of)| {
                Node::logic(if and { Logic::And } else { Logic::Or }, of)
            }),
            2 => (unary, of()).prop_map(|(unary, of)| Node::Unary(unary, of)),
            1 => inner.clone().prop_map(Node::minus),
            1 => [inner.clone(), inner.clone(), inner.clone()].prop_map(|of| Node::Between(Box::new(of))),
            2 => (function(), collection::vec(inner.clone(), 0..3), any::<bool>()).prop_map(move |(name, args, wanted)| {
                let distinct = distinct(&args, wanted);
                Node::Call(Call { name, args, distinct })
            }),
            1 => collection::vec(inner.clone(), 0..3).prop_map(Node::array),
            1 => collection::btree_map(name(), inner.clone(), 0..3).prop_map(|of| Node::object(of.into_iter().collect())),
            1 => (collection::vec((inner.clone(), inner.clone()), 1..3), option::of(of()))
                .prop_map(|(cases, otherwise)| Node::If(cases, otherwise)),
            1 => (of(), prop::sample::select(types)).prop_map(|(of, to)| Node::Cast(of, to)),
            1 => (inner.clone(), steps()).prop_filter_map("no steps", |(of, steps)| {
                (!steps.is_empty()).then(|| Node::of(of, steps))
            }),
        ]
        .prop_map(expr)
    })
}

fn item() -> impl Strategy<Value = SelectItem> {
    (expression(), option::of(name())).prop_map(|(expr, alias)| SelectItem { expr, alias })
}

fn sort() -> impl Strategy<Value = Sort> {
    (expression(), any::<bool>(), option::of(any::<bool>())).prop_map(|(expr, descending, nulls_first)| Sort {
        expr,
        descending,
        nulls_first,
    })
}

fn source() -> impl Strategy<Value = From> {
    let shape = prop::sample::select(vec![Shape::Spans, Shape::Traces, Shape::Summary]);
    let args = collection::vec("[a-z0-9']{1,5}".prop_map(Expr::literal), 1..3);
    (args, option::of(shape)).prop_map(|(args, shape)| From {
        source: Source::Objects { name: "project_logs".into(), args },
        shape,
        alias: None,
    })
}

fn unpivot() -> impl Strategy<Value = UnpivotClause> {
    (path(), option::of(name()), name())
        .prop_filter("an underscore is no key's name in SQL", |(_, key, _)| key.as_deref() != Some("_"))
        .prop_map(|(path, key, value)| UnpivotClause { expr: expr(Node::Path(path)), key, value })
}

fn sample() -> impl Strategy<Value = Sample> {
    let amount = prop_oneof![
        (0u32..=100).prop_map(|percent| Amount::Rate(f64::from(percent) / 100.0)),
        (1u64..99).prop_map(Amount::Count)
    ];
    (amount, option::of(-9i64..99)).prop_map(|(amount, seed)| Sample { amount, seed })
}

/// What all forms can say.
fn common() -> impl Strategy<Value = Query> {
    let filters = [option::of(expression()), option::of(expression())];
    let rest = (collection::vec(sort(), 0..3), option::of(0u64..5000), option::of("[a-zA-Z0-9+/']{1,9}"));
    (source(), filters, collection::vec(unpivot(), 0..3), option::of(sample()), rest).prop_map(
        |(from, [filter, final_filter], unpivot, sample, (sort, limit, cursor))| Query {
            from: Some(from),
            filter,
            final_filter,
            unpivot,
            sample,
            sort,
            limit,
            cursor,
            ..Query::default()
        },
    )
}

fn selected() -> impl Strategy<Value = Vec<Select>> {
    let star = collection::vec((name(), expression()), 0..2).prop_map(|mut replaced| {
        replaced.dedup_by(|one, other| one.0 == other.0);
        Select::Star(replaced)
    });
    collection::vec(prop_oneof![1 => star, 4 => item().prop_map(Select::Item)], 1..4)
}

pub fn sql() -> impl Strategy<Value = Query> {
    let settings = collection::vec(("[a-z]{1,5}", value()), 0..2);
    let grouped = (option::of(collection::vec(expression(), 1..3)), any::<bool>());
    (common(), selected(), grouped, settings).prop_map(|(common, select, (group_by, distinct), settings)| Query {
        select,
        group_by,
        distinct,
        settings,
        ..common
    })
}

/// Clauses, and so the tree.
pub fn clauses() -> impl Strategy<Value = Query> {
    let items = || collection::vec(item(), 0..3);
    let lists = ([items(), items(), items(), items()], option::of(collection::vec(item(), 1..3)), [items(), items()]);
    let conditions = [option::of(expression()), option::of(expression()), option::of(expression())];
    let infer = collection::vec(prop_oneof![Just(InferClause::Star), path().prop_map(InferClause::Path)], 0..2);
    let numbers = (option::of(-1i64..500), option::of(1u64..500));
    (common(), option::of(selected()), lists, conditions, infer, numbers).prop_map(
        |(common, select, (lists, pivot, finals), conditions, infer, (preview_length, inference_budget))| {
            let [dimensions, measures, weighted_scores, custom_columns] = lists;
            let [final_dimensions, final_measures] = finals;
            let [span_filter, trace_filter, comparison_key] = conditions;
            let mut query = Query {
                select: select.unwrap_or_default(),
                dimensions,
                measures,
                infer,
                span_filter,
                trace_filter,
                pivot: pivot.map(PivotClause::Measures),
                final_dimensions,
                final_measures,
                preview_length,
                inference_budget,
                comparison_key,
                weighted_scores,
                custom_columns,
                ..common
            };
            // Positions alone are read as groups of a select, and those are said otherwise.
            query.positions_as_groups();
            query.group_by = None;
            query
        },
    )
}
