import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import {
  CAPTURE_PATHS,
  CAPTURE_PROBLEM,
  captureProblem,
  CHECK_PATH,
  WANT_CAPTURES,
} from "../../../extension/src/captureProtocol";
import { type Compare, COMPARE } from "../../../extension/src/compareProtocol";
import {
  CHECK_WATCH,
  WANT_WATCHES,
  WATCH_AT,
  WATCH_PROBLEM,
  watchProblem,
} from "../../../extension/src/watchProtocol";
import { SETTING_CHOICES, SETTING_DEFAULTS } from "../../../extension/src/contributions";
import { Mismatch } from "../../../extension/src/model/json";
import {
  CALLS,
  CANCEL_EVALUATION,
  CLEAR,
  CLOSE_SESSION,
  type DocumentPosition,
  EXPORT,
  type Export,
  EXPORT_FORMATS,
  FOCUS,
  type Focus,
  type InitializationOptions,
  NODE_KINDS,
  INLINE_VALUES,
  type Lines,
  OPEN_SESSION,
  type OpenSession,
  PIN,
  PIN_CHANGED,
  pinned,
  PLACE,
  type Request,
  SESSION_STATES,
  SHOW_HINTS,
  STATUS,
  status,
  STEP_CALL,
  type StepCall,
  STORY,
  TRACE_CHANGED,
  TREE,
  TREE_PATH,
  type TreePathQuestion,
  type TreeQuestion,
  WAKE,
} from "../../../extension/src/protocol";

const SAMPLES = join(import.meta.dirname, "../../contract/editor");

interface Sample {
  readonly file: string;
  readonly kind: "request" | "notification";
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
}

const samples = readdirSync(SAMPLES).map((file) => {
  const text = readFileSync(join(SAMPLES, file), "utf8");
  return { file, ...(JSON.parse(text) as Omit<Sample, "file">) };
});

const REQUESTS: readonly Pick<Request<never, unknown>, "method" | "result">[] = [
  OPEN_SESSION,
  CLOSE_SESSION,
  CLEAR,
  EXPORT,
  WAKE,
  CANCEL_EVALUATION,
  TREE,
  TREE_PATH,
  STORY,
  PLACE,
  CALLS,
  PIN,
  STEP_CALL,
  FOCUS,
  INLINE_VALUES,
  CAPTURE_PATHS,
  CHECK_PATH,
  COMPARE,
  WATCH_AT,
  CHECK_WATCH,
];

/** The keys of parameters; the compiler sees that none is missing and none is too many. */
function keysOf<Parameters>(keys: Readonly<Record<keyof Parameters, true>>): readonly string[] {
  return Object.keys(keys);
}

const POSITION = { uri: true, line: true, character: true } as const;

const SENT: Readonly<Record<string, readonly string[]>> = {
  [OPEN_SESSION.method]: keysOf<OpenSession>({
    ...{ session: true, name: true, mode: true, token: true, port: true },
  }),
  [EXPORT.method]: keysOf<Export>({ path: true, session: true, format: true }),
  [TREE.method]: keysOf<TreeQuestion>({ parent: true, filter: true, offset: true, limit: true }),
  [TREE_PATH.method]: keysOf<TreePathQuestion>({ ...POSITION, near: true, filter: true }),
  [CALLS.method]: keysOf<DocumentPosition>(POSITION),
  [STEP_CALL.method]: keysOf<StepCall>({ ...POSITION, direction: true }),
  [FOCUS.method]: keysOf<Focus>({
    ...{ session: true, process: true, call: true, reached: true },
    ...{ file: true, function: true, line: true, outer: true },
    ...{ variables: true, unbound: true },
  }),
  [INLINE_VALUES.method]: keysOf<Lines>({ uri: true, first: true, last: true }),
  [CAPTURE_PATHS.method]: keysOf<DocumentPosition & { node: string }>({ ...POSITION, node: true }),
  [CHECK_PATH.method]: ["path"],
  [COMPARE.method]: keysOf<Compare>({ a: true, b: true }),
  [WATCH_AT.method]: keysOf<DocumentPosition>(POSITION),
  [CHECK_WATCH.method]: ["name"],
};

function of(method: string): readonly Sample[] {
  return samples.filter((sample) => sample.method === method);
}

describe("requests", () => {
  for (const { method, result } of REQUESTS) {
    test(`${method} has samples whose results are read whole`, () => {
      assert.ok(of(method).length > 0);
      for (const sample of of(method)) {
        assert.equal(sample.kind, "request");
        const read = result.read(sample.result);
        assert.deepEqual(without(read), sample.result, sample.file);
      }
    });
  }

  test("open a session anew or once more", () => {
    const keys = of(OPEN_SESSION.method).map(({ params }) => Object.keys(params).sort());
    const anew = ["mode", "name", "session"];
    assert.deepEqual(keys.sort(byLength), [anew, [...anew, "port", "token"].sort()]);
  });

  test("export in the formats that there are", () => {
    for (const { params } of of(EXPORT.method)) {
      assert.ok((EXPORT_FORMATS as readonly unknown[]).includes(params["format"]));
    }
  });

  test("there are nodes of every kind", () => {
    const kinds = of(TREE.method).flatMap((sample) =>
      TREE.result.read(sample.result).nodes.map(({ kind }) => kind),
    );
    assert.deepEqual([...new Set(kinds)].sort(), [...NODE_KINDS].sort());
  });

  test("refuse results that are something else", () => {
    assert.throws(() => OPEN_SESSION.result.read({ port: "40123", token: "" }), {
      constructor: Mismatch,
      message: "port should be a whole number, not text",
    });
    assert.throws(() => CLEAR.result.read({}), Mismatch);
  });
});

describe("parameters", () => {
  for (const [method, keys] of Object.entries(SENT)) {
    test(`of ${method} have the keys of the samples`, () => {
      const found = new Set(of(method).flatMap(({ params }) => Object.keys(params)));
      assert.deepEqual([...found].sort(), [...keys].sort());
    });
  }
});

describe("statuses", () => {
  test("there is a sample of every state, read whole", () => {
    const states = of(STATUS).map((sample) => {
      const read = status.read(sample.params);
      assert.equal(sample.kind, "notification");
      assert.deepEqual(without(read), sample.params, sample.file);
      return read.state;
    });
    assert.deepEqual([...states].sort(), [...SESSION_STATES].sort());
  });

  test("keep what a newer server adds", () => {
    const [sample] = of(STATUS);
    assert.deepEqual(status.read({ ...sample?.params, node: "a" }).extra, { node: "a" });
  });

  test("refuse a state that is none", () => {
    const [sample] = of(STATUS);
    assert.throws(() => status.read({ ...sample?.params, state: "asleep" }), {
      message: /^state should be one of connected, .*, not "asleep"$/,
    });
  });
});

describe("what the server is told", () => {
  test("settings have the keys and values of the extension's own", () => {
    for (const { params } of [...of("workspace/didChangeConfiguration"), ...of("initialize")]) {
      const settings = flat(settingsOf(params));
      for (const [key, value] of Object.entries(settings)) {
        const setting = key as keyof typeof SETTING_DEFAULTS;
        assert.equal(typeof value, typeof SETTING_DEFAULTS[setting], key);
        const choices: readonly unknown[] | undefined = SETTING_CHOICES[setting];
        assert.ok(choices?.includes(value) ?? true, key);
      }
      assert.equal(Object.keys(settings).length, 5);
    }
  });

  test("whether hints are shown", () => {
    assert.deepEqual(
      of(SHOW_HINTS).map(({ params }) => params),
      [{ visible: false }],
    );
  });

  test("which values are to be captured", () => {
    const [wanted] = of(WANT_CAPTURES);
    assert.deepEqual(Object.keys(wanted?.params ?? {}), ["paths"]);
    for (const { params } of of("initialize")) {
      const { initializationOptions } = params as { initializationOptions: InitializationOptions };
      assert.deepEqual(Object.keys(initializationOptions).sort(), [
        "captures",
        "settings",
        "storage",
        "watches",
      ]);
    }
  });

  test("a problem of captured values is read whole", () => {
    for (const { kind, params } of of(CAPTURE_PROBLEM)) {
      assert.equal(kind, "notification");
      assert.deepEqual(without(captureProblem.read(params)), params);
    }
  });

  test("which variables are to be watched", () => {
    const [wanted] = of(WANT_WATCHES);
    assert.deepEqual(Object.keys(wanted?.params ?? {}), ["names"]);
  });

  test("a problem of watched variables is read whole", () => {
    assert.ok(of(WATCH_PROBLEM).length > 0);
    for (const { kind, params } of of(WATCH_PROBLEM)) {
      assert.equal(kind, "notification");
      assert.deepEqual(without(watchProblem.read(params)), params);
    }
  });

  test("what is pinned is read whole", () => {
    for (const { kind, params } of of(PIN_CHANGED)) {
      assert.equal(kind, "notification");
      assert.deepEqual(without(pinned.read(params)), params);
    }
  });

  test("every sample is of a message that there is", () => {
    const known = [
      ...REQUESTS.map(({ method }) => method),
      ...[
        STATUS,
        SHOW_HINTS,
        TRACE_CHANGED,
        PIN_CHANGED,
        WANT_CAPTURES,
        CAPTURE_PROBLEM,
        WANT_WATCHES,
        WATCH_PROBLEM,
        "initialize",
        "workspace/didChangeConfiguration",
      ],
    ];
    const unknown = samples.filter(({ method }) => !known.includes(method));
    assert.deepEqual(unknown, []);
  });
});

function settingsOf(params: Sample["params"]): unknown {
  const { initializationOptions, settings } = params as {
    initializationOptions?: { settings: unknown };
    settings?: { shapetrace: unknown };
  };
  return initializationOptions?.settings ?? settings?.shapetrace;
}

function flat(settings: unknown, prefix = ""): Record<string, unknown> {
  const entries = Object.entries(settings as Record<string, unknown>);
  return Object.fromEntries(
    entries.flatMap(([key, value]): [string, unknown][] =>
      typeof value === "object"
        ? Object.entries(flat(value, `${prefix}${key}.`))
        : [[prefix + key, value]],
    ),
  );
}

function without(read: unknown): unknown {
  if (Array.isArray(read)) {
    return read.map(without);
  }
  if (typeof read !== "object" || read === null) {
    return read;
  }
  const { extra, ...rest } = read as Record<string, unknown>;
  assert.deepEqual(extra, {});
  return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, without(value)]));
}

function byLength(one: readonly string[], other: readonly string[]): number {
  return one.length - other.length;
}
