/**
 * Telling the language server which stack frame is looked at, so that it shows the shapes of that
 * frame's call. While the program runs there is none.
 */
import {
  debug,
  type DebugAdapterTracker,
  type DebugAdapterTrackerFactory,
  type DebugSession,
  DebugStackFrame,
  type Disposable,
  type Event,
  EventEmitter,
} from "vscode";

import type { Server } from "../client/server";
import { type Log, messageOf } from "../log";
import { property } from "../model/interpreters";
import { describeStop, readStop } from "../model/stopQuery";
import { FOCUS, type Focused, type SourceLine, type StopReference } from "../protocol.generated";
import type { Sessions, WatchedSession } from "./sessions";
import { Stops } from "./stops";

/** Of several changes of focus in a row only the last matters. */
const SETTLING_MILLISECONDS = 15;

/** A step is over by then most often: what is shown does not flicker in between. */
const STEP_MILLISECONDS = 300;

/** An inline value waits so long for the focus that it is to be told by. */
const PATIENCE_MILLISECONDS = 1_500;

/** A stack frame that stands still, and the watched session that it belongs to. */
export interface StoppedFrame {
  readonly frame: DebugStackFrame;
  readonly session: WatchedSession;
}

export class Focus implements DebugAdapterTrackerFactory, Disposable {
  readonly #disposables: Disposable[];
  readonly #stops = new Stops();
  readonly #focused = new EventEmitter<SourceLine>();
  #timer: NodeJS.Timeout | undefined;
  #generation = 0;
  /** Whether the server was told of a stop last. */
  #isTold = false;
  /** There while it is still to be found out which frame it is. */
  #pending: Pending | undefined;

  /** The server shows the stop of the selected frame, which is at this line. */
  readonly onDidFocus: Event<SourceLine> = this.#focused.event;

  constructor(
    private readonly sessions: Sessions,
    private readonly server: Server,
    private readonly log: Log,
  ) {
    this.#disposables = [
      this.#focused,
      debug.onDidChangeActiveStackItem((item) => {
        // In a step there is no frame for a moment.
        this.#look(item instanceof DebugStackFrame ? SETTLING_MILLISECONDS : STEP_MILLISECONDS);
      }),
      debug.onDidTerminateDebugSession(({ id }) => {
        this.#stops.forget(id);
        this.#look(SETTLING_MILLISECONDS);
      }),
      server.onDidRestart(() => {
        this.#isTold = false; // The new server knows of none.
        this.#look(SETTLING_MILLISECONDS);
      }),
    ];
  }

  createDebugAdapterTracker(debugged: DebugSession): DebugAdapterTracker | undefined {
    if (this.sessions.around(debugged) === undefined) {
      return undefined;
    }
    const { id } = debugged;
    return {
      onWillReceiveMessage: (message: unknown) => {
        if (this.#stops.sent(id, message)) {
          this.#look(STEP_MILLISECONDS);
        }
      },
      onDidSendMessage: (message: unknown) => {
        if (this.#stops.received(id, message)) {
          // The editor asks for the stack first, and tells when it has chosen a frame.
          this.#look(STEP_MILLISECONDS);
        }
      },
      onWillStopSession: () => {
        this.#stops.forget(id);
        this.#look(SETTLING_MILLISECONDS);
      },
    };
  }

  /** The stack frame of a watched program that is looked at, where that stands still. */
  get stopped(): StoppedFrame | undefined {
    const frame = debug.activeStackItem;
    const session = frame && this.sessions.around(frame.session);
    return frame instanceof DebugStackFrame &&
      session?.isOpen === true &&
      this.#stops.has(frame.session.id)
      ? { frame, session }
      : undefined;
  }

  /** Resolves when the server knows of the frame that is looked at. */
  async settled(): Promise<void> {
    const patience = new Promise<void>((resolve) => {
      setTimeout(resolve, PATIENCE_MILLISECONDS).unref();
    });
    await Promise.race([this.#pending?.promise, patience]);
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#pending?.resolve();
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  /** Looks in a moment which frame it is; what was begun before does not count any more. */
  #look(milliseconds: number): void {
    const generation = ++this.#generation;
    this.#pending ??= pending();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      void this.#update(generation);
    }, milliseconds);
  }

  async #update(generation: number): Promise<void> {
    const stop = await this.#find();
    if (generation !== this.#generation) {
      return; // The program has gone on, or another frame was chosen meanwhile.
    }
    const focused = await this.#tell(stop);
    if (generation === this.#generation) {
      this.#pending?.resolve();
      this.#pending = undefined;
      if (focused?.place) {
        this.#focused.fire(focused.place);
      }
    }
  }

  /** Has the server show a stop, or none any more; it answers when it has heard of the stop. */
  async #tell(stop: StopReference | undefined): Promise<Focused | undefined> {
    if (stop === undefined && !this.#isTold) {
      return undefined;
    }
    this.#isTold = stop !== undefined;
    try {
      return await this.server.requestIfRunning(FOCUS, { stop: stop ?? null });
    } catch (error) {
      this.log.warn(`the focus could not be told: ${messageOf(error)}`);
      return undefined;
    }
  }

  /** The stop of the selected frame, of which the agent tells the server meanwhile. */
  async #find(): Promise<StopReference | undefined> {
    const { frame, session } = this.stopped ?? {};
    if (frame === undefined || session === undefined) {
      return undefined;
    }
    try {
      // Of all contexts only this leaves the filters of the program's warnings alone.
      const answer: unknown = await frame.session.customRequest("evaluate", {
        expression: describeStop(frame.frameId),
        context: "repl",
      });
      const stop = readStop(String(property(answer, "result")));
      return stop && { session: session.id, ...stop };
    } catch (error) {
      this.log.debug(`${frame.session.name}: no word on the stack frame: ${messageOf(error)}`);
      return undefined;
    }
  }
}

interface Pending {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

function pending(): Pending {
  let resolve: (() => void) | undefined;
  const promise = new Promise<void>((resolved) => {
    resolve = resolved;
  });
  return { promise, resolve: () => resolve?.() };
}
