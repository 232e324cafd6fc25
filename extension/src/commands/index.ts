/** The table of commands, and their registration. */
import { commands, type Disposable } from "vscode";

import { Command } from "../contributions";
import type { Context } from "../context";
import { messageOf } from "../log";
import { capturedValues } from "./capturedValues";
import { captureValues } from "./captureValues";
import { compareTraces } from "./compareTraces";
import { clearHints } from "./clearHints";
import type { Handler } from "./command";
import {
  nextDifference,
  openDifferingSources,
  previousDifference,
  showDifferences,
} from "./differences";
import { exportTrace } from "./exportTrace";
import { clearFilter, filterTrace } from "./filterTrace";
import { followCursor, unfollowCursor } from "./followCursor";
import { goToCall } from "./goToCall";
import { openWalkthrough } from "./openWalkthrough";
import { pinCall } from "./pinCall";
import { pickProcess } from "./pickProcess";
import { restartServer } from "./restartServer";
import { selectInterpreter } from "./selectInterpreter";
import { showActions } from "./showActions";
import { showLog } from "./showLog";
import { showMoreCalls } from "./showMoreCalls";
import { showTrace } from "./showTrace";
import { nextCall, previousCall } from "./stepCall";
import { stopCapturing, stopCapturingAll } from "./stopCapturing";
import { stopWatching, stopWatchingAll } from "./stopWatching";
import { toggleHints } from "./toggleHints";
import { traceForwardPass } from "./traceForwardPass";
import { traceForwardPassOf } from "./traceForwardPassOf";
import { unpinCall } from "./unpinCall";
import { watchVariable } from "./watchVariable";

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
  [Command.showTrace]: showTrace,
  [Command.pinCall]: pinCall,
  [Command.unpinCall]: unpinCall,
  [Command.previousCall]: previousCall,
  [Command.nextCall]: nextCall,
  [Command.goToCall]: goToCall,
  [Command.showMoreCalls]: showMoreCalls,
  [Command.filterTrace]: filterTrace,
  [Command.clearFilter]: clearFilter,
  [Command.followCursor]: followCursor,
  [Command.unfollowCursor]: unfollowCursor,
  [Command.captureValues]: captureValues,
  [Command.capturedValues]: capturedValues,
  [Command.stopCapturing]: stopCapturing,
  [Command.stopCapturingAll]: stopCapturingAll,
  [Command.compareTraces]: compareTraces,
  [Command.showDifferences]: showDifferences,
  [Command.nextDifference]: nextDifference,
  [Command.previousDifference]: previousDifference,
  [Command.openDifferingSources]: openDifferingSources,
  [Command.watchVariable]: watchVariable,
  [Command.stopWatching]: stopWatching,
  [Command.stopWatchingAll]: stopWatchingAll,
  [Command.pickProcess]: pickProcess,
};

/** Registers every command; one that fails says so. */
export function registerCommands(context: Context): Disposable[] {
  return Object.values(Command).map((id) => register(context, id, HANDLERS[id]));
}

function register(context: Context, id: Command, handler: Handler): Disposable {
  return commands.registerCommand(id, async (argument?: unknown) => {
    context.log.debug(`command ${id}`);
    try {
      return await handler(context, argument);
    } catch (error) {
      context.log.error(`${id}: ${error instanceof Error ? (error.stack ?? "") : String(error)}`);
      await context.messages.error(`Shapetrace: ${messageOf(error)}`);
      return undefined;
    }
  });
}
