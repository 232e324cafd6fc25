/** What the agent is asked at a stop through the debugger, and its answers. */
import type { StopReference } from "../protocol.generated";

const AGENT = `__import__("sys").modules["shapetrace.agent.stop_query"]`;

/**
 * Has the agent send what there is to say of a stack frame to the language server. Evaluated without
 * a frame of the program's: so no name of the program's can be in the way, and nothing of it is
 * looked up, changed or kept alive.
 */
export function describeStop(frame: number): string {
  return `${AGENT}.describe_stop(${frame})`;
}

/** Which stop the agent has sent; undefined where it knows nothing of the frame. */
export function readStop(answer: string): Omit<StopReference, "session"> | undefined {
  const [, process, number] = /^\[(\d+), (\d+)\]$/.exec(answer) ?? [];
  return number === undefined ? undefined : { process: Number(process), number: Number(number) };
}

/**
 * Asks whether the items in an expression are only looked up: a `defaultdict` makes those that it
 * has not, and a dataset loads them. Answered by `true` or something else.
 */
export function isSideEffectFree(frame: number, expression: string): string {
  // What JSON writes as text is a text of Python's too.
  return `${AGENT}.is_side_effect_free(${frame}, ${JSON.stringify(expression)})`;
}
