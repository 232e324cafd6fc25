import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import {
  Command,
  ContextKey,
  DebugType,
  FOREIGN_DEBUG_TYPES,
  SECTION,
  SETTING_CHOICES,
  SETTING_DEFAULTS,
  View,
  WALKTHROUGH,
} from "../../../extension/src/contributions";

const ROOT = join(import.meta.dirname, "../../..");

interface Setting {
  readonly type: string;
  readonly default: unknown;
  readonly enum?: readonly string[];
  readonly enumDescriptions?: readonly string[];
  readonly markdownDescription?: string;
  readonly scope?: string;
}

interface Debugger {
  readonly type: string;
  readonly languages?: readonly string[];
  readonly when?: string;
  readonly configurationAttributes?: Readonly<
    Record<string, { readonly properties: Readonly<Record<string, Attribute>> }>
  >;
  readonly configurationSnippets?: readonly {
    readonly label: string;
    readonly description: string;
    readonly body: Readonly<Record<string, unknown>>;
  }[];
}

interface Attribute {
  readonly type: unknown;
  readonly description?: string;
  readonly default?: unknown;
}

interface MenuItem {
  readonly command: string;
  readonly key?: string;
  readonly when?: string;
}

interface ContributedView {
  readonly id: string;
  readonly name: string;
  readonly icon: string;
  readonly when: string;
}

interface Manifest {
  readonly icon: string;
  readonly activationEvents: readonly string[];
  readonly contributes: {
    readonly commands: readonly { command: string; title: string; category: string }[];
    readonly keybindings: readonly MenuItem[];
    readonly menus: Readonly<Record<string, readonly MenuItem[]>>;
    readonly views: Readonly<Record<string, readonly ContributedView[]>>;
    readonly viewsWelcome: readonly { view: string; contents: string; when: string }[];
    readonly configuration: { readonly properties: Readonly<Record<string, Setting>> };
    readonly debuggers: readonly Debugger[];
    readonly walkthroughs: readonly {
      readonly id: string;
      readonly steps: readonly {
        readonly description: string;
        readonly media: { readonly markdown?: string; readonly svg?: string };
        readonly completionEvents: readonly string[];
      }[];
    }[];
  };
}

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
const {
  commands,
  configuration,
  debuggers,
  keybindings,
  menus,
  views,
  viewsWelcome,
  walkthroughs,
} = manifest.contributes;
const allViews = Object.values(views).flat();

function sorted(items: Iterable<string>): string[] {
  return [...items].sort();
}

test("the commands of package.json are those of the code", () => {
  assert.deepEqual(sorted(commands.map(({ command }) => command)), sorted(Object.values(Command)));
});

test("commands are named alike, and titled under one category", () => {
  for (const [name, id] of Object.entries(Command)) {
    assert.equal(id, `${SECTION}.${name}`);
    assert.match(name, /^[a-z][A-Za-z]*$/);
  }
  for (const { category, title } of commands) {
    assert.equal(category, "Shapetrace");
    assert.match(title, /^[A-Z]/);
  }
});

describe("the settings", () => {
  const { properties } = configuration;

  test("of package.json are those of the code", () => {
    const ids = Object.keys(SETTING_DEFAULTS).map((key) => `${SECTION}.${key}`);
    assert.deepEqual(sorted(Object.keys(properties)), sorted(ids));
  });

  for (const [key, otherwise] of Object.entries(SETTING_DEFAULTS)) {
    test(`${key} has the same default, a description and a scope`, () => {
      const setting = properties[`${SECTION}.${key}`];
      assert.ok(setting);
      assert.deepEqual(setting.default, otherwise);
      assert.match(setting.markdownDescription ?? "", /\.$/);
      assert.match(setting.scope ?? "", /^(window|resource|machine-overridable)$/);
    });
  }

  test("that are chosen from a list have the same list, each entry explained", () => {
    for (const [id, setting] of Object.entries(properties)) {
      const key = id.slice(SECTION.length + 1) as keyof typeof SETTING_CHOICES;
      assert.deepEqual(sorted(setting.enum ?? []), sorted(SETTING_CHOICES[key]?.map(String) ?? []));
      assert.equal(setting.enumDescriptions?.length, setting.enum?.length, id);
    }
  });
});

describe("the debug types", () => {
  test("of package.json are those of the code", () => {
    const types = debuggers.map(({ type }) => type);
    assert.deepEqual(sorted(types), sorted(Object.values(DebugType)));
  });

  test("are offered for Python files only where no other extension is", () => {
    const own = debuggers.find(({ type }) => type === DebugType.own);
    const alone = debuggers.find(({ type }) => type === DebugType.alone);
    assert.equal(own?.languages, undefined);
    assert.deepEqual(alone?.languages, ["python"]);
    assert.equal(alone.when, ContextKey.isAlone);
  });

  test("describe each attribute", () => {
    for (const { configurationAttributes = {} } of debuggers) {
      for (const [request, { properties }] of Object.entries(configurationAttributes)) {
        for (const [name, { description, type }] of Object.entries(properties)) {
          assert.match(description ?? "", /\.$/, `${request} ${name}`);
          assert.ok(type, `${request} ${name}`);
        }
      }
    }
  });

  test("have snippets that only use attributes they describe", () => {
    const own = debuggers.find(({ type }) => type === DebugType.own);
    const { configurationAttributes = {}, configurationSnippets = [] } = own ?? {};
    assert.ok(configurationSnippets.length > 0);
    for (const { body, description, label } of configurationSnippets) {
      assert.match(label, /^Shapetrace: /);
      assert.match(description, /\.$/);
      const request = String(body["request"]);
      const known = Object.keys(configurationAttributes[request]?.properties ?? {});
      const used = Object.keys(body).filter((key) => !["name", "type", "request"].includes(key));
      assert.deepEqual(
        used.filter((key) => !known.includes(key)),
        [],
        label,
      );
    }
  });

  test("activate the extension before they are resolved", () => {
    for (const type of [...Object.values(DebugType), ...FOREIGN_DEBUG_TYPES]) {
      assert.ok(manifest.activationEvents.includes(`onDebugResolve:${type}`), type);
    }
  });
});

describe("the views", () => {
  test("of package.json are those of the code", () => {
    assert.deepEqual(sorted(allViews.map(({ id }) => id)), sorted(Object.values(View)));
  });

  test("say what is to be done while they are empty", () => {
    for (const { id, icon } of allViews) {
      assert.ok(existsSync(join(ROOT, icon)), icon);
      assert.ok(viewsWelcome.some(({ view }) => view === id));
    }
    const known: readonly string[] = allViews.map(({ id }) => id);
    assert.ok(viewsWelcome.every(({ view }) => known.includes(view)));
  });

  test("have menus of their own", () => {
    for (const [menu, items] of Object.entries(menus).filter(([name]) =>
      name.startsWith("view/"),
    )) {
      for (const { command, when } of items) {
        assert.match(when ?? "", new RegExp(`^view == ${View.trace} `), `${menu} ${command}`);
      }
    }
  });
});

test("commands for one call of the tree, or in configurations, are not in the palette", () => {
  const hidden = (menus["commandPalette"] ?? []).filter(({ when }) => when === "false");
  assert.deepEqual(sorted(hidden.map(({ command }) => command)), [
    Command.goToCall,
    Command.pickProcess,
    Command.showMoreCalls,
    Command.stopCapturing,
  ]);
});

describe("what package.json refers to", () => {
  const whens = [
    ...[...allViews, ...viewsWelcome].map(({ when }) => when),
    ...[...keybindings, ...Object.values(menus).flat()].map(({ when }) => when ?? ""),
    ...debuggers.map(({ when }) => when ?? ""),
    ...walkthroughs.flatMap(({ steps }) => steps.flatMap((step) => step.completionEvents)),
  ].join(" ");

  test("context keys are all set by the code, and all used", () => {
    const used = new Set(whens.match(/shapetrace\.(?:has|is)\w+/g));
    assert.deepEqual(sorted(used), sorted(Object.values(ContextKey)));
  });

  test("commands in menus, keybindings and walkthroughs exist", () => {
    const steps = walkthroughs.flatMap((walkthrough) => walkthrough.steps);
    const texts = [
      ...steps.map(({ description }) => description),
      ...viewsWelcome.map(({ contents }) => contents),
    ].join(" ");
    const referred = [
      ...[...keybindings, ...Object.values(menus).flat()].map(({ command }) => command),
      ...[...texts.matchAll(/\(command:(shapetrace\.\w+)\)/g)].map(([, id]) => String(id)),
      ...[...whens.matchAll(/onCommand:(shapetrace\.\w+)/g)].map(([, id]) => String(id)),
    ];
    const known: readonly string[] = Object.values(Command);
    assert.deepEqual(
      referred.filter((id) => !known.includes(id)),
      [],
    );
  });

  test("keybindings only work where they mean something", () => {
    for (const { command, when } of keybindings) {
      assert.ok(when, command);
    }
  });

  test("the walkthrough and its pictures are there", () => {
    assert.deepEqual(
      walkthroughs.map(({ id }) => id),
      [WALKTHROUGH],
    );
    for (const { media } of walkthroughs.flatMap((walkthrough) => walkthrough.steps)) {
      const file = media.markdown ?? media.svg ?? "";
      assert.ok(file !== "" && existsSync(join(ROOT, file)), file);
    }
  });

  test("the icon is a square PNG of at least 128 pixels", () => {
    const image = readFileSync(join(ROOT, manifest.icon));
    assert.equal(image.toString("latin1", 1, 4), "PNG");
    assert.equal(image.readUInt32BE(16), image.readUInt32BE(20));
    assert.ok(image.readUInt32BE(16) >= 128);
  });
});
