/** The mark by which the session of a running debug configuration is found again. */
import type { SessionMode } from "../protocol.generated";
import { type Configuration, MARK, objectOf } from "./launchEnvironment";

export interface Mark {
  readonly mode: SessionMode;
  /** Given once the language server awaits the program. */
  readonly session?: string;
}

export function markOf(configuration: Configuration): Mark | undefined {
  const { mode, session } = objectOf(configuration[MARK]);
  if (mode !== "debug" && mode !== "forwardPass") {
    return undefined;
  }
  return typeof session === "string" ? { mode, session } : { mode };
}

export function withMark(configuration: Configuration, mark: Mark): Configuration {
  return { ...configuration, [MARK]: mark };
}
