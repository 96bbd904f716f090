import { InvalidArgument } from "./options.js";

/**
 * Returns the value of redirect_uris for URIs or a list of them, one per line. Line breaks in a URI become spaces, so the
 * server refuses it: it cannot add another URI.
 */
export function redirectUris(...uris: (string | readonly string[])[]): string {
  const lines = uris.flat();
  if (!lines.every((uri) => typeof uri === "string")) {
    throw new InvalidArgument("a redirect URI is not a string");
  }
  return lines.map((uri) => uri.replace(/[\r\n]/g, " ")).join("\n");
}

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds"] as const;

/** A duration: the sum of its parts. */
export type Duration = { [Unit in (typeof units)[number]]?: number };

/**
 * Returns the value of access_code_validity, access_token_validity and refresh_token_validity for a duration:
 * "hours=1;minutes=30" for { hours: 1, minutes: 30 }. Throws a TypeError if it is empty or has a part that is not a unit.
 * Numbers have up to 9 digits before and after the decimal point; the server refuses others, such as negative ones.
 */
export function duration(length: Duration): string {
  const sent = Object.entries(length ?? {}).filter(([, number]) => number !== undefined);
  const wrong = sent.find(([unit, number]) => !(units as readonly string[]).includes(unit) || typeof number !== "number");
  if (wrong !== undefined) {
    throw new InvalidArgument(`"${wrong[0]}" of the duration is not a number of ${units.join(", ")}`);
  }
  if (sent.length === 0) {
    throw new InvalidArgument("the duration has no part; write one such as { hours: 1, minutes: 30 }");
  }
  return units
    .flatMap((unit) => (length[unit] === undefined ? [] : [`${unit}=${length[unit].toFixed(9).replace(/\.?0+$/, "")}`]))
    .join(";");
}
