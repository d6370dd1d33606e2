// Channel to the server: frames of a length and JSON, over a socket in blocking mode.
'use strict';

// Taken at the start, because user code may replace members of shared modules.
const { readSync, writeSync } = require('fs');

// Upper bound of a frame from the server.
const TO_WORKER_BYTES_MAX = 64 * 1024 * 1024;
const HEADER_BYTES = 4;
// Size of the buffer while no larger frame arrives.
const BUFFER_BYTES = 64 * 1024;

class Channel {
  constructor(fd) {
    this.fd = fd;
    this.buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    this.start = 0;
    this.end = 0;
  }

  // Returns the next frame, or null after the server has closed the channel. Blocks the thread meanwhile, so that
  // nothing that user code left behind can run between two calls.
  receive() {
    if (!this.fill(HEADER_BYTES)) return null;
    const length = this.buffer.readUInt32BE(this.start);
    if (length > TO_WORKER_BYTES_MAX) {
      throw new Error(`a frame of the server has ${length} bytes: at most ${TO_WORKER_BYTES_MAX} are valid`);
    }
    if (!this.fill(HEADER_BYTES + length)) return null;
    const from = this.start + HEADER_BYTES;
    const frame = JSON.parse(this.buffer.utf8Slice(from, from + length));
    this.start = from + length;
    if (this.start === this.end) {
      this.start = this.end = 0;
      if (this.buffer.length > BUFFER_BYTES) this.buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    }
    return frame;
  }

  // Reads until `wanted` bytes are there. Returns whether they are.
  fill(wanted) {
    if (this.buffer.length - this.start < wanted) {
      const target = wanted > this.buffer.length ? Buffer.allocUnsafeSlow(wanted) : this.buffer;
      this.buffer.copy(target, 0, this.start, this.end);
      this.buffer = target;
      this.end -= this.start;
      this.start = 0;
    }
    while (this.end - this.start < wanted) {
      const count = readSync(this.fd, this.buffer, this.end, this.buffer.length - this.end, null);
      if (count === 0) return false;
      this.end += count;
    }
    return true;
  }

  // Sends the JSON text of a frame.
  send(text) {
    const length = Buffer.byteLength(text);
    const bytes = Buffer.allocUnsafe(HEADER_BYTES + length);
    bytes.writeUInt32BE(length, 0);
    bytes.utf8Write(text, HEADER_BYTES, length);
    for (let sent = 0; sent < bytes.length; ) sent += writeSync(this.fd, bytes, sent, bytes.length - sent, null);
  }
}

module.exports = { Channel };
