import { problemTypes } from "./constants.js";
import type { components } from "./schema.gen.js";

export type Problem = components["schemas"]["Problem"];
export type Violation = components["schemas"]["Violation"];

/** How many characters of what a server says are in the message of an error. */
const maxMessage = 2048;
const maxRequestId = 128;
const maxHost = 262;

/**
 * A refusal: the problem document (RFC 9457) that the server answered. What is no such document, such as the page of a
 * proxy or a redirect, has the type about:blank.
 */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly problem: Problem,
    /** How many seconds the server asks to wait (RFC 9110, section 10.2.3); undefined where it does not. */
    readonly retryAfter?: number,
  ) {
    const { status, title, detail, request_id: requestId, errors = [] } = problem;
    const violations = errors.map((violation) => ` ${violation.pointer} ${violation.detail}.`).join("");
    const wait = retryAfter ? ` Retry after ${Math.round(retryAfter)} s.` : "";
    const id = requestId && ` (request ${legible(requestId, maxRequestId)})`;
    super(`${legible(`${status} ${title}: ${detail}${violations}`, maxMessage)}${wait}${id}`);
  }

  get status(): number {
    return this.problem.status;
  }

  get type(): string {
    return this.problem.type;
  }

  /** All rules that the body breaks; none where something else is wrong. */
  get violations(): readonly Violation[] {
    return this.problem.errors ?? [];
  }
}

/** The refusal that an answer is. Where a proxy answered something else than a problem document, its status is known. */
export function refusalOf(answered: unknown, response: Response): ProblemError {
  const { status } = response;
  if (!isObject(answered) || answered["status"] !== status || !isListOfObjects(answered["errors"] ?? [])) {
    return foreignAnswer(
      response,
      "The answer is not a problem document. Does something stand between this program and the server?",
    );
  }
  const { type, title, detail, request_id: requestId } = answered;
  const problem = {
    ...answered,
    status,
    type: textOf(type, problemTypes.foreign),
    title: textOf(title),
    detail: textOf(detail),
    request_id: textOf(requestId),
  };
  return new ProblemError(problem, retryAfterOf(response));
}

function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

function isObject(value: unknown): value is Partial<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function isListOfObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every(isObject);
}

/** The refusal to follow a redirect, which tells no more of its target than the host; undefined for other answers. */
export function redirectOf(request: Request, response: Response): ProblemError | undefined {
  const isRedirect = response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400);
  if (!isRedirect && !response.redirected) {
    return undefined;
  }
  const target = response.redirected ? response.url : response.headers.get("Location");
  return foreignAnswer(
    response,
    `The server redirects to ${hostOf(target, request.url)}. No redirect is followed, since the token and the ` +
      "secrets are for this server alone; use the address of the one that is meant.",
  );
}

function hostOf(target: string | null, base: string): string {
  try {
    const { host } = new URL(target ?? "data:", base);
    return host === "" ? "an unknown host" : legible(host, maxHost);
  } catch {
    return "an unknown host";
  }
}

function foreignAnswer(response: Response, detail: string): ProblemError {
  const problem = {
    type: problemTypes.foreign,
    title: response.statusText,
    status: response.status,
    detail,
    request_id: response.headers.get("X-Request-Id") ?? "",
  };
  return new ProblemError(problem, retryAfterOf(response));
}

/** The wait that an answer asks for in either of its forms, a number of seconds or a date. */
function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("Retry-After") ?? "";
  if (/^\d+$/.test(text)) {
    return Number(text);
  }
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) {
    return undefined;
  }
  // Of the three forms of a date, that of asctime does not say that it is in GMT.
  const date = Date.parse(text.endsWith(" GMT") ? text : `${text} GMT`);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}

/**
 * The error of a connection that was lost or not made, with the reason, which fetch tells in the cause alone, and the
 * server. Other errors are returned as they are.
 */
export function connectionError(error: unknown, server: string): unknown {
  if (!(error instanceof TypeError)) {
    return error;
  }
  const { message, code } = (error.cause ?? {}) as { message?: string; code?: string };
  const reason = legible(message || code || error.message, maxMessage);
  return new TypeError(`the connection to ${server} failed: ${reason}`, { cause: error.cause });
}

/** The beginning of a text that a server chose, on one line and without what commands a terminal. */
function legible(text: string, longest: number): string {
  const start = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return start.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}
