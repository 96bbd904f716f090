import { ConnectionError, timedOut } from "./connection.js";
import { ProblemError } from "./refusal.js";

/** The step that the wait before a retry is a random part of: the first, doubled up to the longest. */
const firstStepSeconds = 0.25;
const longestStepSeconds = 10;

/** How long a create waits, whatever the server asks for: before one retry, and in all. */
const longestWaitSeconds = 60;
const allWaitsSeconds = 120;

/** Attempts something until it succeeds, fails for good, or has been attempted often or for long enough. */
export async function retry<Result>(
  retries: number,
  signal: AbortSignal | undefined,
  attempt: () => Promise<Result>,
): Promise<Result> {
  let secondsLeft = allWaitsSeconds;
  for (let tries = 0; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      signal?.throwIfAborted();
      const seconds = delayOf(error, tries, Math.min(longestWaitSeconds, secondsLeft));
      if (tries >= retries || !isTemporary(error) || seconds === undefined) {
        throw error;
      }
      await wait(seconds, signal);
      secondsLeft -= seconds;
    }
  }
}

/**
 * Tells whether the same request may fare better later: after a connection that was lost or not made, a try that took
 * too long, or a refusal for now. The idempotency key makes it safe to find out.
 */
function isTemporary(error: unknown): boolean {
  if (error instanceof ProblemError) {
    return [429, 502, 503, 504].includes(error.status);
  }
  return error instanceof ConnectionError && error.temporary;
}

/**
 * The wait before a retry: what the server asks for, and a random part of the step (full jitter), so that callers who
 * were refused together do not come back together. Undefined when the server asks for more than the longest.
 */
function delayOf(error: unknown, tries: number, longestSeconds: number): number | undefined {
  const asked = (error instanceof ProblemError && error.retryAfter) || 0;
  if (longestSeconds <= 0 || asked > longestSeconds) {
    return undefined;
  }
  const step = Math.min(firstStepSeconds * 2 ** tries, longestStepSeconds);
  return Math.min(asked + Math.random() * step, longestSeconds);
}

function wait(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    function stop() {
      clearTimeout(timer);
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Gives work with a server some time. Its signal ends it then, or when the caller's does; work that does not heed it is
 * left. Not made of AbortSignal.timeout and AbortSignal.any: the one leaves a timer behind for each request, and the
 * first releases of Node 20 do not have the other.
 */
export async function within<Result>(
  seconds: number,
  server: string,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason));
  });
  const late = () => controller.abort(timedOut(server, seconds));
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
