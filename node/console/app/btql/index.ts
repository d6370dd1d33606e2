// The query language as pages need it: writers, chips and tokens. Completion is in completion.ts, which is loaded later. The grammar is the server's.
export {
  chipOf,
  chipsOf,
  conditionOf,
  nameOf,
  patternWithin,
  SPAN_WORDS,
  textOfChips,
  textOfCondition,
  textWithin,
  treeOfChips,
  treeOfCondition,
  wordsOf,
  type Chip,
  type Condition,
  type Operator,
} from "./chips";
export { condition, excluded, placed, withChanged, withChip, withoutChip, type RowShape } from "./edit";
export { ranked, type FieldType, type KnownField, type KnownValue } from "./known";
export { rangeChips, stateOf, toggled, toggledChips } from "./toggles";
export { tokens, type TextKind, type Token, type TokenKind } from "./tokens";
export { isScalar, isTree, type Scalar, type Step, type Tree } from "./tree";
export { called, conjunction, createdWithin, list, literal, negation, path, type Literal } from "./write";
