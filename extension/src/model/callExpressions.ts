/**
 * What of the statement that a program stands at could be evaluated there: its calls, or else what
 * it is worth. And whether a selected text is an expression.
 */
import { closingOf, isPrimary, KEYWORDS, openBracketOf } from "./expressions";
import { type Token, tokensOf } from "./tokens";

const MOST_CALLS = 8;

/** Statements that call nothing worth while when they are run. */
const PASSED_OVER: ReadonlySet<string> = new Set(["@", "class", "def", "from", "import"]);

/** Builtins that report or prepare something and run no model. */
const PLAIN: ReadonlySet<string> = new Set(
  (
    "bool dict enumerate float getattr hasattr id int isinstance iter len list print range repr " +
    "reversed set slice str super tuple type zip"
  ).split(" "),
);

const STATEMENTS: ReadonlySet<string> = new Set(
  (
    "as assert break class continue def del elif except finally from global import nonlocal pass " +
    "raise return try while with"
  ).split(" "),
);

/** Words that an expression cannot end with; most signs cannot either. */
const OPEN_WORDS: ReadonlySet<string> = new Set(
  "and await else for if in is lambda not or yield".split(" "),
);

/** The calls of the statement that a line (from 1) is of, those that are around others first. */
export function callsAt(source: string, line: number): string[] {
  const tokens = statementAt(source, line);
  if (PASSED_OVER.has(tokens[0]?.text ?? "")) {
    return [];
  }
  const depths = depthsOf(tokens);
  const calls = tokens.flatMap((token, open) => {
    const call = token.text === "(" ? callOf(tokens, depths, open) : undefined;
    return call === undefined ? [] : [call];
  });
  calls.sort((one, other) => one.start - other.start || other.end - one.end);
  const texts = calls.map(({ start, end }) => source.slice(start, end));
  return [...new Set(texts)].slice(0, MOST_CALLS);
}

/** The expression that a line assigns, returns or consists of; undefined for other statements. */
export function valueAt(source: string, line: number): string | undefined {
  const tokens = statementAt(source, line);
  const first = tokens[0]?.text ?? "";
  const assigned = lastAssignment(tokens);
  const start = assigned >= 0 ? assigned + 1 : first === "return" ? 1 : 0;
  const [from, to] = [tokens[start], tokens.at(-1)];
  const text = from && to && source.slice(from.start, to.end);
  return text !== undefined && isExpression(text) ? text : undefined;
}

/** Returns whether a text can be evaluated as it is, according to its words and signs. */
export function isExpression(text: string): boolean {
  const tokens = tokensOf(text).filter(({ kind }) => kind !== "comment");
  const [first, last] = [tokens[0], tokens.at(-1)];
  const depths = depthsOf(tokens);
  if (first === undefined || last === undefined || depths.some((depth) => depth < 0)) {
    return false;
  }
  const isWhole = tokens.every(
    (token, index) =>
      !(token.kind === "name" && STATEMENTS.has(token.text)) &&
      !(token.kind === "sign" && depths[index] === 0 && isOfStatement(tokens, index)),
  );
  return isWhole && depths.at(-1) === 0 && mayBegin(first) && mayEnd(last);
}

/** The words and signs of the statement that a line belongs to, without comments. */
function statementAt(source: string, line: number): Token[] {
  const start = startOfLine(source, line);
  const end = startOfLine(source, line + 1);
  const tokens = tokensOf(source).filter(({ kind }) => kind !== "comment");
  const statement = statementsOf(source, tokens).find(
    (each) => (each[0]?.start ?? 0) < end && (each.at(-1)?.end ?? 0) > start,
  );
  return statement ?? [];
}

function statementsOf(source: string, tokens: readonly Token[]): Token[][] {
  const statements: Token[][] = [];
  let depth = 0;
  let previous: Token | undefined;
  for (const token of tokens) {
    const between = previous === undefined ? "\n" : source.slice(previous.end, token.start);
    if (depth === 0 && between.replaceAll(/\\\r?\n/g, "").includes("\n")) {
      statements.push([]);
    }
    statements.at(-1)?.push(token);
    depth = Math.max(depth + depthChange(token), 0);
    previous = token;
  }
  return statements;
}

/** The call whose arguments a bracket begins, if it can be made by itself. */
function callOf(
  tokens: readonly Token[],
  depths: readonly number[],
  open: number,
): { readonly start: number; readonly end: number } | undefined {
  const close = closingOf(tokens, open);
  const first = isPrimary(tokens, open - 1) ? beginningOfCall(tokens, open - 1) : undefined;
  if (close === undefined || first === undefined || isBound(tokens, depths, first)) {
    return undefined;
  }
  const words = tokens.slice(first, close + 1).map(({ text }) => text);
  const isPlain = first === open - 1 && PLAIN.has(words[0] ?? "");
  const isAwaited = tokens[first - 1]?.text === "await";
  if (isPlain || isAwaited || words.includes("await") || words.includes("yield")) {
    return undefined;
  }
  return { start: tokens[first]?.start ?? 0, end: tokens[close]?.end ?? 0 };
}

/** The first token of `self.blocks[0](x).sum`, from its last. */
function beginningOfCall(tokens: readonly Token[], last: number): number | undefined {
  let at = last;
  for (;;) {
    const token = tokens[at];
    if (token?.kind === "sign" && (token.text === ")" || token.text === "]")) {
      const open = openBracketOf(tokens, at);
      if (open === undefined) {
        return undefined;
      }
      if (!isPrimary(tokens, open - 1)) {
        return open; // A list, or something in parentheses.
      }
      at = open - 1;
    } else if (token?.kind === "string" || (token?.kind === "name" && !KEYWORDS.has(token.text))) {
      if (tokens[at - 1]?.text !== ".") {
        return at;
      }
      at -= 2;
    } else {
      return undefined;
    }
  }
}

/** Returns whether it may need names that exist only within the expression around it. */
function isBound(tokens: readonly Token[], depths: readonly number[], at: number): boolean {
  let inner = at;
  for (;;) {
    const open = openBracketOf(tokens, inner);
    const begin = (open ?? -1) + 1;
    const end = open === undefined ? tokens.length : (closingOf(tokens, open) ?? tokens.length);
    const level = open === undefined ? 0 : depths[open];
    for (let index = begin; index < end; index += 1) {
      const { text } = tokens[index] ?? { text: "" };
      const isComprehension = text === "for" && open !== undefined;
      const isLambda = text === "lambda" && index < inner;
      if ((isComprehension || isLambda) && depths[index] === level) {
        return true;
      }
    }
    if (open === undefined) {
      return false;
    }
    inner = open;
  }
}

function lastAssignment(tokens: readonly Token[]): number {
  const depths = depthsOf(tokens);
  return tokens.findLastIndex(
    ({ kind, text }, index) =>
      kind === "sign" &&
      /^([-+*/%@&|^]|\*\*|\/\/|<<|>>)?=$/.test(text) &&
      depths[index] === 0 &&
      !isOfLambda(tokens, index),
  );
}

/** Returns whether a sign outside of all brackets makes the text a statement. */
function isOfStatement(tokens: readonly Token[], index: number): boolean {
  const { text } = tokens[index] ?? { text: "" };
  return (/^(;|->|.*[^=!<>]=|=|:)$/.test(text) && !isOfLambda(tokens, index)) || text === ":=";
}

/** Returns whether a `lambda` before it may define its parameters. */
function isOfLambda(tokens: readonly Token[], index: number): boolean {
  return tokens.slice(0, index).some(({ kind, text }) => kind === "name" && text === "lambda");
}

function mayBegin({ kind, text }: Token): boolean {
  return kind !== "sign" || "([{-+~".includes(text) || text === "...";
}

function mayEnd({ kind, text }: Token): boolean {
  return kind === "sign" ? ")]}".includes(text) || text === "..." : !OPEN_WORDS.has(text);
}

/** How many brackets are open behind each token. */
function depthsOf(tokens: readonly Token[]): number[] {
  let depth = 0;
  return tokens.map((token) => (depth += depthChange(token)));
}

function depthChange({ kind, text }: Token): number {
  return kind !== "sign" ? 0 : "([{".includes(text) ? 1 : ")]}".includes(text) ? -1 : 0;
}

function startOfLine(source: string, line: number): number {
  let start = 0;
  for (let number = 1; number < line; number += 1) {
    const end = source.indexOf("\n", start);
    if (end < 0) {
      return source.length;
    }
    start = end + 1;
  }
  return start;
}
