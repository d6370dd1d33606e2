// Worker for Node: loads one function, and serves its calls one after the other.
'use strict';

require('./network.js');
const { Channel } = require('./channel.js');
const { describeError, encodeValue } = require('./values.js');
const functions = require('./functions.js');

// Upper bound of the time that the SDK has to send the spans of a call.
const FLUSH_MS_MAX = 10_000;
// Upper bound of the turns of the event loop in which closed connections may disappear.
const CLOSING_TURNS_MAX = 10;
const CALL_WITHOUT_END = 'the function never finished: it waits for a promise that nothing is left to settle';

// Taken at the start, because user code may replace them.
const { setImmediate, setTimeout, clearTimeout, JSON } = globalThis;
const { stringify } = JSON;
const exit = process.reallyExit.bind(process);

// Calls of Node and of the worker, which are left out of stacks, count too.
Error.stackTraceLimit = 30;

const channel = new Channel(Number(process.env.ASSAY_CHANNEL ?? 3));
const streams = watchConsole();

// The load or the call that runs.
let current = null;

class Work {
  constructor(id) {
    this.id = id;
    // The first error outside of the awaited promise, such as an unhandled rejection.
    this.failure = null;
    this.settled = new Promise((resolve) => (this.settle = resolve));
  }

  fail(error) {
    this.failure ??= { error };
    this.settle(this.failure);
  }
}

// Variables of the process and of the call that runs.
class Environment {
  constructor() {
    this.base = Object.assign(Object.create(null), process.env);
  }

  wanted(variables) {
    return Object.assign(Object.create(null), this.base, variables);
  }

  apply(variables) {
    const wanted = this.wanted(variables);
    for (const name of Object.keys(process.env)) if (!(name in wanted)) delete process.env[name];
    for (const name in wanted) if (process.env[name] !== wanted[name]) process.env[name] = wanted[name];
  }

  // Keeps what loading changed: it belongs to the function as much as its global variables.
  keep(variables) {
    const wanted = this.wanted(variables);
    for (const name of Object.keys(process.env)) {
      if (process.env[name] !== wanted[name]) this.base[name] = process.env[name];
    }
    for (const name in wanted) if (!(name in process.env)) delete this.base[name];
  }
}

for (const name of ['ASSAY_CHANNEL', 'ASSAY_STREAMS']) delete process.env[name];
if (process.env.ASSAY_TUNNEL) process.env.NODE_OPTIONS ??= `--require=${require.resolve('./network.js')}`;
const environment = new Environment();
const home = process.cwd();
// Resources that loading left open. They belong to the function.
let resources = 0;

process.on('uncaughtException', (error) => current?.fail(error));
process.on('unhandledRejection', (reason) => current?.fail(reason));
process.on('beforeExit', () => current?.fail(new Error(CALL_WITHOUT_END)));
process.on('exit', (code) => {
  if (current) sendError(current.id, new Error(`the function ended its process with code ${code}`), 1);
});

function turn() {
  return new Promise((resolve) => setImmediate(resolve));
}

// Runs user code, and returns `{value}` or `{error}`.
async function perform(id, work) {
  const own = (current = new Work(id));
  // Events of idle connections arrive here, before user code uses these.
  await turn();
  run(own, work);
  const outcome = await own.settled;
  // Unhandled rejections arrive here, and belong to this call.
  await turn();
  return own.failure ?? outcome;
}

async function run(own, work) {
  try {
    own.settle({ value: await work() });
  } catch (error) {
    own.settle({ error });
  }
}

// Notes the console's streams when they are opened: opening them here would delay the start.
function watchConsole() {
  const opened = new Set();
  for (const name of ['stdout', 'stderr']) {
    const { get } = Object.getOwnPropertyDescriptor(process, name);
    const watched = () => {
      const stream = get.call(process);
      opened.add(stream);
      return stream;
    };
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get: watched });
  }
  return opened;
}

async function flushConsole() {
  for (const stream of streams) {
    if (stream.writableLength > 0) await new Promise((resolve) => stream.write('', resolve));
  }
}

// Sends the spans of the SDK, if the function has one. A failure must not fail the call.
async function flushSpans() {
  const logger = functions.sdkState()?.bgLogger?.();
  if (typeof logger?.flush !== 'function') return;
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, FLUSH_MS_MAX)));
  const flushed = Promise.resolve(logger.flush()).catch(() => {});
  await Promise.race([flushed, late]);
  clearTimeout(timer);
}

function openResources() {
  return process.getActiveResourcesInfo().length - [...streams].filter((stream) => stream._handle).length;
}

// Counts what a call left open.
async function leftovers() {
  let left = openResources() - resources;
  for (let turns = 0; left > 0 && turns < CLOSING_TURNS_MAX; turns++) {
    await turn();
    left = openResources() - resources;
  }
  return Math.max(0, left);
}

async function load(frame) {
  environment.apply(frame.environment);
  functions.noteLogin(frame.environment);
  const outcome = await perform(null, () => functions.load(frame.source));
  await flushConsole();
  environment.keep(frame.environment);
  resources = openResources();
  if ('error' in outcome) sendError(null, outcome.error, 0);
  else channel.send('{"loaded":{}}');
}

async function list(frame) {
  environment.apply(frame.environment);
  functions.noteLogin(frame.environment);
  const outcome = await perform(null, () => functions.list(frame.path));
  await flushConsole();
  environment.keep(frame.environment);
  if ('error' in outcome) sendError(null, outcome.error, 0);
  else answer(null, () => `{"listed":{"evaluators":${encodeValue(outcome.value, 'list of evaluators')}}}`);
}

async function call(frame) {
  const { id } = frame;
  environment.apply(frame.environment);
  if (process.cwd() !== home) process.chdir(home);
  functions.refreshLogin(frame.environment);
  const progress = (data) => {
    if (current?.id !== id) throw new Error('progress can only be reported while the task runs');
    channel.send(`{"progress":{"id":${stringify(id)},"data":${encodeValue(data, 'progress event')}}}`);
  };
  let outcome = await perform(id, () => functions.call(frame, progress));
  await flushSpans();
  await flushConsole();
  const left = await leftovers();
  outcome = current.failure ?? outcome;
  // After a failure outside of the awaited promise, other parts of the call may still run.
  if ('error' in outcome) return sendError(id, outcome.error, current.failure ? Math.max(left, 1) : left);
  const { value } = outcome;
  answer(id, () => {
    const notes = value.notes ? `,"notes":${encodeValue(value.notes, "value of the task's hooks")}` : '';
    const text = encodeValue(value.value, 'result of the function');
    return `{"result":{"id":${stringify(id)},"left":${left}${notes},"value":${text}}}`;
  });
}

// Sends a frame, or the error that encoding it throws.
function answer(id, encoded) {
  let text;
  try {
    text = encoded();
  } catch (error) {
    return sendError(id, error, 0);
  }
  channel.send(text);
  current = null;
}

function sendError(id, error, left) {
  current = null;
  const failure = { ...describeError(error, functions.shownFiles()), left };
  channel.send(stringify({ error: id === null ? failure : { id, ...failure } }));
}

async function serve() {
  channel.send(stringify({ ready: { runtime: 'node', version: process.versions.node } }));
  for (let frame = channel.receive(); frame !== null; frame = channel.receive()) {
    if (frame.call) await call(frame.call);
    else if (frame.load) await load(frame.load);
    else if (frame.list) await list(frame.list);
    else throw new Error(`unknown frame of the server: ${Object.keys(frame)}; load, list and call are valid`);
    current = null;
  }
}

serve().then(
  () => exit(0),
  (error) => {
    console.error(error);
    exit(1);
  },
);
