/** Which values are captured from the next debug session on. */
import { type Disposable, type Event, EventEmitter } from "vscode";

import type { Server } from "./client/server";
import type { CaptureProblem } from "./captureProtocol";
import type { Memory } from "./memory";
import type { Messages } from "./messages";

/** Several paths often have nothing for the same reason, and are told of together. */
const TOGETHER_MILLISECONDS = 300;

export class Captures implements Disposable {
  readonly #changed = new EventEmitter<void>();
  readonly #disposables: Disposable[];
  #problems: CaptureProblem[] = [];
  #timer: NodeJS.Timeout | undefined;

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(
    private readonly memory: Memory,
    private readonly server: Server,
    private readonly messages: Messages,
  ) {
    server.wantCaptures(memory.capturePaths);
    this.#disposables = [
      this.#changed,
      server.onDidReceiveCaptureProblem((problem) => {
        this.#problems.push(problem);
        this.#timer ??= setTimeout(() => {
          this.#tellProblems();
        }, TOGETHER_MILLISECONDS);
      }),
    ];
  }

  get paths(): readonly string[] {
    return this.memory.capturePaths;
  }

  /** Captures one more; tells whether it was not captured yet. */
  async add(path: string): Promise<boolean> {
    if (this.paths.includes(path)) {
      return false;
    }
    await this.set([...this.paths, path]);
    return true;
  }

  async remove(path: string): Promise<void> {
    await this.set(this.paths.filter((each) => each !== path));
  }

  async set(paths: readonly string[]): Promise<void> {
    await this.memory.rememberCapturePaths(paths);
    this.server.wantCaptures(paths);
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
    const [first, ...others] = this.#problems;
    this.#problems = [];
    if (first !== undefined) {
      const of = first.path === "" ? "" : ` of ${first.path}`;
      const more = others.length === 0 ? "" : ` (and of ${others.length} more: see the trace)`;
      void this.messages.notCaptured(`Nothing is captured${of}: ${first.message}${more}`);
    }
  }
}
