/** The log that `Shapetrace: Show Log` opens. */
import { type LogOutputChannel, window } from "vscode";

/** The part of a log channel that the extension uses. */
export type Log = Pick<LogOutputChannel, "debug" | "error" | "info" | "show" | "trace" | "warn">;

/** Creates the channel; VS Code lets the user choose its level. */
export function createLog(): LogOutputChannel {
  return window.createOutputChannel("Shapetrace", { log: true });
}

/** The message of an unknown thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
