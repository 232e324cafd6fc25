/** The settings, typed, with their defaults in place of values that they cannot have. */
import { type ConfigurationScope, type Disposable, workspace } from "vscode";

import { SECTION, SETTING_CHOICES, SETTING_DEFAULTS, type Settings } from "./contributions";
import type { Options } from "./protocol.generated";

/** The settings as they are at the moment of asking. */
export class Config {
  /** The value of a setting for a file or folder, or for the window. */
  get<K extends keyof Settings>(key: K, scope?: ConfigurationScope): Settings[K] {
    const value: unknown = workspace.getConfiguration(SECTION, scope ?? null).get(key);
    return isPossible(key, value) ? value : SETTING_DEFAULTS[key];
  }

  /** The settings that the language server gets. */
  forServer(): Options {
    return {
      hints: {
        position: this.get("hints.position"),
        maximumLength: this.get("hints.maximumLength"),
        parameters: this.get("hints.parameters"),
      },
      codeLens: { enabled: this.get("codeLens.enabled") },
      hover: { enabled: this.get("hover.enabled") },
    };
  }

  /** Calls back when one of these settings changes. */
  onDidChange(keys: readonly (keyof Settings)[], listener: () => void): Disposable {
    return workspace.onDidChangeConfiguration((event) => {
      if (keys.some((key) => event.affectsConfiguration(`${SECTION}.${key}`))) {
        listener();
      }
    });
  }
}

/** The settings that the language server gets. */
export const SERVER_SETTINGS: readonly (keyof Settings)[] = [
  "hints.position",
  "hints.maximumLength",
  "hints.parameters",
  "codeLens.enabled",
  "hover.enabled",
];

function isPossible<K extends keyof Settings>(key: K, value: unknown): value is Settings[K] {
  const choices: readonly unknown[] | undefined = SETTING_CHOICES[key];
  return typeof value === typeof SETTING_DEFAULTS[key] && (choices?.includes(value) ?? true);
}
