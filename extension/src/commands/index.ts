/** The table of commands, and their registration. */
import { commands, type Disposable } from "vscode";

import { Command } from "../contributions";
import type { Context } from "../context";
import { messageOf } from "../log";
import { clearHints } from "./clearHints";
import type { Handler } from "./command";
import { exportTrace } from "./exportTrace";
import { openWalkthrough } from "./openWalkthrough";
import { pickProcess } from "./pickProcess";
import { restartServer } from "./restartServer";
import { selectInterpreter } from "./selectInterpreter";
import { showActions } from "./showActions";
import { showLog } from "./showLog";
import { toggleHints } from "./toggleHints";
import { traceForwardPass } from "./traceForwardPass";
import { traceForwardPassOf } from "./traceForwardPassOf";

const HANDLERS: Readonly<Record<Command, Handler>> = {
  [Command.traceForwardPass]: traceForwardPass,
  [Command.traceForwardPassOf]: traceForwardPassOf,
  [Command.toggleHints]: toggleHints,
  [Command.clearHints]: clearHints,
  [Command.exportTrace]: exportTrace,
  [Command.selectInterpreter]: selectInterpreter,
  [Command.restartServer]: restartServer,
  [Command.showLog]: showLog,
  [Command.showActions]: showActions,
  [Command.openWalkthrough]: openWalkthrough,
  [Command.pickProcess]: pickProcess,
};

/** Registers every command; one that fails says so. */
export function registerCommands(context: Context): Disposable[] {
  return Object.values(Command).map((id) => register(context, id, HANDLERS[id]));
}

function register(context: Context, id: Command, handler: Handler): Disposable {
  return commands.registerCommand(id, async (file?: unknown) => {
    context.log.debug(`command ${id}`);
    try {
      return await handler(context, file);
    } catch (error) {
      context.log.error(`${id}: ${error instanceof Error ? (error.stack ?? "") : String(error)}`);
      await context.messages.error(`Shapetrace: ${messageOf(error)}`);
      return undefined;
    }
  });
}
