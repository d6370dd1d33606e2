// Network of user code: every TCP connection becomes a byte stream of the server's tunnel.
//
// A stream begins with `host:port` and a newline. Names are resolved by the server, and TLS stays end to end. The
// modules are patched when they are first used, because loading them takes longer than the rest of the start.
'use strict';

const Module = require('module');
const { isMainThread } = require('worker_threads');

const PATCHED = new Set(['net', 'tls', 'http', 'https', 'http2', 'dns', 'dns/promises']);
const NO_NETWORK = 'this function has no network: the setting functions.network is off';

const tunnel = process.env.ASSAY_TUNNEL;
// Connected sockets, each for one connection. Other threads do not get them: they would use the same ones again.
const streams = isMainThread ? descriptors(process.env.ASSAY_STREAMS) : [];
const hadStreams = streams.length;
let isInstalled = false;

function descriptors(list) {
  if (!list) return [];
  if (!/^\d+(,\d+)*$/.test(list)) throw new Error(`ASSAY_STREAMS is ${list}: a list such as 10,12 is valid`);
  return list.split(',').map(Number);
}

function install() {
  if (isInstalled) return;
  isInstalled = true;
  patchSockets(require('net'));
  patchTls(require('tls'), require('net'));
  patchLookup(require('dns'));
  Module.syncBuiltinESMExports();
}

function failure(code, message) {
  return Object.assign(new Error(message), { code, syscall: 'connect' });
}

// Returns the reason why no connection can be opened, or null.
function refusal() {
  if (tunnel || streams.length > 0) return null;
  if (hadStreams === 0) return failure('ENETUNREACH', NO_NETWORK);
  const message = `this function has used all of its ${hadStreams} connections: fewer, or reused ones, are valid`;
  return failure('EMFILE', message);
}

function patchSockets(net) {
  const { connect } = net.Socket.prototype;
  net.Socket.prototype.connect = function (...args) {
    // `net.connect` passes one list of the options and the callback.
    const list = args.length === 1 && Array.isArray(args[0]) ? args[0] : args;
    const [options, callback] = socketArguments(list);
    if (options === null) return connect.apply(this, args);
    if (this.encrypted) {
      const message = 'tls was loaded before the network of this function was ready: load it with require or import';
      process.nextTick(() => this.destroy(failure('ENETUNREACH', message)));
      return this;
    }
    const reason = refusal();
    if (reason !== null) {
      process.nextTick(() => this.destroy(reason));
      return this;
    }
    if (!tunnel) attach(this, net, streams.shift());
    const host = String(options.host || 'localhost');
    connect.call(this, { ...options, host: undefined, port: undefined, path: tunnel || '/' }, callback);
    this.write(`${host}:${Number(options.port)}\n`);
    return this;
  };
}

// Returns options with a port and the callback, or null if a path of a socket or nothing valid is given.
function socketArguments([first, second, third]) {
  let options = first;
  if (typeof first === 'number' || (typeof first === 'string' && /^\d+$/.test(first))) {
    options = { port: first, host: typeof second === 'string' ? second : undefined };
  }
  if (options === null || typeof options !== 'object' || options.path || options.port == null) return [null, null];
  const callback = [third, second].find((argument) => typeof argument === 'function');
  return [options, callback];
}

// Gives a connected descriptor to a socket, whose connecting then succeeds at once.
function attach(socket, net, fd) {
  const carrier = new net.Socket({ fd, readable: true, writable: true, manualStart: true });
  const handle = carrier._handle;
  const owner = Object.getOwnPropertySymbols(handle).find((symbol) => symbol.description === 'owner_symbol');
  carrier._handle = null;
  handle[owner] = socket;
  handle.connect = (request) => {
    process.nextTick(() => request.oncomplete(0, handle, request, true, true));
    return 0;
  };
  socket._handle = handle;
}

// Node aborts if a TLS socket, which has a TCP handle, is connected to a path. So it gets a connected socket.
function patchTls(tls, net) {
  const { connect } = tls;
  tls.connect = function (...args) {
    const callback = typeof args.at(-1) === 'function' ? args.at(-1) : undefined;
    const options = {};
    if (typeof args[0] === 'object') Object.assign(options, args[0]);
    else options.port = args[0];
    if (typeof args[1] === 'string') options.host = args[1];
    const extras = args.slice(1, 3).filter((extra) => extra !== null && typeof extra === 'object');
    Object.assign(options, ...extras);
    if (!options.socket && !options.path) {
      const host = options.host || 'localhost';
      options.socket = new net.Socket().connect({ host, port: options.port });
      if (options.servername === undefined && !net.isIP(host)) options.servername = host;
    }
    return connect.call(tls, options, callback);
  };
}

// Names stay names until the server resolves them.
function patchLookup(dns) {
  const answer = (name, options) => {
    const family = options === 6 || options?.family === 6 ? 6 : 4;
    return options?.all ? [{ address: name, family }] : { address: name, family };
  };
  dns.lookup = function (name, options, callback) {
    const done = typeof options === 'function' ? options : callback;
    const found = answer(name, typeof options === 'function' ? undefined : options);
    process.nextTick(() => (Array.isArray(found) ? done(null, found) : done(null, found.address, found.family)));
    return {};
  };
  dns.promises.lookup = async (name, options) => answer(name, options);
}

// Patches before user code gets hold of a module.
function watch() {
  const { _load: load } = Module;
  Module._load = function (request, ...rest) {
    const name = typeof request === 'string' && request.startsWith('node:') ? request.slice(5) : request;
    if (PATCHED.has(name)) install();
    return load.call(this, request, ...rest);
  };
  const { getBuiltinModule } = process;
  if (getBuiltinModule) {
    process.getBuiltinModule = (name) => {
      if (PATCHED.has(String(name).replace(/^node:/, ''))) install();
      return getBuiltinModule(name);
    };
  }
  for (const name of ['fetch', 'WebSocket', 'EventSource']) watchGlobal(name);
}

function watchGlobal(name) {
  const original = Object.getOwnPropertyDescriptor(globalThis, name);
  if (!original?.configurable) return;
  const restore = () => {
    Object.defineProperty(globalThis, name, original);
    install();
  };
  Object.defineProperty(globalThis, name, {
    configurable: true,
    enumerable: original.enumerable,
    get: () => (restore(), globalThis[name]),
    set: (value) => {
      restore();
      globalThis[name] = value;
    },
  });
}

watch();

module.exports = { install };
