// Values and errors of user code as JSON.
'use strict';

const path = require('path');

// Upper bound of the JSON of a value.
const RESULT_BYTES_MAX = 16 * 1024 * 1024;
// Upper bound of the characters of an error's message, and of its stack.
const ERROR_TEXT_MAX = 64 * 1024;
// Upper bound of the causes that a stack shows.
const CAUSES_MAX = 5;

const { stringify } = JSON;
const { byteLength } = Buffer;

// Returns the JSON text of a value. Throws a TypeError that says why JSON cannot hold it.
function encodeValue(value, subject) {
  if (value === undefined || value === null) return 'null';
  checkTop(value, subject);
  let text;
  try {
    text = stringify(value);
  } catch (error) {
    throw new TypeError(`the ${subject} cannot be JSON: ${firstLine(error)}`);
  }
  if (text === undefined) return 'null';
  const length = byteLength(text);
  if (length > RESULT_BYTES_MAX) {
    throw new RangeError(`the ${subject} has ${length} bytes as JSON: at most ${RESULT_BYTES_MAX} are valid`);
  }
  return wellFormed(text);
}

// Refuses values that JSON.stringify would silently turn into null or nothing.
function checkTop(value, subject) {
  const type = typeof value;
  if (type === 'function' || type === 'symbol') {
    throw new TypeError(`the ${subject} is a ${type}, which JSON cannot hold`);
  }
  checkNumber(value, `the ${subject}`);
  if (type !== 'object') return;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      if (value[index] !== null && typeof value[index] === 'object') {
        checkNumber(value[index].score, `the score at ${index} of the ${subject}`);
      }
    }
  } else {
    checkNumber(value.score, `the score of the ${subject}`);
  }
}

function checkNumber(value, subject) {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`${subject} is ${value}, which JSON cannot hold: a finite number is valid`);
  }
}

// Replaces unpaired surrogates, which JSON.stringify writes as escapes that are no Unicode text.
function wellFormed(text) {
  if (!text.includes('\\ud')) return text;
  return text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|[^])/g, (escape) => (escape.length === 6 ? '\ufffd' : escape));
}

function firstLine(error) {
  return String(error && error.message !== undefined ? error.message : error).split('\n', 1)[0];
}

// Returns name, message and stack of whatever user code threw.
function describeError(error, files) {
  try {
    if (error === null || typeof error !== 'object') {
      return { name: 'Error', message: cut(String(error)), stack: '' };
    }
    const { name, message, stack } = error;
    const isError = typeof message === 'string';
    return {
      name: typeof name === 'string' && name !== '' ? cut(name) : 'Error',
      message: cut(isError ? message + networkCause(error) : inspect(error)),
      stack: cut(typeof stack === 'string' ? stackWithCauses(error, files) : ''),
    };
  } catch (problem) {
    return { name: 'Error', message: `the thrown value cannot be described: ${firstLine(problem)}`, stack: '' };
  }
}

// `fetch` hides the reason of every failure in its cause.
function networkCause({ message, cause }) {
  return message === 'fetch failed' && cause && cause.message ? `: ${cause.message}` : '';
}

function stackWithCauses(error, files) {
  const parts = [];
  for (let next = error; next && typeof next.stack === 'string' && parts.length <= CAUSES_MAX; next = next.cause) {
    parts.push(userStack(next.stack, files));
  }
  return parts.join('\nCaused by: ');
}

// Lines of a stack without those of the worker, and without calls of Node below the last line of user code.
function userStack(stack, files) {
  const lines = stack.split('\n').filter((line) => !(isFrame(line) && line.includes(__dirname + path.sep)));
  while (lines.length > 1 && isFrame(lines.at(-1)) && /\(?node:[^)]*\)?$/.test(lines.at(-1))) lines.pop();
  return files.reduce((text, [from, to]) => text.replaceAll(from, to), lines.join('\n'));
}

function isFrame(line) {
  return line.startsWith('    at ');
}

function inspect(value) {
  return require('util').inspect(value, { depth: 3, breakLength: Infinity });
}

function cut(text) {
  return text.length > ERROR_TEXT_MAX ? `${text.slice(0, ERROR_TEXT_MAX)}…` : text.toWellFormed();
}

module.exports = { RESULT_BYTES_MAX, encodeValue, describeError };
