/**
 * The value of redirect_uris for some URIs, one per line. A URI with a line end in it stays one line, with a space
 * instead, and so is refused: it cannot add a URI of its own.
 */
export function redirectUris(...uris: string[]): string {
  return uris.map((uri) => uri.replace(/[\r\n]/g, " ")).join("\n");
}

const units = ["weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds"] as const;

/** A length of time: the sum of its parts. */
export type Duration = { [Unit in (typeof units)[number]]?: number };

/**
 * The value of access_code_validity, access_token_validity and refresh_token_validity for a length of time:
 * "hours=1;minutes=30" for { hours: 1, minutes: 30 }. A number has up to 9 digits, and as many after the point; with
 * others, such as a negative one, the value is refused.
 */
export function duration(length: Duration): string {
  const parts = units.flatMap((unit) => {
    const number = length[unit];
    return number === undefined ? [] : [`${unit}=${number.toFixed(9).replace(/\.?0+$/, "")}`];
  });
  return parts.join(";") || "seconds=0";
}
