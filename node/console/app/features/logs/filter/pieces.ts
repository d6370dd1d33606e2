// Cuts an expression into pieces of one colour, for the line of text.
import { tokens } from "../../../btql";

interface Piece {
  readonly text: string;
  readonly kind: string;
  readonly isWrong: boolean;
}

/** A text in pieces of one colour, with the piece at which it is wrong. */
export function piecesOf(text: string, wrongAt: number | null): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const token of [...tokens(text), { kind: "blank", start: text.length, end: text.length }]) {
    if (token.start > end) pieces.push({ text: text.slice(end, token.start), kind: "blank", isWrong: false });
    const isWrong = wrongAt !== null && wrongAt >= token.start && wrongAt < token.end;
    if (token.end > token.start) pieces.push({ text: text.slice(token.start, token.end), kind: token.kind, isWrong });
    end = token.end;
  }
  return wrongAt !== null && !pieces.some((piece) => piece.isWrong)
    ? [...pieces, { text: " ", kind: "blank", isWrong: true }]
    : pieces;
}
