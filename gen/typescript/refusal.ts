import { problemTypes } from "./constants.js";
import type { components } from "./schema.gen.js";

export type Problem = components["schemas"]["Problem"];
export type Violation = components["schemas"]["Violation"];

/** The most characters of a server's texts that a message quotes. */
const maxMessage = 2048;
const maxRequestId = 128;
const maxHost = 262;

/**
 * A refusal: the problem document (RFC 9457) that the server returned. For anything else, such as the page of a proxy or
 * a redirect, the type is about:blank.
 */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly problem: Problem,
    /** How many seconds the server asks to wait (RFC 9110, section 10.2.3); undefined if it does not. */
    readonly retryAfter?: number,
  ) {
    const { status, title, detail, request_id: requestId, errors = [] } = problem;
    const violations = errors.map((violation) => ` ${violation.detail}`).join("");
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

  /** All violations of the request body; none if something else is wrong. */
  get violations(): readonly Violation[] {
    return this.problem.errors ?? [];
  }

  /** The first violation of the value at a JSON pointer, such as "/redirect_uris". */
  violation(pointer: string): Violation | undefined {
    return this.violations.find((violation) => violation.pointer === pointer);
  }
}

/** The request body violates the contract. */
export class ValidationFailedError extends ProblemError {}
/** The access token is missing or unknown. */
export class UnauthorizedError extends ProblemError {}
/** The token does not allow the operation. */
export class ForbiddenError extends ProblemError {}
/** The path of the base URL is wrong. */
export class NotFoundError extends ProblemError {}
/** Another provider has the client_id. */
export class ClientIdTakenError extends ProblemError {}
/** The idempotency key was used with another request body. */
export class IdempotencyKeyReusedError extends ProblemError {}
/** The caller exceeded its rate limit. */
export class TooManyRequestsError extends ProblemError {}
/** The server is temporarily overloaded. */
export class OverloadedError extends ProblemError {}
/** It is unknown whether the record is stored; retry with the same idempotency key. */
export class OutcomeUnknownError extends ProblemError {}
/** The database is temporarily unavailable. */
export class StorageUnavailableError extends ProblemError {}

const kinds = new Map<string, typeof ProblemError>([
  [problemTypes.validationFailed, ValidationFailedError],
  [problemTypes.unauthorized, UnauthorizedError],
  [problemTypes.forbidden, ForbiddenError],
  [problemTypes.notFound, NotFoundError],
  [problemTypes.clientIdTaken, ClientIdTakenError],
  [problemTypes.idempotencyKeyReused, IdempotencyKeyReusedError],
  [problemTypes.tooManyRequests, TooManyRequestsError],
  [problemTypes.overloaded, OverloadedError],
  [problemTypes.outcomeUnknown, OutcomeUnknownError],
  [problemTypes.storageUnavailable, StorageUnavailableError],
]);

/** Returns the refusal in a response. */
export function refusalOf(answered: unknown, response: Response): ProblemError {
  const { problem, retryAfter } = readRefusal(answered, response);
  const Kind = kinds.get(problem.type) ?? ProblemError;
  return new Kind(problem, retryAfter);
}

/** Reads a refusal. If the response is not a problem document, only its status is known. */
function readRefusal(answered: unknown, response: Response): ProblemError {
  const { status } = response;
  if (!isObject(answered) || answered["status"] !== status || !isListOfObjects(answered["errors"] ?? [])) {
    return foreignResponse(
      response,
      "The response is not a problem document. Is there a proxy between this program and the server?",
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

/** Returns the refusal to follow a redirect, which quotes only the target's host; undefined for other responses. */
export function redirectOf(request: Request, response: Response): ProblemError | undefined {
  const isRedirect = response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400);
  if (!isRedirect && !response.redirected) {
    return undefined;
  }
  const target = response.redirected ? response.url : response.headers.get("Location");
  return foreignResponse(
    response,
    `The server redirects to ${hostOf(target, request.url)}. Redirects are not followed, because the token ` +
      "and the secrets are for this server only. Use the URL of the intended server.",
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

function foreignResponse(response: Response, detail: string): ProblemError {
  const problem = {
    type: problemTypes.foreign,
    title: response.statusText,
    status: response.status,
    detail,
    request_id: response.headers.get("X-Request-Id") ?? "",
  };
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

/** Returns the beginning of a server's text on one line and without control characters. */
function legible(text: string, longest: number): string {
  const start = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return start.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}
