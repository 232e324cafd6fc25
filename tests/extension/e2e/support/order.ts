/** The order of a suite's tests: as they are defined or, with SHAPETRACE_ORDER=random, a random one. */
import { createHash, randomInt } from "node:crypto";

const [kind, seed = String(randomInt(100_000))] = (process.env["SHAPETRACE_ORDER"] ?? "").split(
  ":",
);

/** What repeats the order, or undefined if it is not random. */
export const ORDER = kind === "random" ? `random:${seed}` : undefined;

/** The tests as they are to be run. */
export function inOrder<Test extends { readonly title: string }>(tests: readonly Test[]): Test[] {
  if (ORDER === undefined) {
    return [...tests];
  }
  const place = ({ title }: Test): string =>
    createHash("sha256").update(`${ORDER} ${title}`).digest("hex");
  return tests.toSorted((one, other) => (place(one) < place(other) ? -1 : 1));
}
