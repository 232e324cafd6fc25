import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { askVersion, hasTorch } from "../../../extension/src/client/python";
import {
  type Asked,
  choose,
  chooseForServer,
  commandOfEnvironment,
  explainChoice,
  type InterpreterSource,
  isSupported,
  parseVersion,
  pathOfEnvironment,
} from "../../../extension/src/model/interpreters";

function found(source: InterpreterSource, minor: number): Asked {
  return { candidate: { command: [`python3.${minor}`], source }, version: [3, minor, 2] };
}

function missing(source: InterpreterSource): Asked {
  return { candidate: { command: ["/gone/python"], source }, failure: "there is no such file" };
}

/** The choices for programs and for the server, in short. */
function choices(...asked: Asked[]): readonly string[] {
  return [choose(asked), chooseForServer(asked)].map((choice) =>
    "interpreter" in choice
      ? `${choice.kind} ${choice.interpreter.command.join(" ")}`
      : choice.kind,
  );
}

describe("the version", () => {
  test("is read from a line of its own", () => {
    assert.deepEqual(parseVersion("shapetrace-python 3.11.2\n"), [3, 11, 2]);
    assert.deepEqual(parseVersion("Hello!\nshapetrace-python 3.14.0\r\n"), [3, 14, 0]);
  });

  test("is none of something else", () => {
    for (const output of ["", "Python 3.11.2", "shapetrace-python 3.11", "3.11.2"]) {
      assert.equal(parseVersion(output), undefined);
    }
  });

  test("has to be 3.11 or newer", () => {
    assert.deepEqual(
      (
        [
          [3, 11, 0],
          [3, 14, 1],
          [3, 10, 9],
          [2, 7, 18],
          [4, 0, 0],
        ] as const
      ).map(isSupported),
      [true, true, false, false, false],
    );
  });
});

describe("choosing", () => {
  test("takes the first that runs", () => {
    const asked = [missing("PATH"), found("PATH", 12), found("PATH", 13)];
    assert.deepEqual(choices(...asked), ["found python3.12", "found python3.12"]);
  });

  test("does not pass over what the user has chosen, but the server can run on another", () => {
    const old = [found("Python extension", 9), found("PATH", 11)];
    assert.deepEqual(choices(...old), ["tooOld python3.9", "found python3.11"]);
    const broken = [missing("setting"), found("PATH", 11)];
    assert.deepEqual(choices(...broken), ["broken", "found python3.11"]);
  });

  test("says so where there is none", () => {
    assert.deepEqual(choices(missing("PATH"), missing("folder")), ["none", "none"]);
    assert.deepEqual(choices(), ["none", "none"]);
  });
});

describe("what is said", () => {
  const explain = (...asked: Asked[]) => {
    const choice = choose(asked);
    assert.ok(choice.kind !== "found");
    return explainChoice(choice);
  };

  test("names the Python, where it comes from and what to do", () => {
    assert.equal(
      explain(found("Python extension", 9)),
      "python3.9 (from the Python extension) is Python 3.9.2; Shapetrace needs 3.11 or newer. " +
        "Select another interpreter.",
    );
    assert.equal(
      explain(missing("setting")),
      "/gone/python (from the setting shapetrace.interpreter) does not run " +
        "(there is no such file). Select another interpreter.",
    );
    assert.match(explain(), /^No Python was found\. Install Python 3\.11 or newer/);
  });
});

describe("other extensions' answers", () => {
  test("of the Python Environments extension", () => {
    const run = { executable: "/env/bin/python", args: ["-X", "dev"] };
    assert.deepEqual(commandOfEnvironment({ execInfo: { run } }), ["/env/bin/python", "-X", "dev"]);
    assert.deepEqual(commandOfEnvironment({ execInfo: { run: { executable: "p" } } }), ["p"]);
  });

  test("of the Python extension", () => {
    const executable = { uri: { fsPath: "/env/bin/python" } };
    assert.equal(pathOfEnvironment({ executable }), "/env/bin/python");
  });

  test("that are something else are passed over", () => {
    for (const answer of [undefined, null, 3, {}, { execInfo: {} }, { executable: {} }]) {
      assert.equal(commandOfEnvironment(answer), undefined);
      assert.equal(pathOfEnvironment(answer), undefined);
    }
  });
});

describe("asking", () => {
  test("a Python that is not there tells why", async () => {
    const asked = await askVersion({ command: ["/no/such/python"], source: "PATH" });
    assert.equal("failure" in asked && asked.failure, "there is no such file");
  });

  test("a program that is no Python is refused", async () => {
    const asked = await askVersion({ command: [process.execPath], source: "PATH" });
    assert.ok("failure" in asked);
  });

  test("a Python that cannot be asked is not said to lack torch", async () => {
    assert.equal(await hasTorch(["/no/such/python"], {}), true);
  });
});
