import { redirectOf } from "./refusal.js";
import { hideSecrets } from "./secret.js";
import type { components } from "./schema.gen.js";

/** What a create would do. */
export type Verdict = components["schemas"]["Verdict"];

/** A record whose secrets are readable only by name. */
export type Created<Provider> = Provider & {
  /** Whether an earlier request with the same idempotency key had created it. Not enumerable: JSON and spread omit it. */
  readonly replayed: boolean;
};

/** The most bytes of a response that are read, counted after decompression. */
const maxResponse = 16 * 1024 * 1024;
const maxPk = 2 ** 31 - 1;

/** Sends a request and returns the response with its complete body. */
export async function exchange(
  send: (request: Request) => Promise<Response>,
  request: Request,
): Promise<Response> {
  const response = await send(request);
  const redirect = redirectOf(request, response);
  if (redirect !== undefined) {
    await response.body?.cancel();
    throw redirect;
  }
  const text = await readText(response);
  const { status, statusText, headers } = response;
  return new Response(text || null, { status, statusText, headers });
}

async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done || value === undefined) {
      return text + decoder.decode();
    }
    size += value.byteLength;
    if (size > maxResponse) {
      await reader?.cancel();
      throw new Error("the response is larger than 16 MiB; is this a providerd server?");
    }
    text += decoder.decode(value, { stream: true });
  }
}

/**
 * Decodes the record of a successful create. Throws an error, which does not quote the response, if that is not from a
 * providerd server.
 */
export function recordOf<Provider extends { pk: number; meta_model_name: string }>(
  text: string,
  response: Response,
  model: Provider["meta_model_name"],
): Created<Provider> {
  const record = parseResponse(text, response);
  if (typeof record !== "object" || Array.isArray(record)) {
    throw new Error("the response is not the record of a provider; is this a providerd server?");
  }
  const { pk = 0, meta_model_name: kind } = (record ?? {}) as Partial<Provider>;
  if (!isPk(pk)) {
    throw new Error("the response has no pk; is this a providerd server?");
  }
  if (kind !== model) {
    throw new Error("the response is not a record of the kind that was sent; is this a providerd server?");
  }
  hideSecrets(record as object);
  Object.defineProperty(record, "replayed", { value: response.headers.has("Idempotency-Replayed") });
  return record as Created<Provider>;
}

/** Decodes the verdict of a validation. Throws an error, which does not quote the response, for anything else. */
export function verdictOf(text: string, response: Response): Verdict {
  const { outcome, pk, advice } = (parseResponse(text, response) ?? {}) as Partial<Record<keyof Verdict, unknown>>;
  const isKnown = outcome === "would_create" || outcome === "already_created";
  const fits = outcome === "already_created" ? isPk(pk) : pk === null;
  if (typeof outcome !== "string" || !Array.isArray(advice) || (isKnown && !fits)) {
    throw new Error("the response is not a verdict; is this a providerd server?");
  }
  if (!isKnown) {
    throw new Error("the verdict has an outcome that this client does not know; upgrade the client");
  }
  return { outcome, pk, advice } as Verdict;
}

function isPk(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= maxPk;
}

function parseResponse(text: string, response: Response): unknown {
  const mediaType = response.headers.get("Content-Type")?.split(";")[0]?.trim().toLowerCase();
  if (mediaType !== "application/json") {
    throw new Error("the response is not of the type application/json; is this a providerd server?");
  }
  return parse(text);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error of JSON.parse quotes a piece of the text.
    return undefined;
  }
}
