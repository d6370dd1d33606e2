// Harness of a context: removes globals that are not part of ES2023, and adds the console.
// Everything that it needs is taken before code of users can replace it.
(write) => {
  'use strict';

  // Upper bound of the characters of an error's message, and of its stack.
  const ERROR_TEXT_MAX = 64 * 1024;
  const STANDARD = new Set([
    'AggregateError', 'Array', 'ArrayBuffer', 'Atomics', 'BigInt', 'BigInt64Array', 'BigUint64Array', 'Boolean',
    'DataView', 'Date', 'Error', 'EvalError', 'FinalizationRegistry', 'Float32Array', 'Float64Array', 'Function',
    'Infinity', 'Int16Array', 'Int32Array', 'Int8Array', 'JSON', 'Map', 'Math', 'NaN', 'Number', 'Object', 'Promise',
    'Proxy', 'RangeError', 'ReferenceError', 'Reflect', 'RegExp', 'Set', 'SharedArrayBuffer', 'String', 'Symbol',
    'SyntaxError', 'TypeError', 'URIError', 'Uint16Array', 'Uint32Array', 'Uint8Array', 'Uint8ClampedArray', 'WeakMap',
    'WeakRef', 'WeakSet', 'decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent', 'escape', 'eval',
    'globalThis', 'isFinite', 'isNaN', 'parseFloat', 'parseInt', 'undefined', 'unescape',
  ]);
  const { stringify, parse } = JSON;
  const { apply } = Reflect;
  const { isFinite } = Number;
  const { isArray } = Array;
  const text = String;

  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (!STANDARD.has(name)) delete globalThis[name];
  }

  function shown(value) {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return value.stack ? `${text(value)}\n${value.stack}` : text(value);
    if (typeof value !== 'object' || value === null) return text(value);
    try {
      return stringify(value) ?? text(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  }

  function method(isError) {
    return (...values) => {
      let line = '';
      for (let index = 0; index < values.length; index++) line += (index ? ' ' : '') + shown(values[index]);
      write(isError, line.toWellFormed());
    };
  }

  const [output, error] = [method(false), method(true)];
  const console = { log: output, info: output, debug: output, warn: error, error };
  Object.defineProperty(globalThis, 'console', { value: console, writable: true, configurable: true });

  function checkNumber(value, subject) {
    if (typeof value === 'number' && !isFinite(value)) {
      throw new TypeError(`${subject} is ${value}, which JSON cannot hold: a finite number is valid`);
    }
  }

  // Refuses values that JSON.stringify would silently turn into null or nothing.
  function checkTop(value) {
    const type = typeof value;
    if (type === 'function' || type === 'symbol') throw new TypeError(`the result is a ${type}, which JSON cannot hold`);
    checkNumber(value, 'the result');
    if (type !== 'object' || value === null) return;
    if (!isArray(value)) {
      checkNumber(value.score, 'the score of the result');
      return;
    }
    for (let index = 0; index < value.length; index++) {
      const item = value[index];
      if (item !== null && typeof item === 'object') checkNumber(item.score, `the score at ${index} of the result`);
    }
  }

  function encode(value) {
    checkTop(value);
    try {
      return stringify(value) ?? 'null';
    } catch (problem) {
      throw new TypeError(`the result cannot be JSON: ${problem.message}`);
    }
  }

  // Stacks end where they reach this name. `lists` has the arguments of each call.
  async function assayCall(handler, lists, isList) {
    const values = parse(lists);
    if (!isList) return encode(await apply(handler, undefined, values[0]));
    let answers = '';
    for (let index = 0; index < values.length; index++) {
      answers += (index ? ',' : '') + encode(await apply(handler, undefined, values[index]));
    }
    return `[${answers}]`;
  }

  function cut(value) {
    return value.length > ERROR_TEXT_MAX ? `${value.slice(0, ERROR_TEXT_MAX).toWellFormed()}…` : value.toWellFormed();
  }

  function describe(thrown) {
    if (thrown === null || typeof thrown !== 'object') return ['Error', cut(text(thrown)), ''];
    const { name, message, stack } = thrown;
    return [
      typeof name === 'string' && name !== '' ? cut(name) : 'Error',
      cut(typeof message === 'string' ? message : shown(thrown)),
      typeof stack === 'string' ? cut(stack) : '',
    ];
  }

  return { call: assayCall, describe };
}
