/** The log that `Shapetrace: Show Log` opens. */
import { type LogOutputChannel, window } from "vscode";

/** What of a log channel the rest of the extension uses. */
export type Log = Pick<LogOutputChannel, "debug" | "error" | "info" | "show" | "trace" | "warn">;

/** Creates the channel; VS Code lets the user choose its level. */
export function createLog(): LogOutputChannel {
  return window.createOutputChannel("Shapetrace", { log: true });
}

/** What an unknown thrown value says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
