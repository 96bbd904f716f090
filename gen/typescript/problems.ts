import type { components } from "./schema.gen.js";

export type Problem = components["schemas"]["Problem"];
export type Violation = components["schemas"]["Violation"];

/**
 * Problem types of refusals (RFC 9457, section 3.1.1). Each is also the path of a page of the server that explains it. A
 * server newer than this package may return others.
 */
export const problemTypes = {
  malformedJson: "/problems/malformed-json",
  validationFailed: "/problems/validation-failed",
  invalidParameter: "/problems/invalid-parameter",
  invalidHeader: "/problems/invalid-header",
  unauthorized: "/problems/unauthorized",
  forbidden: "/problems/forbidden",
  notFound: "/problems/not-found",
  methodNotAllowed: "/problems/method-not-allowed",
  notAcceptable: "/problems/not-acceptable",
  clientIdTaken: "/problems/client-id-taken",
  tooLarge: "/problems/too-large",
  unsupportedMediaType: "/problems/unsupported-media-type",
  idempotencyKeyReused: "/problems/idempotency-key-reused",
  tooManyRequests: "/problems/too-many-requests",
  internal: "/problems/internal",
  overloaded: "/problems/overloaded",
  outcomeUnknown: "/problems/outcome-unknown",
  storageUnavailable: "/problems/storage-unavailable",
  /** A refusal that is not a problem document, such as the page of a proxy (RFC 9457, section 4.2.1). */
  foreign: "about:blank",
} as const;

/** The most characters of a server's strings that a message quotes. */
const maxMessage = 2048;
const maxRequestId = 128;

/**
 * A refusal: the problem document (RFC 9457) that the server returned. For anything else, such as the page of a proxy or
 * a redirect, the type is about:blank.
 */
export class ProblemError extends Error {
  override readonly name: string = "ProblemError";

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

  get status(): number { return this.problem.status; }

  get type(): string { return this.problem.type; }

  /** All violations of the request body; none if something else is wrong. */
  get violations(): readonly Violation[] { return this.problem.errors ?? []; }

  /** The first violation of the value at a JSON pointer, such as "/redirect_uris". */
  violation(pointer: string): Violation | undefined { return this.violations.find((found) => found.pointer === pointer); }
}

/** The request body violates the contract. */
export class ValidationFailedError extends ProblemError { override readonly name = "ValidationFailedError"; }
/** The access token is missing or unknown. */
export class UnauthorizedError extends ProblemError { override readonly name = "UnauthorizedError"; }
/** The token does not allow the operation. */
export class ForbiddenError extends ProblemError { override readonly name = "ForbiddenError"; }
/** The path of the base URL is wrong. */
export class NotFoundError extends ProblemError { override readonly name = "NotFoundError"; }
/** Another provider has the client_id. */
export class ClientIdTakenError extends ProblemError { override readonly name = "ClientIdTakenError"; }
/** The record that the idempotency key created has other values than the request. */
export class IdempotencyKeyReusedError extends ProblemError { override readonly name = "IdempotencyKeyReusedError"; }
/** The caller exceeded its rate limit. */
export class TooManyRequestsError extends ProblemError { override readonly name = "TooManyRequestsError"; }
/** The server is temporarily overloaded. */
export class OverloadedError extends ProblemError { override readonly name = "OverloadedError"; }
/** It is unknown whether the record is stored; retry with the same idempotency key. */
export class OutcomeUnknownError extends ProblemError { override readonly name = "OutcomeUnknownError"; }
/** The database is temporarily unavailable. */
export class StorageUnavailableError extends ProblemError { override readonly name = "StorageUnavailableError"; }

/** Returns the beginning of a server's text on one line and without control characters. */
function legible(text: string, longest: number): string {
  const start = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return start.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}
