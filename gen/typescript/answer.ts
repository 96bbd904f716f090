import * as problems from "./problems.js";
import { ProblemError, problemTypes, type Problem, type Violation } from "./problems.js";
import { check } from "./options.js";
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

/** A record whose secrets are readable only by name; JSON masks them. JSON and spread omit what this adds. */
export type Created<Provider> = Provider & {
  /** Whether an earlier request with the same idempotency key had created it. */
  readonly replayed: boolean;
  /** What the server advises about the settings. Only a validation has any. */
  readonly advice: readonly Advice[];
};

/** The most bytes of a response that are read, counted after decompression. */
const maxResponse = 16 * 1024 * 1024;

/** Sends a request and returns the response with its JSON value, or with its text if it is not JSON. */
export async function exchange(
  send: (request: Request) => Promise<Response>, request: Request,
): Promise<{ answer: unknown; response: Response }> {
  try {
    const response = await send(request);
    check("headers" in Object(response), "the option fetch does not return a Response; return what the global fetch returns");
    const redirect = redirectOf(request, response);
    if (redirect !== undefined) {
      await response.body?.cancel();
      throw redirect;
    }
    return { answer: parse(await readText(response)), response };
  } catch (error) {
    const { cause } = (error ?? {}) as { cause?: { code?: unknown; data?: unknown; message?: unknown } };
    if (/^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/.test(String(cause?.code))) {
      const { host } = new URL(request.url);
      throw new TypeError(`https://${host} does not use TLS; if it is the intended server, use http://${host}`, { cause });
    }
    // The data of a response that is not HTTP, which may quote the request.
    delete cause?.data;
    if (error instanceof TypeError && error.message === "fetch failed") {
      const isUntrusted = /SELF_SIGNED_CERT|UNABLE_TO_(VERIFY|GET_ISSUER)/.test(String(cause?.code));
      const { process } = globalThis as { process?: { env: { NODE_EXTRA_CA_CERTS?: string } } };
      const present = process?.env.NODE_EXTRA_CA_CERTS ? "; its present file lacks that, or it was set too late" : "";
      const remedy = "; set NODE_EXTRA_CA_CERTS to a PEM file with the certificate of its issuer before node starts, which reads it once";
      const refused = cause?.code === "ECONNREFUSED" ? "; start the server, or check the base URL" : "";
      error.message += `: ${String(cause?.message || cause?.code)}${isUntrusted ? remedy + present : refused}`;
    }
    throw error;
  }
}

async function readText(response: Response): Promise<string> {
  let size = 0;
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      size += chunk.byteLength;
      if (size > maxResponse) {
        throw new Error("the response is larger than 16 MiB; check the base URL");
      }
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body?.pipeThrough(counter)).text();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error of JSON.parse quotes a piece of the text.
    return text;
  }
}

/**
 * Returns the record in the answer to a create or validation. Throws an error, which does not quote the response, if that
 * is not from a providerd server.
 */
export function recordOf<Provider extends { pk: number; meta_model_name: string }>(
  answer: unknown, { status, headers }: Response, model: string, validateOnly: boolean,
): Created<Provider> {
  const [expected, leastPk] = validateOnly ? [200, 0] : [201, 1];
  if (status !== expected) {
    throw new Error(`the status is ${status} instead of ${expected}; check the base URL`);
  }
  const record = answer as Partial<Provider> | undefined | null;
  const isJson = /^application\/json\s*(;|$)/i.test(headers.get("Content-Type") ?? "");
  if (!isJson || record?.meta_model_name !== model || !Number.isSafeInteger(record.pk) || Number(record.pk) < leastPk) {
    throw new Error("the response is not the record of a provider of this kind; check the base URL");
  }
  hideSecrets(record as object);
  return Object.defineProperties(record as Created<Provider>, {
    replayed: { value: headers.has("Idempotency-Replayed") },
    advice: { value: adviceOf(headers.get("Link") ?? "") },
  });
}

/** Returns the advice in a Link header (RFC 8288). */
function adviceOf(header: string): Advice[] {
  const links = header.matchAll(/<\/advice\/#([a-z0-9_]+)>; rel="help"; anchor="#([^"]*)"; title="((?:[^"\\]|\\.)*)"/g);
  return Array.from(links, ([, code = "", pointer = "", title = ""]) => ({ code, pointer, detail: title.replace(/\\(.)/g, "$1") }));
}

/** Returns the refusal in the answer to a request. If that is not a problem document, only the status is known. */
export function refusalOf(answer: unknown, response: Response): ProblemError {
  const answered = (answer ?? {}) as { [Member in keyof Problem]?: unknown };
  const { status, errors = [], type, title, detail, request_id: requestId } = answered;
  if (status !== response.status || !Array.isArray(errors) || !errors.every((violation) => violation instanceof Object)) {
    // As Go, nginx and Apache say it.
    const isTls = response.status === 400 && /HTTP request to an HTTPS|plain HTTP/.test(textOf(answer));
    const proxied = "The response is not a problem document. Is there a proxy between this program and the server?";
    const elsewhere = "This is not the API of providerd. Check the host, port and path of the base URL.";
    const detail = [404, 405, 501].includes(response.status) ? elsewhere : proxied;
    return foreignResponse(response, isTls ? "The server uses TLS. Use https:// in the base URL." : detail);
  }
  const problem = {
    ...(answered as Partial<Problem>),
    status: response.status, type: textOf(type, problemTypes.foreign), title: textOf(title), detail: textOf(detail),
    request_id: textOf(requestId),
    ...(errors.length > 0 && { errors: errors.slice(0, 1000).map((e: Violation) => ({ ...e, detail: textOf(e.detail) })) }),
  };
  // The class of /problems/client-id-taken is ClientIdTakenError.
  const name = `${problem.type.replace("/problems", "").replace(/\W(.)/g, (_, letter: string) => letter.toUpperCase())}Error`;
  const { [name as "ClientIdTakenError"]: Kind = ProblemError } = problems;
  return new Kind(problem, retryAfterOf(response));
}

const textOf = (value: unknown, otherwise = ""): string => (typeof value === "string" ? value : otherwise);

/** Returns the refusal to follow a redirect, which quotes only the target's host; undefined for other responses. */
function redirectOf(request: Request, response: Response): ProblemError | undefined {
  const isRedirect = response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400);
  if (!isRedirect && !response.redirected) {
    return undefined;
  }
  const target = response.redirected ? response.url : (response.headers.get("Location") ?? "data:");
  const host = URL.canParse(target, request.url) ? new URL(target, request.url).host : "";
  // No name of a host is longer, with its port.
  const shown = host.replace(/^(.{262}).+/, "$1…") || "an unknown host";
  const reason = "Redirects are not followed, because the token and the secrets are for this server only.";
  return foreignResponse(response, `The server redirects to ${shown}. ${reason} Use the URL of the intended server.`);
}

function foreignResponse(response: Response, detail: string): ProblemError {
  const { status, statusText, headers } = response;
  // A reason phrase could quote the request.
  const title = /^[A-Za-z' -]{0,40}$/.test(statusText) ? statusText : "";
  const problem = { type: problemTypes.foreign, title, status, detail, request_id: headers.get("X-Request-Id") ?? "" };
  return new ProblemError(problem, retryAfterOf(response));
}

/** Returns the wait that the Retry-After header asks for, as a number of seconds or a date. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("Retry-After") ?? "";
  if (/^\d+$/.test(text)) {
    return Number(text);
  }
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) {
    return undefined;
  }
  // Of the three date formats, asctime does not name GMT.
  const date = Date.parse(text.endsWith(" GMT") ? text : `${text} GMT`);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}
