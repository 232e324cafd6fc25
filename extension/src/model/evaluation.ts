/** What the agent is asked to evaluate at a stop, and how its answer is put into words. */

import { property } from "./interpreters";

const AGENT = `__import__("sys").modules["shapetrace.agent.in_place"]`;

/** Characters of an expression in a message or a list. */
const MOST_TEXT = 60;

/** Characters of what it was worth, or of an error. */
const MOST_VALUE = 300;

const KINDS = ["value", "error", "refused", "cancelled"] as const;

export interface Outcome {
  /** Refused where it was not run at all. */
  readonly kind: (typeof KINDS)[number];
  /** What it was worth, which error it raised, or why it was refused. */
  readonly value: string;
  /** How many calls were recorded. */
  readonly calls: number;
  /** The file, and the line from 1, that an error came from, if that is known. */
  readonly origin: readonly [string, number] | null;
}

/** What the debugger is to evaluate in a frame, so that an expression is run there. */
export function runIn(frame: number, evaluation: number, expression: string): string {
  // A text of JSON is one of Python, too.
  return `${AGENT}.run(${evaluation}, ${frame}, ${JSON.stringify(expression)})`;
}

/** What it is to evaluate without a frame, to know what came of that. */
export function outcomeOf(evaluation: number): string {
  return `${AGENT}.outcome(${evaluation})`;
}

/**
 * The agent's answer; undefined where nothing came of it, as the program had gone on. Throws where
 * it is none.
 */
export function readOutcome(answer: string): Outcome | undefined {
  const told: unknown = JSON.parse(answer);
  if (told === null) {
    return undefined;
  }
  const kind = KINDS.find((each) => each === property(told, "kind"));
  // The agent leaves out what does not apply.
  const value = property(told, "value") ?? "";
  const calls = property(told, "calls") ?? 0;
  if (kind === undefined || typeof value !== "string" || typeof calls !== "number") {
    throw new Error(`the agent's answer is not understood: ${cut(answer, MOST_TEXT)}`);
  }
  return { kind, value, calls, origin: placeOf(property(told, "origin")) };
}

function placeOf(origin: unknown): Outcome["origin"] {
  const [file, line] = Array.isArray(origin) ? (origin as readonly unknown[]) : [];
  return typeof file === "string" && typeof line === "number" ? [file, line] : null;
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
