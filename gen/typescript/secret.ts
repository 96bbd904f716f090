import { InvalidArgument } from "./options.js";

/** Replaces every secret that is printed. */
const mask = "********";

/**
 * A secret in a request, such as a client secret or credentials. console.log, templates and JSON show it as ********,
 * alone or inside another value. The client sends the value itself, and reveal returns it.
 */
export class Secret<Value = string> {
  readonly #value: Value;

  constructor(value: Value) {
    this.#value = value;
  }

  reveal(): Value {
    return this.#value;
  }

  toString(): string {
    return mask;
  }

  toJSON(): string {
    return mask;
  }

  /** Used by console.log and util.inspect of Node. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return mask;
  }
}

/** The names of secret fields. */
type SecretField = "client_secret" | "credentials";

/** A request whose secrets may be of the type Secret. */
export type WithSecrets<Request> = {
  [Field in keyof Request]: Field extends SecretField
    ? Request[Field] | Secret<NonNullable<Request[Field]>>
    : Request[Field];
};

/** Encodes a request, with its secrets, as JSON. */
export function encode(request: unknown): string {
  try {
    return JSON.stringify(request, function (this: Record<string, unknown>, key: string, value: unknown) {
      const own = this[key];
      return own instanceof Secret ? own.reveal() : value;
    });
  } catch {
    // The error of JSON.stringify may quote names of the request.
    throw new InvalidArgument("the request cannot be encoded as JSON");
  }
}

/**
 * Makes the secrets of a record readable only by name: console.log, JSON.stringify and spread, which enumerate fields, do
 * not show them.
 */
export function hideSecrets(record: { [Field in SecretField]?: unknown }): void {
  for (const field of ["client_secret", "credentials"] satisfies SecretField[]) {
    if (field in record) {
      let value = record[field];
      // An accessor, because util.inspect can show non-enumerable values.
      Object.defineProperty(record, field, {
        get: () => value,
        set: (other: unknown) => (value = other),
        enumerable: false,
      });
    }
  }
}
