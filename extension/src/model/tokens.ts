/** The words and signs of Python source text, as far as one needs them to find an expression. */

export type TokenKind = "name" | "number" | "string" | "comment" | "sign";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  /** Where it begins in the source. */
  readonly start: number;
  readonly end: number;
  /** Whether a line has ended before it. */
  readonly beginsLine: boolean;
}

const PARTS: readonly (readonly [TokenKind, RegExp])[] = [
  ["comment", /#[^\r\n]*/y],
  // Prefixed or not, of one line or of several; one that is not closed ends with its line.
  [
    "string",
    /(?:[rbuft]|[rb][rbft]|[ft]r)?(?:"""(?:\\[^]|(?!""")[^])*(?:"""|$)|'''(?:\\[^]|(?!''')[^])*(?:'''|$)|"(?:\\[^]|[^"\\\r\n])*"?|'(?:\\[^]|[^'\\\r\n])*'?)/iy,
  ],
  ["name", /[\p{ID_Start}_][\p{ID_Continue}]*/uy],
  ["number", /(?:0[xob][\da-f_]+|(?:\d[\d_]*)?\.?\d[\d_]*\.?(?:e[+-]?\d+)?)j?/iy],
  ["sign", /\.\.\.|\*\*=|\/\/=|>>=|<<=|:=|->|[=!<>+\-*/%&|^@]=|\*\*|\/\/|<<|>>|[^\s\\]/uy],
];

const SPACE = /(?:\s|\\\r?\n)+/y;
const CONTINUED = /\\\r?\n/g;

/** The tokens of a source text, in order. */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let position = 0;
  while (position < source.length) {
    SPACE.lastIndex = position;
    const space = SPACE.exec(source)?.[0] ?? "";
    position += space.length;
    if (position >= source.length) {
      break;
    }
    const beginsLine = space.includes("\n") && space.replaceAll(CONTINUED, "").includes("\n");
    const token = tokenAt(source, position, beginsLine);
    if (token === undefined) {
      position += 1; // a lone backslash
    } else {
      tokens.push(token);
      position = token.end;
    }
  }
  return tokens;
}

function tokenAt(source: string, start: number, beginsLine: boolean): Token | undefined {
  for (const [kind, part] of PARTS) {
    part.lastIndex = start;
    const [text] = part.exec(source) ?? [];
    if (text !== undefined && text !== "") {
      return { kind, text, start, end: start + text.length, beginsLine };
    }
  }
  return undefined;
}
