/** One script at a time in a folder: a file that holds the id of the process that works there. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";

/**
 * Does the work while holding the lock, after its other holder has finished or died.
 *
 * @template Result
 * @param {string} file
 * @param {(owner: number | undefined) => void} tellWaiting called once, if it has to wait
 * @param {() => Result} work
 * @returns {Result}
 */
export function locked(file, tellWaiting, work) {
  acquire(file, tellWaiting);
  try {
    return work();
  } finally {
    rmSync(file, { force: true });
  }
}

/**
 * As `locked`, for work that others may go on beside.
 *
 * @template Result
 * @param {string} file
 * @param {(owner: number | undefined) => void} tellWaiting called once, if it has to wait
 * @param {() => Promise<Result>} work
 * @returns {Promise<Result>}
 */
export async function lockedWhile(file, tellWaiting, work) {
  acquire(file, tellWaiting);
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

/**
 * @param {string} file
 * @param {(owner: number | undefined) => void} tellWaiting
 */
function acquire(file, tellWaiting) {
  let told = false;
  for (;;) {
    try {
      writeFileSync(file, String(process.pid), { flag: "wx" });
      return;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) {
        throw error;
      }
    }
    const owner = ownerOf(file);
    if (owner !== undefined && !isRunning(owner)) {
      rmSync(file, { force: true });
    } else if (!told) {
      told = true;
      tellWaiting(owner);
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  }
}

/**
 * @param {string} file
 * @returns {number | undefined}
 */
function ownerOf(file) {
  try {
    return Number.parseInt(readFileSync(file, "utf8"), 10) || undefined;
  } catch {
    return undefined; // Gone meanwhile.
  }
}

/** @param {number} id */
function isRunning(id) {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
