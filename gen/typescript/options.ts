/** An argument or option with which nothing is sent. */
export class InvalidArgument extends TypeError { override readonly name = "InvalidArgument"; }

export function check(isValid: boolean, message: string): asserts isValid {
  if (!isValid) {
    throw new InvalidArgument(message);
  }
}

/** Returns whether JSON cannot contain a value, such as a Map or a Buffer, that is not undefined. */
export function isForeign(value: unknown): boolean {
  const isCollection = typeof value === "object" && Symbol.iterator in Object(value) && !Array.isArray(value);
  const isInfinite = typeof value === "number" && !Number.isFinite(value);
  return isCollection || isInfinite || value instanceof Promise || typeof value === "bigint" || typeof value === "function";
}

export function checkObject(what: string, value: unknown, remedy = ""): void {
  check(!(value instanceof Promise), `${what} a promise; await it`);
  const isObject = typeof value === "object" && value !== null && !(Symbol.iterator in value);
  check(isObject, `${what} not an object${remedy}`);
}

/** Throws an error for an unknown option, because with a mistyped key a retry would store a second record, or type. */
export function checkOptions(options: object, types: Record<string, string>): void {
  checkObject("the options are", options, `; write { ${Object.keys(types)[0]}: VALUE }`);
  for (const name in options) {
    const type = new Map(Object.entries(types)).get(name);
    const value: unknown = options[name as keyof object];
    check(type !== undefined, `${name} is not one of the options ${Object.keys(types).join(", ")}`);
    const isOfType = type.startsWith("AbortSignal") ? "throwIfAborted" in Object(value) : typeof value === type;
    check(value === undefined || isOfType, `${name} is not of the type ${type}`);
  }
}
