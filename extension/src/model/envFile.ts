/** Files of environment variables: lines `NAME=VALUE`, as Microsoft's Python extension reads them. */

export type Variables = Readonly<Record<string, string>>;

const LINE = /^\s*(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(.*?)\s*$/;
const REFERENCE = /\\?\$\{([A-Za-z_]\w*)\}/g;

/**
 * The variables of a file. `${NAME}` in a value is replaced by a variable further up in the file, or
 * by one of `surroundings`; nothing is replaced between single quotes.
 */
export function parseEnvFile(text: string, surroundings: Partial<Variables> = {}): Variables {
  const variables: Record<string, string> = {};
  for (const line of text.replace(/^\uFEFF/, "").split(/\r?\n/)) {
    const [, name, raw] = LINE.exec(line) ?? [];
    if (name !== undefined && raw !== undefined) {
      variables[name] = valueOf(raw, (wanted) => variables[wanted] ?? surroundings[wanted] ?? "");
    }
  }
  return variables;
}

function valueOf(raw: string, lookUp: (name: string) => string): string {
  const quoted = /^(["'])(.*)\1(?:\s+#.*)?$/.exec(raw);
  if (quoted === null) {
    return replaceReferences(raw.replace(/(?:^|\s+)#.*$/, ""), lookUp);
  }
  const [, quote, content = ""] = quoted;
  return quote === "'"
    ? content
    : replaceReferences(content.replaceAll("\\n", "\n").replaceAll('\\"', '"'), lookUp);
}

function replaceReferences(value: string, lookUp: (name: string) => string): string {
  return value.replace(REFERENCE, (all: string, name: string) =>
    all.startsWith("\\") ? all.slice(1) : lookUp(name),
  );
}
