/** How many tests passed, read from what their runners write. */
import { existsSync, readFileSync } from "node:fs";

/**
 * @typedef {object} Totals
 * @property {number} passed
 * @property {number} failed
 * @property {readonly string[]} skipped why, for each
 */

/**
 * Reads a JUnit file. A runner that failed counts as one failure at least, whatever its file says.
 *
 * @param {string} file
 * @param {number} code
 * @returns {Totals}
 */
export function totalsOf(file, code) {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const count = (/** @type {RegExp} */ pattern) => text.match(pattern)?.length ?? 0;
  const reported = count(/<(?:failure|error)\b/g);
  const skipped = [...text.matchAll(/<skipped\b(?:[^>]*?\bmessage="([^"]*)")?/g)].map(
    ([, reason]) => reason ?? "no reason is told",
  );
  const passed = Math.max(0, count(/<testcase\b/g) - reported - skipped.length);
  return { passed, skipped, failed: code === 0 ? reported : Math.max(reported, 1) };
}

/**
 * @param {readonly Totals[]} totals
 * @returns {Totals}
 */
export function sum(totals) {
  const count = (/** @type {"passed" | "failed"} */ key) =>
    totals.reduce((all, total) => all + total[key], 0);
  const skipped = totals.flatMap((total) => total.skipped);
  return { passed: count("passed"), failed: count("failed"), skipped };
}

/** @param {Totals} totals */
export function inWords({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped.length} skipped`;
}

/**
 * Each reason for which tests were skipped, with their number.
 *
 * @param {Totals} totals
 */
export function reasonsOf({ skipped }) {
  return [...new Set(skipped)].map((reason) => {
    const count = skipped.filter((it) => it === reason).length;
    return `${count} ${count === 1 ? "test" : "tests"}: ${reason}`;
  });
}
