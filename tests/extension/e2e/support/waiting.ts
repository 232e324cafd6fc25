import assert from "node:assert/strict";

const POLL_MILLISECONDS = 150;

/** How long anything may take that is not known to take longer, on a machine that is busy. */
export const PATIENCE_SECONDS = 30;

export interface Patience {
  readonly seconds?: number;
}

/** What has been read once it is accepted. Fails with what was expected and what was read last. */
export async function eventually<Value>(
  what: string,
  read: () => Promise<Value> | Value,
  accept: (value: Value) => boolean,
  { seconds = PATIENCE_SECONDS }: Patience = {},
): Promise<Value> {
  const last = await poll(read, accept, seconds);
  assert.ok(
    accept(last),
    `${what}: not so within ${seconds} s, but ${JSON.stringify(last, undefined, 2)}`,
  );
  return last;
}

/** Waits until what is read is as expected. Fails with the difference to what was read last. */
export async function eventuallyEqual<Value>(
  read: () => Promise<Value> | Value,
  expected: Value,
  { seconds = PATIENCE_SECONDS }: Patience = {},
): Promise<void> {
  assert.deepEqual(await poll(read, (value) => isEqual(value, expected), seconds), expected);
}

/** Waits until a text matches. */
export async function eventuallyMatches(
  what: string,
  read: () => Promise<string>,
  pattern: RegExp,
  patience: Patience = {},
): Promise<string> {
  return eventually(`${what} matches ${pattern}`, read, (text) => pattern.test(text), patience);
}

async function poll<Value>(
  read: () => Promise<Value> | Value,
  accept: (value: Value) => boolean,
  seconds: number,
): Promise<Value> {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const value = await read();
    if (accept(value) || Date.now() > deadline) {
      return value;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
  }
}

function isEqual(actual: unknown, expected: unknown): boolean {
  try {
    assert.deepEqual(actual, expected);
    return true;
  } catch {
    return false;
  }
}
