import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { parseTrace, TraceFileError } from "../../../extension/src/model/trace";

const CONTRACT = join(import.meta.dirname, "../../contract");

interface Refused {
  readonly name: string;
  readonly document: unknown;
  readonly message: string;
}

function read(file: string): unknown {
  return JSON.parse(readFileSync(join(CONTRACT, file), "utf8"));
}

/** What of a JSON document the parsed value does not show, each as the path to it. */
function lost(document: unknown, parsed: unknown, place = ""): string[] {
  if (Array.isArray(document)) {
    const items: readonly unknown[] = document;
    return items.flatMap((item, position) =>
      lost(item, (parsed as readonly unknown[])[position], `${place}[${position}]`),
    );
  }
  if (typeof document === "object" && document !== null) {
    return Object.entries(document).flatMap(([key, item]) => {
      if (parsed instanceof Map) {
        return lost(item, parsed.get(key), `${place}.${key}`);
      }
      const { extra, ...known } = parsed as Record<string, unknown>;
      const name = key === "class" ? "className" : key.replace(/_([a-z])/g, upperCase);
      const holder = name in known ? known : (extra as Record<string, unknown>);
      return lost(item, holder[name in known ? name : key], `${place}.${key}`);
    });
  }
  return document === parsed ? [] : [place];
}

function upperCase(_: string, letter: string): string {
  return letter.toUpperCase();
}

/** The places of all `extra` that is not empty. */
function extras(value: unknown, place = "trace"): string[] {
  if (typeof value !== "object" || value === null) {
    return [];
  }
  return Object.entries(value).flatMap(([name, item]: [string, unknown]) => {
    const here = `${place}.${name}`;
    if (name !== "extra") {
      return extras(item, here);
    }
    return Object.keys(item as object).length === 0 ? [] : [here];
  });
}

describe("the samples", () => {
  const samples = readdirSync(CONTRACT).filter((file) => /^trace_.*\.json$/.test(file));
  assert.ok(samples.length >= 7);
  for (const file of samples) {
    test(`${file} loses nothing`, () => {
      const { format, ...content } = read(file) as Record<string, unknown>;
      assert.equal(format, "shapetrace/1");
      assert.deepEqual(lost(content, parseTrace({ format, ...content })), []);
    });
  }

  test("what is lost is noticed", () => {
    const document = read("trace_ordinary.json");
    const trace = parseTrace(document);
    const [first, ...rest] = trace.ops;
    assert.ok(first);
    const altered = { ...trace, ops: [{ ...first, endColumn: 7 }, ...rest] };
    assert.deepEqual(lost({ ops: (document as { ops: unknown }).ops }, altered), [
      ".ops[0].end_column",
    ]);
  });

  test("every key of the sample of everything is known", () => {
    assert.deepEqual(extras(parseTrace(read("trace_everything.json"))), []);
  });

  test("unknown keys are kept at every level", () => {
    const trace = parseTrace(read("trace_newer_minor.json"));
    assert.deepEqual(trace.extra, { summary: { nested: [1, 2.5, null, true, "x"] } });
    assert.deepEqual(trace.run.extra, { host: "workstation" });
    assert.deepEqual(trace.ops[0]?.inputs[0]?.extra, { memory: { bytes: 24 } });
  });
});

test("a trace reads as plain values", () => {
  const trace = parseTrace(read("trace_ordinary.json"));
  const [root, first] = trace.modules;
  assert.equal(root?.className, "Net");
  assert.deepEqual([root.parent, root.path, root.parameters, root.note], [null, "", 99, null]);
  assert.deepEqual([first?.path, first?.inputNames, first?.count], ["layers.0", ["input"], 1]);
  assert.deepEqual(trace.ops[4]?.outputs[0], {
    shape: [4, 3],
    dtype: "float32",
    device: "cpu",
    requiresGrad: true,
    layout: "strided",
    strides: [5, 1],
    name: null,
    kind: "Tensor",
    placements: null,
    extra: {},
  });
  assert.deepEqual(
    trace.ops.map((op) => [op.label, op.level, op.parent, op.count]),
    [
      ["linear", "torch", null, 1],
      ["relu()", "torch", null, 1],
      ["linear", "torch", null, 3],
      ["addmm", "aten", 6, 3],
      ["[:, :3]", "torch", null, 1],
    ],
  );
});

test("what is left out has its default", () => {
  const run = {
    argv: [],
    python: "3.11",
    torch: null,
    pid: 1,
    started: "2026-03-01T09:30:00Z",
    files: {},
  };
  const trace = parseTrace({
    format: "shapetrace/1",
    run,
    ops: [
      {
        id: 1,
        name: "torch.relu",
        label: "relu",
        form: "relu({0})",
        function: "f",
        file: "a.py",
        line: 1,
        direct: true,
        stack: [],
        inputs: [{ shape: [2], dtype: "float32" }],
        outputs: [{ container: "tuple", items: [] }, { text: "None" }],
        count: 1,
      },
    ],
  });
  assert.deepEqual(trace.run, {
    ...run,
    files: new Map(),
    rank: null,
    worldSize: null,
    passes: 0,
    extra: {},
  });
  assert.deepEqual(trace.coverage, []);
  const [op] = trace.ops;
  assert.ok(op);
  assert.deepEqual([op.level, op.module, op.column, op.error], ["torch", null, null, null]);
  assert.deepEqual(op.outputs, [
    { container: "tuple", items: [], keys: null, length: null, extra: {} },
    { text: "None", extra: {} },
  ]);
  assert.equal(op.inputs[0]?.kind, "Tensor");
});

describe("a document that is refused", () => {
  const cases = read("refused_traces.json") as readonly Refused[];
  assert.ok(cases.length >= 20);
  for (const { name, document, message } of cases) {
    test(name, () => {
      assert.throws(
        () => parseTrace(document),
        (error) => error instanceof TraceFileError && error.message === message,
        message,
      );
    });
  }
});

test("a refusal is one line", () => {
  assert.throws(() => parseTrace({ format: "shapetrace/\n9" }), {
    message:
      'this was written by a newer Shapetrace (format "shapetrace/\\n9"); ' +
      "update Shapetrace to read it",
  });
});
