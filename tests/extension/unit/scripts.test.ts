import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { processesWith } from "../../../scripts/processes.mjs";
import { ROOT } from "../../../scripts/setup.mjs";

/** In the environment of all that a test starts. */
const MARK = "SHAPETRACE_SCRIPTS_TEST";

const folder = mkdtempSync(join(tmpdir(), "shapetrace-scripts-"));
after(() => {
  rmSync(folder, { recursive: true });
});

let scripts = 0;

interface Running {
  readonly process: ChildProcess;
  readonly mark: Record<string, string>;
  /** Fulfilled when what it has said contains that text. */
  says(text: string): Promise<void>;
  readonly ended: Promise<{ code: number | null; output: string; errors: string }>;
}

function start(file: string, environment: NodeJS.ProcessEnv = {}): Running {
  const mark = { [MARK]: `${process.pid}-${(scripts += 1)}` };
  // A supervisor of its own, also under `npm test`: a variable that is undefined is not given on.
  const own = { ...process.env, SHAPETRACE_SCRIPT: undefined };
  const child = spawn(process.execPath, [file], {
    env: { ...own, ...environment, ...mark },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  child.stderr.on("data", (data) => (errors += String(data)));
  child.stdout.on("data", (data) => (output += String(data)));
  return {
    process: child,
    mark,
    says: (text) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (output.includes(text)) {
            resolve();
          }
        };
        child.stdout.on("data", look);
        look();
      }),
    ended: new Promise((resolve) => {
      child.once("close", (code) => {
        resolve({ code, output, errors });
      });
    }),
  };
}

/** A script of this project whose work is that. */
function script(work: string): string {
  const file = join(folder, `script-${(scripts += 1)}.mjs`);
  const setup = JSON.stringify(pathToFileURL(join(ROOT, "scripts", "setup.mjs")));
  writeFileSync(
    file,
    `import { spawn } from "node:child_process";
import { Failure, main, requireIndex, run } from ${setup};
main(async () => { ${work} });
`,
  );
  return file;
}

/** Programs that do not end when they are told to, in another session and without the environment. */
const STUBBORN = `
  trap '' TERM INT HUP
  setsid env -i ${MARK}=$${MARK} sleep 1000 &
  echo started
  sleep 1000
`;

describe("a script", { concurrency: true }, () => {
  const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
  for (const [signal, code] of Object.entries(signals)) {
    test(`leaves no process behind after ${signal}`, async () => {
      const running = start(script(`return run("sh", ["-c", ${JSON.stringify(STUBBORN)}]);`));
      await running.says("started");
      running.process.kill(signal as keyof typeof signals);
      assert.equal((await running.ended).code, code);
      assert.deepEqual(processesWith(running.mark), []);
    });
  }

  test("ends at once when it fails, with what it has started", async () => {
    const running = start(
      script(`
        const child = spawn("sh", ["-c", ${JSON.stringify(STUBBORN)}]);
        await new Promise((resolve) => child.stdout.once("data", resolve));
        throw new Failure("this cannot be done; do that");
      `),
    );
    const { code, errors } = await running.ended;
    assert.deepEqual([code, errors], [1, "shapetrace: this cannot be done; do that\n"]);
    assert.deepEqual(processesWith(running.mark), []);
  });

  test("that is killed is told of, and leaves nothing behind", async () => {
    const running = start(
      script(`
        const child = spawn("sh", ["-c", ${JSON.stringify(STUBBORN)}]);
        await new Promise((resolve) => child.stdout.once("data", resolve));
        process.kill(process.pid, "SIGKILL");
        await new Promise(() => {});
      `),
    );
    const { code, errors } = await running.ended;
    assert.deepEqual(
      [code, errors],
      [1, "shapetrace: the script was ended by SIGKILL; run it again\n"],
    );
    assert.deepEqual(processesWith(running.mark), []);
  });
});

describe("a failure is one line that says what to do", { concurrency: true }, () => {
  test("where there is no network", async () => {
    const { code, errors } = await start(script("requireIndex(); return 0;"), {
      ...{ PIP_CONFIG_FILE: "/dev/null", PIP_FIND_LINKS: "", PIP_INDEX_URL: "http://127.0.0.1:9" },
    }).ended;
    assert.equal(code, 1);
    assert.match(errors, /^shapetrace: pip finds no packages \(.+\); connect this machine .*\n$/);
  });

  test("where the system refuses something", async () => {
    const work = `(await import("node:fs")).mkdirSync("/proc/nothing");`;
    const { code, errors } = await start(script(work)).ended;
    assert.equal(code, 1);
    assert.match(errors, /^shapetrace: .*'\/proc\/nothing'; mend that, and run this again\n$/);
  });
});

test("a folder has a name without blanks for as long as a script runs", async () => {
  const blank = join(folder, "a folder");
  mkdirSync(blank);
  const folders = JSON.stringify(pathToFileURL(join(ROOT, "scripts", "editor", "folders.mjs")));
  const { output } = await start(
    script(`
      const { existsSync, realpathSync } = await import("node:fs");
      const { withoutBlanks } = await import(${folders});
      const name = withoutBlanks(${JSON.stringify(blank)});
      console.log(JSON.stringify([name, realpathSync(name), withoutBlanks("/usr")]));
      return 0;
    `),
  ).ended;
  const [name, found, other] = JSON.parse(output) as string[];
  assert.ok(name);
  assert.doesNotMatch(name, /\s/);
  assert.deepEqual([found, other, existsSync(name)], [blank, "/usr", false]);
});

describe("npm run demo", () => {
  test("says before all else that there is no such browser", async () => {
    const demo = join(ROOT, "scripts", "demo.mjs");
    const { code, output, errors } = await start(demo, { SHAPETRACE_CHROMIUM: "/nowhere" }).ended;
    const expected =
      "shapetrace: SHAPETRACE_CHROMIUM=/nowhere does not exist; name another, or unset it\n";
    assert.deepEqual([code, output, errors], [1, "", expected]);
  });

  test("says that a browser shows no page, and leaves nothing behind", async () => {
    const demo = start(join(ROOT, "scripts", "demo.mjs"), { SHAPETRACE_CHROMIUM: "/bin/false" });
    const { code, errors } = await demo.ended;
    assert.equal(code, 1);
    assert.match(errors, /^shapetrace: SHAPETRACE_CHROMIUM=\/bin\/false is no Chromium.*\n$/);
    assert.deepEqual(processesWith(demo.mark), []);
  });
});
