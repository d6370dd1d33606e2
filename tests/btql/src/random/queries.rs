//! Random queries: every clause and every shape, mostly valid ones.

use assay_node_btql::ast::{
    Amount, Expr, From, InferClause, Logic, Node, Path, PivotClause, Query, Quotes, Sample, Select, SelectItem, Shape,
    Sort, Source, Step, UnpivotClause,
};
use assay_node_btql::{expression, parse_expression, parse_text};

use super::SOURCE;
use super::dice::Dice;
use super::grammar::Grammar;

/// Depth of nested sentences.
const DEPTH: usize = 2;
const ITEMS_MAX: usize = 3;
/// Paths that may be grouped by; no two of them end alike.
const DIMENSIONS: [&[&str]; 6] = [
    &["span_attributes", "type"],
    &["metadata", "env"],
    &["metadata", "v"],
    &["root_span_id"],
    &["is_root"],
    &["metadata", "list"],
];

/// Makes one query.
struct Maker {
    dice: Dice,
    grammar: Grammar,
    query: Query,
}

pub fn query(seed: u64) -> Query {
    let mut maker = Maker { dice: Dice::of(seed), grammar: Grammar::default(), query: Query::default() };
    maker.source();
    maker.unpivots();
    match maker.dice.below(10) {
        0..=3 => {
            maker.rows();
            maker.beyond_sql();
            maker.sort_rows();
        }
        4 | 5 => maker.groups_of_sql(),
        6 | 7 => maker.groups_of_clauses(),
        8 => maker.pivot(),
        _ => maker.other(),
    }
    maker.query
}

impl Maker {
    fn expr(&mut self, kind: &str) -> Expr {
        self.grammar.expr(&mut self.dice, kind, DEPTH)
    }

    fn any_kind(&mut self) -> Expr {
        let kind = *self.dice.pick(&["json", "number", "text", "time", "truth"]);
        self.expr(kind)
    }

    fn count(&mut self) -> usize {
        self.dice.below(ITEMS_MAX) + 1
    }

    fn source(&mut self) {
        let shape = *self.dice.pick(&[None, None, Some(Shape::Spans), Some(Shape::Traces), Some(Shape::Summary)]);
        let args = vec![Expr::literal(SOURCE)];
        self.query.from =
            Some(From { source: Source::Objects { name: "project_logs".into(), args }, shape, alias: None });
        if self.dice.happens(70) {
            self.query.filter = Some(self.filter(shape));
        }
        if self.dice.happens(15) {
            let amount = *self.dice.pick(&[Amount::Rate(0.5), Amount::Rate(0.25), Amount::Count(1), Amount::Count(6)]);
            self.query.sample = Some(Sample { amount, seed: *self.dice.pick(&[None, Some(7), Some(-1)]) });
        }
        if self.dice.happens(40) {
            self.query.limit = Some(self.dice.below(8) as u64);
        }
    }

    fn filter(&mut self, shape: Option<Shape>) -> Expr {
        let about_traces = matches!(shape, Some(Shape::Traces | Shape::Summary));
        let kind = if self.dice.happens(if about_traces { 60 } else { 10 }) { "spans" } else { "truth" };
        let filter = self.expr(kind);
        if !self.dice.happens(if about_traces { 25 } else { 5 }) {
            return filter;
        }
        let kept = self.grammar.expr(&mut self.dice, "truth", 1);
        let kept = parsed(&format!("filter_spans({})", expression(&kept)));
        Expr::new(Default::default(), Node::logic(Logic::And, [filter, kept]))
    }

    /// Columns that are made of one, which from then on have names.
    fn unpivots(&mut self) {
        if !self.dice.happens(15) {
            return;
        }
        for (of, key, value, kind) in [
            ("tags", None, "tag", "text"),
            ("scores", Some("score"), "points", "number"),
            ("metadata.list", None, "each", "json"),
        ] {
            if !self.dice.happens(45) {
                continue;
            }
            let expr = Expr::path(&of.split('.').collect::<Vec<_>>());
            self.query.unpivot.push(UnpivotClause { expr, key: key.map(str::to_owned), value: value.to_owned() });
            self.grammar.extra.push((kind, value.to_owned()));
            self.grammar.extra.extend(key.map(|key| ("text", key.to_owned())));
        }
        if !self.query.unpivot.is_empty() && self.dice.happens(50) {
            let more = self.expr("truth");
            self.and(more);
        }
    }

    /// One more condition.
    fn and(&mut self, more: Expr) {
        let all = [self.query.filter.take(), Some(more)].into_iter().flatten();
        self.query.filter = Some(Expr::new(Default::default(), Node::logic(Logic::And, all)));
    }

    fn items(&mut self, kind: Option<&str>, letter: &str) -> Vec<SelectItem> {
        let one = |maker: &mut Maker, number: usize| {
            let expr = if let Some(kind) = kind { maker.expr(kind) } else { maker.any_kind() };
            SelectItem { expr, alias: Some(format!("{letter}{number}")) }
        };
        (0..self.count()).map(|number| one(self, number)).collect()
    }

    fn rows(&mut self) {
        let items = self.items(None, "c");
        self.query.select = items.into_iter().map(Select::Item).collect();
        match self.dice.below(8) {
            0 => self.query.select = vec![Select::Star(Vec::new())],
            1 => self.query.select = vec![Select::Star(vec![("input".into(), self.any_kind())])],
            2 => self.query.select.push(Select::Star(Vec::new())),
            3 => {
                self.query.select.push(Select::Item(SelectItem { expr: Expr::path(&["metadata", "env"]), alias: None }))
            }
            // A name that the query itself gives.
            4 => self.and(parsed("c0 IS NOT NULL")),
            _ => {}
        }
    }

    /// Generates parts that only clauses and trees can express.
    fn beyond_sql(&mut self) {
        if self.dice.happens(15) {
            self.query.preview_length = Some(*self.dice.pick(&[-1, 0, 5]));
        }
        if self.dice.happens(10) {
            self.query.custom_columns = vec![SelectItem { expr: self.expr("number"), alias: Some("own".into()) }];
            self.grammar.extra.push(("number", "own".into()));
        }
        if !self.is_summary() {
            return;
        }
        if self.dice.happens(20) {
            self.query.final_filter = Some(self.expr("having"));
        }
        if self.dice.happens(10) {
            self.query.comparison_key = Some(self.expr("json"));
        }
        if self.dice.happens(10) {
            self.query.weighted_scores = vec![SelectItem { expr: self.expr("number"), alias: Some("weighed".into()) }];
        }
    }

    fn sort_rows(&mut self) {
        match self.dice.below(6) {
            0 => self.query.sort = vec![self.sort_by(Expr::path(&["_pagination_key"]))],
            1 => self.query.sort = vec![self.sort_by(Expr::path(&["c0"]))],
            2 => self.query.sort = vec![self.sort_by(Expr::literal(1))],
            3 => {
                let expr = self.any_kind();
                self.query.sort = vec![self.sort_by(expr), self.sort_by(Expr::path(&["id"]))];
            }
            _ => {}
        }
    }

    fn is_summary(&self) -> bool {
        self.query.from.as_ref().is_some_and(|from| from.shape == Some(Shape::Summary))
    }

    fn sort_by(&mut self, expr: Expr) -> Sort {
        let nulls_first = *self.dice.pick(&[None, None, Some(true), Some(false)]);
        Sort { expr, descending: self.dice.happens(50), nulls_first }
    }

    /// Each of them at most once, by its path or by something made of it.
    fn dimensions(&mut self) -> Vec<SelectItem> {
        let first = self.dice.below(DIMENSIONS.len());
        let mut items = Vec::new();
        for number in 0..self.dice.below(ITEMS_MAX) {
            let path = DIMENSIONS[(first + number) % DIMENSIONS.len()];
            let expr = if self.dice.happens(70) { Expr::path(path) } else { self.any_kind() };
            items.push(SelectItem { expr, alias: Some(format!("d{number}")) });
        }
        items
    }

    fn groups_of_sql(&mut self) {
        let dimensions = self.dimensions();
        let group = |(number, item): (usize, &SelectItem), dice: &mut Dice| match dice.below(3) {
            0 => Expr::literal(number as u64 + 1),
            1 => Expr::path(&[item.alias.as_deref().unwrap_or_default()]),
            _ => item.expr.clone(),
        };
        let groups: Vec<Expr> = dimensions.iter().enumerate().map(|each| group(each, &mut self.dice)).collect();
        let measures = self.items(Some("aggregate"), "m");
        self.query.distinct = groups.is_empty() && self.dice.happens(40);
        self.query.group_by = Some(groups).filter(|groups| !groups.is_empty());
        let columns = if self.query.distinct { self.items(None, "d") } else { [dimensions, measures].concat() };
        self.query.select = columns.into_iter().map(Select::Item).collect();
        self.having_and_sort();
    }

    fn groups_of_clauses(&mut self) {
        self.query.dimensions = self.dimensions();
        self.query.measures = self.items(Some("aggregate"), "m");
        if self.dice.happens(20) && !self.query.dimensions.is_empty() {
            let measure = *self.dice.pick(&["max", "sum", "count"]);
            let over = parsed(&format!("{measure}(m0)"));
            self.query.final_dimensions = vec![SelectItem { expr: Expr::path(&["d0"]), alias: None }];
            self.query.final_measures = vec![SelectItem { expr: over, alias: Some("f".into()) }];
            return;
        }
        self.having_and_sort();
    }

    fn having_and_sort(&mut self) {
        if self.dice.happens(30) && !self.query.distinct {
            self.query.final_filter = Some(self.expr("having"));
        }
        if self.dice.happens(50) {
            let by = match self.dice.below(3) {
                0 => Expr::literal(1),
                1 if !self.query.distinct => self.expr("aggregate"),
                _ => Expr::path(&[if self.query.distinct { "d0" } else { "m0" }]),
            };
            self.query.sort = vec![self.sort_by(by)];
        }
    }

    fn pivot(&mut self) {
        let measures = self.items(Some("aggregate"), "m");
        let first = self.dice.below(DIMENSIONS.len());
        let places: Vec<usize> = (0..self.count()).map(|number| (first + number) % DIMENSIONS.len()).collect();
        let item = |place: &usize| SelectItem { expr: Expr::path(DIMENSIONS[*place]), alias: None };
        let names = measures.iter().filter_map(|measure| measure.alias.as_deref());
        let names: Vec<SelectItem> = names.map(|name| SelectItem { expr: Expr::path(&[name]), alias: None }).collect();
        let dimensions: Vec<SelectItem> = places.iter().map(item).collect();
        let (last, keys) = dimensions.split_last().expect("there is one");
        if self.dice.happens(50) {
            let columns = keys.iter().chain([last]).chain(&names).cloned();
            let all = self.dice.happens(40);
            self.query.select = if all { vec![Select::Star(Vec::new())] } else { columns.map(Select::Item).collect() };
            let steps = DIMENSIONS[places[keys.len()]].iter().map(|key| Step::Key((*key).to_owned())).collect();
            self.query.pivot = Some(PivotClause::For { measures, column: Path { steps, quotes: Quotes::None } });
            let groups: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
            self.query.group_by = Some(groups).filter(|groups| !groups.is_empty());
        } else {
            self.query.dimensions = dimensions.clone();
            self.query.measures = measures;
            self.query.pivot = Some(PivotClause::Measures(names));
        }
        let by = if keys.is_empty() { Expr::path(&["llm_m0"]) } else { keys[0].expr.clone() };
        if self.dice.happens(40) {
            self.query.sort = vec![self.sort_by(by)];
        }
    }

    /// Generates an infer query, or a query around another.
    fn other(&mut self) {
        if self.dice.happens(50) {
            let paths = [InferClause::Star, path("metadata"), path("metrics.duration"), path("output")];
            self.query.infer = vec![self.dice.pick(&paths).clone()];
            self.query.inference_budget = *self.dice.pick(&[None, Some(3)]);
            if self.dice.happens(50) {
                let by = *self.dice.pick(&["count", "type", "name"]);
                self.query.sort = vec![self.sort_by(Expr::path(&[by]))];
            }
            return;
        }
        let groups = self.dice.happens(50);
        if groups {
            self.groups_of_sql()
        } else {
            self.rows()
        }
        let source = Source::Query(Box::new(std::mem::take(&mut self.query)));
        let inner = if groups { "m0" } else { "c0" };
        let text = format!("SELECT {inner}, count(1) AS n FROM project_logs('x') GROUP BY 1 ORDER BY n DESC");
        self.query = parse_text(&text).expect("a query");
        self.query.from = Some(From { source, shape: None, alias: None });
    }
}

fn parsed(text: &str) -> Expr {
    parse_expression(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn path(of: &str) -> InferClause {
    let steps = of.split('.').map(|key| Step::Key(key.to_owned())).collect();
    InferClause::Path(Path { steps, quotes: Quotes::None })
}
