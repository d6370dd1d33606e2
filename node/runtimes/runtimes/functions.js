// Functions of user code: loading from inline text or a bundle, and their arguments.
'use strict';

const Module = require('module');
const path = require('path');
const { compileFunction, constants } = require('vm');
const network = require('./network.js');

const PACKAGES = process.env.ASSAY_NODE_MODULES ?? '/node_modules';
const PACKAGES_HINT = 'It has to be in the directory that the setting functions.node_modules names.';
// Modules of inline code resolve packages from here, as do bundles.
const ANCHOR = path.join(path.dirname(PACKAGES), 'handler.js');
const STATE = Symbol.for('braintrust-state');
// Variables whose change makes the login of an SDK obsolete.
const LOGIN_VARIABLES = ['BRAINTRUST_API_URL', 'BRAINTRUST_APP_URL', 'BRAINTRUST_PROXY_URL', 'BRAINTRUST_ORG_NAME'];

// Handler that calls run, with its evaluator if it is part of one.
let target = null;
// Path of the loaded bundle, and what it registered. An SDK that is loaded later replaces the global registry.
let bundlePath = null;
let registered = null;
// Replacements in stacks, as pairs of a text and what users see instead.
let shown = [];
let login = null;

// Node warns of the option that makes `import()` work in text, which users can do nothing about.
const { emitWarning } = process;
process.emitWarning = function (warning, ...rest) {
  if (!String(warning).includes('USE_MAIN_CONTEXT_DEFAULT_LOADER')) emitWarning.call(process, warning, ...rest);
};

function shownFiles() {
  return shown;
}

function sdkState() {
  return globalThis[STATE];
}

async function load(source) {
  if (source.bundle) {
    loadBundle(source.bundle.path);
    target = locate(source.bundle.location);
    return;
  }
  if (target !== null) {
    throw new Error('this worker has loaded a function: only another location of its bundle can follow');
  }
  const { code, is_module: isModule, language } = source.inline;
  const file = path.join(path.dirname(ANCHOR), language === 'typescript' ? 'handler.ts' : 'handler.js');
  const handler = isModule ? await importModule(code, file) : evaluate(`${code}\n;return handler;`, file, code);
  if (typeof handler !== 'function') throw new TypeError('handler is not a function');
  target = { handler };
}

// Evaluates text as the body of a CommonJS module.
function evaluate(body, file, code) {
  if (/\bimport\s*\(/.test(code)) network.install();
  const module = { exports: {}, id: file, filename: file, loaded: false, children: [], paths: [PACKAGES] };
  const names = ['require', 'module', 'exports', '__filename', '__dirname'];
  const dynamic = constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ?? ((specifier) => import(specifier));
  const compile = (text) => compileFunction(text, names, { filename: file, importModuleDynamically: dynamic });
  let evaluated;
  try {
    evaluated = compile(body);
  } catch (error) {
    // The error of the user's text alone does not mention what was added to it.
    compile(code);
    throw error;
  }
  const value = evaluated.call(module.exports, requireFrom(file), module, module.exports, file, path.dirname(file));
  module.loaded = true;
  return value;
}

// Returns a `require` that also finds the operator's packages, and answers for an absent SDK.
function requireFrom(file) {
  const nearest = Module.createRequire(file);
  const packages = Module.createRequire(ANCHOR);
  const required = (name) => {
    const isPackage = typeof name === 'string' && !/^(\.{0,2}\/|\.{1,2}$|node:)/.test(name) && !Module.isBuiltin(name);
    if (!isPackage) return nearest(name);
    try {
      return packages(name);
    } catch (error) {
      if (error?.code !== 'MODULE_NOT_FOUND' || !error.message.includes(`'${name}'`)) throw error;
      if (name === 'braintrust') return require('./braintrust.js');
      error.message = `Cannot find package '${name}'. ${PACKAGES_HINT}`;
      throw error;
    }
  };
  return Object.assign(required, nearest);
}

// Imports the text of an ES module, which has to be a file so that its imports find packages.
async function importModule(code, file) {
  network.install();
  const fs = require('fs');
  const directory = fs.mkdtempSync(path.join(process.env.TMPDIR ?? '/tmp', 'function-'));
  const own = path.join(directory, 'module');
  fs.mkdirSync(own);
  fs.symlinkSync(PACKAGES, path.join(directory, 'node_modules'));
  if (!fs.existsSync(path.join(PACKAGES, 'braintrust'))) {
    const small = path.join(own, 'node_modules', 'braintrust');
    fs.mkdirSync(small, { recursive: true });
    const text = `module.exports = require(${JSON.stringify(require.resolve('./braintrust.js'))});\n`;
    fs.writeFileSync(path.join(small, 'index.js'), text);
  }
  const entry = path.join(own, 'handler.mjs');
  fs.writeFileSync(entry, `${code}\n;export const assayHandlerOfModule = () => handler;\n`);
  const url = require('url').pathToFileURL(entry).href;
  shown = [[url, file], [entry, file]];
  try {
    return (await import(url)).assayHandlerOfModule();
  } catch (error) {
    throw withPackagesHint(error);
  }
}

function withPackagesHint(error) {
  if (error?.code === 'ERR_MODULE_NOT_FOUND') {
    const name = /Cannot find package '([^']*)'/.exec(error.message)?.[1];
    if (name !== undefined) error.message = `Cannot find package '${name}'. ${PACKAGES_HINT}`;
  } else if (error instanceof SyntaxError && error.message.includes("'braintrust'")) {
    const name = /export (?:named )?'([^']*)'/.exec(error.message)?.[1];
    if (name !== undefined) return new Error(require('./braintrust.js').unavailable(name));
  }
  return error;
}

function loadBundle(file) {
  if (bundlePath === file) {
    if (registered !== null) return;
    throw new Error(`loading ${file} has failed in this worker: only another worker can repeat it`);
  }
  if (target !== null || bundlePath !== null) throw new Error(`this worker has loaded another function than ${file}`);
  bundlePath = file;
  const text = require('fs').readFileSync(file, 'utf8').replace(/^\uFEFF/, '').replace(/^#!/, '//');
  globalThis._evals = { functions: [], prompts: [], parameters: [], evaluators: {}, reporters: {} };
  globalThis._lazy_load = true;
  evaluate(text, file, text);
  registered = globalThis._evals;
}

// Returns the handler at a location of the loaded bundle.
function locate(location) {
  const [kind, { evaluator: name, index }] = Object.entries(location)[0];
  const { functions, evaluators } = registered;
  if (kind === 'function') {
    const found = functions[index];
    if (found === undefined) {
      throw new Error(`the bundle has no function at position ${index}: it registers ${functions.length}`);
    }
    return { handler: found.handler };
  }
  const evaluator = Object.hasOwn(evaluators, name) ? evaluators[name].evaluator : undefined;
  if (evaluator === undefined) {
    const names = Object.keys(evaluators).join(', ') || 'none';
    throw new Error(`the bundle has no evaluator named ${name}: it has ${names}`);
  }
  if (kind === 'task') return { handler: evaluator.task, evaluator };
  const members = (kind === 'scorer' ? evaluator.scores : evaluator.classifiers) ?? [];
  if (members[index] === undefined) {
    throw new Error(`the evaluator ${name} has no ${kind} at position ${index}: it has ${members.length}`);
  }
  return { handler: members[index], evaluator };
}

async function list(file) {
  loadBundle(file);
  return require('./evaluators.js').describe(registered.evaluators, requireFrom(file));
}

function call(frame, progress) {
  if (target === null) throw new Error('this worker has loaded no function');
  const run = () => invoke(frame, progress);
  const context = sdkState()?.currentParent;
  return frame.parent && typeof context?.run === 'function' ? context.run(frame.parent, run) : run();
}

async function invoke(frame, progress) {
  const { handler } = target;
  switch (frame.form) {
    case 'function':
      return { value: await handler(frame.trace ? { ...frame.input, trace: traceOf(frame) } : frame.input) };
    case 'scorer':
      return { value: await handler(scorerArguments(frame)) };
    case 'preprocessor': {
      const values = [];
      for (const span of frame.input) values.push(await handler(span));
      return { value: values };
    }
    case 'eval_task':
      return require('./evaluators.js').runTask(target, frame, progress, requireFrom(bundlePath ?? ANCHOR));
    default:
      throw new Error(`unknown form of a call: ${frame.form}`);
  }
}

// Handlers compare absent arguments with null, so that none may be undefined.
function scorerArguments(frame) {
  const { input } = frame;
  if (input === null || typeof input !== 'object' || Array.isArray(input)) {
    throw new TypeError('the input of a scorer has to be an object, such as {"input": .., "output": ..}');
  }
  return { input: null, output: null, expected: null, metadata: null, ...input, trace: traceOf(frame) };
}

function traceOf(frame) {
  const reference = frame.trace ?? frame.input?.trace?.trace_ref;
  return reference ? new (require('./trace.js').Trace)(reference, frame.parent) : null;
}

// Notes the credential with which an SDK may log in while it is loaded.
function noteLogin(variables) {
  login ??= variables;
}

// Hands the credential of the call to an SDK that has logged in with the one of an earlier call.
function refreshLogin(variables) {
  const before = login ?? variables;
  login = variables;
  const state = sdkState();
  if (!state?.loggedIn) return;
  if (LOGIN_VARIABLES.some((name) => before[name] !== variables[name])) {
    state.resetLoginInfo?.();
    return;
  }
  const key = variables.BRAINTRUST_API_KEY;
  if (key === undefined || key === before.BRAINTRUST_API_KEY) return;
  state.loginToken = key;
  for (const connection of [state._apiConn, state._appConn, state._proxyConn]) connection?.set_token?.(key);
}

module.exports = { call, list, load, noteLogin, refreshLogin, sdkState, shownFiles };
