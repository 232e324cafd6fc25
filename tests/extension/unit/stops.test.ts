import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Stops } from "../../../extension/src/debug/stops";

const stopped = { type: "event", event: "stopped", body: { reason: "breakpoint" } };

function request(command: string) {
  return { type: "request", command };
}

function response(command: string, success: boolean) {
  return { type: "response", command, success };
}

function standing(): Stops {
  const stops = new Stops();
  assert.ok(stops.received("one", stopped));
  assert.ok(stops.has("one"));
  return stops;
}

describe("a debug session stands still", () => {
  test("until it is told to go on", () => {
    for (const command of ["continue", "next", "stepIn", "stepOut", "disconnect"]) {
      const stops = standing();
      assert.ok(stops.sent("one", request(command)));
      assert.ok(!stops.has("one"));
      assert.ok(!stops.received("one", response(command, true)));
      assert.ok(!stops.has("one"));
    }
  });

  test("until its program says that it goes on, or is over", () => {
    for (const event of ["continued", "terminated", "exited"]) {
      const stops = standing();
      assert.ok(stops.received("one", { type: "event", event }));
      assert.ok(!stops.has("one"));
    }
  });

  test("when the debugger refuses to go where it is told to", () => {
    const stops = standing();
    stops.sent("one", request("goto"));
    assert.ok(stops.received("one", response("goto", false)));
    assert.ok(stops.has("one"));
  });

  test("and not when it refuses what could not be done anyway", () => {
    const stops = new Stops();
    stops.sent("one", request("next"));
    assert.ok(!stops.received("one", response("next", false)));
    assert.ok(!stops.has("one"));
  });

  test("when it stopped again before the answer came", () => {
    const stops = standing();
    stops.sent("one", request("next"));
    stops.received("one", stopped);
    assert.ok(!stops.received("one", response("next", true)));
    assert.ok(stops.has("one"));
  });

  test("each by itself, and what is asked makes no difference", () => {
    const stops = standing();
    assert.ok(!stops.sent("one", request("stackTrace")));
    assert.ok(!stops.received("one", response("stackTrace", true)));
    stops.sent("other", request("continue"));
    assert.ok(stops.has("one"));
    stops.forget("one");
    assert.ok(!stops.has("one"));
  });
});
