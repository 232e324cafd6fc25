/** The debug sessions that are stopped, from the messages of their debuggers. Imports no `vscode`. */
import { objectOf } from "./launchEnvironment";

const RESUMING: ReadonlySet<unknown> = new Set([
  ...["continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "goto"],
  ...["restart", "restartFrame", "disconnect", "terminate"],
]);

const OVER: ReadonlySet<unknown> = new Set(["continued", "terminated", "exited"]);

export class Stops {
  readonly #stopped = new Set<string>();
  /** Those that were asked to continue and have not answered yet. */
  readonly #leaving = new Set<string>();

  has(session: string): boolean {
    return this.#stopped.has(session);
  }

  /** Takes a message to a debugger; returns whether the program continues. */
  sent(session: string, message: unknown): boolean {
    const { type, command } = objectOf(message);
    if (type !== "request" || !RESUMING.has(command)) {
      return false;
    }
    if (this.#stopped.delete(session)) {
      this.#leaving.add(session);
    }
    return true;
  }

  /** Takes a message of a debugger; returns whether the program has stopped or continued by it. */
  received(session: string, message: unknown): boolean {
    const { type, event, command, success } = objectOf(message);
    if (type === "event" && event === "stopped") {
      this.#leaving.delete(session);
      this.#stopped.add(session);
      return true;
    }
    if (type === "event" && OVER.has(event)) {
      this.#leaving.delete(session);
      return this.#stopped.delete(session);
    }
    const isAnswer = type === "response" && RESUMING.has(command);
    if (isAnswer && this.#leaving.delete(session) && success === false) {
      this.#stopped.add(session); // Not every line can be jumped to.
      return true;
    }
    return false;
  }

  forget(session: string): void {
    this.#stopped.delete(session);
    this.#leaving.delete(session);
  }
}
