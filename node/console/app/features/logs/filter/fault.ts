// Finds the place of a fault in a text whose bytes the server has counted.

const bytesOf = (character: string): number => {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
};

/** The index in a text of the character that starts at a byte of its UTF-8. */
export function indexOfByte(text: string, offset: number): number {
  let [index, bytes] = [0, 0];
  for (const character of text) {
    if (bytes >= offset) break;
    bytes += bytesOf(character);
    index += character.length;
  }
  return index;
}
