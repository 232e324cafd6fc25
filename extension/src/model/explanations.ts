/** Explanations of what a user cannot see. */

/** How a program was started from which nothing was heard. */
export interface Start {
  readonly python: string;
  readonly pythonOptions: readonly string[];
  readonly usesSudo: boolean;
}

/** Options of Python, alone or joined as in `-sI`, that make it pass over PYTHONPATH. */
const ISOLATING = /^-[a-zA-Z]*[EI]/;

/** An explanation, and whether the debug configuration itself is to be changed. */
export interface Explanation {
  readonly text: string;
  readonly isConfigured: boolean;
}

/** Why no shapes come, and what to do: the reason itself where it can be seen. */
export function explainSilence(
  name: string,
  { python, pythonOptions, usesSudo }: Start,
): Explanation {
  const isolating = pythonOptions.find((option) => ISOLATING.test(option));
  if (isolating !== undefined) {
    const text =
      `No shapes from ${name}: Python runs with ${isolating}, which passes over PYTHONPATH, ` +
      "and that is how Shapetrace gets in. Remove the option from the debug configuration.";
    return { text, isConfigured: true };
  }
  if (usesSudo) {
    const text =
      `No shapes from ${name}: sudo drops PYTHONPATH, and that is how Shapetrace gets in. ` +
      `Remove "sudo" from the debug configuration, or allow PYTHONPATH in sudo's env_keep.`;
    return { text, isConfigured: true };
  }
  const who = python === "" ? "" : ` (${python})`;
  const text =
    `No shapes from ${name}: its Python${who} runs, and Shapetrace in it says nothing. ` +
    "That may be because the program is started by another one that drops PYTHONPATH " +
    "(python -I or -E, sudo, conda run, a container), or because Python is too old. " +
    "Debug it with its Python directly, or select another interpreter.";
  return { text, isConfigured: false };
}
