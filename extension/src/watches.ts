/** Which variables are watched, in programs that run and in those to come, by their names. */
import type { Server } from "./client/server";
import type { Memory } from "./memory";
import type { Messages } from "./messages";
import { RequestedPaths } from "./requestedPaths";

export class Watches extends RequestedPaths {
  constructor(memory: Memory, server: Server, messages: Messages) {
    super({
      recall: () => memory.watchedNames,
      remember: (names) => memory.rememberWatchedNames(names),
      send: (names) => {
        server.wantWatches(names);
      },
      onDidReceiveProblem: server.onDidReceiveWatchProblem,
      show: (problems) => {
        const names = memory.watchedNames;
        // A variable that is no longer watched is no problem.
        const [first, ...others] = problems.filter(
          ({ request }) => request === "" || names.includes(request),
        );
        if (first !== undefined) {
          const more =
            others.length === 0 ? "" : ` (and ${others.length} more: see the trace tree)`;
          void messages.notWatched(`Watching: ${first.message}.${more}`);
        }
      },
    });
  }
}
