// The hash function BLAKE3 in its mode that derives keys. Browsers do not have it, and over plain http they have none.

const START = Int32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
);
const ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const BLOCK = 64;
const CHUNK = 1024;
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;
const CONTEXT = 32;
const MATERIAL = 64;

/** The places of the words of a block in the order in which seven rounds mix them in. */
const SCHEDULE = new Uint8Array(7 * 16);
for (let at = 0; at < SCHEDULE.length; at += 1) {
  SCHEDULE[at] = at < 16 ? at : (SCHEDULE[at - (at % 16) - 16 + (ORDER[at % 16] ?? 0)] ?? 0);
}

/** The places in the state that the eight steps of a round mix: first columns, then diagonals. */
const STEPS = Uint8Array.of(
  ...[0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
  ...[0, 5, 10, 15, 1, 6, 11, 12, 2, 7, 8, 13, 3, 4, 9, 14],
);

const state = new Int32Array(16);

const at = (words: Int32Array | Uint8Array, place: number): number => words[place] ?? 0;

function mix(step: number, x: number, y: number): void {
  const a = at(STEPS, step);
  const b = at(STEPS, step + 1);
  const c = at(STEPS, step + 2);
  const d = at(STEPS, step + 3);
  let va = (at(state, a) + at(state, b) + x) | 0;
  let vd = at(state, d) ^ va;
  vd = (vd >>> 16) | (vd << 16);
  let vc = (at(state, c) + vd) | 0;
  let vb = at(state, b) ^ vc;
  vb = (vb >>> 12) | (vb << 20);
  va = (va + vb + y) | 0;
  vd ^= va;
  vd = (vd >>> 8) | (vd << 24);
  vc = (vc + vd) | 0;
  vb ^= vc;
  state[a] = va;
  state[b] = (vb >>> 7) | (vb << 25);
  state[c] = vc;
  state[d] = vd;
}

/** The chaining value that follows on a block of 16 words. */
function compressed(chain: Int32Array, words: Int32Array, counter: number, length: number, flags: number): Int32Array {
  for (let place = 0; place < 8; place += 1) state[place] = at(chain, place);
  for (let place = 0; place < 4; place += 1) state[place + 8] = at(START, place);
  state[12] = counter;
  state[13] = 0;
  state[14] = length;
  state[15] = flags;
  for (let word = 0; word < SCHEDULE.length; word += 2) {
    mix((word * 2) & 31, at(words, at(SCHEDULE, word)), at(words, at(SCHEDULE, word + 1)));
  }
  const next = new Int32Array(8);
  for (let place = 0; place < 8; place += 1) next[place] = at(state, place) ^ at(state, place + 8);
  return next;
}

/** The words of a block, which are little-endian; zeros follow on the bytes. */
function wordsOf(bytes: Uint8Array): Int32Array {
  const words = new Int32Array(16);
  for (let byte = 0; byte < bytes.length; byte += 1) {
    words[byte >> 2] = at(words, byte >> 2) | (at(bytes, byte) << (8 * (byte & 3)));
  }
  return words;
}

function hashedChunk(bytes: Uint8Array, key: Int32Array, counter: number, flags: number, root: number): Int32Array {
  const last = Math.max(Math.ceil(bytes.length / BLOCK) - 1, 0);
  let chain = key;
  for (let block = 0; block <= last; block += 1) {
    const part = bytes.subarray(block * BLOCK, (block + 1) * BLOCK);
    const ends = (block === 0 ? CHUNK_START : 0) | (block === last ? CHUNK_END | root : 0);
    chain = compressed(chain, wordsOf(part), counter, part.length, flags | ends);
  }
  return chain;
}

/** Hashes bytes that begin at a chunk. The left half of several chunks has as many as a power of two allows. */
function hashed(bytes: Uint8Array, key: Int32Array, counter: number, flags: number, root: number): Int32Array {
  if (bytes.length <= CHUNK) return hashedChunk(bytes, key, counter, flags, root);
  const left = 2 ** Math.floor(Math.log2((bytes.length - 1) / CHUNK));
  const words = new Int32Array(16);
  words.set(hashed(bytes.subarray(0, left * CHUNK), key, counter, flags, 0));
  words.set(hashed(bytes.subarray(left * CHUNK), key, counter + left, flags, 0), 8);
  return compressed(key, words, 0, BLOCK, flags | PARENT | root);
}

const encoder = new TextEncoder();

/** Returns the function that derives the 32 bytes of a key, in hex, from bytes within a context. */
export function deriver(context: string): (material: Uint8Array) => string {
  const key = hashed(encoder.encode(context), START, 0, CONTEXT, ROOT);
  return (material) => {
    const words = hashed(material, key, 0, MATERIAL, ROOT);
    const bytes = [...words].flatMap((word) => [0, 8, 16, 24].map((shift) => (word >>> shift) & 255));
    return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
}
