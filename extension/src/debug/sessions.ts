/** The debug sessions whose programs are watched. */
import { randomBytes } from "node:crypto";

import {
  debug,
  type DebugConfiguration,
  type DebugSession,
  type Disposable,
  type Event,
  EventEmitter,
} from "vscode";

import type { Server } from "../client/server";
import { type Log, messageOf } from "../log";
import type { SessionFacts } from "../model/sessionSummary";
import {
  CLOSE_SESSION,
  type OpenedSession,
  OPEN_SESSION,
  type SessionMode,
  type Status,
  WAKE,
} from "../protocol.generated";
import type { AgentSession } from "./launchEnvironment";
import { markOf } from "./mark";

/** A session that VS Code has not begun after so long may never be: a task before it has failed. */
const DOUBTFUL_MILLISECONDS = 10_000;

/** After so long it never will. */
const STILLBORN_MILLISECONDS = 120_000;

/** So long a program that has been traced may take to end. */
const ENDING_MILLISECONDS = 5_000;

/** One watched debug session, for as long as its trace is there. */
export interface WatchedSession {
  readonly id: string;
  readonly name: string;
  readonly mode: SessionMode;
  /** Whether the program is ended when its recording is complete. */
  readonly endsItself: boolean;
  readonly endpoint: OpenedSession;
  /** The settings for the agent, however it gets into a program. */
  agent: AgentSession | undefined;
  /** The debug configuration, once VS Code has begun the session. */
  configuration: DebugConfiguration | undefined;
  /** Whether the language server expects its programs. */
  isOpen: boolean;
  isSilent: boolean;
  /** Whether the user has seen why there will be no shapes. */
  isExplained: boolean;
  /** Whether any program of it has ever connected. */
  wasHeard: boolean;
  readonly openedAt: number;
  readonly programs: Map<number, Status>;
}

export class Sessions implements Disposable {
  readonly #sessions = new Map<string, WatchedSession>();
  readonly #changed = new EventEmitter<void>();
  readonly #reported = new EventEmitter<{ session: WatchedSession; status: Status }>();
  readonly #disposables: Disposable[];

  readonly onDidChange: Event<void> = this.#changed.event;
  /** A program of a session said something. */
  readonly onDidReport: Event<{ session: WatchedSession; status: Status }> = this.#reported.event;

  constructor(
    private readonly server: Server,
    private readonly log: Log,
  ) {
    this.#disposables = [
      this.#changed,
      this.#reported,
      server.onDidReceiveStatus((status) => {
        this.#receive(status);
      }),
      server.onDidRestart(() => {
        void this.#reopenAll();
      }),
      debug.onDidStartDebugSession((session) => {
        this.#begin(session);
      }),
      debug.onDidTerminateDebugSession((session) => {
        void this.#end(session);
      }),
    ];
  }

  /** Makes the language server await the programs of a new session. */
  async open(name: string, mode: SessionMode, endsItself: boolean): Promise<WatchedSession> {
    this.#forgetStillborn();
    const id = randomBytes(8).toString("hex");
    const endpoint = await this.server.request(OPEN_SESSION, { session: id, name, mode });
    const session: WatchedSession = {
      ...{ id, name, mode, endsItself, endpoint, agent: undefined, configuration: undefined },
      ...{
        programs: new Map(),
        isOpen: true,
        isSilent: false,
        isExplained: false,
        wasHeard: false,
        openedAt: Date.now(),
      },
    };
    this.#sessions.set(id, session);
    this.#changed.fire();
    return session;
  }

  /** The watched session that a debug session belongs to. */
  of(session: DebugSession): WatchedSession | undefined {
    const id = markOf(session.configuration)?.session;
    return id === undefined ? undefined : this.#sessions.get(id);
  }

  /** Like `of`, but also finds the session of a child process. */
  around(session: DebugSession): WatchedSession | undefined {
    return this.of(session) ?? (session.parentSession && this.around(session.parentSession));
  }

  /** Awaits the programs of a session once more, which VS Code restarts as it was. */
  async reopen(session: WatchedSession): Promise<void> {
    const { id, name, mode, endpoint } = session;
    const { token, port } = endpoint;
    const opened = await this.server.request(OPEN_SESSION, {
      session: id,
      name,
      mode,
      token,
      port,
    });
    if (opened.port !== port) {
      throw new Error(`port ${port} is taken by another program`);
    }
    session.isOpen = true;
    this.#changed.fire();
  }

  get openSessions(): readonly WatchedSession[] {
    return [...this.#sessions.values()].filter((session) => session.isOpen);
  }

  /**
   * The sessions that go on. One whose trace is complete ends by itself in a moment, and then is no
   * reason not to begin another: it is waited for.
   */
  async lasting(): Promise<readonly WatchedSession[]> {
    const deadline = Date.now() + ENDING_MILLISECONDS;
    while (this.openSessions.some(isEnding) && Date.now() < deadline) {
      await this.#nextChange(deadline - Date.now());
    }
    return this.openSessions.filter(
      (session) => session.configuration !== undefined || ageOf(session) <= DOUBTFUL_MILLISECONDS,
    );
  }

  /** Whether there can be hints. */
  get hasTrace(): boolean {
    return this.#all().some(({ programs }) =>
      [...programs.values()].some(({ calls }) => calls > 0),
    );
  }

  get facts(): readonly SessionFacts[] {
    return this.#all().map(({ name, isOpen, isSilent, programs }) => ({
      ...{ name, isOpen, isSilent },
      programs: [...programs.values()],
    }));
  }

  /** Has every program record everything again; returns the number of programs. */
  async wake(): Promise<number> {
    const woken = await Promise.all(
      this.openSessions.map(({ id }) => this.server.request(WAKE, { session: id })),
    );
    return woken.reduce((sum, { processes }) => sum + processes, 0);
  }

  /** Forgets the sessions that are over, and what the open ones have recorded so far. */
  forget(): void {
    for (const session of this.#all()) {
      if (!session.isOpen) {
        this.#sessions.delete(session.id);
      }
      for (const [process, status] of session.programs) {
        session.programs.set(process, { ...status, calls: 0, passes: 0 });
      }
    }
    this.#changed.fire();
  }

  setSilent(session: WatchedSession, isSilent: boolean): void {
    session.isSilent = isSilent;
    this.#changed.fire();
  }

  dispose(): void {
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #nextChange(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, milliseconds);
      const subscription = this.#changed.event(done);
      function done() {
        clearTimeout(timer);
        subscription.dispose();
        resolve();
      }
    });
  }

  #all(): WatchedSession[] {
    return [...this.#sessions.values()];
  }

  #begin(started: DebugSession): void {
    const session = this.of(started);
    if (session !== undefined && started.parentSession === undefined) {
      session.configuration = started.configuration;
      this.#changed.fire();
    }
  }

  async #end(ended: DebugSession): Promise<void> {
    const session = this.of(ended);
    if (session?.isOpen === true && ended.parentSession === undefined) {
      await this.#close(session);
    }
  }

  async #close(session: WatchedSession): Promise<void> {
    session.isOpen = false;
    session.isSilent = false;
    this.#changed.fire();
    try {
      await this.server.requestIfRunning(CLOSE_SESSION, { session: session.id });
    } catch (error) {
      this.log.warn(`${session.name}: the session was not closed: ${messageOf(error)}`);
    }
  }

  /** Lets go of sessions that were opened for a debug session which then never began. */
  #forgetStillborn(): void {
    for (const session of this.openSessions) {
      if (session.configuration === undefined && ageOf(session) > STILLBORN_MILLISECONDS) {
        this.#sessions.delete(session.id);
        void this.#close(session);
      }
    }
  }

  async #reopenAll(): Promise<void> {
    for (const session of this.openSessions) {
      try {
        await this.reopen(session);
      } catch (error) {
        this.log.error(`${session.name}: not watched any longer: ${messageOf(error)}`);
      }
    }
  }

  #receive(status: Status): void {
    const session = this.#sessions.get(status.session);
    if (session === undefined) {
      return;
    }
    this.log.debug(`${session.name}: ${JSON.stringify(status)}`);
    session.wasHeard = true;
    session.isSilent = false;
    session.programs.set(status.process ?? 0, status);
    this.#reported.fire({ session, status });
    this.#changed.fire();
  }
}

function ageOf({ openedAt }: WatchedSession): number {
  return Date.now() - openedAt;
}

/** Returns whether a traced program has nothing left to do but to end. */
function isEnding({ endsItself, programs }: WatchedSession): boolean {
  const states = [...programs.values()].map(({ state }) => state);
  return endsItself && states.length > 0 && states.every((state) => LAST.has(state));
}

const LAST: ReadonlySet<Status["state"]> = new Set(["complete", "noForward", "gone"]);
