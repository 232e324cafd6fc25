/** How plain values are read from JSON, with a message that names the place of what is wrong. */

/** A decoded JSON object whose keys this version does not know. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** How the values of one type are read. */
export interface Form<T> {
  /** What a message says should have been there. */
  readonly expects: readonly string[];
  read(document: unknown): T;
}

/** JSON that is not what stands at its place. */
export class Mismatch extends Error {
  #place = "";

  constructor(readonly problem: string) {
    super();
  }

  override get message(): string {
    return `${this.#place.replace(/^\./, "") || "the document"} ${this.problem}`;
  }

  /** The same, seen from one level further out. */
  inside(step: string): this {
    this.#place = step + this.#place;
    return this;
  }
}

export const integer = simple<number>("a whole number", Number.isInteger);
export const text = simple<string>("text", (document) => typeof document === "string");
export const boolean = simple<boolean>(
  "true or false",
  (document) => typeof document === "boolean",
);

/** JSON that is only passed on. */
export const anything: Form<unknown> = {
  expects: ["anything"],
  read: (document) => document,
};

/** A value of `form`, or null. */
export function nullable<T>(form: Form<T>): Form<T | null> {
  return {
    expects: [...form.expects, "null"],
    read(document) {
      if (document === null) {
        return null;
      }
      return accepts(form, document) ? form.read(document) : refuse(this, document);
    },
  };
}

/** A value of the first of these forms that takes this kind of JSON. */
export function anyOf<const T extends readonly unknown[]>(
  ...forms: { readonly [K in keyof T]: Form<T[K]> }
): Form<T[number]> {
  const choices: readonly Form<T[number]>[] = forms;
  return {
    expects: choices.flatMap((form) => form.expects),
    read(document) {
      const chosen = choices.find((form) => accepts(form, document));
      return chosen === undefined ? refuse(this, document) : chosen.read(document);
    },
  };
}

/** One of these words. */
export function oneOf<const T extends string>(...words: readonly T[]): Form<T> {
  return {
    expects: ["text"],
    read(document) {
      const found = words.find((word) => word === text.read(document));
      if (found === undefined) {
        throw new Mismatch(`should be one of ${words.join(", ")}, not ${JSON.stringify(document)}`);
      }
      return found;
    },
  };
}

/** A list of values of one form. */
export function listOf<T>(item: Form<T>): Form<readonly T[]> {
  return {
    expects: ["a list"],
    read(document) {
      if (!Array.isArray(document)) {
        return refuse(this, document);
      }
      return document.map((element, position) => within(`[${position}]`, item, element));
    },
  };
}

/** Where a property stands in JSON; without `otherwise` it must be there. */
export interface Property<T> {
  readonly key: string;
  readonly form: Form<T>;
  readonly otherwise?: T;
}

/** An object of known properties; keys that are none of these become `extra`. */
export function record<T extends { readonly extra: JsonObject }>(properties: {
  readonly [K in Exclude<keyof T, "extra">]: Property<T[K]>;
}): Form<T> {
  const entries = Object.entries<Property<unknown>>(properties);
  const known = new Set(entries.map(([, property]) => property.key));
  return {
    expects: ["an object"],
    read(document) {
      if (!isObject(document)) {
        return refuse(this, document);
      }
      const result: Record<string, unknown> = {};
      for (const [name, { key, form, otherwise }] of entries) {
        if (Object.hasOwn(document, key)) {
          result[name] = within(`.${key}`, form, document[key]);
        } else if (otherwise === undefined) {
          throw new Mismatch("is missing").inside(`.${key}`);
        } else {
          result[name] = otherwise;
        }
      }
      const unknown = Object.entries(document).filter(([key]) => !known.has(key));
      result["extra"] = Object.fromEntries(unknown);
      // Every property of T has been read by the form of its own type.
      return result as T;
    },
  };
}

function simple<T>(name: string, holds: (document: unknown) => boolean): Form<T> {
  return {
    expects: [name],
    read(document) {
      return holds(document) ? (document as T) : refuse(this, document);
    },
  };
}

function within<T>(step: string, form: Form<T>, document: unknown): T {
  try {
    return form.read(document);
  } catch (error) {
    throw error instanceof Mismatch ? error.inside(step) : error;
  }
}

function accepts(form: Form<unknown>, document: unknown): boolean {
  return form.expects.includes(kindOf(document));
}

function refuse(form: Form<unknown>, document: unknown): never {
  const expected = form.expects;
  const most = expected.slice(0, -1).join(", ");
  const last = expected.at(-1) ?? "";
  const wanted = most === "" ? last : `${most} or ${last}`;
  throw new Mismatch(`should be ${wanted}, not ${kindOf(document)}`);
}

function isObject(document: unknown): document is Record<string, unknown> {
  return typeof document === "object" && document !== null && !Array.isArray(document);
}

function kindOf(document: unknown): string {
  switch (typeof document) {
    case "string":
      return "text";
    case "boolean":
      return "true or false";
    case "number":
      return Number.isInteger(document) ? "a whole number" : "a decimal number";
    default:
      return document === null ? "null" : Array.isArray(document) ? "a list" : "an object";
  }
}
