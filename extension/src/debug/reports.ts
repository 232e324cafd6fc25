/** Telling the user what went differently than wanted in a watched session, once for each. */
import type { DebugSession, Disposable } from "vscode";

import { hasTorch } from "../client/python";
import type { Log } from "../log";
import type { Messages } from "../messages";
import { explainForbidden, explainObstacle, explainSilence } from "../model/explanations";
import type { Status } from "../protocol.generated";
import { lacksInjector, type Obstacle } from "./attaching";
import { objectOf } from "./launchEnvironment";
import type { Sessions, WatchedSession } from "./sessions";

export class Reports implements Disposable {
  readonly #told = new Set<string>();
  readonly #subscriptions: readonly Disposable[];
  /** Messages of traced sessions about programs that ended without a forward pass. */
  readonly #withoutForward = new Map<WatchedSession, Status[]>();
  #hasToldSilence = false;

  constructor(
    private readonly sessions: Sessions,
    private readonly messages: Messages,
    private readonly log: Log,
  ) {
    this.#subscriptions = [
      sessions.onDidReport(({ session, status }) => {
        void this.#report(session, status);
      }),
      sessions.onDidChange(() => {
        void this.#reportEnded();
      }),
    ];
  }

  /** Says why nothing may have been heard: always of a trace, once in a window of a debug run. */
  explainSilence(session: WatchedSession, debugged: DebugSession): void {
    if (session.isExplained) {
      return;
    }
    const configuration = objectOf(debugged.configuration);
    const explanation = explainSilence(session.name, {
      python: commandOf(configuration).join(" "),
      pythonOptions: optionsOf(configuration),
      usesSudo: configuration["sudo"] === true,
      isAttached: configuration["request"] === "attach",
    });
    this.log.warn(explanation.text);
    if (session.mode === "forwardPass" || !this.#hasToldSilence) {
      this.#hasToldSilence ||= session.mode === "debug";
      void this.messages.silence(explanation);
    }
  }

  explainObstacle(session: WatchedSession, obstacle: Obstacle): void {
    this.#tellObstacle(session, explainObstacle(session.name, obstacle));
  }

  explainForbidden(session: WatchedSession, output: string): void {
    const how = lacksInjector(output) ? "missing" : "forbidden";
    this.#tellObstacle(session, explainForbidden(session.name, how, process.platform));
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) {
      subscription.dispose();
    }
  }

  #tellObstacle(session: WatchedSession, text: string): void {
    session.isExplained = true;
    this.sessions.setSilent(session, true);
    this.log.warn(text);
    void this.messages.obstacle(text);
  }

  async #report(session: WatchedSession, status: Status): Promise<void> {
    if (!PROBLEMS.has(status.state) || !this.#isNew(session, status)) {
      return;
    }
    const { message } = status;
    switch (status.state) {
      case "failed":
        await this.messages.error(`Shapetrace itself failed in ${session.name}: ${message}`);
        break;
      case "unsupported":
        await this.messages.unsupported(`No shapes for ${session.name}: ${message}`);
        break;
      case "noForward":
        if (session.mode === "forwardPass") {
          const said = this.#withoutForward.get(session) ?? [];
          this.#withoutForward.set(session, [...said, status]);
          await this.#reportEnded();
        }
        break;
      default:
        break;
    }
  }

  /** Another program of the session may have done it. */
  async #reportEnded(): Promise<void> {
    for (const [session, said] of this.#withoutForward) {
      if (session.isOpen) {
        continue;
      }
      this.#withoutForward.delete(session);
      const telling = said.find(({ torch }) => torch !== null) ?? said[0];
      const hasOther = [...session.programs.values()].some(({ passes }) => passes > 0);
      if (telling !== undefined && !hasOther) {
        await this.#explainNoForward(session, telling);
      }
    }
  }

  async #explainNoForward(session: WatchedSession, { torch, message }: Status): Promise<void> {
    const configuration = objectOf(session.configuration);
    const command = commandOf(configuration);
    const [python] = command;
    if (
      torch === null &&
      python !== undefined &&
      !(await hasTorch([python], surroundings(configuration)))
    ) {
      await this.messages.noTorch(python);
      return;
    }
    const what = torch === null ? "without importing torch" : "without a forward pass";
    const why = message === "" || torch === null ? "" : ` (${message})`;
    await this.messages.noForward(`${session.name}: the program ended ${what}${why}.`);
  }

  #isNew({ id }: WatchedSession, { process, state, message }: Status): boolean {
    const key = JSON.stringify([id, state === "noForward" ? process : null, state, message]);
    const isNew = !this.#told.has(key);
    this.#told.add(key);
    return isNew;
  }
}

const PROBLEMS: ReadonlySet<Status["state"]> = new Set(["failed", "unsupported", "noForward"]);

/** The program's Python as the debugger has it: one text, or a list with options. */
function commandOf(configuration: Readonly<Record<string, unknown>>): readonly string[] {
  const { python }: Record<string, unknown> = configuration;
  const parts: readonly unknown[] = Array.isArray(python) ? python : [python];
  return parts.filter((part) => typeof part === "string" && part !== "") as string[];
}

function optionsOf(configuration: Readonly<Record<string, unknown>>): readonly string[] {
  const given = configuration["pythonArgs"];
  const options: readonly unknown[] = Array.isArray(given) ? given : [];
  return [...commandOf(configuration).slice(1), ...options.map(String)];
}

function surroundings(configuration: Readonly<Record<string, unknown>>) {
  const { cwd } = configuration;
  const path = objectOf(configuration["env"])["PYTHONPATH"];
  return {
    ...(typeof cwd === "string" ? { cwd } : {}),
    env: { ...process.env, ...(typeof path === "string" ? { PYTHONPATH: path } : {}) },
  };
}
