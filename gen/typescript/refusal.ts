import { legible } from "./connection.js";
import { problemTypes } from "./constants.js";
import type { components } from "./schema.gen.js";

export type Problem = components["schemas"]["Problem"];
export type Violation = components["schemas"]["Violation"];

/** How many characters of what a server says are in the message of an error. */
const maxMessage = 2048;
const maxRequestId = 128;
const maxTitle = 300;
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
    /** The whole message; made of the document where it is not given. */
    message?: string,
  ) {
    const { status, title, detail, request_id: requestId, errors = [] } = problem;
    const violations = errors.map((violation) => ` ${sentenceOf(violation)}`).join("");
    const wait = retryAfter ? ` Retry after ${Math.round(retryAfter)} s.` : "";
    const id = requestId && ` (request ${legible(requestId, maxRequestId)})`;
    super(message ?? `${legible(`${status} ${title}: ${detail}${violations}`, maxMessage)}${wait}${id}`);
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

  /** The first rule that the value at a JSON pointer, such as "/redirect_uris", breaks. */
  violation(pointer: string): Violation | undefined {
    return this.violations.find((violation) => violation.pointer === pointer);
  }
}

/** The body breaks rules of the contract. */
export class ValidationFailedError extends ProblemError {}
/** There is no access token that the server knows. */
export class UnauthorizedError extends ProblemError {}
/** The token does not allow the operation. */
export class ForbiddenError extends ProblemError {}
/** The path of the base URL is wrong. */
export class NotFoundError extends ProblemError {}
/** Another provider has the client_id. */
export class ClientIdTakenError extends ProblemError {}
/** The idempotency key has made a record of another body. */
export class IdempotencyKeyReusedError extends ProblemError {}
/** The caller sends more than it may for now. */
export class TooManyRequestsError extends ProblemError {}
/** The server has no room for now. */
export class OverloadedError extends ProblemError {}
/** Whether the record is stored is unknown; the same idempotency key tells. */
export class OutcomeUnknownError extends ProblemError {}
/** The database cannot be used for now. */
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

/** The refusal that an answer of the API below a URL is. */
export function refusalOf(answered: unknown, response: Response, api: URL): ProblemError {
  const { problem, retryAfter } = readRefusal(answered, response);
  const Kind = kinds.get(problem.type) ?? ProblemError;
  return new Kind(problem, retryAfter, wrongPlace(problem, api));
}

/** What to say of an answer that comes from the wrong place; undefined of others. */
function wrongPlace({ status, type, title }: Problem, api: URL): string | undefined {
  const isForeign = type === problemTypes.foreign && (status === 404 || status === 405);
  if (type !== problemTypes.notFound && !isForeign) {
    return undefined;
  }
  const path = api.pathname.replace(/\/api\/v3$/, "");
  const remedy = path === "" ? "check the host and the port" : `check the path ${path}, or use ${api.origin}`;
  return `there is no providerd API at ${api.href} (${status} ${legible(title, maxTitle)}); ${remedy}`;
}

/** Reads a refusal. Where a proxy answered something else than a problem document, its status is known. */
function readRefusal(answered: unknown, response: Response): ProblemError {
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

/** Returns the detail of a violation. Older servers leave out its subject and its period. */
function sentenceOf({ pointer, detail }: Violation): string {
  return /[.?]$/.test(detail) ? detail : `${pointer} ${detail}.`;
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
