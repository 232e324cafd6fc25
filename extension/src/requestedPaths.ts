/** Paths and names that the user wants captured or watched: stored, sent to the server. */
import { type Disposable, type Event, EventEmitter } from "vscode";
import type { RequestProblem } from "./protocol.generated";

/** Problems with several requests often have one cause and arrive together: one message for all. */
const TOGETHER_MILLISECONDS = 300;

/** What differs between captured and watched paths. */
export interface RequestKind {
  /** Returns the stored requests. */
  readonly recall: () => readonly string[];
  readonly remember: (wanted: readonly string[]) => Promise<void>;
  /** Sends the requests to the server. */
  readonly send: (wanted: readonly string[]) => void;
  readonly onDidReceiveProblem: Event<RequestProblem>;
  /** Shows the user the problems that arrived together. */
  readonly show: (problems: readonly RequestProblem[]) => void;
}

export class RequestedPaths implements Disposable {
  readonly #changed = new EventEmitter<void>();
  readonly #disposables: Disposable[];
  #problems: RequestProblem[] = [];
  #timer: NodeJS.Timeout | undefined;

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(private readonly kind: RequestKind) {
    kind.send(kind.recall());
    this.#disposables = [
      this.#changed,
      kind.onDidReceiveProblem((problem) => {
        this.#problems.push(problem);
        this.#timer ??= setTimeout(() => {
          this.#showProblems();
        }, TOGETHER_MILLISECONDS);
      }),
    ];
  }

  get wanted(): readonly string[] {
    return this.kind.recall();
  }

  /** Adds a request; returns false if it is there already. */
  async add(path: string): Promise<boolean> {
    if (this.wanted.includes(path)) {
      return false;
    }
    await this.set([...this.wanted, path]);
    return true;
  }

  async remove(path: string): Promise<void> {
    await this.set(this.wanted.filter((each) => each !== path));
  }

  async set(wanted: readonly string[]): Promise<void> {
    await this.kind.remember(wanted);
    this.kind.send(wanted);
    this.#changed.fire();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    for (const disposable of this.#disposables) {
      disposable.dispose();
    }
  }

  #showProblems(): void {
    this.#timer = undefined;
    const problems = this.#problems;
    this.#problems = [];
    this.kind.show(problems);
  }
}
