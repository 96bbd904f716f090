import { redirectOf } from "./refusal.js";
import { hideSecrets } from "./secret.js";

/** What a standard advises about one field. It never causes a refusal. */
export interface Advice {
  /** The rule, which the page /advice/#CODE of the server explains. */
  code: string;
  /** Place in the request (RFC 6901). */
  pointer: string;
  /** What could be improved, and how. */
  detail: string;
}

/** A record whose secrets are readable only by name. JSON and spread omit what this adds. */
export type Created<Provider> = Provider & {
  /** Whether an earlier request with the same idempotency key had created it. */
  readonly replayed: boolean;
  /** What the server advises about the settings. Only a validation has any. */
  readonly advice: readonly Advice[];
};

/** The most bytes of a response that are read, counted after decompression. */
const maxResponse = 16 * 1024 * 1024;

/** Sends a request and returns the response with its complete body. */
export async function exchange(send: (request: Request) => Promise<Response>, request: Request): Promise<Response> {
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
 * Decodes the record of a successful create or validation. Throws an error, which does not quote the response, if that is
 * not from a providerd server.
 */
export function recordOf<Provider extends { pk: number; meta_model_name: string }>(
  text: string,
  response: Response,
  model: string,
  leastPk: number,
): Created<Provider> {
  const record = parse(text) as Partial<Provider> | undefined | null;
  const isJson = /^application\/json\s*(;|$)/i.test(response.headers.get("Content-Type") ?? "");
  if (!isJson || record?.meta_model_name !== model || !Number.isSafeInteger(record.pk) || Number(record.pk) < leastPk) {
    throw new Error("the response is not the record of a provider of this kind; is this a providerd server?");
  }
  hideSecrets(record);
  Object.defineProperty(record, "replayed", { value: response.headers.has("Idempotency-Replayed") });
  Object.defineProperty(record, "advice", { value: adviceOf(response.headers.get("Link") ?? "") });
  return record as Created<Provider>;
}

/** Returns the advice in a Link header (RFC 8288). */
function adviceOf(header: string): Advice[] {
  const links = header.matchAll(/<\/advice\/#([a-z0-9_]+)>; rel="help"; anchor="#([^"]*)"; title="((?:[^"\\]|\\.)*)"/g);
  return Array.from(links, ([, code = "", pointer = "", title = ""]) => ({
    code,
    pointer,
    detail: title.replace(/\\(.)/g, "$1"),
  }));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error of JSON.parse quotes a piece of the text.
    return undefined;
  }
}
