import createFetchClient from "openapi-fetch";

import { exchange, recordOf, verdictOf, type Created, type Verdict } from "./answer.js";
import { connectionError, wantsHttps } from "./connection.js";
import { refusalOf } from "./refusal.js";
import { retry, within } from "./retry.js";
import type { components, paths } from "./schema.gen.js";
import { revealing, type WithSecrets } from "./secret.js";

export type { Created, Verdict } from "./answer.js";
export { ConnectionError, TimeoutError } from "./connection.js";
export { problemTypes, violationCodes, type ViolationCode } from "./constants.js";
export {
  ClientIdTakenError,
  ForbiddenError,
  IdempotencyKeyReusedError,
  NotFoundError,
  OutcomeUnknownError,
  OverloadedError,
  ProblemError,
  StorageUnavailableError,
  TooManyRequestsError,
  UnauthorizedError,
  ValidationFailedError,
  type Problem,
  type Violation,
} from "./refusal.js";
export { Secret, type WithSecrets } from "./secret.js";
export { duration, redirectUris, type Duration } from "./values.js";

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

/** Options of one create or validation. */
export interface CreateOptions {
  /**
   * The key by which a later call, of this program or another, finds the record of this one. It must be 1 to 255 visible
   * ASCII characters; otherwise nothing is sent. The default is a random key, which covers only the retries of this call.
   */
  idempotencyKey?: string;
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
 * A refusal is a ProblemError; common ones have a subclass, such as ClientIdTakenError. If there was no usable response,
 * the error is a ConnectionError, which says what was found and what to do; after a timeout, it is a TimeoutError.
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
  /**
   * Returns what createOAuth2 would do with the same request and options, and stores nothing. Throws a ProblemError if
   * the create would be refused. If the server is too old to support validate_only, it stores the provider, and the error
   * says so. A verdict with an unknown outcome is an error too, so that no caller mistakes it for a known one.
   */
  validateOAuth2(request: WithSecrets<OAuth2ProviderRequest>, options?: CreateOptions): Promise<Verdict>;
  /** Returns what createWorkspaceDirectory would do. See validateOAuth2. */
  validateWorkspaceDirectory(
    request: WithSecrets<WorkspaceDirectoryProviderRequest>,
    options?: CreateOptions,
  ): Promise<Verdict>;
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
  if (!isServerUrl(baseUrl)) {
    throw new TypeError("the base URL is not of the form http://HOST:PORT or https://HOST");
  }
  if (token === "") {
    throw new TypeError("the access token is empty");
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError("the access token contains white space, line breaks or other invalid characters");
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
  const settings = { api: new URL(apiUrl(baseUrl)), retries, tryTimeoutSeconds };
  // The serializer supplies the body, because it reveals secrets.
  const postOAuth2: Post = (init) =>
    generated.POST("/providers/oauth2/", { body: {} as OAuth2ProviderRequest, ...init });
  const postWorkspaceDirectory: Post = (init) =>
    generated.POST("/providers/workspace_directory/", { body: {} as WorkspaceDirectoryProviderRequest, ...init });
  return {
    createOAuth2: async (body, chosen = {}) => {
      checkFlow(body, chosen);
      return create<OAuth2Provider>(settings, body, chosen, "providers_oauth2.oauth2provider", postOAuth2);
    },
    createWorkspaceDirectory: (body, chosen = {}) =>
      create<WorkspaceDirectoryProvider>(
        settings,
        body,
        chosen,
        "providers_workspace_directory.workspacedirectoryprovider",
        postWorkspaceDirectory,
      ),
    validateOAuth2: async (body, chosen = {}) => {
      checkFlow(body, chosen);
      return validate(settings, body, chosen, postOAuth2);
    },
    validateWorkspaceDirectory: (body, chosen = {}) => validate(settings, body, chosen, postWorkspaceDirectory),
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

interface Settings {
  /** The URL of the API. */
  api: URL;
  retries: number;
  tryTimeoutSeconds: number;
}

interface Init {
  params: { query?: { validate_only: true }; header: { "Idempotency-Key": string; Prefer?: string } };
  bodySerializer: () => string;
  parseAs: "text";
  signal: AbortSignal;
}

type Post = (init: Init) => Promise<{ data?: string; error?: unknown; response: Response }>;

function create<Provider extends OAuth2Provider | WorkspaceDirectoryProvider>(
  settings: Settings,
  body: unknown,
  options: CreateOptions,
  model: Provider["meta_model_name"],
  post: Post,
): Promise<Created<Provider>> {
  return send(settings, body, options, post, (text, response) =>
    response.status === 201 ? recordOf<Provider>(text, response, model) : undefined,
  );
}

function validate(settings: Settings, body: unknown, options: CreateOptions, post: Post): Promise<Verdict> {
  const validateOnly: Post = (init) => post({ ...init, params: { ...init.params, query: { validate_only: true } } });
  return send(settings, body, options, validateOnly, (text, response) => {
    if (response.status === 201) {
      throw new Error("the server does not support validate_only and stored the provider; upgrade it");
    }
    return response.status === 200 ? verdictOf(text, response) : undefined;
  });
}

/** Sends a request, with retries. A response for which read returns undefined is a refusal. */
async function send<Result>(
  settings: Settings,
  body: unknown,
  options: CreateOptions,
  post: Post,
  read: (text: string, response: Response) => Result | undefined,
): Promise<Result> {
  const { idempotencyKey = crypto.randomUUID(), lenient, signal: callers } = options;
  if (!/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw new TypeError("the idempotency key is not 1 to 255 visible ASCII characters");
  }
  const header = { "Idempotency-Key": idempotencyKey, ...(lenient && { Prefer: "handling=lenient" }) };
  const text = encode(body);
  const { api, retries, tryTimeoutSeconds } = settings;
  const server = api.origin;
  return retry(retries, callers, () =>
    within(tryTimeoutSeconds, server, callers, async (signal) => {
      const init: Init = { params: { header }, bodySerializer: () => text, parseAs: "text", signal };
      const { data = "", error, response } = await post(init).catch((reason: unknown) => {
        throw connectionError(reason, server);
      });
      const result = read(data, response);
      if (result === undefined) {
        const refused = refusalOf(error, response, api);
        throw wantsHttps(server, refused, error) ?? refused;
      }
      return result;
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
