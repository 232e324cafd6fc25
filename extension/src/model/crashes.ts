/** When a server that ends unexpectedly is started again, and when it is given up. */

/** So many unexpected ends within so long are too many. */
const MOST = 4;
const WITHIN_MILLISECONDS = 180_000;

/** Counts unexpected ends. */
export class Crashes {
  #times: number[] = [];

  /** Notes an end; whether another start is worth trying. */
  note(now: number): boolean {
    this.#times = [...this.#times.filter((time) => now - time < WITHIN_MILLISECONDS), now];
    return this.#times.length <= MOST;
  }

  /** Resets the count, because the user asked for a restart. */
  forget(): void {
    this.#times = [];
  }
}
