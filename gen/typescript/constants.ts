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
