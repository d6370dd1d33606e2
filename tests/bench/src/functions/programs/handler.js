function handler({ output, expected }) {
  return { score: output.includes(expected) ? 1 : 0, metadata: { words: output.split(' ').length } };
}
