// Trace that a scorer reads, over the API of the server with the credential of the call.
'use strict';

// Spans of one page of a query.
const PAGE_SPANS = 1000;
// Upper bound of the spans that one trace may have here.
const TRACE_SPANS_MAX = 100_000;
const FILTERS = ['spanType', 'name', 'hasError', 'metadata', 'duration'];

class Trace {
  #reference;
  #parent;
  #spans = new Map();
  #threads = new Map();

  constructor({ object_type, object_id, root_span_id }, parent) {
    this.#reference = { object_type, object_id, root_span_id };
    this.#parent = parent;
  }

  getConfiguration() {
    return { ...this.#reference };
  }

  toJSON() {
    return { trace_ref: this.getConfiguration() };
  }

  async getSpans({ spanType, filters, includeScorers = false } = {}) {
    const wanted = { ...filters };
    if (spanType?.length > 0) wanted.spanType = spanType;
    const unknown = Object.keys(wanted).find((name) => !FILTERS.includes(name));
    if (unknown !== undefined) throw new Error(`unknown filter of spans: ${unknown}; ${FILTERS.join(', ')} are valid`);
    if (!this.#spans.has(includeScorers)) this.#spans.set(includeScorers, this.#query(includeScorers));
    return (await this.#spans.get(includeScorers)).filter((span) => matches(span, wanted)).map((span) => ({ ...span }));
  }

  async getThread({ preprocessor } = {}) {
    const name = preprocessor ?? 'project_default';
    if (!this.#threads.has(name)) this.#threads.set(name, this.#invoke(name));
    return this.#threads.get(name);
  }

  async #query(includeScorers) {
    const { object_type, object_id, root_span_id } = this.#reference;
    const purpose = { op: 'ident', name: ['span_attributes', 'purpose'] };
    const literal = (value) => ({ op: 'literal', value });
    const children = [{ op: 'eq', left: { op: 'ident', name: ['root_span_id'] }, right: literal(root_span_id) }];
    if (!includeScorers) {
      const isScorer = { op: 'ne', left: purpose, right: literal('scorer') };
      children.push({ op: 'or', children: [{ op: 'isnull', expr: purpose }, isScorer] });
    }
    const from = { op: 'function', name: { op: 'ident', name: [object_type] }, args: [literal(object_id)] };
    const query = { select: [{ op: 'star' }], from, filter: { op: 'and', children }, limit: PAGE_SPANS };
    const spans = [];
    for (let cursor; cursor !== null; ) {
      const page = await post('/btql', { query: cursor ? { ...query, cursor } : query, fmt: 'json' });
      spans.push(...page.data);
      if (spans.length > TRACE_SPANS_MAX) throw new Error(`the trace has more than ${TRACE_SPANS_MAX} spans`);
      cursor = page.data.length > 0 ? page.cursor || null : null;
    }
    return spans;
  }

  async #invoke(preprocessor) {
    const messages = await post('/function/invoke', {
      global_function: preprocessor,
      function_type: 'preprocessor',
      input: this.toJSON(),
      mode: 'json',
      ...(this.#parent ? { parent: this.#parent } : {}),
    });
    return Array.isArray(messages) ? messages : [];
  }
}

function matches(span, { spanType, name, hasError, metadata, duration }) {
  if (spanType && !spanType.includes(span.span_attributes?.type ?? '')) return false;
  if (name && !name.includes(span.span_attributes?.name ?? '')) return false;
  if (hasError !== undefined && (span.error != null) !== hasError) return false;
  if (metadata && !contains(span.metadata, metadata)) return false;
  if (duration && Object.keys(duration).length > 0) {
    const elapsed = span.metrics?.end - span.metrics?.start;
    if (!(elapsed >= (duration.min ?? -Infinity) && elapsed <= (duration.max ?? Infinity))) return false;
  }
  return true;
}

// Whether all members of `wanted`, at any depth, are in `value`.
function contains(value, wanted) {
  if (wanted !== null && typeof wanted === 'object' && !Array.isArray(wanted)) {
    return Object.entries(wanted).every(([name, member]) => contains(value?.[name], member));
  }
  return JSON.stringify(value) === JSON.stringify(wanted);
}

async function post(path, body) {
  const { BRAINTRUST_API_URL: url, BRAINTRUST_API_KEY: key } = process.env;
  if (!url || !key) throw new Error('a trace can only be read with BRAINTRUST_API_URL and BRAINTRUST_API_KEY');
  const response = await fetch(url.replace(/\/+$/, '') + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the server answered ${response.status} to POST ${path}: ${text}`);
  return JSON.parse(text);
}

module.exports = { Trace };
