/** Bringing the agent into programs that were not started with it: attached ones, their children. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import {
  debug,
  type DebugAdapterTracker,
  type DebugAdapterTrackerFactory,
  type DebugSession,
  type DebugSessionCustomEvent,
  type Disposable,
  workspace,
} from "vscode";

import { DebugType } from "../contributions";
import type { Folders } from "../folders";
import { type Log, messageOf } from "../log";
import { entering, isForbidden, lacksInjector, type Obstacle, readObstacle } from "./attaching";
import { objectOf } from "./launchEnvironment";
import type { Sessions, WatchedSession } from "./sessions";

/** Shows the reason why there are no shapes. */
export interface ArrivalReports {
  explainObstacle(session: WatchedSession, obstacle: Obstacle): void;
  explainForbidden(session: WatchedSession, output: string): void;
}

/** Asks the debugger of each process that is attached to, as early as it answers. */
export class ArrivalTracker implements DebugAdapterTrackerFactory, Disposable {
  readonly #source: string;
  readonly #subscription: Disposable;

  constructor(
    private readonly folders: Folders,
    private readonly sessions: Sessions,
    private readonly reports: ArrivalReports,
    private readonly log: Log,
  ) {
    this.#source = readFileSync(join(folders.launcher, "enter.py"), "utf8");
    this.#subscription = debug.onDidReceiveDebugSessionCustomEvent((event) => {
      this.#debugChild(event).catch((error: unknown) => {
        log.error(`${event.session.name}: a process of it is not debugged: ${messageOf(error)}`);
      });
    });
  }

  createDebugAdapterTracker(debugged: DebugSession): DebugAdapterTracker | undefined {
    const session = this.sessions.of(debugged);
    if (session?.agent === undefined || debugged.configuration.request !== "attach") {
      return undefined;
    }
    let isIn = false;
    let isAttached = false;
    const enter = async (isLast: boolean) => {
      const obstacle = isIn ? undefined : await this.#enter(debugged, session);
      isIn ||= obstacle === undefined;
      if (isLast && obstacle !== undefined) {
        this.reports.explainObstacle(session, obstacle);
      }
    };
    return {
      onDidSendMessage: (message: unknown) => {
        const { type, event, command, success, body } = objectOf(message);
        if (type === "event" && event === "initialized") {
          // The program may wait for the debugger to be ready, and then go on at once.
          void enter(false);
        } else if (type === "response" && command === "attach" && success === true) {
          isAttached = true;
          void enter(true);
        } else if (type === "event" && event === "output" && !isIn && !isAttached) {
          // Later it is the program that writes.
          const output = String(objectOf(body)["output"]);
          const isByProcess = debugged.configuration["processId"] !== undefined;
          if (isByProcess && (isForbidden(output) || lacksInjector(output))) {
            this.reports.explainForbidden(session, output);
          }
        }
      },
    };
  }

  dispose(): void {
    this.#subscription.dispose();
  }

  async #enter(debugged: DebugSession, session: WatchedSession): Promise<Obstacle | undefined> {
    if (session.agent === undefined) {
      return undefined;
    }
    const expression = entering(this.#source, this.folders.backend, session.agent);
    try {
      await debugged.customRequest("evaluate", { expression, context: "repl" });
      return undefined;
    } catch (error) {
      const answer = messageOf(error);
      this.log.warn(`${debugged.name}: the agent did not get in: ${answer}`);
      return readObstacle(answer);
    }
  }

  /** Debuggers that cannot have the editor debug a child only send an event about it. */
  async #debugChild({ event, session, body }: DebugSessionCustomEvent): Promise<void> {
    if (event !== "debugpyAttach" || session.type !== DebugType.own) {
      return;
    }
    const configuration = objectOf(body);
    const { name, request } = configuration;
    const folder = session.workspaceFolder ?? workspace.workspaceFolders?.[0];
    const started = await debug.startDebugging(
      folder,
      {
        ...configuration,
        type: DebugType.own,
        name: typeof name === "string" ? name : session.name,
        request: typeof request === "string" ? request : "attach",
      },
      { parentSession: session, lifecycleManagedByParent: true },
    );
    if (!started) {
      this.log.warn(`${String(name)}: this process is not debugged`);
    }
  }
}
