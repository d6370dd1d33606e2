// Functions that the code of attempts in JavaScript uses.

// Performs acts that all have to fail.
async function attempt(...acts) {
  const escaped = [];
  const refused = new Set();
  for (const act of acts) {
    try {
      escaped.push(String(JSON.stringify(await act()) ?? 'done').slice(0, 200));
    } catch (error) {
      refused.add(`${error.name}: ${error.message} ${error.cause?.message ?? ''}`.slice(0, 200));
    }
  }
  return { escaped, refused: [...refused].sort() };
}
