/** An argument or option with which nothing is sent. */
export class InvalidArgument extends TypeError { override readonly name = "InvalidArgument"; }

/** Throws an error for an unknown option, because with a mistyped key a retry would store a second record, or type. */
export function checkOptions(options: object, types: Record<string, string>): void {
  if (typeof options !== "object" || options === null) {
    throw new InvalidArgument("the options are not an object");
  }
  for (const name in options) {
    const type = new Map(Object.entries(types)).get(name);
    const value: unknown = options[name as keyof object];
    if (type === undefined) {
      throw new InvalidArgument(`${name} is not one of the options ${Object.keys(types).join(", ")}`);
    }
    if (value !== undefined && typeof value !== type) {
      throw new InvalidArgument(`${name} is not of the type ${type}`);
    }
  }
}
