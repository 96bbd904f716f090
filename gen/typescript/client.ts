import createFetchClient from "openapi-fetch";

import type { components, paths } from "./schema.gen.js";

type Schemas = components["schemas"];

export type OAuth2ProviderRequest = Schemas["OAuth2ProviderRequest"];
export type OAuth2Provider = Schemas["OAuth2Provider"];
export type WorkspaceDirectoryProviderRequest = Schemas["WorkspaceDirectoryProviderRequest"];
export type WorkspaceDirectoryProvider = Schemas["WorkspaceDirectoryProvider"];
export type Problem = Schemas["Problem"];
export type Violation = Schemas["Violation"];

/** How a client works. */
export interface ClientOptions {
  /** Sends the requests. The default is the global fetch. */
  fetch?: (request: Request) => Promise<Response>;
  /** How often a create is sent again; 0 for never. The default is 4. */
  retries?: number;
}

/** What changes one create. */
export interface CreateOptions {
  /**
   * Lets a later call, of this program or another, find the record of this one: 1 to 255 visible ASCII characters. The
   * default is a random key, which holds for the retries of this call alone.
   */
  idempotencyKey?: string;
  /** Makes the server ignore fields that it does not know (RFC 7240). */
  lenient?: boolean;
  /** Ends the call, and its waiting for a retry. */
  signal?: AbortSignal;
}

/**
 * Creates providers. A create that meets a lost connection, 429 or 503 is sent again with the same idempotency key, so
 * that it makes one record however often it is sent.
 */
export interface Client {
  /** Creates an OAuth2 provider and returns the record, secrets included. Throws a ProblemError when it is refused. */
  createOAuth2(request: OAuth2ProviderRequest, options?: CreateOptions): Promise<OAuth2Provider>;
  /**
   * Creates a workspace directory-sync provider and returns the record, secrets included. Throws a ProblemError when it
   * is refused. Numbers in credentials are those of JavaScript: digits beyond their precision are lost on this side.
   */
  createWorkspaceDirectory(
    request: WorkspaceDirectoryProviderRequest,
    options?: CreateOptions,
  ): Promise<WorkspaceDirectoryProvider>;
}

/** A refusal: the problem document (RFC 9457) that the server answered. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly problem: Problem,
    /** How many seconds the server asks to wait; undefined where it does not. */
    readonly retryAfter?: number,
  ) {
    const violations = (problem.errors ?? []).map(({ pointer, detail }) => ` ${pointer} ${detail}.`).join("");
    super(`${problem.status} ${problem.title}: ${problem.detail}${violations} (request ${problem.request_id})`);
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

const defaultRetries = 4;
const firstWaitSeconds = 0.25;
const longestWaitSeconds = 10;

/** Returns a client of the server at baseUrl, such as "http://127.0.0.1:8080", for the caller that a token names. */
export function createClient(baseUrl: string, token: string, options: ClientOptions = {}): Client {
  if (!/^https?:\/\/./.test(baseUrl)) {
    throw new TypeError("the base URL is not of the form http://HOST:PORT or https://HOST");
  }
  if (token === "") {
    throw new TypeError("the access token is empty");
  }
  const generated = createFetchClient<paths>({
    baseUrl: `${baseUrl.replace(/\/+$/, "")}/api/v3`,
    headers: { Authorization: `Bearer ${token}` },
    ...(options.fetch && { fetch: options.fetch }),
  });
  const retries = options.retries ?? defaultRetries;
  return {
    createOAuth2: (body, chosen = {}) =>
      send(retries, chosen, (init) => generated.POST("/providers/oauth2/", { body, ...init })),
    createWorkspaceDirectory: (body, chosen = {}) =>
      send(retries, chosen, (init) => generated.POST("/providers/workspace_directory/", { body, ...init })),
  };
}

interface Init {
  params: { header: { "Idempotency-Key": string; Prefer?: string } };
  signal?: AbortSignal;
}

interface Answer<Provider> {
  data?: Provider;
  error?: unknown;
  response: Response;
}

/** Carries out one create until it is answered for good, or has been sent often enough. */
async function send<Provider>(
  retries: number,
  options: CreateOptions,
  attempt: (init: Init) => Promise<Answer<Provider>>,
): Promise<Provider> {
  const header = {
    "Idempotency-Key": options.idempotencyKey ?? crypto.randomUUID(),
    ...(options.lenient && { Prefer: "handling=lenient" }),
  };
  const init: Init = { params: { header }, ...(options.signal && { signal: options.signal }) };
  for (let tries = 0; ; tries++) {
    try {
      const { data, error, response } = await attempt(init);
      if (response.status === 201 && data !== undefined) {
        return data;
      }
      throw new ProblemError(problemOf(error, response), retryAfterOf(response));
    } catch (error) {
      options.signal?.throwIfAborted();
      if (tries >= retries || !isTemporary(error)) {
        throw error;
      }
      await wait(delayOf(error, tries), options.signal);
    }
  }
}

/** The problem document of an answer. Where a proxy answered something else, only the status is known. */
function problemOf(error: unknown, response: Response): Problem {
  if (typeof error === "object" && error !== null && (error as Partial<Problem>).status === response.status) {
    return error as Problem;
  }
  return {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: "The answer is not a problem document. Does something stand between this program and the server?",
    request_id: response.headers.get("X-Request-Id") ?? "",
  };
}

function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get("Retry-After") ?? "";
  return /^\d{1,5}$/.test(text) ? Number(text) : undefined;
}

/** Tells whether the same request may fare better later. The idempotency key makes it safe to find out. */
function isTemporary(error: unknown): boolean {
  return !(error instanceof ProblemError) || error.status === 429 || error.status === 503;
}

function delayOf(error: unknown, tries: number): number {
  const asked = error instanceof ProblemError ? error.retryAfter : undefined;
  return asked ?? Math.min(firstWaitSeconds * 2 ** tries, longestWaitSeconds);
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
