import createFetchClient from "openapi-fetch";

import { exchange, recordOf, type Created } from "./answer.js";
import { refusalOf } from "./refusal.js";
import { retry, within } from "./retry.js";
import type { components, paths } from "./schema.gen.js";
import { revealing, type WithSecrets } from "./secret.js";

export type { Advice, Created } from "./answer.js";
export * from "./problems.js";
export { isTemporary } from "./retry.js";
export { Secret, type WithSecrets } from "./secret.js";
export * from "./values.js";

type Schemas = components["schemas"];

export type OAuth2ProviderRequest = Schemas["OAuth2ProviderRequest"];
export type OAuth2Provider = Schemas["OAuth2Provider"];
export type WorkspaceDirectoryProviderRequest = Schemas["WorkspaceDirectoryProviderRequest"];
export type WorkspaceDirectoryProvider = Schemas["WorkspaceDirectoryProvider"];

/** Options of a client. */
export interface ClientOptions {
  /**
   * Sends the requests. It must respect their redirect mode, which is not to follow any, and their signal. The default
   * is the global fetch.
   */
  fetch?: (request: Request) => Promise<Response>;
  /** How often a create is retried; 0 for never. The default is 4. */
  retries?: number;
  /**
   * How many seconds one try may take, from connecting to the last byte of the response: more than 0, up to a day. The
   * default is 30.
   */
  tryTimeoutSeconds?: number;
}

/** Options of one create. */
export interface CreateOptions {
  /**
   * The key by which a later call, of this program or another, finds the record of this one. It must be 1 to 255 visible
   * ASCII characters; otherwise nothing is sent. The default is a random key, which covers only the retries of this call.
   */
  idempotencyKey?: string;
  /**
   * Stores nothing: the call returns the record as it would be stored, with advice, or the refusal of a create. Its pk is
   * 0, a client_id that the server would choose is empty, and so are the secret and the credentials. If the idempotency
   * key already created a record, the call returns that one.
   */
  validateOnly?: boolean;
  /** Makes the server ignore unknown fields (RFC 7240). */
  lenient?: boolean;
  /** Aborts the call, including its wait for a retry. */
  signal?: AbortSignal;
  /**
   * Allows the nil UUID or no value as the authorization flow. Without it, both count as a field that is not set, which
   * is an error, and nothing is sent.
   */
  nilAuthorizationFlow?: boolean;
}

/**
 * Creates providers. After a lost connection, a timeout, or a response of 429, 502, 503 or 504, it retries the create
 * with the same idempotency key, so that all tries create at most one record. Before each retry, it waits for as long as
 * the server asks, at most one minute each time and two minutes in total; if the server asks for more, it throws the
 * refusal at once. It does not follow redirects, which would send the token and the secrets elsewhere, and reads at most
 * 16 MiB of a response. Errors quote neither the token nor the request.
 *
 * A refusal is a ProblemError; common ones have a subclass, such as ClientIdTakenError. If there was no complete
 * response, the error is that of fetch, whose cause has the reason, or a DOMException named TimeoutError; isTemporary
 * returns whether the same request may succeed later.
 */
export interface Client {
  /**
   * Creates an OAuth2 provider and returns the record, including secrets. Throws a ProblemError if it is refused, and a
   * TypeError if the request has no authorization_flow.
   */
  createOAuth2(
    request: WithSecrets<OAuth2ProviderRequest>,
    options?: CreateOptions,
  ): Promise<Created<OAuth2Provider>>;
  /**
   * Creates a workspace directory-sync provider and returns the record, including secrets. Throws a ProblemError if it is
   * refused. Numbers in credentials are JavaScript numbers: the client loses digits beyond their precision.
   */
  createWorkspaceDirectory(
    request: WithSecrets<WorkspaceDirectoryProviderRequest>,
    options?: CreateOptions,
  ): Promise<Created<WorkspaceDirectoryProvider>>;
}

const defaultRetries = 4;
const defaultTryTimeoutSeconds = 30;
const maxTryTimeoutSeconds = 24 * 60 * 60;

/**
 * Returns a client of the server at baseUrl, such as "http://127.0.0.1:8080", with or without /api/v3, with an access
 * token. Throws a TypeError if an argument is invalid. The error quotes none of them.
 */
export function createClient(baseUrl: string, token: string, options: ClientOptions = {}): Client {
  const { fetch: send = fetch, retries = defaultRetries, tryTimeoutSeconds = defaultTryTimeoutSeconds } = options;
  if (typeof baseUrl !== "string" || !isServerUrl(baseUrl)) {
    throw new TypeError("the base URL is not of the form http://HOST:PORT or https://HOST");
  }
  if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError("the access token is not a string of visible ASCII characters without white space");
  }
  if (!(tryTimeoutSeconds > 0 && tryTimeoutSeconds <= maxTryTimeoutSeconds)) {
    throw new TypeError("the try timeout is not positive or is longer than a day");
  }
  const generated = createFetchClient<paths>({
    baseUrl: apiUrl(baseUrl),
    headers: { Authorization: `Bearer ${token}` },
    // With "error", Node says only "fetch failed". With "manual", it returns the redirect and so its host, which a browser
    // hides. Neither follows it.
    redirect: "manual",
    fetch: (request) => exchange(send, request),
  });
  const settings = { retries, tryTimeoutSeconds };
  // The serializer supplies the body, because it reveals secrets.
  return {
    createOAuth2: async (body, chosen = {}) => {
      checkFlow(body, chosen);
      return create<OAuth2Provider>(settings, body, chosen, "providers_oauth2.oauth2provider", (init) =>
        generated.POST("/providers/oauth2/", { body: {} as OAuth2ProviderRequest, ...init }),
      );
    },
    createWorkspaceDirectory: async (body, chosen = {}) =>
      create<WorkspaceDirectoryProvider>(
        settings,
        body,
        chosen,
        "providers_workspace_directory.workspacedirectoryprovider",
        (init) =>
          generated.POST("/providers/workspace_directory/", { body: {} as WorkspaceDirectoryProviderRequest, ...init }),
      ),
  };
}

/** Throws a TypeError if the flow is not set or is the nil UUID. */
function checkFlow(request: WithSecrets<OAuth2ProviderRequest>, options: CreateOptions): void {
  const { authorization_flow: flow } = request as Partial<OAuth2ProviderRequest>;
  if (!options.nilAuthorizationFlow && /^[0-]*$/.test(flow ?? "")) {
    throw new TypeError("authorization_flow is not set; set it to the flow that authorizes this provider");
  }
}

function isServerUrl(text: string): boolean {
  try {
    // fetch rejects a URL with a user name.
    return /^https?:\/\/[^?#]+$/.test(text) && new URL(text).username === "";
  } catch {
    return false;
  }
}

/** Returns the URL of the API for a base URL with or without /api/v3. */
function apiUrl(baseUrl: string): string {
  return `${baseUrl.replace(/\/*(?:\/api\/v3)?\/*$/, "")}/api/v3`;
}

interface Init {
  params: { query?: { validate_only: true }; header: { "Idempotency-Key": string; Prefer?: string } };
  bodySerializer: () => string;
  parseAs: "text";
  signal: AbortSignal;
}

/** Sends a create, with retries. */
async function create<Provider extends OAuth2Provider | WorkspaceDirectoryProvider>(
  { retries, tryTimeoutSeconds }: { retries: number; tryTimeoutSeconds: number },
  body: unknown,
  options: CreateOptions,
  model: string,
  post: (init: Init) => Promise<{ data?: string; error?: unknown; response: Response }>,
): Promise<Created<Provider>> {
  const { idempotencyKey = crypto.randomUUID(), validateOnly, lenient, signal: callers } = options;
  if (!/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw new TypeError("the idempotency key is not 1 to 255 visible ASCII characters");
  }
  const params = {
    header: { "Idempotency-Key": idempotencyKey, ...(lenient && { Prefer: "handling=lenient" }) },
    ...(validateOnly && { query: { validate_only: true as const } }),
  };
  const [status, leastPk] = validateOnly ? [200, 0] : [201, 1];
  const text = encode(body);
  return retry(retries, callers, () =>
    within(tryTimeoutSeconds, callers, async (signal) => {
      const sent = post({ params, bodySerializer: () => text, parseAs: "text", signal });
      const { data = "", error, response } = await sent.catch((reason: { cause?: { data?: unknown } } | undefined) => {
        // A response that is not HTTP, which may quote the request.
        delete reason?.cause?.data;
        throw reason;
      });
      if (!response.ok) {
        throw refusalOf(error, response);
      }
      if (response.status !== status) {
        throw new Error(`the status is ${response.status} instead of ${status}; is this a providerd server?`);
      }
      return recordOf<Provider>(data, response, model, leastPk);
    }),
  );
}

function encode(body: unknown): string {
  try {
    const text: unknown = JSON.stringify(body, revealing);
    if (typeof text === "string") {
      return text;
    }
  } catch {
    // The error of JSON.stringify may quote names of the body.
  }
  throw new TypeError("the request cannot be encoded as JSON");
}
