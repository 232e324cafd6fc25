/** Which debug sessions stand still, by what their debuggers are told and say. Imports no `vscode`. */
import { objectOf } from "./launchEnvironment";

const RESUMING: ReadonlySet<unknown> = new Set([
  ...["continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue", "goto"],
  ...["restart", "restartFrame", "disconnect", "terminate"],
]);

const OVER: ReadonlySet<unknown> = new Set(["continued", "terminated", "exited"]);

export class Stops {
  readonly #stopped = new Set<string>();
  /** Those that were told to go on and have not answered yet. */
  readonly #leaving = new Set<string>();

  has(session: string): boolean {
    return this.#stopped.has(session);
  }

  /** Takes what a debugger is told; whether the program goes on by that. */
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

  /** Takes what a debugger says; whether the program stands still by that, or does so no more. */
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
