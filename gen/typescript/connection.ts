/** How many characters of the error of a connection are in the message of an error. */
const maxReason = 300;

/**
 * A server gave no usable response: it was not reached, does not speak the protocol of the URL, or is not trusted. The
 * message is one sentence: what was found, and what to do about it.
 */
export class ConnectionError extends Error {
  override readonly name: string = "ConnectionError";

  constructor(
    /** Scheme, host and port of the server. */
    readonly url: string,
    /** What happened, with the URL. */
    readonly found: string,
    /** What to do about it. */
    readonly remedy: string,
    /** Whether the same request may succeed later. */
    readonly temporary: boolean,
    options?: ErrorOptions,
  ) {
    super(`${found}; ${remedy}`, options);
  }
}

/** A try took too long. */
export class TimeoutError extends ConnectionError {
  override readonly name = "TimeoutError";

  constructor(url: string, found: string, remedy: string, options?: ErrorOptions) {
    super(url, found, remedy, true, options);
  }
}

/** The error of a try that has used up its time. */
export function timedOut(url: string, seconds: number): TimeoutError {
  const remedy = "check the server and the network, or allow more time with tryTimeoutSeconds";
  return new TimeoutError(url, `no complete response from ${url} within ${seconds}s`, remedy);
}

/** What Node says of a connection that was lost or not made, and of a name server that has no answer now. */
const passingFaults = new Set([
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "EPIPE",
  "EAI_AGAIN",
  "UND_ERR_SOCKET",
]);

const timeouts = new Set([
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
]);

/** What OpenSSL says of a certificate that nobody vouches for. */
const untrusted = new Set([
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/**
 * The error of a connection that was lost or not made, whose reason fetch tells in the cause alone. Other errors are
 * returned as they are.
 */
export function connectionError(error: unknown, url: string): unknown {
  const isLate = error instanceof DOMException && error.name === "TimeoutError";
  if (!isLate && !(error instanceof TypeError)) {
    return error;
  }
  const cause = error.cause as { message?: string; code?: string; data?: unknown } | undefined;
  // What a server sent that is no HTTP, which may repeat the request.
  delete cause?.data;
  const options = { cause: cause ?? error };
  const { message, code = "" } = cause ?? {};
  const reason = legible(message || code || error.message, maxReason);
  if (isLate || timeouts.has(code)) {
    const found = `the connection to ${url} timed out (${reason})`;
    return new TimeoutError(url, found, "check the server and the network", options);
  }
  const [found, remedy] = describe(url, code, reason);
  // A browser gives no cause, so that a lost connection cannot be told from other faults of the network there.
  return new ConnectionError(url, found, remedy, cause === undefined || passingFaults.has(code), options);
}

function describe(url: string, code: string, reason: string): [found: string, remedy: string] {
  if (code === "ECONNREFUSED") {
    const remedy = "start the server, or check the host and the port";
    return [`nothing accepts connections at ${url} (connection refused)`, remedy];
  }
  if (code === "ENOTFOUND") {
    return [`the host of ${url} is unknown`, "check its name and DNS"];
  }
  if (/wrong version number|packet length too long/.test(reason)) {
    const plain = url.replace(/^https/, "http");
    return [`the server at ${url} does not speak HTTPS`, `use ${plain}, or enable TLS on the server`];
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    return [`the certificate of ${url} is expired or not yet valid (${reason})`, "renew it, or set the clock"];
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const remedy = "use a host that it names, or install one for this host";
    return [`the certificate of ${url} is not for this host (${reason})`, remedy];
  }
  if (untrusted.has(code)) {
    const remedy = "set NODE_EXTRA_CA_CERTS to a PEM file with the certificate of its issuer";
    return [`the certificate of ${url} is not trusted (${reason})`, remedy];
  }
  return [`the connection to ${url} failed: ${reason}`, "check the server and the network"];
}

/**
 * The error of a port for HTTPS that was sent HTTP, as the pages of Go, nginx and Apache say it; undefined for other
 * refusals.
 */
export function wantsHttps(
  url: string,
  refused: Error & { status: number },
  page: unknown,
): ConnectionError | undefined {
  const says = typeof page === "string" && /HTTP request to an HTTPS server|plain HTTP/.test(page);
  if (refused.status !== 400 || !says || !url.startsWith("http:")) {
    return undefined;
  }
  const remedy = `use ${url.replace("http:", "https:")}`;
  return new ConnectionError(url, `the server at ${url} expects HTTPS`, remedy, false, { cause: refused });
}

/** The beginning of a text that a server chose, on one line and without what commands a terminal. */
export function legible(text: string, longest: number): string {
  const start = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return start.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}
