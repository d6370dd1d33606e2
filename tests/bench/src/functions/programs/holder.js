// Holds memory until a time. A greedy call takes more until something ends it.
async function handler({ bytes, until, greedy }) {
  const held = [Buffer.alloc(bytes, 1)];
  while (Date.now() < until) {
    if (greedy) held.push(Buffer.alloc(4 << 20, 1));
    await new Promise((resolve) => setTimeout(resolve, greedy ? 5 : 50));
  }
  return held.reduce((sum, one) => sum + one.length, 0);
}
