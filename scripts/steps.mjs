/** The tools that look at the source, as commands that this machine has installed. */
import { join } from "node:path";

import { PYTHON, ROOT, run } from "./setup.mjs";

/**
 * One tool's run over the source.
 *
 * @typedef {{ name: string, program: string, options: readonly string[] }} Step
 */

/**
 * @param {string} module
 * @param {...string} options
 * @returns {Step}
 */
export function python(module, ...options) {
  return {
    name: [module, ...options].join(" "),
    program: PYTHON,
    options: ["-m", module, ...options],
  };
}

/**
 * @param {string} file a program in node_modules
 * @param {...string} options
 * @returns {Step}
 */
export function node(file, ...options) {
  const name = file.split("/")[0] ?? file;
  return {
    name: [name, ...options].join(" "),
    program: process.execPath,
    options: [join(ROOT, "node_modules", file), ...options],
  };
}

/**
 * Runs every step, also after one that fails, and returns how many failed.
 *
 * @param {readonly Step[]} steps
 * @returns {number}
 */
export function runAll(steps) {
  const failed = steps.filter(({ name, program, options }) => {
    console.log(`\n> ${name}`);
    return run(program, options) !== 0;
  });
  if (failed.length > 0) {
    console.error(`\nfailed: ${failed.map(({ name }) => name).join(", ")}`);
  }
  return failed.length;
}
