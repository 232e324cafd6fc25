/** What the agent is asked of a stack frame, and says of it. */
import {
  anything,
  boolean,
  type Form,
  integer,
  type JsonObject,
  listOf,
  nullable,
  record,
  text,
} from "./json";

/** How far a function has come. */
export interface Stand {
  /** The calls that it has made so far. */
  readonly reached: readonly number[];
  readonly file: string;
  readonly function: string;
  readonly line: number;
  readonly variables: readonly Held[];
  /** Names that have never been stored to; null where nothing is known of the variables. */
  readonly unbound: readonly string[] | null;
  readonly extra: JsonObject;
}

/** What a variable holds, and which stores may have put it there. */
export interface Held {
  readonly name: string;
  /** Only passed on. */
  readonly value: unknown;
  readonly stores: readonly (readonly number[])[];
  readonly isFresh: boolean;
  readonly extra: JsonObject;
}

export interface Standing extends Stand {
  /** The process id. */
  readonly process: number;
  /** The module call that the frame runs in; null outside of any. */
  readonly call: number | null;
  /** The functions that wait for the frame's, from the inside out. */
  readonly outer: readonly Stand[];
}

const held: Form<Held> = record<Held>({
  name: { key: "name", form: text },
  value: { key: "value", form: anything },
  stores: { key: "stores", form: listOf(listOf(integer)) },
  isFresh: { key: "isFresh", form: boolean },
});

const STAND = {
  reached: { key: "reached", form: listOf(integer) },
  file: { key: "file", form: text },
  function: { key: "function", form: text },
  line: { key: "line", form: integer },
  variables: { key: "variables", form: listOf(held), otherwise: [] },
  unbound: { key: "unbound", form: nullable(listOf(text)), otherwise: null },
} as const;

const standing: Form<Standing> = record<Standing>({
  process: { key: "process", form: integer },
  call: { key: "call", form: nullable(integer) },
  ...STAND,
  outer: { key: "outer", form: listOf(record<Stand>(STAND)) },
});

/**
 * What the debugger is to evaluate. Without a frame of the program's to do it in: so no name of the
 * program's can be in the way, and nothing of it is looked up, changed or kept alive.
 */
export function questionFor(frame: number): string {
  return `__import__("sys").modules["shapetrace.agent.here"].here(${frame})`;
}

/**
 * Asks whether the items in an expression are only looked up: a `defaultdict` makes those that it
 * has not, and a dataset loads them. Answered by `true` or something else.
 */
export function harmlessQuestionFor(frame: number, expression: string): string {
  const agent = `__import__("sys").modules["shapetrace.agent.here"]`;
  // What JSON writes as text is a text of Python's too.
  return `${agent}.harmless(${frame}, ${JSON.stringify(expression)})`;
}

/** The agent's answer; undefined where it does not know. */
export function readStanding(answer: string): Standing | undefined {
  return nullable(standing).read(JSON.parse(answer)) ?? undefined;
}
