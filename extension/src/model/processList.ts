/** The processes of a machine, as a list to choose one from. */

export interface Process {
  readonly id: number;
  /** The command line. */
  readonly command: string;
}

/** Reads lines of `ps`: a number and a command each. */
export function readProcesses(output: string): Process[] {
  return output.split("\n").flatMap((line) => {
    const [, id, command] = /^\s*(\d+)\s+(\S.*?)\s*$/.exec(line) ?? [];
    return id === undefined || command === undefined ? [] : [{ id: Number(id), command }];
  });
}

/** Reads a file of Linux's `/proc/<id>/cmdline`. */
export function commandOf(content: string): string {
  return content.replaceAll("\0", " ").trim();
}

/** Those that may be Python programs: the newest first, without what debuggers start for themselves. */
export function pythonProcesses(processes: readonly Process[]): Process[] {
  return processes
    .filter(({ command }) => PYTHON.test(command) && !HELPER.test(command))
    .sort((one, other) => other.id - one.id);
}

/** The program with its arguments, without the interpreter, as the user knows it. */
export function programOf({ command }: Process): string {
  const words = command.split(/\s+/).slice(1);
  while (words[0]?.startsWith("-") === true && words[0] !== "-m" && words[0] !== "-c") {
    words.shift();
  }
  const program = words.join(" ");
  return program === "" ? command : program;
}

const PYTHON = /^"?(?:\S*[\\/])?(?:i?python[\d.]*w?|pypy[\d.]*|torchrun)(?:\.exe)?"?(?:\s|$)/i;
const HELPER = /shapetrace\.server|debugpy[\\/]adapter|debugpy[\\/]launcher|resource_tracker/;
