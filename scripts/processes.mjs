/**
 * Scripts that leave nothing behind: a script runs as the child of a supervisor, which does nothing
 * but wait. However the script ends, by itself, by Ctrl-C or by a crash, the supervisor then ends
 * all that it has started.
 *
 * The script itself cannot do that: it waits for other programs without listening for signals, and
 * is gone with the first.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";

/** In the environment of a script and of all that it starts. */
const MARK = "SHAPETRACE_SCRIPT";

export const ENDING_SIGNALS = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);

/** How long what has got the signal from the terminal has to end by itself. */
const GRACE_MILLISECONDS = 1000;

/** How long a process has to end after it was asked to. */
const END_MILLISECONDS = 2000;

/** Whether this process has a supervisor, its own or that of the script that started it. */
export function isSupervised() {
  return process.env[MARK] !== undefined;
}

/**
 * Runs this script again as a child, and returns its exit code when nothing of it is left.
 *
 * @returns {Promise<number>}
 */
export async function supervise() {
  const assignment = { [MARK]: randomUUID() };
  /** @type {Map<number, string>} */
  const started = new Map();
  /** @type {NodeJS.Signals | undefined} */
  let signal;
  const end = (/** @type {NodeJS.Signals} */ name) => {
    if (signal === undefined) {
      signal = name;
      // What has got the signal too may be gone soon, and its children have another parent then.
      notice(started, assignment);
      void passed(GRACE_MILLISECONDS).then(() => endAll(started, assignment));
    }
  };
  for (const name of ENDING_SIGNALS) {
    process.on(name, end);
  }
  if (process.env["npm_lifecycle_event"] !== undefined) {
    // An npm that is killed cannot report it.
    const npm = process.ppid;
    setInterval(() => {
      if (process.ppid !== npm) {
        end("SIGTERM");
      }
    }, GRACE_MILLISECONDS / 4);
  }
  const script = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
    env: { ...process.env, ...assignment },
    stdio: "inherit",
  });
  const code = await ended(script);
  if (signal !== undefined) {
    await allEnded(started, assignment, GRACE_MILLISECONDS);
  }
  await endAll(started, assignment);
  if (signal === undefined && code === null) {
    console.error(`shapetrace: the script was ended by ${script.signalCode}; run it again`);
  }
  return signal === undefined ? (code ?? 1) : exitCodeAfter(signal);
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<number | null>} null where a signal ended it
 */
function ended(child) {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
}

/** @param {NodeJS.Signals} signal */
export function exitCodeAfter(signal) {
  return 128 + constants.signals[signal];
}

/**
 * The ids of the processes with all that in their environment.
 *
 * @param {Readonly<Record<string, string>>} assignments
 * @returns {number[]}
 */
export function processesWith(assignments) {
  const wanted = Object.entries(assignments).map(([key, value]) => `${key}=${value}`);
  return processIds().filter((id) => {
    const environment = readProcess(id, "environ").split("\0");
    return wanted.every((assignment) => environment.includes(assignment));
  });
}

/**
 * Adds the script's processes: by their environment, and by their parents where they were given
 * another environment.
 *
 * @param {Map<number, string>} started each with the time at which it was
 * @param {Readonly<Record<string, string>>} assignment
 */
function notice(started, assignment) {
  const all = new Map(processIds().flatMap((id) => ((it) => (it ? [[id, it]] : []))(stateOf(id))));
  const found = new Set([...processesWith(assignment), ...living(started)]);
  for (let size = -1; size !== found.size;) {
    size = found.size;
    for (const [id, { parent }] of all) {
      if (found.has(parent)) {
        found.add(id);
      }
    }
  }
  for (const id of found) {
    const state = all.get(id);
    if (state !== undefined) {
      started.set(id, state.since);
    }
  }
}

/**
 * Ends the script's processes: those that do not end when asked to are killed.
 *
 * @param {Map<number, string>} started
 * @param {Readonly<Record<string, string>>} assignment
 */
async function endAll(started, assignment) {
  for (const signal of /** @type {const} */ (["SIGTERM", "SIGKILL"])) {
    notice(started, assignment);
    for (const id of living(started)) {
      try {
        process.kill(id, signal);
      } catch {
        // It has ended by itself.
      }
    }
    if (await allEnded(started, assignment, END_MILLISECONDS)) {
      return;
    }
  }
}

/**
 * @param {Map<number, string>} started
 * @param {Readonly<Record<string, string>>} assignment
 * @param {number} milliseconds
 */
async function allEnded(started, assignment, milliseconds) {
  const deadline = Date.now() + milliseconds;
  for (;;) {
    notice(started, assignment);
    if (living(started).length === 0) {
      return true;
    }
    if (Date.now() > deadline) {
      return false;
    }
    await passed(50);
  }
}

/** @param {ReadonlyMap<number, string>} started */
function living(started) {
  return [...started].filter(([id, since]) => stateOf(id)?.since === since).map(([id]) => id);
}

/**
 * @param {number} id
 * @returns {{ parent: number, since: string } | undefined} undefined once it has ended
 */
function stateOf(id) {
  // The program's name comes first, in parentheses, and may have blanks.
  const fields = readProcess(id, "stat").split(") ").at(-1)?.split(" ") ?? [];
  const [state = "Z", parent] = fields;
  const since = fields[19];
  return state === "Z" || since === undefined ? undefined : { parent: Number(parent), since };
}

/** All processes, if the system has files that list them. */
function processIds() {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

/**
 * @param {number} id
 * @param {string} file
 */
export function readProcess(id, file) {
  try {
    return readFileSync(join("/proc", String(id), file), "utf8");
  } catch {
    return ""; // It is gone, or another user's.
  }
}
