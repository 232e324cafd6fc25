/**
 * What a trace says, as plain values, and the reading of its JSON.
 *
 * Mirrors `python_backend/shapetrace/events/model.py` and refuses what its codec refuses, in the
 * same words; `tests/contract` holds what both must agree on. Keys that a newer Shapetrace wrote
 * and this one does not know are kept in `extra`.
 */

import {
  type Form,
  anyOf,
  boolean,
  integer,
  type JsonObject,
  listOf,
  mappingOf,
  Mismatch,
  nullable,
  number,
  oneByMark,
  record,
  text,
} from "./json";

/** A size that differed between calls: every value lay between `low` and `high`. */
export interface DimensionRange {
  readonly low: number;
  readonly high: number;
  readonly extra: JsonObject;
}

/** A size: a number, the name of a symbolic size, or the range of the sizes seen. */
export type Dimension = number | string | DimensionRange;

/** The description of one tensor. */
export interface Tensor {
  /** null where the tensor itself cannot say, as strided nested tensors cannot. */
  readonly shape: readonly Dimension[] | null;
  readonly dtype: string;
  readonly device: string;
  readonly requiresGrad: boolean;
  readonly layout: string;
  /** null when the tensor is contiguous, has no strides, or its shape is a range. */
  readonly strides: readonly (number | string)[] | null;
  /** What the program called it: a local variable, or the dotted path of a parameter. */
  readonly name: string | null;
  /** The class: Tensor, Parameter, DTensor, ... */
  readonly kind: string;
  readonly placements: string | null;
  readonly extra: JsonObject;
}

/** A tuple, list, dict or object that holds values. */
export interface Container {
  /** tuple, list, dict, or the name of the class. */
  readonly container: string;
  readonly items: readonly Value[];
  /** One key for each item; null where the items are only numbered. */
  readonly keys: readonly string[] | null;
  /** How many items there were, when that is more than were kept. */
  readonly length: number | null;
  readonly extra: JsonObject;
}

/** A value that is not a tensor and holds none, as short text: `None`, `0.5`, `Cache`. */
export interface Other {
  readonly text: string;
  readonly extra: JsonObject;
}

export type Value = Tensor | Container | Other;

/** One place in a function that was on the stack: lines from 1, UTF-8 byte columns from 0. */
export interface Frame {
  readonly id: number;
  readonly file: string;
  readonly line: number;
  readonly function: string;
  readonly column: number | null;
  readonly endLine: number | null;
  readonly endColumn: number | null;
  readonly extra: JsonObject;
}

/** The exception that ended a call. */
export interface ErrorInfo {
  readonly type: string;
  readonly message: string;
  readonly extra: JsonObject;
}

/** What one tensor held; of several calls in a row, what it held in all of them together. */
export interface Fingerprint {
  readonly dtype: string;
  /** How many numbers it held; a complex one is two. */
  readonly count: number;
  /** Of the finite numbers, as are the next three; null where there are none. */
  readonly mean: number | null;
  readonly rootMeanSquare: number | null;
  readonly low: number | null;
  readonly high: number | null;
  /** Numbers at places that `count` alone decides; as text what is no finite one: `nan`, `-inf`. */
  readonly samples: readonly (number | string)[];
  readonly nan: number;
  readonly positiveInfinity: number;
  readonly negativeInfinity: number;
  /** Of whole numbers and truth values: exact, and whatever their order. */
  readonly checksum: string | null;
  /** How many numbers the moments are of, where that is not all of them. */
  readonly lookedAt: number | null;
  /** Why nothing is known but dtype and count, where that is so. */
  readonly note: string | null;
  readonly extra: JsonObject;
}

/** What came out of one call of an op or module, or of several calls in a row. */
export interface CallFingerprints {
  /** Which one it is of the calls that the op or module call stands for, from 1. */
  readonly first: number;
  /** The same, where it is one call. */
  readonly last: number;
  /** Of each tensor in `outputs` of the op or module call, from left to right. */
  readonly outputs: readonly Fingerprint[];
  /** Of each tensor in `inputs`; only for outermost module calls. */
  readonly inputs: readonly Fingerprint[];
  /** Of several calls: depends on each fingerprint to the last bit, and on their order. */
  readonly digest: string | null;
  readonly extra: JsonObject;
}

/** The calls of one module from one place that had the same inputs and outputs. */
export interface ModuleCall {
  /** Unique among modules and ops together; a smaller id was seen earlier. */
  readonly id: number;
  /** The module call this one was made in. */
  readonly parent: number | null;
  /** Dotted path from the outermost called module, which is itself ''. */
  readonly path: string;
  readonly className: string;
  /** What the module says of itself: `in_features=6, out_features=6`. */
  readonly detail: string;
  /** Which call of this module (from 1) the first of these was. */
  readonly call: number;
  /** How many calls these are; null where forward was called directly and nobody counted. */
  readonly count: number | null;
  /** The place of the call in the program, in code outside torch. */
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  readonly endLine: number | null;
  readonly endColumn: number | null;
  readonly function: string | null;
  /** Frame ids, outermost first, ending in the frame that made the call. */
  readonly stack: readonly number[];
  readonly inputs: readonly Value[];
  /** The parameter of `forward` each input went to. */
  readonly inputNames: readonly string[];
  readonly outputs: readonly Value[];
  /** tuple, list or a class name when `outputs` are the items of one; null for one value. */
  readonly result: string | null;
  /** How many numbers its own and its children's parameters hold. */
  readonly parameters: number;
  readonly error: ErrorInfo | null;
  /** Why nothing inside it was looked at, where that is so. */
  readonly note: string | null;
  /** Whether the program itself made the call, so that the outputs are its expression's value. */
  readonly direct: boolean;
  /** What came out of its calls, in their order; only where that was asked for. */
  readonly fingerprints: readonly CallFingerprints[];
  readonly extra: JsonObject;
}

/** The calls of one torch function from one place that had the same inputs and outputs. */
export interface Op {
  readonly id: number;
  /** The public name: `torch.Tensor.view`, `torch.nn.functional.linear`, `aten.addmm`. */
  readonly name: string;
  /** The call without its tensors: `view(2, 5, 3, 2)`, `cat(dim=1)`, `@`. */
  readonly label: string;
  /** The call with `{0}`, `{1}` where inputs stand: `cat([{0}, {1}], dim=1)`. */
  readonly form: string;
  readonly module: number | null;
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly column: number | null;
  readonly endLine: number | null;
  readonly endColumn: number | null;
  /** Whether the program itself made this call, so that the output is its expression's value. */
  readonly direct: boolean;
  readonly stack: readonly number[];
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Value[];
  readonly result: string | null;
  readonly count: number;
  /** `torch`: a call as the program wrote it. `aten`: a kernel under such a call. */
  readonly level: string;
  /** For a kernel, the op it ran for; null where no recorded op caused it. */
  readonly parent: number | null;
  readonly error: ErrorInfo | null;
  /** The thread's name, where it was not the main one. */
  readonly thread: string | null;
  /** What came out of its calls, in their order; only where that was asked for. */
  readonly fingerprints: readonly CallFingerprints[];
  readonly extra: JsonObject;
}

/** A value that a name had from this place on. */
export interface Variable {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly column: number | null;
  readonly endLine: number | null;
  readonly endColumn: number | null;
  readonly function: string;
  readonly module: number | null;
  readonly tensor: Value;
  /** `assignment`, or `parameter` for an argument of the function (at its first line). */
  readonly kind: string;
  readonly extra: JsonObject;
}

/** Something that ran and was not looked at. */
export interface Coverage {
  readonly reason: string;
  readonly where: string;
  readonly count: number;
  readonly extra: JsonObject;
}

/** The program that ran. */
export interface Run {
  readonly argv: readonly string[];
  readonly python: string;
  readonly torch: string | null;
  readonly pid: number;
  readonly rank: number | null;
  readonly worldSize: number | null;
  /** When recording began, in UTC, as ISO 8601. */
  readonly started: string;
  /** The SHA-256 of each source file as it ran; null where it changed since or has no source. */
  readonly files: ReadonlyMap<string, string | null>;
  /** How many outermost forward passes were looked at. */
  readonly passes: number;
  readonly extra: JsonObject;
}

/** A whole recording. */
export interface Trace {
  readonly run: Run;
  readonly modules: readonly ModuleCall[];
  readonly ops: readonly Op[];
  readonly frames: readonly Frame[];
  readonly variables: readonly Variable[];
  readonly coverage: readonly Coverage[];
  readonly extra: JsonObject;
}

/** Changes when an older Shapetrace could no longer read the file; new keys alone do not. */
export const FORMAT = "shapetrace/1";

/** A document that is no trace, or a damaged or newer one; the message says what to do. */
export class TraceFileError extends Error {
  override readonly name = "TraceFileError";
}

/** The trace that a JSON document stands for. */
export function parseTrace(document: unknown): Trace {
  const found = formatOf(document);
  if (found === undefined) {
    throw new TraceFileError(`this is not a Shapetrace trace; ${WHAT_TO_NAME}`);
  }
  if (!found.startsWith("shapetrace/")) {
    throw new TraceFileError(
      `this is not a Shapetrace trace but ${onOneLine(found)}; ${WHAT_TO_NAME}`,
    );
  }
  if (found !== FORMAT) {
    throw new TraceFileError(
      `this was written by a newer Shapetrace (format ${onOneLine(found)}); update Shapetrace to read it`,
    );
  }
  try {
    return traceForm.read(document);
  } catch (error) {
    if (error instanceof Mismatch) {
      throw new TraceFileError(`this trace is damaged: ${error.message}; record it again`);
    }
    throw error;
  }
}

const WHAT_TO_NAME = "name a file that `shapetrace run -o FILE` or `trace.save(FILE)` wrote";

function formatOf(document: unknown): string | undefined {
  if (typeof document !== "object" || document === null || !("format" in document)) {
    return undefined;
  }
  return typeof document.format === "string" ? document.format : undefined;
}

function onOneLine(content: string): string {
  return /\p{C}/u.test(content) ? JSON.stringify(content) : content;
}

const dimensionRange = record<DimensionRange>({
  low: { key: "low", form: integer },
  high: { key: "high", form: integer },
});

const tensor = record<Tensor>({
  shape: { key: "shape", form: nullable(listOf(anyOf(integer, text, dimensionRange))) },
  dtype: { key: "dtype", form: text },
  device: { key: "device", form: text, otherwise: "cpu" },
  requiresGrad: { key: "requires_grad", form: boolean, otherwise: false },
  layout: { key: "layout", form: text, otherwise: "strided" },
  strides: { key: "strides", form: nullable(listOf(anyOf(integer, text))), otherwise: null },
  name: { key: "name", form: nullable(text), otherwise: null },
  kind: { key: "kind", form: text, otherwise: "Tensor" },
  placements: { key: "placements", form: nullable(text), otherwise: null },
});

const other = record<Other>({ text: { key: "text", form: text } });

const value: Form<Value> = oneByMark<Value>({
  shape: tensor,
  container: { expects: ["an object"], read: (document) => container.read(document) },
  text: other,
});

const container = record<Container>({
  container: { key: "container", form: text },
  items: { key: "items", form: listOf(value) },
  keys: { key: "keys", form: nullable(listOf(text)), otherwise: null },
  length: { key: "length", form: nullable(integer), otherwise: null },
});

const place = {
  column: { key: "column", form: nullable(integer), otherwise: null },
  endLine: { key: "end_line", form: nullable(integer), otherwise: null },
  endColumn: { key: "end_column", form: nullable(integer), otherwise: null },
};

const frame = record<Frame>({
  id: { key: "id", form: integer },
  file: { key: "file", form: text },
  line: { key: "line", form: integer },
  function: { key: "function", form: text },
  ...place,
});

const errorInfo = record<ErrorInfo>({
  type: { key: "type", form: text },
  message: { key: "message", form: text },
});

const fingerprint = record<Fingerprint>({
  dtype: { key: "dtype", form: text },
  count: { key: "count", form: integer },
  mean: { key: "mean", form: nullable(number), otherwise: null },
  rootMeanSquare: { key: "root_mean_square", form: nullable(number), otherwise: null },
  low: { key: "low", form: nullable(number), otherwise: null },
  high: { key: "high", form: nullable(number), otherwise: null },
  samples: { key: "samples", form: listOf(anyOf(number, text)), otherwise: [] },
  nan: { key: "nan", form: integer, otherwise: 0 },
  positiveInfinity: { key: "positive_infinity", form: integer, otherwise: 0 },
  negativeInfinity: { key: "negative_infinity", form: integer, otherwise: 0 },
  checksum: { key: "checksum", form: nullable(text), otherwise: null },
  lookedAt: { key: "looked_at", form: nullable(integer), otherwise: null },
  note: { key: "note", form: nullable(text), otherwise: null },
});

const callFingerprints = record<CallFingerprints>({
  first: { key: "first", form: integer },
  last: { key: "last", form: integer },
  outputs: { key: "outputs", form: listOf(fingerprint) },
  inputs: { key: "inputs", form: listOf(fingerprint), otherwise: [] },
  digest: { key: "digest", form: nullable(text), otherwise: null },
});

const fingerprints = {
  fingerprints: { key: "fingerprints", form: listOf(callFingerprints), otherwise: [] },
};

const moduleCall = record<ModuleCall>({
  id: { key: "id", form: integer },
  parent: { key: "parent", form: nullable(integer), otherwise: null },
  path: { key: "path", form: text },
  className: { key: "class", form: text },
  detail: { key: "detail", form: text },
  call: { key: "call", form: integer },
  count: { key: "count", form: nullable(integer), otherwise: null },
  file: { key: "file", form: nullable(text), otherwise: null },
  line: { key: "line", form: nullable(integer), otherwise: null },
  ...place,
  function: { key: "function", form: nullable(text), otherwise: null },
  stack: { key: "stack", form: listOf(integer) },
  inputs: { key: "inputs", form: listOf(value) },
  inputNames: { key: "input_names", form: listOf(text) },
  outputs: { key: "outputs", form: listOf(value) },
  result: { key: "result", form: nullable(text), otherwise: null },
  parameters: { key: "parameters", form: integer, otherwise: 0 },
  error: { key: "error", form: nullable(errorInfo), otherwise: null },
  note: { key: "note", form: nullable(text), otherwise: null },
  direct: { key: "direct", form: boolean, otherwise: true },
  ...fingerprints,
});

const op = record<Op>({
  id: { key: "id", form: integer },
  name: { key: "name", form: text },
  label: { key: "label", form: text },
  form: { key: "form", form: text },
  module: { key: "module", form: nullable(integer), otherwise: null },
  function: { key: "function", form: text },
  file: { key: "file", form: text },
  line: { key: "line", form: integer },
  ...place,
  direct: { key: "direct", form: boolean },
  stack: { key: "stack", form: listOf(integer) },
  inputs: { key: "inputs", form: listOf(tensor) },
  outputs: { key: "outputs", form: listOf(value) },
  result: { key: "result", form: nullable(text), otherwise: null },
  count: { key: "count", form: integer },
  level: { key: "level", form: text, otherwise: "torch" },
  parent: { key: "parent", form: nullable(integer), otherwise: null },
  error: { key: "error", form: nullable(errorInfo), otherwise: null },
  thread: { key: "thread", form: nullable(text), otherwise: null },
  ...fingerprints,
});

const variable = record<Variable>({
  name: { key: "name", form: text },
  file: { key: "file", form: text },
  line: { key: "line", form: integer },
  ...place,
  function: { key: "function", form: text },
  module: { key: "module", form: nullable(integer), otherwise: null },
  tensor: { key: "tensor", form: value },
  kind: { key: "kind", form: text, otherwise: "assignment" },
});

const coverage = record<Coverage>({
  reason: { key: "reason", form: text },
  where: { key: "where", form: text },
  count: { key: "count", form: integer },
});

const run = record<Run>({
  argv: { key: "argv", form: listOf(text) },
  python: { key: "python", form: text },
  torch: { key: "torch", form: nullable(text), otherwise: null },
  pid: { key: "pid", form: integer },
  rank: { key: "rank", form: nullable(integer), otherwise: null },
  worldSize: { key: "world_size", form: nullable(integer), otherwise: null },
  started: { key: "started", form: text },
  files: { key: "files", form: mappingOf(nullable(text)) },
  passes: { key: "passes", form: integer, otherwise: 0 },
});

const traceForm = record<Trace>(
  {
    run: { key: "run", form: run },
    modules: { key: "modules", form: listOf(moduleCall), otherwise: [] },
    ops: { key: "ops", form: listOf(op), otherwise: [] },
    frames: { key: "frames", form: listOf(frame), otherwise: [] },
    variables: { key: "variables", form: listOf(variable), otherwise: [] },
    coverage: { key: "coverage", form: listOf(coverage), otherwise: [] },
  },
  ["format"],
);
