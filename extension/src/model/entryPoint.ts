/**
 * Whether running a Python file does something, or only defines something.
 *
 * A script has a `__main__` guard, or its top level calls something for the sake of it, or it makes
 * variables (not constants) and defines nothing. What a module of definitions calls at its top level
 * as well (loggers, decorators, seeds, type variables) does not count. Read from the text alone: the
 * file is not run to find out.
 */

/** Calls by which a module of definitions only sets things up. */
const SET_UP =
  /^(?:__all__|logging|logger|log|warnings|sys\.path|os\.environ|random\.seed|np\.random\.seed|numpy\.random\.seed|torch\.(?:manual_seed|set_|backends|serialization|_dynamo)|matplotlib|plt\.(?:style|rc)|register_|atexit|locale|signal|typing|_?\w*logger)\b|^torch\.set_/;

const GUARD = /^if\b.*\b__name__\b.*["']__main__["']|^if\b.*["']__main__["'].*\b__name__\b/;
const DEFINITION = /^(?:async\s+def|def|class|@)\b|^@/;
const IMPORT = /^(?:import|from)\b/;
const BLOCK = /^(?:for|while|with|async|if|elif|else|try|except|finally|match|case)\b/;
const LOOP = /^(?:for|while)\b/;
const ASSIGNMENT =
  /^([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*(?::[^=]+)?(?:=(?!=)|[-+*/@%&|^]+=)\s*(.*)$/s;
const FUNCTION = /^(?:async\s+)?def\s+(\w+)/;
const RUNNER = /^_*(?:main|run|train|fit|test|eval|evaluate|demo|benchmark|cli)(?:_|$)/;
const VARIABLE = /^(?!_)[^A-Z]*$/;
const CALL = /(?:^|[^\w.])(?:await\s+)?([A-Za-z_][\w.]*)\s*\(/g;
const STATEMENT_CALL = /^(?:await\s+)?([A-Za-z_][\w.]*)\s*[([]/;

/** One logical line of a file: comments gone, strings emptied, continued lines joined. */
interface Line {
  readonly indent: number;
  readonly text: string;
}

/** Returns whether this file does something when it is run. */
export function hasEntryPoint(source: string): boolean {
  const assigned = new Set<string>();
  let definition: number | undefined;
  let defines = false;
  for (const { indent, text } of logicalLines(source)) {
    if (definition !== undefined && indent > definition) {
      continue; // Inside a function or class: nothing there runs by itself.
    }
    definition = undefined;
    if (GUARD.test(text)) {
      return true;
    }
    if (DEFINITION.test(text)) {
      definition = text.startsWith("@") ? undefined : indent;
      defines = true;
      const name = FUNCTION.exec(text)?.[1];
      if (name !== undefined && RUNNER.test(name)) {
        assigned.add(name); // `history = train(model)` is what such a file is there for.
      }
      continue;
    }
    if (!IMPORT.test(text) && runs(text, assigned)) {
      return true;
    }
  }
  return !defines && [...assigned].some((name) => VARIABLE.test(name));
}

/** Returns whether a statement at the top level does the work of a script. Notes what it assigns. */
function runs(text: string, assigned: Set<string>): boolean {
  if (BLOCK.test(text)) {
    const body = bodyOf(text);
    return (
      (body !== "" && runs(body, assigned)) ||
      (LOOP.test(text) && calls(text).some((callee) => assigned.has(rootOf(callee))))
    );
  }
  const assignment = ASSIGNMENT.exec(text);
  if (assignment !== null) {
    const [, names = "", value = ""] = assignment;
    const callees = calls(value).filter((callee) => !SET_UP.test(callee));
    const isRun = callees.some((callee) => assigned.has(rootOf(callee)));
    for (const name of names.split(",")) {
      if (callees.length > 0) {
        assigned.add(name.trim());
      }
    }
    return isRun;
  }
  const callee = STATEMENT_CALL.exec(text)?.[1];
  return (
    callee !== undefined && text.includes("(") && !KEYWORDS.has(callee) && !SET_UP.test(callee)
  );
}

/** The statement after the colon of a block that is written on one line. */
function bodyOf(text: string): string {
  let depth = 0;
  for (const { 0: character, index } of text.matchAll(/[()[\]{}:]/g)) {
    if (character === ":") {
      if (depth === 0) {
        return text.slice(index + 1).trim();
      }
    } else {
      depth += "([{".includes(character) ? 1 : -1;
    }
  }
  return "";
}

const KEYWORDS = new Set(["del", "assert", "raise", "return", "pass", "global", "not", "lambda"]);

function calls(text: string): string[] {
  return [...text.matchAll(CALL)].map(([, callee = ""]) => callee);
}

function rootOf(callee: string): string {
  return callee.split(".")[0] ?? callee;
}

function logicalLines(source: string): Line[] {
  const lines: Line[] = [];
  for (const line of withoutStringsAndComments(source).split("\n")) {
    for (const [position, part] of line.split(";").entries()) {
      const text = part.trim();
      if (text !== "") {
        const indent = line.length - line.trimStart().length;
        lines.push({ indent: position === 0 ? indent : (lines.at(-1)?.indent ?? 0), text });
      }
    }
  }
  return lines;
}

/** The tokens that may begin here: a string, a comment, a bracket, a line. */
const TOKEN = /[rRbBuUfFtT]{0,2}("""|'''|"|')|#[^\n]*|[([{]|[)\]}]|\\\r?\n|\r?\n/g;

function withoutStringsAndComments(source: string): string {
  let result = "";
  let position = 0;
  let depth = 0;
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(source); found !== null; found = TOKEN.exec(source)) {
    result += source.slice(position, found.index);
    position = TOKEN.lastIndex;
    const [token, quote] = found;
    if (quote !== undefined) {
      const end = endOfString(source, position, quote);
      const content = source.slice(position, end - quote.length);
      // The one string whose content counts is that of the guard.
      result += content === "__main__" ? '"__main__"' : '""';
      position = end;
      TOKEN.lastIndex = end;
    } else if (token === "(" || token === "[" || token === "{") {
      depth += 1;
      result += token;
    } else if (token === ")" || token === "]" || token === "}") {
      depth = Math.max(0, depth - 1);
      result += token;
    } else if (token.endsWith("\n")) {
      result += depth > 0 || token.startsWith("\\") ? " " : "\n";
    }
  }
  return result + source.slice(position);
}

/** Where a string ends that began just before `start`; at the line's end if it is not closed. */
function endOfString(source: string, start: number, quote: string): number {
  for (let position = start; position < source.length; position += 1) {
    const character = source[position];
    if (character === "\\") {
      position += 1;
    } else if (source.startsWith(quote, position)) {
      return position + quote.length;
    } else if (character === "\n" && quote.length === 1) {
      return position;
    }
  }
  return source.length;
}
