/** Other processes of this machine. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

import { commandOf, type Process, readProcesses } from "./model/processList";

/** Returns whether a process with this id is running. */
export function isRunning(id: number): boolean {
  if (!Number.isInteger(id) || id <= 0) {
    return false;
  }
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** The processes that can be seen from here, with their command lines. */
export async function allProcesses(): Promise<Process[]> {
  switch (process.platform) {
    case "linux":
      return fromProc(); // Small machines have no `ps`.
    case "win32":
      return fromCommand("powershell.exe", ["-NoProfile", "-Command", WINDOWS_QUERY]);
    default:
      return fromCommand("ps", ["axww", "-o", "pid=,args="]);
  }
}

const WINDOWS_QUERY =
  "Get-CimInstance Win32_Process | Where-Object CommandLine | " +
  'ForEach-Object { "$($_.ProcessId) $($_.CommandLine)" }';

async function fromCommand(program: string, options: readonly string[]): Promise<Process[]> {
  const { stdout } = await promisify(execFile)(program, options, { maxBuffer: 1 << 24 });
  return readProcesses(stdout);
}

async function fromProc(): Promise<Process[]> {
  const ids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const found = await Promise.all(
    ids.map(async (id) => {
      // Processes come and go meanwhile.
      const content = await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "");
      return { id, command: commandOf(content) };
    }),
  );
  return found.filter(({ command }) => command !== "");
}
