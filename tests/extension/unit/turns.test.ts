/** One action at a time, and of those that wait the newest. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Turns } from "../../../extension/src/model/turns";

/** Actions that write down when they begin and end, and end when they are let. */
class Stage {
  readonly turns = new Turns();
  readonly seen: string[] = [];
  readonly #ends = new Map<string, () => void>();

  newest(name: string): Promise<void> {
    return this.turns.newest(async (isNewest) => {
      await this.#run(name);
      this.seen.push(`${name} is ${isNewest() ? "" : "not "}the newest`);
    });
  }

  next(name: string): Promise<void> {
    return this.turns.next(() => this.#run(name));
  }

  end(name: string): void {
    this.#ends.get(name)?.();
  }

  async #run(name: string): Promise<void> {
    this.seen.push(`${name} begins`);
    await new Promise<void>((resolve) => this.#ends.set(name, resolve));
    this.seen.push(`${name} ends`);
  }
}

/** Everything that can run by now has run. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("Turns", () => {
  test("only the newest of those that wait is run", async () => {
    const stage = new Stage();
    const all = [stage.newest("a")];
    await settled();
    all.push(stage.newest("b"), stage.newest("c"));
    await settled();
    assert.deepEqual(stage.seen, ["a begins"]);
    stage.end("a");
    await settled();
    stage.end("c");
    await Promise.all(all);
    assert.deepEqual(stage.seen, [
      ...["a begins", "a ends", "a is not the newest"],
      ...["c begins", "c ends", "c is the newest"],
    ]);
  });

  test("what is no newest waits and is left out for nothing", async () => {
    const stage = new Stage();
    const all = [stage.newest("a")];
    await settled();
    all.push(stage.next("b"), stage.newest("c"));
    for (const name of ["a", "b", "c"]) {
      await settled();
      stage.end(name);
    }
    await Promise.all(all);
    assert.deepEqual(
      stage.seen.filter((line) => line.endsWith("begins")),
      ["a begins", "b begins", "c begins"],
    );
  });

  test("a failure is heard by its caller alone", async () => {
    const turns = new Turns();
    const seen: string[] = [];
    const failing = turns.next(() => Promise.reject(new Error("not there")));
    const behind = turns.newest(() => {
      seen.push("run");
      return Promise.resolve();
    });
    await assert.rejects(failing, /not there/);
    await behind;
    assert.deepEqual(seen, ["run"]);
  });
});
