//! Handlers of `/v1/review/{object_type}/{id}/{row_id}`, which read and change people's reviews of a row.
//!
//! Two reviewers may write at the same time, each without the other's review. After each write, the handler therefore
//! reads all reviews and corrects the derived state until both agree. The last writer sees all reviews.

use std::collections::BTreeSet;

use assay_node_auth::Permission;
use assay_node_btql::parse_expression;
use assay_node_http::openapi::{Operation, names, text, uuid};
use assay_node_http::requests::caller::Call;
use assay_node_http::requests::error_texts::shortened;
use assay_node_http::requests::limits::admit_writes;
use assay_node_http::responses::refusal::{ErrorKind, Refusal};
use assay_node_http::responses::{HandlerResult, json};
use assay_node_http::web::Payload;
use assay_node_objects::ObjectWrite;
use assay_node_query_http::masks::{has_setting, human_scores, is_blind, may_change};
use assay_node_query_http::{QueryOptions, rows_of};
use assay_node_records::ObjectHome;
use assay_node_records::mechanism::{now_micros, read_body};
use assay_node_reviews::{
    Change, Condition, HumanScore, REVIEW_TYPE, Review, ReviewedRow, Reviewer, contributed, is_complete_status,
    review_id, settle,
};
use assay_storage_model::ObjectKind;
use assay_storage_model::catalog::RecordKind;
use assay_storage_model::event::{SentItem, format_micros};
use serde_json::{Value, json};
use uuid::Uuid;

/// Upper bound of the number of reviews in one trace.
const REVIEWS_MAX: usize = 1000;
const BYTES_MAX: usize = 16 << 20;
/// Upper bound of the attempts to agree with concurrent reviews.
const SETTLING_MAX: usize = 5;
const ROW_ID_BYTES_MAX: usize = 1024;

/// Access of a request to reviews. A change also requires permission to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Change,
}

/// Row that a request names, with its reviews.
struct Reviewed<'c> {
    call: &'c Call,
    kind: ObjectKind,
    home: ObjectHome,
    row_id: String,
    row: ReviewedRow,
    reviews: Vec<Review>,
}

/// Handles `PUT`: changes the caller's review.
pub async fn put(call: Call, payload: Payload) -> HandlerResult {
    let change = Change::read(call.small_body(payload).await?.object().await?);
    let change = change.map_err(|why| Refusal::bad(why.to_string()))?;
    let mut reviewed = Reviewed::find(&call, Use::Change).await?;
    let reviewer = Reviewer { id: call.principal.user, name: reviewer_name(&call)? };
    let blind = is_blind(&call.edge.records, reviewed.home.project_id)?;
    let withdrawn = reviewed.own().map(|review| contributed(review, blind)).unwrap_or_default();
    if !change.is_empty() {
        let now = format_micros(now_micros());
        let rows = change.rows(&reviewed.row, reviewed.own(), &reviewer, &now);
        reviewed.write(rows).await?;
    }
    reviewed.settle(&withdrawn).await?;
    let own = reviewed.own();
    json(&json!({
        "id": review_id(&reviewed.row_id, reviewer.id),
        "row_id": reviewed.row_id,
        "submitted": own.is_some_and(|review| review.submitted),
        "status": reviewed.row.status,
        "complete": is_complete_status(reviewed.row.status.as_deref()),
    }))
}

/// Handles `GET`: returns the reviews that the caller may see.
pub async fn get(call: Call) -> HandlerResult {
    let reviewed = Reviewed::find(&call, Use::Read).await?;
    let (records, project) = (&call.edge.records, reviewed.home.project_id);
    let blind = is_blind(records, project)?;
    let sees_all = !blind
        || may_change(&call.principal, reviewed.home.org, project)
        || reviewed.own().is_some_and(|review| review.submitted);
    let me = call.principal.user;
    let seen = reviewed.reviews.iter().filter(|review| sees_all || review.reviewer == Some(me));
    json(&json!({
        "row_id": reviewed.row_id,
        "blind": blind,
        "require_all": has_setting(records, project, "require_all_human_review_scores")?,
        "hidden": !sees_all,
        "status": reviewed.row.status,
        "assignees": reviewed.row.assignees,
        "reviews": seen.map(|review| review.to_json(me)).collect::<Vec<_>>(),
    }))
}

/// Returns the caller's name for the review: the full name, the e-mail address, or the id.
fn reviewer_name(call: &Call) -> Result<String, Refusal> {
    let user = call.principal.user;
    let body = call.edge.records.catalog().peek(|view| view.get(RecordKind::USER, user).map(|user| read_body(user)));
    let body = body.transpose().map_err(Refusal::from)?.unwrap_or_default();
    let part = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = format!("{} {}", part("given_name"), part("family_name")).trim().to_owned();
    Ok([name, part("email"), user.to_string()].into_iter().find(|name| !name.is_empty()).unwrap_or_default())
}

/// Returns a text as a string literal of a query.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

impl<'c> Reviewed<'c> {
    /// Finds the row after checking that the caller has the required access.
    async fn find(call: &'c Call, using: Use) -> Result<Reviewed<'c>, Refusal> {
        let part = |name: &str| call.request.match_info().get(name).unwrap_or_default();
        let kind = match part("object_type") {
            "project_logs" => ObjectKind::ProjectLogs,
            "experiment" => ObjectKind::Experiment,
            other => {
                let said = format!("`{}` has no reviews; use project_logs or experiment", shortened(other));
                return Err(Refusal::bad(said));
            }
        };
        let row_id = part("row_id").to_owned();
        if row_id.len() > ROW_ID_BYTES_MAX {
            return Err(Refusal::bad(format!("the id of the row is longer than {ROW_ID_BYTES_MAX} bytes")));
        }
        let id = call.id()?;
        let home = call.edge.records.object(&call.principal, kind, id, Permission::Read).await?;
        if using == Use::Change {
            call.edge.records.object(&call.principal, kind, id, Permission::Update).await?;
        }
        let (row, reviews) = (ReviewedRow::default(), Vec::new());
        let mut reviewed = Reviewed { call, kind, home, row_id, row, reviews };
        reviewed.read().await?;
        Ok(reviewed)
    }

    /// Reads the row and its reviews without masks, because the derived state depends on all reviews.
    async fn read(&mut self) -> Result<(), Refusal> {
        let options = QueryOptions { unmasked: true, ..QueryOptions::newest(BYTES_MAX) };
        let from = self.source();
        let row = format!(
            "select: id, span_id, root_span_id, scores, metadata, span_attributes | from: {from} spans | filter: id = {} \
             | limit: 1",
            quoted(&self.row_id)
        );
        let found = rows_of(self.call, row, &options).await?;
        let missing = || Refusal::new(ErrorKind::NotFound, format!("there is no row {}", shortened(&self.row_id)));
        let row = found.first().ok_or_else(missing)?;
        if row["span_attributes"]["type"] == REVIEW_TYPE {
            return Err(Refusal::bad("this row is a review itself; name the row that it is about"));
        }
        let row = ReviewedRow::read(row).ok_or_else(missing)?;
        let reviews = format!(
            "select: id, span_parents, span_attributes, scores, expected, metadata, created | from: {from} spans | \
             filter: root_span_id = {} and span_attributes.type = '{REVIEW_TYPE}' | limit: {REVIEWS_MAX}",
            quoted(&row.root_span_id)
        );
        let found = rows_of(self.call, reviews, &options).await?;
        if found.len() >= REVIEWS_MAX {
            // Mean scores over only some of the reviews would be wrong.
            let said = format!("the trace has {REVIEWS_MAX} reviews, which is the maximum; delete some");
            return Err(Refusal::new(ErrorKind::TooLarge, said));
        }
        let is_of_row = |review: &&Value| {
            let mut parents = review["span_parents"].as_array().into_iter().flatten();
            parents.any(|parent| parent == row.span_id.as_str())
        };
        self.reviews = found.iter().filter(is_of_row).filter_map(Review::read).collect();
        self.row = row;
        Ok(())
    }

    fn source(&self) -> String {
        format!("{}('{}')", self.kind.name(), self.home.key.id)
    }

    fn own(&self) -> Option<&Review> {
        let id = review_id(&self.row_id, self.call.principal.user).to_string();
        self.reviews.iter().find(|review| review.id == id)
    }

    async fn write(&self, rows: Vec<Value>) -> Result<(), Refusal> {
        let rows = rows.into_iter().map(SentItem::from).collect();
        let write = ObjectWrite { object: self.home.key, rows, request: None };
        admit_writes(&self.call.edge.quotas, &self.call.principal, std::slice::from_ref(&write))?;
        self.call.objects().write(vec![write], self.call.patience()).await?;
        let (records, who) = (&self.call.edge.records, &self.call.principal);
        Ok(records.still(who, &[self.home.key], Permission::Update).await?)
    }

    /// Corrects the derived state until it agrees with all reviews.
    async fn settle(&mut self, withdrawn: &BTreeSet<String>) -> Result<(), Refusal> {
        let (records, project) = (&self.call.edge.records, self.home.project_id);
        let blind = is_blind(records, project)?;
        let requires_all = has_setting(records, project, "require_all_human_review_scores")?;
        for written in 0..=SETTLING_MAX {
            self.read().await?;
            let mut rows = settle(&self.row, &self.reviews, withdrawn, blind);
            if requires_all && !is_complete_status(self.row.status.as_deref()) && self.is_complete().await? {
                rows.push(self.row.completed(&format_micros(now_micros())));
            }
            if rows.is_empty() {
                return Ok(());
            }
            if written < SETTLING_MAX {
                self.write(rows).await?;
            }
        }
        let said = "the review is saved, but the mean scores of the row may be out of date, because others review the \
                    row at the same time. Send the review again.";
        Err(Refusal::new(ErrorKind::Unavailable, said))
    }

    /// Returns whether all assignees have filled all scores that apply to them.
    ///
    /// Returns `false` if no score applies to any assignee.
    async fn is_complete(&self) -> Result<bool, Refusal> {
        let records = &self.call.edge.records;
        let scores = human_scores(records, self.home.org, self.home.project_id)?;
        let mut shown: Vec<HumanScore> = Vec::new();
        for score in scores.into_iter().filter(HumanScore::is_entered) {
            if !self.holds(&score.hidden_if).await? {
                shown.push(score);
            }
        }
        let mut required = 0;
        for assignee in &self.row.assignees {
            let groups = groups_of(self.call, *assignee)?;
            let review = self.reviews.iter().find(|review| review.reviewer == Some(*assignee) && review.submitted);
            for score in shown.iter().filter(|score| score.is_for(self.kind.name(), *assignee, &groups)) {
                required += 1;
                if !review.is_some_and(|review| score.is_filled(review)) {
                    return Ok(false);
                }
            }
        }
        Ok(required > 0)
    }

    /// Returns whether all expressions of a condition hold. An empty condition holds for no row.
    async fn holds(&self, condition: &Condition) -> Result<bool, Refusal> {
        if condition.is_empty() {
            return Ok(false);
        }
        let (id, root) = (quoted(&self.row_id), quoted(&self.row.root_span_id));
        let of_row = format!("id = {id}");
        let of_trace = format!("root_span_id = {root}");
        let below = format!("root_span_id = {root} and id != {id}");
        let lists =
            [(&condition.clauses, of_row), (&condition.subspan_clauses, below), (&condition.trace_clauses, of_trace)];
        for (clauses, rows) in lists {
            for clause in clauses {
                // The query reads without masks, so the clause must not reach beyond its parentheses. The line break ends
                // a comment in the clause.
                parse_expression(clause).map_err(|why| {
                    Refusal::bad(format!("the review is saved, but the condition of a score is no expression: {why}"))
                })?;
                let query =
                    format!("select: id | from: {} spans | filter: {rows} and ({clause}\n) | limit: 1", self.source());
                let options = QueryOptions { unmasked: true, ..QueryOptions::newest(BYTES_MAX) };
                if rows_of(self.call, query, &options).await?.is_empty() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Returns the groups that a user belongs to, directly or through other groups.
fn groups_of(call: &Call, user: Uuid) -> Result<BTreeSet<Uuid>, Refusal> {
    let org = call.principal.org;
    let groups: Result<Vec<_>, _> = call.edge.records.catalog().peek(|view| {
        let groups = view.all(RecordKind::GROUP).filter(|record| record.org == Some(org));
        groups.map(|record| Ok((record.id, read_body(record)?))).collect()
    });
    let groups = groups.map_err(|why: assay_node_records::RecordsError| Refusal::from(why))?;
    let mut own = BTreeSet::new();
    loop {
        let before = own.len();
        for (id, body) in &groups {
            let has = |list: &str, member: &dyn Fn(Uuid) -> bool| {
                let items = body.get(list).and_then(Value::as_array).into_iter().flatten();
                items.filter_map(|item| Uuid::parse_str(item.as_str()?).ok()).any(member)
            };
            if has("member_users", &|member| member == user) || has("member_groups", &|member| own.contains(&member)) {
                own.insert(*id);
            }
        }
        if own.len() == before {
            return Ok(own);
        }
    }
}

/// Describes the routes for the OpenAPI document.
pub fn operations() -> Vec<Operation> {
    let maybe = json!({"type": "string", "nullable": true});
    let flag = json!({"type": "boolean"});
    let any = json!({"nullable": true});
    let object = json!({"type": "object", "additionalProperties": any});
    let score = json!({"type": "number", "minimum": 0, "maximum": 1, "nullable": true});
    let scores = json!({"type": "object", "additionalProperties": score, "nullable": true});
    let maybe_object = json!({"type": "object", "additionalProperties": any, "nullable": true});
    let takes = json!({"type": "object", "additionalProperties": false, "properties": {
        "scores": scores, "expected": any, "metadata": maybe_object, "comment": maybe,
        "submitted": {"type": "boolean", "nullable": true},
    }});
    let closed = |fields: Value| json!({"type": "object", "required": names(&fields), "properties": fields});
    let review = closed(json!({
        "id": text(), "reviewer_id": maybe, "reviewer_name": text(), "submitted": flag, "scores": object,
        "expected": any, "metadata": object, "comment": maybe, "created": any, "is_mine": flag,
    }));
    let changed = closed(json!({
        "id": uuid(), "row_id": text(), "submitted": flag, "status": maybe, "complete": flag,
    }));
    let shown = closed(json!({
        "row_id": text(), "blind": flag, "require_all": flag, "hidden": flag, "status": maybe,
        "assignees": {"type": "array", "items": uuid()}, "reviews": {"type": "array", "items": review},
    }));
    let of = |method: &'static str, summary: &str| {
        Operation::new(method, "/v1/review/{object_type}/{id}/{row_id}", "Reviews", summary)
            .part("object_type", json!({"type": "string", "enum": ["project_logs", "experiment"]}))
            .of("object")
            .part("row_id", text())
    };
    vec![
        of("get", "Get the reviews of a row that the caller may see").answers(shown),
        of("put", "Change the caller's review of a row").takes(takes).answers(changed),
    ]
}
