/** Other processes of this machine. */

/** Whether a process with this id is there. */
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
