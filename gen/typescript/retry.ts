import { ProblemError } from "./problems.js";

/** The wait before a retry is a random part of a step, which begins at the first and doubles up to the longest. */
const firstStepSeconds = 0.25;
const maxStepSeconds = 10;

/** The longest waits, regardless of what the server asks for: before one retry, and in total. */
const maxWaitSeconds = 60;
const maxTotalWaitSeconds = 120;

/**
 * Calls attempt until it succeeds, its error is not temporary, retries or waiting time run out, or the caller's signal is
 * aborted. Each attempt has a timeout. Between attempts, it waits for as long as the server asks and a random part of the
 * step (full jitter), so that callers refused at the same time do not retry at the same time.
 */
export async function retry<Result>(
  retries: number, timeoutSeconds: number, signal: AbortSignal | undefined, attempt: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  let secondsLeft = maxTotalWaitSeconds;
  for (let tries = 0; ; tries++) {
    try {
      return await within(timeoutSeconds, signal, attempt);
    } catch (error) {
      const requested = (error instanceof ProblemError && error.retryAfter) || 0;
      const longest = Math.min(maxWaitSeconds, secondsLeft);
      if (tries >= retries || !isTemporary(error) || longest <= 0 || requested > longest) {
        throw error;
      }
      const step = Math.min(firstStepSeconds * 2 ** tries, maxStepSeconds);
      const seconds = Math.min(requested + Math.random() * step, longest);
      await within(seconds, signal, () => new Promise(() => undefined)).catch(() => signal?.throwIfAborted());
      secondsLeft -= seconds;
    }
  }
}

/** Codes of Node for connections that were lost, not established or too slow, and for temporary DNS failures. */
const temporaryFaults = new Set([
  ...["ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH", "EPIPE", "EAI_AGAIN"],
  ...["ETIMEDOUT", "UND_ERR_SOCKET", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"],
]);

/**
 * Returns whether the same request may succeed later: after a failed connection, a timeout or a temporary refusal. The
 * idempotency key makes a retry safe.
 */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ProblemError) {
    return [429, 502, 503, 504].includes(error.status);
  }
  // instanceof fails for errors of another realm, which a test runner may have for its tests.
  const { name, message, cause } = (error ?? {}) as { name?: unknown; message?: string; cause?: { code?: string } | null };
  // A browser gives no cause, so a lost connection cannot be distinguished from other network errors there.
  const isFault = cause === undefined ? /^(fetch failed|Failed to fetch)/.test(message ?? "") : temporaryFaults.has(cause?.code ?? "");
  return name === "TypeError" ? isFault : name === "TimeoutError";
}

/**
 * Runs work with a timeout. Its signal is aborted then or by the caller; work that ignores it is abandoned.
 * AbortSignal.timeout leaves a timer behind for each request, and the first releases of Node 20 lack AbortSignal.any.
 */
async function within<Result>(
  seconds: number, signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason));
  });
  const late = () => controller.abort(new DOMException(`no complete response within ${seconds} s`, "TimeoutError"));
  const stop = () => controller.abort(signal?.reason);
  const timer = setTimeout(late, seconds * 1000);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([work(controller.signal), ended]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}
