// Small `braintrust` for functions without the real package: it registers functions, and traces nothing.
'use strict';

const MISSING =
  'the package braintrust is not installed. ' +
  'It has to be in the directory that the setting functions.node_modules names';

const NOOP_SPAN = {
  kind: 'span',
  id: '',
  spanId: '',
  rootSpanId: '',
  spanParents: [],
  log() {},
  logFeedback() {},
  setAttributes() {},
  traced: (callback) => callback(NOOP_SPAN),
  startSpan: () => NOOP_SPAN,
  end: (options) => options?.endTime ?? Date.now() / 1000,
  close: (options) => NOOP_SPAN.end(options),
  export: async () => '',
  flush: async () => {},
};

function registry() {
  if (!globalThis._lazy_load) throw new Error(`only a bundle can register functions here: ${MISSING}`);
  return globalThis._evals;
}

class Project {
  constructor(options) {
    this.name = options.name;
    this.id = options.id;
    const functions = (type) => ({ create: (options) => this.#addFunction(type, options) });
    this.tools = functions('tool');
    this.scorers = functions('scorer');
    this.classifiers = functions('classifier');
    this.prompts = { create: (options) => this.#add('prompts', options) };
    this.parameters = { create: (options) => this.#add('parameters', options) };
  }

  #addFunction(type, options) {
    // Scorers without a handler are prompts.
    if (typeof options.handler !== 'function') return this.#add('prompts', options);
    return this.#add('functions', { ...options, type, name: options.name ?? options.handler.name });
  }

  #add(kind, options) {
    const record = { ...options, project: this };
    registry()[kind].push(record);
    return record;
  }
}

const projects = { create: (options) => new Project(options) };

async function Eval(name, evaluator, reporter) {
  const { evaluators } = registry();
  let evalName = evaluator.experimentName ? `${name} [experimentName=${evaluator.experimentName}]` : name;
  if (evaluators[evalName]) evalName = `${evalName}_${Object.keys(evaluators).length}`;
  evaluators[evalName] = { evaluator: { evalName, projectName: name, ...evaluator }, reporter };
  return { summary: { scores: {}, metrics: {}, projectName: '', experimentName: '' }, results: [] };
}

function Reporter(name, reporter) {
  const { reporters } = registry();
  if (reporters[name]) throw new Error(`Reporter ${name} already exists`);
  return (reporters[name] = { name, ...reporter });
}

function traced(callback) {
  return callback(NOOP_SPAN);
}

function wrapTraced(callback) {
  return callback;
}

function currentSpan() {
  return NOOP_SPAN;
}

function startSpan() {
  return NOOP_SPAN;
}

function initLogger() {
  return { ...NOOP_SPAN, kind: 'logger' };
}

function wrapOpenAI(client) {
  return client;
}

async function flush() {}

function unavailable(name) {
  return `braintrust.${name} is not available, because ${MISSING}`;
}

// Names that tools read of any module, and that must not throw.
const QUIET = new Set(['__esModule', 'default', 'then', 'toJSON', 'module.exports', 'constructor', 'inspect']);

module.exports = {
  Eval,
  NOOP_SPAN,
  Reporter,
  currentSpan,
  flush,
  initLogger,
  projects,
  startSpan,
  traced,
  unavailable,
  wrapOpenAI,
  wrapTraced,
};

// As the prototype, because bundlers copy the members of a module to an object with the same prototype.
Object.setPrototypeOf(
  module.exports,
  new Proxy(Object.create(Object.prototype), {
    get(prototype, name, receiver) {
      const isQuiet = typeof name === 'symbol' || QUIET.has(name) || name in prototype;
      if (isQuiet) return Reflect.get(prototype, name, receiver);
      throw new Error(unavailable(name));
    },
  }),
);
