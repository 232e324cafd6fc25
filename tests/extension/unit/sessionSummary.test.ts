import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  type Program,
  type SessionFacts,
  stateInWords,
  summarize,
} from "../../../extension/src/model/sessionSummary";
import { SESSION_STATES, type SessionState } from "../../../extension/src/protocol.generated";

function program(state: SessionState, calls = 0, message = ""): Program {
  return { state, message, calls, passes: calls === 0 ? 0 : 1, dropped: 0, rank: null };
}

function session(...programs: Program[]): SessionFacts {
  return { name: "train.py", isOpen: true, isSilent: false, programs };
}

function over(...programs: Program[]): SessionFacts {
  return { ...session(...programs), isOpen: false };
}

function inShort(...sessions: SessionFacts[]): string {
  const { mood, text } = summarize(sessions);
  return `${mood}: ${text}`;
}

describe("the summary", () => {
  test("is off where nothing runs", () => {
    assert.equal(inShort(), "off: off");
    assert.equal(inShort(over(program("gone"))), "off: off");
  });

  test("keeps the count of what was recorded last", () => {
    assert.equal(inShort(over(program("gone", 3)), over(program("gone", 412))), "off: 412 calls");
  });

  test("is waiting until something has been recorded", () => {
    assert.equal(inShort(session()), "waiting: waiting");
    assert.equal(inShort(session(program("connected"))), "waiting: waiting");
    assert.equal(inShort(session(program("waiting"))), "waiting: waiting");
  });

  test("counts the calls of all programs of all open sessions", () => {
    const other = session(program("settled", 1));
    const sum = inShort(session(program("recording", 10), program("gone", 5)), other);
    assert.equal(sum, "recording: 16 calls, 2 processes");
    assert.equal(inShort(over(program("gone", 99)), other), "recording: 1 call");
  });

  test("counts the processes that record", () => {
    const ranks = session(program("waiting"), program("recording", 3), program("settled", 4));
    assert.equal(inShort(ranks), "recording: 7 calls, 2 processes");
    assert.equal(
      inShort(session(program("recording", 3), program("gone", 4))),
      "recording: 7 calls",
    );
  });

  test("tells the rank of each, and of many that have ended only their number", () => {
    const ranked = { ...program("recording", 3), rank: 1 };
    assert.match(summarize([session(ranked)]).details[0] ?? "", /^train\.py, rank 1: recording/);
    const workers = Array.from({ length: 20 }, () => program("gone", 5));
    const { details } = summarize([session(ranked, ...workers)]);
    assert.equal(details.length, 2);
    assert.equal(details[1], "train.py: 20 processes ended (100 calls)");
  });

  test("is an error where a program failed, is not supported or says nothing", () => {
    assert.equal(inShort(session(program("failed"))), "error: error");
    assert.equal(inShort(session(program("recording", 3), program("unsupported"))), "error: error");
    assert.equal(inShort({ ...session(), isSilent: true }), "error: no connection");
  });

  test("is an error with the reason where there is no server", () => {
    const { details, mood } = summarize([session()], {
      serverFailure: "No Python was found.",
    });
    assert.equal(mood, "error");
    assert.deepEqual(details, ["No Python was found."]);
  });

  test("tells of watched variables where nothing was called", () => {
    const watched = ["video", "sample['mask']"];
    const words = (...sessions: SessionFacts[]): string => summarize(sessions, { watched }).text;
    assert.equal(words(), "2 variables watched");
    assert.equal(words(session(program("waiting"))), "watching 2 variables");
    assert.equal(words(over(program("gone"))), "2 variables watched");
    assert.equal(words(session(program("recording", 3))), "3 calls");
    assert.equal(words(over(program("gone", 412))), "412 calls");
    assert.equal(summarize([], { watched: ["video"] }).text, "1 variable watched");
    assert.equal(summarize([], { watched }).details.at(-1), "Watched: video, sample['mask']");
    assert.equal(summarize([], { watched, serverFailure: "none" }).mood, "error");
  });

  test("has a sentence for each program", () => {
    const { details } = summarize([session(program("recording", 3), program("waiting"))]);
    assert.deepEqual(details, [
      "train.py: recording (1 forward pass, 3 calls)",
      "train.py: waiting for the program to import torch",
    ]);
  });
});

describe("a program's state in words", () => {
  test("every state has some", () => {
    const texts = SESSION_STATES.map((state) => stateInWords(program(state, 7, "because")));
    assert.equal(new Set(texts).size, SESSION_STATES.length);
    assert.ok(texts.every((text) => text !== ""));
  });

  test("says what was left out", () => {
    const text = stateInWords({ ...program("recording", 7), passes: 2, dropped: 3 });
    assert.equal(
      text,
      "recording (2 forward passes, 7 calls; 3 messages with calls could not be sent)",
    );
  });

  test("says why", () => {
    assert.equal(stateInWords(program("failed", 0, "disk full")), "failed: disk full");
  });
});
