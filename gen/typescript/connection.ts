/** The most characters of a network error that a message quotes. */
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

/** Returns the error of a try that exceeded its timeout. */
export function timedOut(url: string, seconds: number): TimeoutError {
  const remedy = "check the server and the network, or allow more time with tryTimeoutSeconds";
  return new TimeoutError(url, `no complete response from ${url} within ${seconds}s`, remedy);
}

/** Codes of Node for connections that were lost or not established, and for temporary DNS failures. */
const temporaryFaults = new Set([
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

/** Codes of OpenSSL for untrusted certificates. */
const untrusted = new Set([
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/**
 * Returns the error of a failed connection, for which fetch gives the reason only in the cause. Other errors are returned
 * unchanged.
 */
export function connectionError(error: unknown, url: string): unknown {
  const isLate = error instanceof DOMException && error.name === "TimeoutError";
  if (!isLate && !(error instanceof TypeError)) {
    return error;
  }
  const cause = error.cause as { message?: string; code?: string; data?: unknown } | undefined;
  // A response that is not HTTP, which may quote the request.
  delete cause?.data;
  const options = { cause: cause ?? error };
  const { message, code = "" } = cause ?? {};
  const reason = legible(message || code || error.message, maxReason);
  if (isLate || timeouts.has(code)) {
    const found = `the connection to ${url} timed out (${reason})`;
    return new TimeoutError(url, found, "check the server and the network", options);
  }
  const [found, remedy] = describe(url, code, reason);
  // A browser gives no cause, so a lost connection cannot be distinguished from other network errors there.
  return new ConnectionError(url, found, remedy, cause === undefined || temporaryFaults.has(code), options);
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
 * Returns the error of an HTTP request to an HTTPS port, which the pages of Go, nginx and Apache report; undefined for
 * other refusals.
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

/** Returns the beginning of a server's text on one line and without control characters. */
export function legible(text: string, longest: number): string {
  const start = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return start.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}
