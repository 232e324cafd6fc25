/** Noticing that a program runs and the agent in it says nothing. */
import type {
  DebugAdapterTracker,
  DebugAdapterTrackerFactory,
  DebugSession,
  Disposable,
} from "vscode";

import { type Log, messageOf } from "../log";
import { objectOf } from "./launchEnvironment";
import type { Sessions, WatchedSession } from "./sessions";

/** The agent connects before the program's own code runs: so long that takes on no machine. */
const PATIENCE_MILLISECONDS = 8_000;

/** The messages of a short program may arrive after the event that it has ended. */
const GRACE_MILLISECONDS = 2_000;

/** Watches the debugger's messages of watched sessions, without changing them. */
export class SilenceTracker implements DebugAdapterTrackerFactory, Disposable {
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(
    private readonly sessions: Sessions,
    private readonly explain: (session: WatchedSession, debugged: DebugSession) => void,
    private readonly log: Log,
  ) {}

  async createDebugAdapterTracker(
    debugged: DebugSession,
  ): Promise<DebugAdapterTracker | undefined> {
    const session = this.sessions.of(debugged);
    if (session === undefined || debugged.parentSession !== undefined) {
      return undefined;
    }
    if (!session.isOpen) {
      // VS Code restarts a session with the configuration that it had.
      await this.sessions.reopen(session).catch((error: unknown) => {
        this.log.error(`${session.name}: not watched any longer: ${messageOf(error)}`);
      });
    }
    session.wasHeard = false;
    let timer: NodeJS.Timeout | undefined;
    let hasEnded = false;
    let isStopped = false;
    const wait = (milliseconds: number) => {
      stop();
      timer = setTimeout(complain, milliseconds);
      this.#timers.add(timer);
    };
    const stop = () => {
      if (timer !== undefined) {
        clearTimeout(timer);
        this.#timers.delete(timer);
      }
    };
    let hasComplained = false;
    const complain = () => {
      stop();
      if (!session.wasHeard && !hasComplained) {
        hasComplained = true;
        this.sessions.setSilent(session, true);
        this.explain(session, debugged);
      }
    };
    return {
      onDidSendMessage: (message: unknown) => {
        if (isOf("event", "process", message)) {
          wait(PATIENCE_MILLISECONDS);
        } else if (isOf("event", "exited", message) && !isStopped) {
          hasEnded = true;
          wait(GRACE_MILLISECONDS);
        }
      },
      onWillReceiveMessage: (message: unknown) => {
        const isEnding =
          isOf("command", "terminate", message) || isOf("command", "disconnect", message);
        if (isEnding && !hasEnded) {
          isStopped = true; // By the user: then nothing is to be said.
          stop();
        }
      },
    };
  }

  dispose(): void {
    for (const timer of this.#timers) {
      clearTimeout(timer);
    }
  }
}

/** Returns whether a message of the debug adapter protocol is that event or request. */
function isOf(key: "event" | "command", name: string, message: unknown): boolean {
  const content = objectOf(message);
  return content["type"] === (key === "event" ? "event" : "request") && content[key] === name;
}
