/** What the user wants to be told of beyond the shapes: kept, sent to the server, complained about. */
import { type Disposable, type Event, EventEmitter } from "vscode";

/** What is wrong with several wishes is often the same, comes at once, and is told together. */
const TOGETHER_MILLISECONDS = 300;

/** What wishes of one kind differ in from those of another. */
export interface WishKind<Problem> {
  /** All that are wished, as they are remembered. */
  readonly recall: () => readonly string[];
  readonly remember: (wanted: readonly string[]) => Promise<void>;
  /** Tells the server. */
  readonly send: (wanted: readonly string[]) => void;
  readonly onDidReceiveProblem: Event<Problem>;
  /** Tells the user of all that has come within a moment. */
  readonly tell: (problems: readonly Problem[]) => void;
}

export class Wishes<Problem> implements Disposable {
  readonly #changed = new EventEmitter<void>();
  readonly #disposables: Disposable[];
  #problems: Problem[] = [];
  #timer: NodeJS.Timeout | undefined;

  readonly onDidChange: Event<void> = this.#changed.event;

  constructor(private readonly kind: WishKind<Problem>) {
    kind.send(kind.recall());
    this.#disposables = [
      this.#changed,
      kind.onDidReceiveProblem((problem) => {
        this.#problems.push(problem);
        this.#timer ??= setTimeout(() => {
          this.#tellProblems();
        }, TOGETHER_MILLISECONDS);
      }),
    ];
  }

  get wanted(): readonly string[] {
    return this.kind.recall();
  }

  /** Wants one more; tells whether it was not wanted yet. */
  async add(wish: string): Promise<boolean> {
    if (this.wanted.includes(wish)) {
      return false;
    }
    await this.set([...this.wanted, wish]);
    return true;
  }

  async remove(wish: string): Promise<void> {
    await this.set(this.wanted.filter((each) => each !== wish));
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

  #tellProblems(): void {
    this.#timer = undefined;
    const problems = this.#problems;
    this.#problems = [];
    this.kind.tell(problems);
  }
}
