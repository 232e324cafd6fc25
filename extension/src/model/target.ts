/** The targets of Trace Forward Pass. */
import { fileName } from "./paths";

export type Target =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "module"; readonly module: string; readonly folder: string | null }
  | { readonly kind: "configuration"; readonly name: string; readonly folder: string | null };

/** A target as it was stored; undefined for anything else. */
export function readTarget(stored: unknown): Target | undefined {
  if (typeof stored !== "object" || stored === null) {
    return undefined;
  }
  const { kind, path, module, name, folder } = stored as Record<string, unknown>;
  const where = typeof folder === "string" ? folder : null;
  switch (kind) {
    case "file":
      return typeof path === "string" ? { kind, path } : undefined;
    case "module":
      return typeof module === "string" ? { kind, module, folder: where } : undefined;
    case "configuration":
      return typeof name === "string" ? { kind, name, folder: where } : undefined;
    default:
      return undefined;
  }
}

/** A target as a user knows it. */
export function describeTarget(target: Target): string {
  switch (target.kind) {
    case "file":
      return fileName(target.path);
    case "module":
      return `python -m ${target.module}`;
    case "configuration":
      return target.name;
  }
}

/** Returns whether two targets are equal. */
export function isSameTarget(one: Target, other: Target): boolean {
  return JSON.stringify(readTarget(one)) === JSON.stringify(readTarget(other));
}

/** Whether a launch configuration can be traced: it starts a Python program of its own. */
export function isTraceable(configuration: Readonly<Record<string, unknown>>): boolean {
  const { type, request, name, purpose } = configuration;
  return (
    typeof name === "string" &&
    typeof type === "string" &&
    TRACEABLE_TYPES.includes(type) &&
    request === "launch" &&
    purpose === undefined
  );
}

const TRACEABLE_TYPES = ["shapetrace", "debugpy", "python"];

/** The decision on a request to trace the file in the editor. */
export type Plan =
  | { readonly kind: "run"; readonly target: Target; readonly isRemembered: boolean }
  | { readonly kind: "ask" };

/**
 * The file in the editor is what to run if it does something when run. If not, it is most often the
 * model of what was chosen before.
 */
export function plan(
  active: { readonly path: string; readonly hasEntryPoint: boolean } | undefined,
  remembered: Target | undefined,
  remembersActive: boolean,
): Plan {
  if (remembered !== undefined && (remembersActive || active?.hasEntryPoint !== true)) {
    return { kind: "run", target: remembered, isRemembered: true };
  }
  return active?.hasEntryPoint === true
    ? { kind: "run", target: { kind: "file", path: active.path }, isRemembered: false }
    : { kind: "ask" };
}
