/** Actions that would disturb each other, one at a time. */

export class Turns {
  #last: Promise<unknown> = Promise.resolve();
  #newest = 0;

  /**
   * Runs an action after those before it. One that waits is left out once a newer one is there; one
   * that runs is told by `isNewest`.
   */
  async newest(action: (isNewest: () => boolean) => Promise<void>): Promise<void> {
    const turn = ++this.#newest;
    const isNewest = () => turn === this.#newest;
    await this.next(async () => {
      if (isNewest()) {
        await action(isNewest);
      }
    });
  }

  /** Runs an action after those before it, whatever comes behind. */
  async next(action: () => Promise<void>): Promise<void> {
    const ended = this.#last.then(action);
    // The caller of an action gets its error; the actions after it still run.
    this.#last = ended.catch(() => undefined);
    await ended;
  }
}
