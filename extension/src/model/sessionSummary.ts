/** The summary of all watched programs, for the status bar. */
import type { SessionState } from "../protocol.generated";
import { assertNever } from "./assertNever";

/** The newest word on one program. */
export interface Program {
  readonly state: SessionState;
  readonly message: string;
  readonly passes: number;
  readonly calls: number;
  readonly dropped: number;
  readonly rank: number | null;
}

/** One debug session with its programs. */
export interface SessionFacts {
  readonly name: string;
  readonly isOpen: boolean;
  /** Nothing was heard from its program in time. */
  readonly isSilent: boolean;
  readonly programs: readonly Program[];
}

/** Further facts beside the sessions. */
export interface Surroundings {
  /** Why there is no language server. */
  readonly serverFailure?: string | undefined;
  /** The names of variables that are watched. */
  readonly watched?: readonly string[];
}

export type Mood = "off" | "waiting" | "recording" | "error";

export interface Summary {
  readonly mood: Mood;
  /** A few words for the bar. */
  readonly text: string;
  /** Sentences, one for each program that has something to say. */
  readonly details: readonly string[];
}

/**
 * The summary of all sessions; those that are over only count while nothing else is running.
 * Variables may be watched in programs that never call torch: where there are no calls, they count.
 */
export function summarize(
  sessions: readonly SessionFacts[],
  { serverFailure, watched = [] }: Surroundings = {},
): Summary {
  if (serverFailure !== undefined) {
    return { mood: "error", text: "error", details: [serverFailure] };
  }
  const open = sessions.filter((session) => session.isOpen);
  const shown = open.length > 0 ? open : sessions.slice(-1);
  const details = shown.flatMap((session) => detailsOf(session));
  const programs = shown.flatMap((session) => session.programs);
  if (programs.some(({ state }) => state === "failed" || state === "unsupported")) {
    return { mood: "error", text: "error", details };
  }
  if (open.some((session) => session.isSilent)) {
    return { mood: "error", text: "no connection", details };
  }
  const calls = countOf(programs);
  const mood = open.length === 0 ? "off" : calls === 0 ? "waiting" : "recording";
  if (calls === 0) {
    return watched.length === 0
      ? { mood, text: mood, details }
      : { mood, text: watchedInWords(watched, mood), details: [...details, listOf(watched)] };
  }
  const recording = programs.filter((program) => program.calls > 0 && program.state !== "gone");
  const many = open.length > 0 && recording.length > 1 ? `, ${recording.length} processes` : "";
  return { mood, text: callsInWords(calls) + many, details };
}

/** A program's state in words. */
export function stateInWords({ state, message, passes, calls, dropped }: Program): string {
  const counts = `${passes} forward ${passes === 1 ? "pass" : "passes"}, ${callsInWords(calls)}`;
  const lost = dropped === 0 ? "" : `; ${dropped} messages with calls could not be sent`;
  const why = message === "" ? "" : `: ${message}`;
  switch (state) {
    case "connected":
      return "connected";
    case "waiting":
      return "waiting for the program to import torch";
    case "recording":
      return `recording (${counts}${lost})`;
    case "settled":
      return `nothing new: recording pauses (${counts}${lost})`;
    case "complete":
      return `the forward pass is recorded (${counts}${lost})`;
    case "noForward":
      return `the program ended without a forward pass${why}`;
    case "unsupported":
      return `not supported${why}`;
    case "failed":
      return `failed${why}`;
    case "gone":
      return `ended (${counts}${lost})`;
    default:
      return assertNever(state);
  }
}

function detailsOf({ name, isSilent, programs }: SessionFacts): string[] {
  const silent = isSilent ? [`${name}: no connection to the program`] : [];
  // Of many that came and went, such as those that load data, only the sum is of interest.
  const over = programs.filter(({ state }) => state === "gone");
  const isSummed = programs.length > MOST_PROGRAMS && over.length > 1;
  const shown = isSummed ? programs.filter(({ state }) => state !== "gone") : programs;
  const ended = isSummed
    ? [`${name}: ${over.length} processes ended (${callsInWords(countOf(over))})`]
    : [];
  return [
    ...silent,
    ...shown.map((program) => `${name}${rankInWords(program)}: ${stateInWords(program)}`),
    ...ended,
  ];
}

/** Programs of a session that get a line each. */
const MOST_PROGRAMS = 8;

function rankInWords({ rank }: Program): string {
  return rank === null ? "" : `, rank ${rank}`;
}

function countOf(programs: readonly Program[]): number {
  return programs.reduce((sum, { calls }) => sum + calls, 0);
}

function watchedInWords({ length }: readonly string[], mood: Mood): string {
  const variables = length === 1 ? "1 variable" : `${length} variables`;
  return mood === "off" ? `${variables} watched` : `watching ${variables}`;
}

function listOf(names: readonly string[]): string {
  return `Watched: ${names.join(", ")}`;
}

function callsInWords(calls: number): string {
  return calls === 1 ? "1 call" : `${calls} calls`;
}
