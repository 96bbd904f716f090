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

/** How a client works. */
export interface ClientOptions {
  /**
   * Sends the requests. It must heed their redirect mode, which is to follow none, and their signal. The default is the
   * global fetch.
   */
  fetch?: (request: Request) => Promise<Response>;
  /** How often a create is sent again; 0 for never. The default is 4. */
  retries?: number;
  /**
   * How many seconds one try may take, from connecting to the last byte of the answer, before it counts as lost: more
   * than 0, up to a day. The default is 30.
   */
  tryTimeoutSeconds?: number;
}

/** What changes one create, or its validation. */
export interface CreateOptions {
  /**
   * Lets a later call, of this program or another, find the record of this one: 1 to 255 visible ASCII characters, and
   * nothing is sent with another. The default is a random key, which holds for the retries of this call alone.
   */
  idempotencyKey?: string;
  /** Makes the server ignore fields that it does not know (RFC 7240). */
  lenient?: boolean;
  /** Ends the call, and its waiting for a retry. */
  signal?: AbortSignal;
  /**
   * Sends the nil UUID, or nothing, where that is the authorization flow. Without it, both are taken for a field that
   * nobody set: nothing is sent, and the error says so.
   */
  nilAuthorizationFlow?: boolean;
}

/**
 * Creates providers. A create that meets a lost connection, a try that takes too long, or 429, 502, 503 or 504 is sent
 * again with the same idempotency key, so that it makes one record however often it is sent. Before, it waits for as
 * long as the server asks, at most a minute each time and two minutes in all; where the server asks for more, the
 * refusal is thrown at once. No redirect is followed, since it would take the token and the secrets elsewhere, and at
 * most 16 MiB of an answer are read. Neither the token nor the request is in an error.
 *
 * A refusal is a ProblemError, and of a class of its own where it is a common one, such as ClientIdTakenError. If there
 * was no usable response, the error is a ConnectionError, which says what was found and what to do; after a timeout it
 * is a TimeoutError.
 */
export interface Client {
  /**
   * Creates an OAuth2 provider and returns the record, secrets included. Throws a ProblemError when it is refused, and a
   * TypeError when the request has no authorization_flow.
   */
  createOAuth2(
    request: WithSecrets<OAuth2ProviderRequest>,
    options?: CreateOptions,
  ): Promise<Created<OAuth2Provider>>;
  /**
   * Creates a workspace directory-sync provider and returns the record, secrets included. Throws a ProblemError when it
   * is refused. Numbers in credentials are those of JavaScript: digits beyond their precision are lost on this side.
   */
  createWorkspaceDirectory(
    request: WithSecrets<WorkspaceDirectoryProviderRequest>,
    options?: CreateOptions,
  ): Promise<Created<WorkspaceDirectoryProvider>>;
  /**
   * Asks what createOAuth2 would do with the same request and options, and stores nothing. Throws a ProblemError when the
   * create would be refused. A server that is too old to know validate_only stores the provider all the same, which the
   * error says. A verdict whose outcome this package does not know is an error, too, since a caller that took it for one
   * of the others would be wrong.
   */
  validateOAuth2(request: WithSecrets<OAuth2ProviderRequest>, options?: CreateOptions): Promise<Verdict>;
  /** Asks what createWorkspaceDirectory would do, as validateOAuth2 does. */
  validateWorkspaceDirectory(
    request: WithSecrets<WorkspaceDirectoryProviderRequest>,
    options?: CreateOptions,
  ): Promise<Verdict>;
}

const defaultRetries = 4;
const defaultTryTimeoutSeconds = 30;
const longestTryTimeoutSeconds = 24 * 60 * 60;

/**
 * Returns a client of the server at baseUrl, such as "http://127.0.0.1:8080", with or without /api/v3, for the caller
 * that a token names. Throws a TypeError, which does not repeat them, when they cannot be used.
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
    throw new TypeError("the access token has white space, line ends or other characters that no token has");
  }
  if (!(tryTimeoutSeconds > 0 && tryTimeoutSeconds <= longestTryTimeoutSeconds)) {
    throw new TypeError("the timeout of a try is not positive, or longer than a day");
  }
  const generated = createFetchClient<paths>({
    baseUrl: apiUrl(baseUrl),
    headers: { Authorization: `Bearer ${token}` },
    // Not "error": Node then says no more than "fetch failed". With "manual" it shows the answer, and so the host that it
    // leads to; a browser hides that. Neither follows it.
    redirect: "manual",
    fetch: (request) => exchange(send, request),
  });
  const settings = { api: new URL(apiUrl(baseUrl)), retries, tryTimeoutSeconds };
  // The body is that of the serializer, which reveals secrets.
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

/** Throws a TypeError for a flow that nobody set: none, or the nil UUID. */
function checkFlow(request: WithSecrets<OAuth2ProviderRequest>, options: CreateOptions): void {
  const { authorization_flow: flow } = request as Partial<OAuth2ProviderRequest>;
  if (!options.nilAuthorizationFlow && /^[0-]*$/.test(flow ?? "")) {
    throw new TypeError("authorization_flow is not set; name the flow that authorizes this provider");
  }
}

function isServerUrl(text: string): boolean {
  try {
    // A URL with a user name cannot be fetched.
    return /^https?:\/\/[^?#]+$/.test(text) && new URL(text).username === "";
  } catch {
    return false;
  }
}

/** The URL of the operations, which a base URL may have already. */
function apiUrl(baseUrl: string): string {
  return `${baseUrl.replace(/\/*(?:\/api\/v3)?\/*$/, "")}/api/v3`;
}

interface Settings {
  /** The URL that the operations are below. */
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
      throw new Error("the server does not know validate_only, and has stored the provider; upgrade it");
    }
    return response.status === 200 ? verdictOf(text, response) : undefined;
  });
}

/** Carries out one request until it is answered for good, or has been sent often enough. What is not read is a refusal. */
async function send<Result>(
  settings: Settings,
  body: unknown,
  options: CreateOptions,
  post: Post,
  read: (text: string, response: Response) => Result | undefined,
): Promise<Result> {
  const { idempotencyKey = crypto.randomUUID(), lenient, signal: callers } = options;
  if (!/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw new TypeError("the idempotency key does not have 1 to 255 visible ASCII characters");
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
    // The error of JSON.stringify can have names of the body.
  }
  throw new TypeError("the request cannot be encoded as JSON");
}
