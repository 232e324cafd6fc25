import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { handedOver, problemOf } from "../../../extension/src/debug/configurations";
import {
  entering,
  isChild,
  isForbidden,
  lacksInjector,
  otherMachine,
  readObstacle,
} from "../../../extension/src/debug/attaching";
import type { AgentSession } from "../../../extension/src/debug/launchEnvironment";
import {
  explainForbidden,
  explainObstacle,
  explainOtherMachine,
} from "../../../extension/src/model/explanations";
import {
  commandOf,
  type Process,
  programOf,
  pythonProcesses,
  readProcesses,
} from "../../../extension/src/model/processList";
import { PYTHON } from "../../../scripts/setup.mjs";

const ROOT = join(import.meta.dirname, "../../..");
const SOURCE = readFileSync(join(ROOT, "extension/launcher/enter.py"), "utf8");
const SESSION: AgentSession = {
  session: "a",
  port: 40123,
  token: 'qu"ote\\',
  mode: "debug",
  afterPass: "stop",
  level: "torch",
  showsVariables: true,
  folder: "/home/me",
  captures: ["layers.*.forward"],
  watches: ["video", "transform:mask"],
};

describe("what is run in a program that is attached to", () => {
  const expression = entering(SOURCE, "/not/here: größe's", SESSION);

  test("is one expression for Python, with what it needs in it", () => {
    const check =
      "import ast, sys\n" +
      "call = ast.parse(sys.stdin.read(), mode='eval').body\n" +
      "print(call.func.id, ast.literal_eval(call.args[1])['backend'])";
    const ran = spawnSync(PYTHON, ["-c", check], { input: expression, encoding: "utf8" });
    assert.equal(ran.stderr, "");
    assert.equal(ran.stdout.trim(), "exec /not/here: größe's");
  });

  test("says where it is not understood, in words that are read again", () => {
    const ran = spawnSync(PYTHON, ["-c", expression], { encoding: "utf8" });
    assert.deepEqual(readObstacle(ran.stderr), { kind: "elsewhere" });
  });
});

test("the answer of a debugger tells what stands in the way", () => {
  const traceback = "Traceback (most recent call last):\n  File …\nRuntimeError: shapetrace: ";
  assert.deepEqual(readObstacle(`${traceback}python 3.9.2\n`), {
    kind: "oldPython",
    version: "3.9.2",
  });
  assert.deepEqual(readObstacle("Traceback …\nImportError: no thing\n"), {
    kind: "failed",
    reason: "ImportError: no thing",
  });
});

describe("the machine that a program is on", () => {
  for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", ""]) {
    test(`is this one for ${JSON.stringify(host)}`, () => {
      assert.equal(otherMachine({ connect: { host, port: 5678 } }), undefined);
    });
  }

  test("is another one for any other name", () => {
    assert.equal(otherMachine({ connect: { host: "node-7", port: 5678 } }), "node-7");
    assert.equal(otherMachine({ host: "10.0.0.3", port: 5678 }), "10.0.0.3");
    assert.equal(otherMachine({ processId: 4711 }), undefined);
  });
});

test("a child process is known by the id that its debugger gives it", () => {
  assert.ok(isChild({ request: "attach", subProcessId: 7 }));
  assert.ok(!isChild({ request: "attach", processId: 7 }));
});

describe("a configuration to attach", () => {
  const attach = { type: "shapetrace", request: "attach" };

  test("says what to attach to", () => {
    assert.match(problemOf(attach) ?? "", /nothing to attach to: add "connect".*"processId"/);
    assert.equal(problemOf({ ...attach, connect: { port: 5678 } }), undefined);
    assert.equal(problemOf({ ...attach, processId: "4711" }), undefined);
    assert.equal(problemOf({ ...attach, listen: { port: 5678 } }), undefined);
    assert.equal(problemOf({ ...attach, host: "localhost", port: 5678 }), undefined);
  });

  test("says it once", () => {
    const two = { ...attach, connect: { port: 5678 }, processId: 4711 };
    assert.match(problemOf(two) ?? "", /"connect" and "processId": keep one/);
    const child = { ...attach, connect: { port: 5678 }, subProcessId: 4711 };
    assert.equal(problemOf(child), undefined);
  });

  test("keeps asking for the process when it is handed over to us", () => {
    const asked = { type: "debugpy", request: "attach", processId: "${command:pickProcess}" };
    assert.deepEqual(handedOver(asked), { ...asked, type: "shapetrace" });
  });
});

describe("explanations of programs that were attached to", () => {
  test("say what to do", () => {
    assert.match(explainObstacle("train", { kind: "elsewhere" }), /container.*Remote - SSH/);
    assert.match(
      explainObstacle("train", { kind: "oldPython", version: "3.8.1" }),
      /needs Python 3\.11 or newer.*3\.8\.1/,
    );
    assert.match(
      explainObstacle("train", { kind: "failed", reason: "X: y" }),
      /could not be loaded.*X: y/,
    );
    assert.match(explainOtherMachine("train", "node-7"), /node-7 is another one.*Debugging works/);
  });

  test("say how a process is allowed to be looked into", () => {
    const output = "ptrace: Operation not permitted.\n";
    assert.ok(isForbidden(output));
    assert.ok(!isForbidden("Attaching to PID: 12 (elapsed: 1.00s).\n"));
    assert.match(explainForbidden("train", "forbidden", "linux"), /ptrace_scope.*SYS_PTRACE/);
    assert.match(explainForbidden("train", "forbidden", "darwin"), /does not let.*--listen 5678/);
    assert.ok(lacksInjector("FileNotFoundError: [Errno 2] No such file or directory: 'gdb'"));
    assert.match(explainForbidden("train", "missing", "linux"), /needs gdb/);
  });
});

describe("processes to choose from", () => {
  const process = (id: number, command: string): Process => ({ id, command });

  test("are read from ps and from /proc", () => {
    assert.deepEqual(readProcesses("   1 /sbin/init\n  712 python  -u a b.py \n\nnonsense\n"), [
      process(1, "/sbin/init"),
      process(712, "python  -u a b.py"),
    ]);
    assert.equal(commandOf("python\0train.py\0--lr\0"), "python train.py --lr");
  });

  test("are Python's, the newest first, without the debugger's own", () => {
    const found = pythonProcesses([
      process(3, "/env/bin/python3.12 -u train.py"),
      process(9, "C:\\env\\python.exe train.py"),
      process(4, "/usr/bin/pythonista"),
      process(5, "vim python.py"),
      process(6, "python -m shapetrace.server --stdio"),
      process(7, "python /x/debugpy/adapter --port 1"),
    ]);
    assert.deepEqual(
      found.map(({ id }) => id),
      [9, 3],
    );
  });

  test("are named by what they run", () => {
    assert.equal(programOf(process(1, "python -u -X dev train.py --lr 1")), "dev train.py --lr 1");
    assert.equal(programOf(process(1, "/env/bin/python -m package.train")), "-m package.train");
    assert.equal(programOf(process(1, "python")), "python");
  });
});
