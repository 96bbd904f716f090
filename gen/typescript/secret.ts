import { check, InvalidArgument, isForeign } from "./options.js";

/** Replaces every secret that is printed. */
const mask = "********";

/** The method that console.log and util.inspect of Node call. */
const inspection = Symbol.for("nodejs.util.inspect.custom");

/**
 * A secret in a request, such as a client secret or credentials. console.log, templates and JSON show it as ********,
 * alone or inside another value. The client sends the value itself, and reveal returns it.
 */
export class Secret<Value = string> {
  readonly #value: Value;

  constructor(value: Value) { this.#value = value; }

  reveal(): Value { return this.#value; }

  toString(): string { return mask; }

  toJSON(): string { return mask; }

  [inspection](): string { return mask; }
}

type SecretField = "client_secret" | "credentials";

/** A request whose secrets may be of the type Secret. */
export type WithSecrets<Request> = {
  [Field in keyof Request]: Request[Field] | (Field extends SecretField ? Secret<NonNullable<Request[Field]>> : never);
};

/** Encodes a request, with its secrets, as JSON. Throws an error for what JSON would silently omit or change. */
export function encode(request: unknown, unchecked: boolean): string {
  let root: unknown;
  try {
    return JSON.stringify(request, function (this: Record<string, unknown>, key: string, value: unknown) {
      const [own, isField] = [this[key], this === root];
      // Of a record, JSON has the masked copy.
      root ??= value;
      const sent: unknown = own instanceof Secret ? own.reveal() : value;
      const isSecret = own instanceof Secret || key === "client_secret";
      // The server would generate another value.
      const isUnset = sent === undefined && (isSecret || !isField || key === "client_id");
      const isEmpty = isSecret && sent === "" && !unchecked;
      const fault = (isUnset && "undefined") || (isEmpty && "empty") || (sent === mask && !unchecked && "the mask of a secret");
      const name = isField ? key : "a value in credentials or a list";
      check(!fault, `${name} is ${fault}; pass its value, or omit it`);
      check(!isField || key !== "credentials" || typeof sent !== "string", "credentials is a string; pass the object, such as JSON.parse(text)");
      check(!isForeign(own) && !isForeign(sent), `${name} is not JSON, but bytes, a promise or the like; parse or await it`);
      return sent;
    });
  } catch (error) {
    // The error of JSON.stringify may quote names of the request.
    throw error instanceof InvalidArgument ? error : new InvalidArgument("the request cannot be encoded as JSON");
  }
}

/** Makes the secrets of a record readable only by name: console.log and JSON show ********, and spread omits them. */
export function hideSecrets(record: { [Field in SecretField]?: unknown }): void {
  const masks: { [Field in SecretField]?: string } = {};
  for (const field of ["client_secret", "credentials"] satisfies SecretField[]) {
    if (field in record) {
      let value = record[field];
      masks[field] = mask;
      // An accessor, because util.inspect can show non-enumerable values.
      Object.defineProperty(record, field, { get: () => value, set: (other: unknown) => (value = other), enumerable: false });
    }
  }
  const shown = { value: () => ({ ...record, ...masks }) };
  Object.defineProperties(record, { toJSON: shown, [inspection]: shown });
}
