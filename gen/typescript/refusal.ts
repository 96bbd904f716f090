import * as problems from "./problems.js";
import { ProblemError, problemTypes, type Problem, type Violation } from "./problems.js";

const kinds = new Map<string, typeof ProblemError>([
  [problemTypes.validationFailed, problems.ValidationFailedError],
  [problemTypes.unauthorized, problems.UnauthorizedError],
  [problemTypes.forbidden, problems.ForbiddenError],
  [problemTypes.notFound, problems.NotFoundError],
  [problemTypes.clientIdTaken, problems.ClientIdTakenError],
  [problemTypes.idempotencyKeyReused, problems.IdempotencyKeyReusedError],
  [problemTypes.tooManyRequests, problems.TooManyRequestsError],
  [problemTypes.overloaded, problems.OverloadedError],
  [problemTypes.outcomeUnknown, problems.OutcomeUnknownError],
  [problemTypes.storageUnavailable, problems.StorageUnavailableError],
]);

/** Returns the refusal in the answer to a request. If that is not a problem document, only the status is known. */
export function refusalOf(answer: unknown, response: Response): ProblemError {
  const answered = answer as { [Member in keyof Problem]?: unknown } | undefined | null;
  const { status, errors = [], type, title, detail, request_id: requestId } = answered ?? {};
  if (status !== response.status || !Array.isArray(errors) || !errors.every((violation) => violation instanceof Object)) {
    const detail = "The response is not a problem document. Is there a proxy between this program and the server?";
    return foreignResponse(response, detail);
  }
  const problem = {
    ...(answered as Partial<Problem>),
    status: response.status,
    type: textOf(type, problemTypes.foreign),
    title: textOf(title),
    detail: textOf(detail),
    request_id: textOf(requestId),
    ...(errors.length > 0 && { errors: errors.slice(0, 1000).map((e: Violation) => ({ ...e, detail: textOf(e.detail) })) }),
  };
  const Kind = kinds.get(problem.type) ?? ProblemError;
  return new Kind(problem, retryAfterOf(response));
}

function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

/** Returns the refusal to follow a redirect, which quotes only the target's host; undefined for other responses. */
export function redirectOf(request: Request, response: Response): ProblemError | undefined {
  const isRedirect = response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400);
  if (!isRedirect && !response.redirected) {
    return undefined;
  }
  const target = response.redirected ? response.url : (response.headers.get("Location") ?? "data:");
  const host = URL.canParse(target, request.url) ? new URL(target, request.url).host : "";
  // No name of a host is longer, with its port.
  const shown = host.replace(/^(.{262}).+/, "$1…") || "an unknown host";
  return foreignResponse(
    response,
    `The server redirects to ${shown}. Redirects are not followed, because the token and the secrets are for this ` +
      "server only. Use the URL of the intended server.",
  );
}

function foreignResponse(response: Response, detail: string): ProblemError {
  const { status, statusText, headers } = response;
  // A reason phrase could quote the request.
  const title = /^[A-Za-z' -]{0,40}$/.test(statusText) ? statusText : "";
  const requestId = headers.get("X-Request-Id") ?? "";
  const problem = { type: problemTypes.foreign, title, status, detail, request_id: requestId };
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
