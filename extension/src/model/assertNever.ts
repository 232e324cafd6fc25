/** Marks a place that no value reaches; the compiler proves it. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
