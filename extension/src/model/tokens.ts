/** The words and signs of Python source text, as far as one needs them to find an expression. */

export type TokenKind = "name" | "number" | "string" | "comment" | "sign";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  /** Where it begins in the source. */
  readonly start: number;
  readonly end: number;
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

/** The tokens of a source text, in order. */
export function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let position = 0;
  while (position < source.length) {
    SPACE.lastIndex = position;
    position += SPACE.exec(source)?.[0].length ?? 0;
    if (position >= source.length) {
      break;
    }
    const token = tokenAt(source, position);
    if (token === undefined) {
      position += 1; // a lone backslash
    } else {
      tokens.push(token);
      position = token.end;
    }
  }
  return tokens;
}

function tokenAt(source: string, start: number): Token | undefined {
  for (const [kind, part] of PARTS) {
    part.lastIndex = start;
    const [text] = part.exec(source) ?? [];
    if (text !== undefined && text !== "") {
      return { kind, text, start, end: start + text.length };
    }
  }
  return undefined;
}
