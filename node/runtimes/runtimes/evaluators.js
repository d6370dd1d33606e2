// Evaluators of a bundle: their descriptions, and their tasks with hooks.
'use strict';

// Span for tasks of a function without an SDK. Everything that it is told is dropped.
const SILENT_SPAN = require('./braintrust.js').NOOP_SPAN;

// Returns the descriptions of evaluators by name.
async function describe(evaluators, required) {
  const described = {};
  for (const [name, { evaluator }] of Object.entries(evaluators)) {
    const parameters = await evaluator.parameters;
    described[name] = {
      parameters: parameters ? parametersContainer(parameters, required) : null,
      scores: (evaluator.scores ?? []).map((scorer, index) => ({ name: scorer.name || `scorer_${index}` })),
      classifiers: (evaluator.classifiers ?? []).map((one, index) => ({ name: one.name || `classifier_${index}` })),
    };
  }
  return described;
}

function isRemote(parameters) {
  return parameters.__braintrust_parameters_marker === true;
}

function parametersContainer(parameters, required) {
  if (isRemote(parameters)) {
    const { id: parametersId, slug, name, projectId, version, schema } = parameters;
    return { type: 'braintrust.parameters', schema, source: { parametersId, slug, name, projectId, version } };
  }
  const entries = Object.entries(parameters).map(([name, schema]) => [name, describeParameter(schema, required)]);
  return { type: 'braintrust.staticParameters', schema: Object.fromEntries(entries), source: null };
}

function describeParameter(schema, required) {
  if (schema.type === 'prompt' || schema.type === 'model') {
    return { type: schema.type, default: schema.default, description: schema.description };
  }
  const json = jsonSchema(schema, required);
  const absent = schema.safeParse?.(undefined);
  return {
    type: 'data',
    schema: json,
    default: json?.default ?? (absent?.success ? absent.data : undefined),
    description: json?.description ?? schema.description,
  };
}

// Returns the JSON schema of a zod schema, or nothing if no converter is at hand: the member is optional.
function jsonSchema(schema, required) {
  if (typeof schema.toJSONSchema === 'function') return schema.toJSONSchema();
  const converters = [
    ['zod', (module) => schema._zod && module.toJSONSchema(schema)],
    ['zod-to-json-schema', (module) => schema._def && module.zodToJsonSchema(schema)],
  ];
  for (const [name, convert] of converters) {
    let module;
    try {
      module = required(name);
    } catch {
      continue;
    }
    const converted = convert(module);
    if (converted) return converted;
  }
  return undefined;
}

// Runs a task. Returns its value, and what it changed through its hooks.
async function runTask({ handler, evaluator }, frame, progress, required) {
  const given = frame.hooks ?? {};
  const metadata = { ...given.metadata };
  let span = null;
  const hooks = {
    metadata,
    meta: (values) => void Object.assign(metadata, values),
    expected: given.expected ?? null,
    parameters: await parameterValues(given.parameters ?? {}, await evaluator?.parameters, required),
    trialIndex: given.trial_index ?? 0,
    tags: [...(given.tags ?? [])],
    reportProgress: progress,
    // A span exists only for tasks that ask for it.
    get span() {
      return (span ??= startTaskSpan());
    },
  };
  try {
    const value = await handler(frame.input, hooks);
    return { value, notes: { metadata: hooks.metadata, tags: hooks.tags ?? [] } };
  } finally {
    span?.end();
  }
}

function startTaskSpan() {
  const { startSpan } = globalThis._spanContext ?? {};
  return startSpan ? startSpan({ name: 'task', spanAttributes: { type: 'task' } }) : SILENT_SPAN;
}

async function parameterValues(given, parameters, required) {
  if (!parameters) return given;
  if (isRemote(parameters)) return { ...parameters.data, ...given };
  const entries = Object.entries(parameters).map(([name, schema]) => {
    try {
      return [name, parameterValue(name, given[name], schema, required)];
    } catch (error) {
      throw new Error(`invalid parameter '${name}': ${error?.message ?? error}`, { cause: error });
    }
  });
  return Object.fromEntries(entries);
}

function parameterValue(name, value, schema, required) {
  if (schema.type !== 'prompt' && schema.type !== 'model') return schema.parse(value);
  const chosen = value ?? schema.default;
  if (chosen === undefined) throw new Error('it has no default, and no value was given');
  if (schema.type === 'model') {
    if (typeof chosen !== 'string') throw new Error('a name of a model as a string is valid');
    return chosen;
  }
  const { Prompt, promptDefinitionToPromptData } = required('braintrust');
  const data = value ?? promptDefinitionToPromptData(chosen, chosen.tools);
  return Prompt.fromPromptData(name, data);
}

module.exports = { describe, runTask };
