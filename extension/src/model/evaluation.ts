/** What the agent is asked to evaluate at a stop, and how its answer is put into words. */

const AGENT = `__import__("sys").modules["shapetrace.agent.in_place"]`;

/** Characters of an expression in a message or a list. */
const MOST_TEXT = 60;

/** Characters of what it was worth, or of an error. */
const MOST_VALUE = 300;

export interface Outcome {
  /** Refused where it was not run at all. */
  readonly kind: "value" | "error" | "refused" | "cancelled";
  /** What it was worth, which error it raised, or why it was refused. */
  readonly value: string;
  /** How many calls were recorded. */
  readonly calls: number;
  /** The file, and the line from 1, that an error came from, if that is known. */
  readonly origin: readonly [string, number] | null;
}

/** What the agent leaves out where it does not apply. */
const DEFAULTS = { value: "", calls: 0, origin: null };

/** What the debugger is to evaluate in a frame, so that an expression is run there. */
export function runIn(frame: number, evaluation: number, expression: string): string {
  // A text of JSON is one of Python, too.
  return `${AGENT}.run(${evaluation}, ${frame}, ${JSON.stringify(expression)})`;
}

/** What it is to evaluate without a frame, to know what came of that. */
export function outcomeOf(evaluation: number): string {
  return `${AGENT}.outcome(${evaluation})`;
}

/** The agent's answer; undefined where nothing came of it, as the program had gone on. */
export function readOutcome(answer: string): Outcome | undefined {
  const told = JSON.parse(answer) as Pick<Outcome, "kind"> | null;
  return told === null ? undefined : { ...DEFAULTS, ...told };
}

/** An expression in one line, cut where it is long. */
export function shortExpression(expression: string): string {
  return cut(inOneLine(expression), MOST_TEXT);
}

/** What the user is told came of an expression. */
export function outcomeInWords(expression: string, { kind, value, calls }: Outcome): string {
  const short = shortExpression(expression);
  const said = cut(inOneLine(value), MOST_VALUE);
  switch (kind) {
    case "value":
      return `${short} → ${said}, ${countOf(calls)} recorded`;
    case "error":
      return `${short} raised ${said} (${countOf(calls)} recorded up to there)`;
    case "refused":
      return `${short} was not evaluated: ${said}`;
    case "cancelled":
      return `${short} was cancelled`;
  }
}

function countOf(calls: number): string {
  return calls === 0 ? "no call of torch" : calls === 1 ? "1 call" : `${calls} calls`;
}

function inOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
