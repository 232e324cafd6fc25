import { window } from "vscode";

import type { Context } from "../context";
import { objectOf } from "../debug/launchEnvironment";
import { CHECK_WATCH, WATCH_AT } from "../protocol.generated";
import { positionOf } from "./calls";

/** Watches the variable at the cursor, or one of the debugger's Variables view. */
export async function watchVariable(context: Context, argument?: unknown): Promise<void> {
  const { messages, sessions, watches } = context;
  const given = inVariables(argument);
  const name = given ?? (await atCursor(context, argument));
  if (name === undefined) {
    return;
  }
  if (given !== undefined) {
    // An entry below a variable may have no name in the program.
    const { problem } = await context.server.request(CHECK_WATCH, { request: name });
    if (problem !== null) {
      void messages.info(`This cannot be watched: ${problem}.`);
      return;
    }
  }
  const isNew = await watches.add(name);
  const isRunning = sessions.openSessions.length > 0;
  const when = isRunning
    ? "Functions that assign it are watched from their next call on"
    : "Its changes are shown from the next run on";
  void messages.isWatched(
    isNew ? `${name} is watched. ${when}.` : `${name} is watched already.`,
    isRunning,
  );
}

/** The name of a debugger's variable, by which it is looked up. */
function inVariables(argument: unknown): string | undefined {
  const variable = objectOf(objectOf(argument)["variable"]);
  const { evaluateName, name } = variable;
  return typeof evaluateName === "string"
    ? evaluateName
    : typeof name === "string"
      ? name
      : undefined;
}

async function atCursor(context: Context, argument: unknown): Promise<string | undefined> {
  const position = positionOf(argument);
  if (position === undefined) {
    void context.messages.info("Put the cursor on a variable in Python code.");
    return undefined;
  }
  const { name } = await context.server.request(WATCH_AT, position);
  return name === "" ? type(context) : name;
}

async function type({ server }: Context): Promise<string | undefined> {
  const typed = await window.showInputBox({
    title: "Watch Variable",
    prompt:
      "There is no variable at the cursor. Type a name or a part of a variable. " +
      "A function and a colon before it limit it to that function.",
    placeHolder: "video, transform:mask, sample['video'], self.cache.k",
    validateInput: async (text) => {
      const { problem } = await server.request(CHECK_WATCH, { request: text.trim() });
      return problem ?? undefined;
    },
  });
  return typed?.trim();
}
