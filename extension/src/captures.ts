/** Which values are captured from the next debug session on, by their paths. */
import type { Server } from "./client/server";
import type { Memory } from "./memory";
import type { Messages } from "./messages";
import { RequestedPaths } from "./requestedPaths";

export class Captures extends RequestedPaths {
  constructor(memory: Memory, server: Server, messages: Messages) {
    super({
      recall: () => memory.capturePaths,
      remember: (paths) => memory.rememberCapturePaths(paths),
      send: (paths) => {
        server.wantCaptures(paths);
      },
      onDidReceiveProblem: server.onDidReceiveCaptureProblem,
      show: ([first, ...others]) => {
        if (first !== undefined) {
          const of = first.request === "" ? "" : ` of ${first.request}`;
          const more =
            others.length === 0 ? "" : ` (and ${others.length} more: see the trace tree)`;
          void messages.notCaptured(`Nothing is captured${of}: ${first.message}${more}`);
        }
      },
    });
  }
}
