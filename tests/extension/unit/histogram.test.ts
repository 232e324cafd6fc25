import assert from "node:assert/strict";
import { describe, test } from "node:test";

import {
  histogramAddress,
  histogramImage,
  ICON,
  PICTURE,
} from "../../../extension/src/model/histogram";

/** The bars of a picture as left, top, width and height. */
function bars(image: string): number[][] {
  const group = /<g [^>]*>(.*)<\/g>/.exec(image)?.[1] ?? "";
  return [...group.matchAll(/x="(.+?)" y="(.+?)" width="(.+?)" height="(.+?)"/g)].map((found) =>
    found.slice(1).map(Number),
  );
}

describe("the picture of a histogram", () => {
  test("has a bar for each part that holds anything", () => {
    assert.deepEqual(bars(histogramImage([100, 0, 50, 1], ICON)), [
      [0, 0, 4, 15],
      [8, 7.5, 4, 7.5],
      [12, 14, 4, 1],
    ]);
  });

  test("has room between the bars where it is large", () => {
    assert.deepEqual(bars(histogramImage([100, 100], PICTURE)), [
      [0, 0, 127, 63],
      [128, 0, 127, 63],
    ]);
  });

  test("may be empty", () => {
    assert.deepEqual(bars(histogramImage([], ICON)), []);
  });

  test("is an address that holds the image", () => {
    const address = histogramAddress([1, 100], ICON);
    const [head, body = ""] = address.split(",");
    assert.equal(head, "data:image/svg+xml;base64");
    assert.equal(Buffer.from(body, "base64").toString("utf8"), histogramImage([1, 100], ICON));
  });
});
