/** The texts for two compared traces, as plain data. */
import { fileName } from "./paths";

/** A difference, and its line in either text. */
export interface ShownDifference {
  readonly kind: string;
  readonly title: string;
  readonly detail: string;
  readonly left: number;
  readonly right: number;
}

export interface ShownComparison {
  readonly differences: readonly ShownDifference[];
  /** Which of them is the first that matters. */
  readonly first: number | null;
}

/** The name of the trace that was recorded in this window. */
export const RECORDED = "this session";

/** The names of both sides: of files, their folders too where the names are alike. */
export function sideNames(a: string | null, b: string | null): readonly [string, string] {
  const names = [a, b].map((path) => (path === null ? RECORDED : fileName(path)));
  const [left = "", right = ""] = names;
  if (a === null || b === null || left !== right) {
    return [left, right];
  }
  return [withFolder(a), withFolder(b)];
}

function withFolder(path: string): string {
  return path.split(/[\\/]/).slice(-2).join("/");
}

/** One row of the list of differences. */
export interface DifferenceRow {
  readonly label: string;
  readonly description: string;
  readonly detail: string;
  readonly position: number;
}

/** The differences as rows, with the first that matters marked. */
export function differenceRows({ differences, first }: ShownComparison): readonly DifferenceRow[] {
  return differences.map((call, position) => ({
    label: `${position === first ? "$(arrow-right) " : ""}${call.title}`,
    description: position === first ? `${call.kind} · first` : call.kind,
    detail: call.detail,
    position,
  }));
}

/** The difference after or before another; from the last on to the first, and back. */
export function stepped(position: number, direction: 1 | -1, many: number): number {
  return (position + direction + many) % many;
}

/** The difference that is nearest to a line of either text; of several on it the one shown last. */
export function differenceAt(
  differences: readonly Pick<ShownDifference, "left" | "right">[],
  side: "left" | "right",
  line: number,
  last: number,
): number {
  if (differences[last]?.[side] === line) {
    return last;
  }
  const distances = differences.map((call) => Math.abs(call[side] - line));
  return Math.max(distances.indexOf(Math.min(...distances)), 0);
}

/** `3 of 41: layers.0  softmax: output 0.06 apart`. */
export function positionText({ differences }: ShownComparison, position: number): string {
  const call = differences[position];
  const text = call === undefined ? "" : `: ${call.title}: ${call.detail}`;
  return `${position + 1} of ${differences.length}${text}`;
}
