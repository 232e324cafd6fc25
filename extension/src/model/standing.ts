/** What the agent is asked of a stack frame, and says of it. */
import type { FocusOutside } from "../protocol.generated";

/** Where a stack frame stands; the server is told just this, with the session. */
export interface Standing extends FocusOutside {
  /** The process id. */
  readonly process: number;
  /** The id of the module call that the frame belongs to; null outside of any. */
  readonly call: number | null;
  /** The functions that called the frame's, the innermost first. */
  readonly outer: readonly FocusOutside[];
}

/**
 * What the debugger is to evaluate. Without a frame of the program's to do it in: so no name of the
 * program's can be in the way, and nothing of it is looked up, changed or kept alive.
 */
export function questionFor(frame: number): string {
  return `__import__("sys").modules["shapetrace.agent.stop_query"].describe_stop(${frame})`;
}

/**
 * Asks whether the items in an expression are only looked up: a `defaultdict` makes those that it
 * has not, and a dataset loads them. Answered by `true` or something else.
 */
export function harmlessQuestionFor(frame: number, expression: string): string {
  const agent = `__import__("sys").modules["shapetrace.agent.stop_query"]`;
  // What JSON writes as text is a text of Python's too.
  return `${agent}.is_side_effect_free(${frame}, ${JSON.stringify(expression)})`;
}

/** The agent's answer; undefined where it does not know. */
export function readStanding(answer: string): Standing | undefined {
  return (JSON.parse(answer) as Standing | null) ?? undefined;
}
