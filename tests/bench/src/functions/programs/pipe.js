// Answers one line with another: the least that a warm interpreter does for a call.
require('node:readline')
  .createInterface({ input: process.stdin })
  .on('line', (line) => process.stdout.write(`${JSON.stringify(handler(JSON.parse(line)))}\n`));
