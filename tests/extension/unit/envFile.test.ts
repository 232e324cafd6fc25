import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { parseEnvFile } from "../../../extension/src/model/envFile";

describe("an envFile", () => {
  const cases: readonly (readonly [string, string, Readonly<Record<string, string>>])[] = [
    ["plain lines", "A=1\nB_2=two words \r\n", { A: "1", B_2: "two words" }],
    ["nothing", "", {}],
    ["an empty value", "A=\nB=''", { A: "", B: "" }],
    ["comments", "# A=1\nB=2 # two\nC=a#b\n  # C=3", { B: "2", C: "a#b" }],
    [
      "quotes",
      `A="x # y"\nB='\${HOME}\\n'\nC="l1\\nl2"`,
      { A: "x # y", B: "${HOME}\\n", C: "l1\nl2" },
    ],
    ["an equals sign in a value", "A=b=c", { A: "b=c" }],
    ["export, and blanks", "export A = 1\n\tB\t=\t2", { A: "1", B: "2" }],
    ["a byte order mark", "\uFEFFA=1", { A: "1" }],
    ["what is no line of it", "hello\n=1\n1A=2\nA=1", { A: "1" }],
    ["references further up", "A=/a\nB=${A}/b:${A}", { A: "/a", B: "/a/b:/a" }],
    ["references to the surroundings", "P=/x:${PYTHONPATH}", { P: "/x:/outer" }],
    ["references to nothing", "P=/x:${NONE}", { P: "/x:" }],
    ["an escaped reference", "P=\\${PYTHONPATH}", { P: "${PYTHONPATH}" }],
  ];
  for (const [name, text, expected] of cases) {
    test(name, () => {
      assert.deepEqual(parseEnvFile(text, { PYTHONPATH: "/outer" }), expected);
    });
  }
});
