/** What is seen of every secret that is printed. */
const mask = "********";

/**
 * A secret in a request, such as a client secret or credentials. It prints as ********, alone or within something else:
 * by console.log, in templates and in JSON. Only the client sends it as it is, and reveal gives it away.
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

  /** What console.log and util.inspect of Node print. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return mask;
  }
}

/** The fields that are secrets. */
type SecretField = "client_secret" | "credentials";

/** A request whose secrets may be of the type Secret. */
export type WithSecrets<Request> = {
  [Field in keyof Request]: Field extends SecretField
    ? Request[Field] | Secret<NonNullable<Request[Field]>>
    : Request[Field];
};

/** A replacer for JSON.stringify that reveals secrets. */
export function revealing(this: unknown, key: string, value: unknown): unknown {
  const own = (this as Record<string, unknown>)[key];
  return own instanceof Secret ? own.reveal() : value;
}

/**
 * Makes the secrets of a record readable by their names alone: what goes through its fields, such as console.log,
 * JSON.stringify or a spread, does not find them.
 */
export function hideSecrets(record: object): void {
  for (const field of ["client_secret", "credentials"] satisfies SecretField[]) {
    if (field in record) {
      let value = (record as Record<string, unknown>)[field];
      // No property with a value: util.inspect can be asked for those, too.
      Object.defineProperty(record, field, {
        get: () => value,
        set: (other: unknown) => {
          value = other;
        },
        enumerable: false,
      });
    }
  }
}
