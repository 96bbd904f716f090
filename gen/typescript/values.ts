/**
 * Returns the value of redirect_uris for URIs, one per line. Line breaks in a URI become spaces, so the server refuses
 * it: it cannot add another URI.
 */
export function redirectUris(...uris: string[]): string {
  return uris.map((uri) => uri.replace(/[\r\n]/g, " ")).join("\n");
}

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds"] as const;

/** A duration: the sum of its parts. */
export type Duration = { [Unit in (typeof units)[number]]?: number };

/**
 * Returns the value of access_code_validity, access_token_validity and refresh_token_validity for a duration:
 * "hours=1;minutes=30" for { hours: 1, minutes: 30 }. Numbers have up to 9 digits before and after the decimal point; the
 * server refuses others, such as negative ones.
 */
export function duration(length: Duration): string {
  const parts = units.flatMap((unit) => {
    const number = length[unit];
    return number === undefined ? [] : [`${unit}=${number.toFixed(9).replace(/\.?0+$/, "")}`];
  });
  return parts.join(";") || "seconds=0";
}
