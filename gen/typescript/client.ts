import { exchange, recordOf, refusalOf, type Created } from "./answer.js";
import { check, checkObject, checkOptions } from "./options.js";
import { retry } from "./retry.js";
import type { components, paths } from "./schema.gen.js";
import { encode, type WithSecrets } from "./secret.js";

export type { Advice, Created } from "./answer.js";
export { InvalidArgument } from "./options.js";
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
  /** How often a create is retried: a whole number, 0 for never. The default is 4. */
  retries?: number;
  /**
   * How many seconds one attempt may take, from connecting to the last byte of the response: more than 0, up to a day. The
   * default is 30.
   */
  tryTimeoutSeconds?: number;
}

/** Options of one create. */
export interface CreateOptions {
  /**
   * The key by which a later call, of this program or another, finds the record of this one: 1 to 255 visible ASCII
   * characters. Quotation marks are part of a key. The default is a random key, which covers only the retries of this call:
   * another call creates another record. undefined is an error: the key of a program could be in an unset variable.
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
   * Sends what is an error without it, because it is probably a mistake: the nil UUID or no value as the authorization
   * flow, an empty or masked client_secret, or two redirect URIs on a line.
   */
  unchecked?: boolean;
}

/**
 * Creates providers. After a lost connection, a timeout, or a response of 429, 502, 503 or 504, it retries the create
 * with the same idempotency key, so that all attempts create at most one record. Before each retry, it waits for as
 * long as the server asks, at most one minute each time and two minutes in total; if the server asks for more, it
 * throws the refusal immediately. It does not follow redirects, which would send the token and the secrets elsewhere,
 * and reads at most 16 MiB of a response. Errors quote neither the token nor the request.
 *
 * A refusal is a ProblemError; common ones have a subclass, such as ClientIdTakenError. Without a complete response, the
 * error is that of fetch, or a DOMException named TimeoutError; isTemporary returns whether a retry may succeed.
 */
export interface Client {
  /**
   * Creates an OAuth2 provider and returns the record, including secrets. Throws a ProblemError if it is refused, and an
   * InvalidArgument, without sending it, if an option is invalid, or a field is unset, empty or not JSON by mistake.
   */
  createOAuth2(request: WithSecrets<OAuth2ProviderRequest>, options?: CreateOptions): Promise<Created<OAuth2Provider>>;
  /**
   * Creates a workspace directory-sync provider and returns the record, including secrets. Throws a ProblemError if it is
   * refused. Numbers in credentials are JavaScript numbers: the client loses digits beyond their precision.
   */
  createWorkspaceDirectory(
    request: WithSecrets<WorkspaceDirectoryProviderRequest>, options?: CreateOptions,
  ): Promise<Created<WorkspaceDirectoryProvider>>;
}

const clientTypes: Record<keyof ClientOptions, string> = { fetch: "function", retries: "number", tryTimeoutSeconds: "number" };
const createTypes: Record<keyof CreateOptions, string> = {
  idempotencyKey: "string", validateOnly: "boolean", lenient: "boolean",
  signal: "AbortSignal, such as controller.signal", unchecked: "boolean",
};

/** Matches tokens that come from an unset variable, a shell that did not expand it, or a template. */
const placeholder = /^(undefined|null|None|nil|TOKEN)?$|[$<>%`]|^\{\{/;
/** Does not match every slash, because the tokens of a gateway may be Base64. */
const pathOfFile = /^(\.{0,2}\/|[~@])|\\|(\.txt|[./-]token)$/;

/**
 * Returns a client of the server at baseUrl, such as "http://127.0.0.1:8080", with or without /api/v3, with an access
 * token. Throws a TypeError if an argument is invalid. The error quotes none of them.
 */
export function createClient(baseUrl: string, token: string, options: ClientOptions = {}): Client {
  checkOptions(options, clientTypes);
  const { fetch: send = fetch, retries = 4, tryTimeoutSeconds = 30 } = options;
  // fetch rejects a URL with a user name.
  const form = /^https?:\/\/(?!.*\/api\/v3\/providers)[^/?#@\s]+(\/[^?#\s]*)?$/;
  const isUrl = typeof baseUrl === "string" && form.test(baseUrl) && URL.canParse(baseUrl);
  check(isUrl, "the base URL is not a string of the form http://HOST:PORT or https://HOST; call createClient(baseUrl, token, options)");
  check(!placeholder.test(token ?? ""), "the access token is empty, a placeholder or a variable that was not expanded; set the variable or file that it comes from");
  check(typeof token === "string", "the access token is not a string; await a promise; call createClient(baseUrl, token, options)");
  check(!/^Bearer\s/i.test(token), "the access token begins with Bearer; pass it without: the client adds it");
  check(!pathOfFile.test(token), "the access token is the path of a file; pass what the file contains");
  check(/^[\x21-\x7e]+$/.test(token), "the access token is not visible ASCII; pass it as it was issued, without the line break of its file");
  check(tryTimeoutSeconds > 0 && tryTimeoutSeconds <= 24 * 60 * 60, "the timeout of an attempt is not positive or is longer than a day");
  check(Number.isSafeInteger(retries) && retries >= 0, "the number of retries is not a whole number of at least 0");
  const server = { url: baseUrl.replace(/\/*(?:\/api\/v3)?\/*$/, "/api/v3"), token, fetch: send, retries, tryTimeoutSeconds };
  return {
    createOAuth2: async (body, chosen) => create(server, "/providers/oauth2/", "providers_oauth2.oauth2provider", body, chosen),
    createWorkspaceDirectory: async (body, chosen) =>
      create(server, "/providers/workspace_directory/", "providers_workspace_directory.workspacedirectoryprovider", body, chosen),
  };
}

async function create<Provider extends OAuth2Provider | WorkspaceDirectoryProvider>(
  { url, token, fetch: send, retries, tryTimeoutSeconds }: Required<ClientOptions> & { url: string; token: string },
  path: keyof paths, model: string, body: object, options: CreateOptions = {},
): Promise<Created<Provider>> {
  checkOptions(options, createTypes);
  const { idempotencyKey: key = "idempotencyKey" in options ? "" : crypto.randomUUID() } = options;
  check(/^[\x21-\x7e]{1,255}$/.test(key), "the idempotency key is not 1 to 255 visible ASCII characters; write one without spaces, such as import-wiki");
  checkObject("the request is", body);
  const { validateOnly = false, lenient, unchecked = false, signal: callers } = options;
  const { authorization_flow: flow, redirect_uris: uris = "" } = body as Partial<OAuth2ProviderRequest>;
  // If the member is missing, the server knows whether another one is misspelled.
  const isUnset = path === "/providers/oauth2/" && "authorization_flow" in body && /^[0-]*$/.test(flow ?? "");
  check(!isUnset || unchecked, "authorization_flow is not set; set it to the flow that authorizes this provider");
  const isList = typeof uris === "string" && (unchecked || !/([,;|]|\\[rn]) *[a-z][a-z0-9+.-]*:\/\//i.test(uris));
  check(isList, "redirect_uris is not a string with one URI on each line; pass each URI as an argument of redirectUris()");
  const inSnakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const misplaced = Object.keys(createTypes).find((name) => name in body || inSnakeCase(name) in body);
  check(misplaced === undefined, `${misplaced} is an option, not a field; pass it in the second argument`);
  const target = `${url}${path}${validateOnly ? "?validate_only=true" : ""}`;
  const headers = {
    Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Idempotency-Key": key,
    ...(lenient && { Prefer: "handling=lenient" }),
  };
  const text = encode(body, unchecked);
  return retry(retries, tryTimeoutSeconds, callers, async (signal) => {
    // With the redirect mode "error", Node says only "fetch failed". With "manual", it returns the redirect and so its
    // host, which a browser hides. Neither follows it.
    const request = new Request(target, { method: "POST", headers, body: text, redirect: "manual", signal });
    const { answer, response } = await exchange(send, request);
    if (!response.ok) {
      throw refusalOf(answer, response);
    }
    return recordOf<Provider>(answer, response, model, validateOnly);
  });
}
