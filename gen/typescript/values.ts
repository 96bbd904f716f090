import { check } from "./options.js";

/**
 * Returns the value of redirect_uris for URIs or a list of them, one per line. A string may have several lines: check one
 * that someone else wrote.
 */
export function redirectUris(...uris: (string | readonly string[])[]): string {
  const lines = uris.flat();
  const isFilled = lines.every((uri) => typeof uri === "string" && /\S/.test(uri));
  check(isFilled, "a redirect URI is empty or not a string; set the variable or file that it comes from, or omit the URI");
  return lines.map((uri) => uri.replace(/\r?\n$/, "")).join("\n");
}

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds"] as const;

/** A duration: the sum of its parts. */
export type Duration = { [Unit in (typeof units)[number]]?: number };

/**
 * Returns the value of access_code_validity, access_token_validity and refresh_token_validity for a duration:
 * "hours=1;minutes=30" for { hours: 1, minutes: 30 }. Of a number, 9 digits after the decimal point are sent.
 */
export function duration(length: Duration): string {
  const parts = typeof length === "object" && !Array.isArray(length) ? length : {};
  const sent = Object.entries(parts ?? {}).filter(([, number]) => number !== undefined);
  const isPart = (unit: string, number: unknown) =>
    (units as readonly string[]).includes(unit) && typeof number === "number" && number >= 0 && number < 1e9;
  const [wrong, value] = sent.find(([unit, number]) => !isPart(unit, number)) ?? [];
  const fault = typeof value === "string" ? "a string; pass" : "not";
  check(wrong === undefined, `"${wrong}" of the duration is ${fault} a number of ${units.join(", ")}, at least 0 and below 1e9`);
  check(sent.length > 0, "the duration is not an object with a part; write one such as { hours: 1, minutes: 30 }");
  return units
    .flatMap((unit) => (length[unit] === undefined ? [] : [`${unit}=${length[unit].toFixed(9).replace(/\.?0+$/, "")}`]))
    .join(";");
}
