import { join } from "node:path";

import { launchBrowser, packagedExtension } from "../../tests/extension/e2e/support/suite";
import { Workbench } from "../../tests/extension/e2e/support/workbench";
import { installEditor } from "../editor/install.mjs";
import { Server } from "../editor/serve.mjs";
import { PYTHON, ROOT } from "../setup.mjs";

export interface Look {
  readonly theme: "Default Dark Modern" | "Default Light Modern";
  readonly width: number;
  readonly height: number;
  /** How many pixels of the picture one of the window has. */
  readonly scale?: number;
}

/** An example in the newest editor, whose forward pass has been traced. */
export async function onStage(
  example: string,
  look: Look,
  show: (workbench: Workbench) => Promise<void>,
): Promise<void> {
  await opened(example, look, async (workbench) => {
    await workbench.run("Shapetrace: Trace Forward Pass");
    await workbench.debug.waitUntilRunning();
    await workbench.debug.waitUntilEnded({ seconds: 90 });
    await workbench.hideEverythingElse();
    await show(workbench);
  });
}

/** An example in the newest editor, of which nothing has run yet. */
export async function opened(
  example: string,
  look: Look,
  show: (workbench: Workbench) => Promise<void>,
): Promise<void> {
  const server = new Server(installEditor("newest"), {
    extensions: [packagedExtension()],
    settings: {
      "editor.minimap.enabled": false,
      "editor.stickyScroll.enabled": false,
      "shapetrace.interpreter": PYTHON,
      "workbench.colorTheme": look.theme,
      // Or a picture shows what is still fading in.
      "workbench.reduceMotion": "on",
    },
    environment: { OMP_NUM_THREADS: "1" },
  });
  const [, browser] = await Promise.all([server.start(), launchBrowser()]);
  try {
    const context = await browser.newContext({
      viewport: { width: look.width, height: look.height },
      deviceScaleFactor: look.scale ?? 1,
    });
    const workbench = await Workbench.open(context, server.address(join(ROOT, "examples")));
    await workbench.openFile(join(ROOT, "examples", example));
    await show(workbench);
    await workbench.close();
  } finally {
    await browser.close();
    await server.stop();
  }
}
