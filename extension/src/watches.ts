/** Which variables are watched, in programs that run and in those to come. */
import { type Disposable, type Event, EventEmitter } from "vscode";

import type { Server } from "./client/server";
import type { Memory } from "./memory";
import type { Messages } from "./messages";
import type { WatchProblem } from "./watchProtocol";

/** What is wrong with several names comes at once, at the end of a program. */
const TOGETHER_MILLISECONDS = 300;

export class Watches implements Disposable {
  readonly #changed = new EventEmitter<void>();
  readonly #disposables: Disposable[];
  #problems: WatchProblem[] = [];
  #timer: NodeJS.Timeout | undefined;

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(
    private readonly memory: Memory,
    private readonly server: Server,
    private readonly messages: Messages,
  ) {
    server.wantWatches(memory.watchedNames);
    this.#disposables = [
      this.#changed,
      server.onDidReceiveWatchProblem((problem) => {
        this.#problems.push(problem);
        this.#timer ??= setTimeout(() => {
          this.#tellProblems();
        }, TOGETHER_MILLISECONDS);
      }),
    ];
  }

  get names(): readonly string[] {
    return this.memory.watchedNames;
  }

  /** Watches one more; tells whether it was not watched yet. */
  async add(name: string): Promise<boolean> {
    if (this.names.includes(name)) {
      return false;
    }
    await this.set([...this.names, name]);
    return true;
  }

  async remove(name: string): Promise<void> {
    await this.set(this.names.filter((each) => each !== name));
  }

  async set(names: readonly string[]): Promise<void> {
    await this.memory.rememberWatchedNames(names);
    this.server.wantWatches(names);
    this.#changed.fire();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #tellProblems(): void {
    this.#timer = undefined;
    // What is watched no longer is no problem.
    const problems = this.#problems.filter(({ name }) => name === "" || this.names.includes(name));
    this.#problems = [];
    const [first, ...others] = problems;
    if (first !== undefined) {
      const more = others.length === 0 ? "" : ` (and ${others.length} more: see the trace)`;
      void this.messages.notWatched(`Watching: ${first.message}.${more}`);
    }
  }
}
