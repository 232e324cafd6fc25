/**
 * The expression at a place of a source text that a debugger may evaluate: a name, an attribute, or
 * an item by constants or names. Never a call: that would do something.
 */
import { type Token, tokensOf } from "./tokens";

export interface FoundExpression {
  readonly text: string;
  /** Its place in the source. */
  readonly start: number;
  readonly end: number;
  /** Whether it contains subscripts, which may run the program's code. */
  readonly hasItems: boolean;
}

export const KEYWORDS: ReadonlySet<string> = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return try while " +
    "with yield"
  ).split(" "),
);

const DEFINING: ReadonlySet<string> = new Set(["def", "class", "global", "nonlocal"]);

/** The signs that an index may contain, besides names and constants. */
const INDEX_SIGNS: ReadonlySet<string> = new Set([",", ":", "-", ".", "...", "[", "]"]);

const CONSTANTS: ReadonlySet<string> = new Set(["None", "True", "False"]);

/** The smallest expression around a place; undefined where there is none to be evaluated. */
export function expressionAt(source: string, offset: number): FoundExpression | undefined {
  const tokens = tokensOf(source).filter(({ kind }) => kind !== "comment");
  const at = indexAt(tokens, offset);
  if (at === undefined || isOfImport(source, tokens[at]?.start ?? 0)) {
    return undefined;
  }
  const last = endOfExpression(tokens, at);
  const first = last === undefined ? undefined : beginningOf(tokens, last);
  if (first === undefined || last === undefined || isDefined(tokens, first)) {
    return undefined;
  }
  if (first === last && isKeywordArgument(tokens, first)) {
    return undefined;
  }
  const [start, end] = [tokens[first]?.start ?? 0, tokens[last]?.end ?? 0];
  const parts = tokens.slice(first, last + 1).map(({ text }) => text);
  return { text: parts.join(""), start, end, hasItems: parts.includes("[") };
}

/** The token at a place; a name also has the place right behind it. */
function indexAt(tokens: readonly Token[], offset: number): number | undefined {
  const inside = tokens.findIndex(({ start, end }) => start <= offset && offset < end);
  if (inside >= 0 && tokens[inside]?.kind === "name") {
    return inside;
  }
  const before = tokens.findIndex(({ kind, end }) => kind === "name" && end === offset);
  return before >= 0 ? before : inside >= 0 ? inside : undefined;
}

/** The last token of the smallest expression that a token is in. */
function endOfExpression(tokens: readonly Token[], at: number): number | undefined {
  const token = tokens[at];
  if (token === undefined) {
    return undefined;
  }
  if (token.kind === "name" && !KEYWORDS.has(token.text)) {
    return at;
  }
  // Within an index it is the item; the innermost one, where there are several around.
  const open = token.text === "[" ? at : openBracketOf(tokens, at);
  return open !== undefined && tokens[open]?.text === "[" && isIndex(tokens, open)
    ? closingOf(tokens, open)
    : undefined;
}

/** The first token of what ends with a name or an index; undefined if there is a call in it. */
function beginningOf(tokens: readonly Token[], last: number): number | undefined {
  let at = last;
  for (;;) {
    const token = tokens[at];
    if (token?.text === "]" && token.kind === "sign") {
      const open = openBracketOf(tokens, at);
      if (open === undefined || !isPlainIndex(tokens.slice(open + 1, at))) {
        return undefined;
      }
      if (!isIndex(tokens, open)) {
        return undefined;
      }
      at = open - 1;
    } else if (token?.kind === "name" && !KEYWORDS.has(token.text)) {
      if (tokens[at - 1]?.text !== ".") {
        return at;
      }
      at -= 2;
    } else {
      return undefined;
    }
  }
}

/** Whether a bracket is that of an index, and not of a list; one of the next line may be either. */
function isIndex(tokens: readonly Token[], open: number): boolean {
  const isOfNextLine =
    tokens[open]?.beginsLine === true && openBracketOf(tokens, open) === undefined;
  return !isOfNextLine && isPrimary(tokens, open - 1);
}

/** Whether an index may follow: it is a name, or the end of another index or of a call. */
export function isPrimary(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at];
  return token?.kind === "name"
    ? !KEYWORDS.has(token.text)
    : token?.kind === "sign" && (token.text === "]" || token.text === ")");
}

function isPlainIndex(tokens: readonly Token[]): boolean {
  return (
    tokens.length > 0 &&
    tokens.every(({ kind, text }) =>
      kind === "sign"
        ? INDEX_SIGNS.has(text)
        : kind === "name"
          ? !KEYWORDS.has(text) || CONSTANTS.has(text)
          : kind === "number" || !/^[rbu]*[ft]/i.test(text),
    )
  );
}

/** The innermost bracket that is open before a token, or that the token closes. */
export function openBracketOf(tokens: readonly Token[], at: number): number | undefined {
  let depth = 0;
  for (let index = at - 1; index >= 0; index -= 1) {
    const { kind, text } = tokens[index] ?? { kind: "sign", text: "" };
    if (kind === "sign" && ")]}".includes(text)) {
      depth += 1;
    } else if (kind === "sign" && "([{".includes(text)) {
      if (depth === 0) {
        return index;
      }
      depth -= 1;
    }
  }
  return undefined;
}

export function closingOf(tokens: readonly Token[], open: number): number | undefined {
  let depth = 0;
  for (let index = open; index < tokens.length; index += 1) {
    const { kind, text } = tokens[index] ?? { kind: "sign", text: "" };
    if (kind === "sign" && "([{".includes(text)) {
      depth += 1;
    } else if (kind === "sign" && ")]}".includes(text)) {
      depth -= 1;
      if (depth === 0) {
        return index;
      }
    }
  }
  return undefined;
}

/** Returns whether it is the name of a definition. */
function isDefined(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1];
  return before?.kind === "name" && DEFINING.has(before.text);
}

/** Whether it is the name in `f(name=value)`, and not that of a parameter. */
function isKeywordArgument(tokens: readonly Token[], at: number): boolean {
  const open = openBracketOf(tokens, at);
  if (tokens[at + 1]?.text !== "=" || open === undefined || tokens[open]?.text !== "(") {
    return false;
  }
  return tokens[open - 2]?.text !== "def" && isPrimary(tokens, open - 1);
}

/** Returns whether a place is in an import, whose names have nothing to do with tensors. */
function isOfImport(source: string, offset: number): boolean {
  const line = source.slice(source.lastIndexOf("\n", offset - 1) + 1, offset);
  return /^\s*(?:import|from)\b/.test(line);
}
