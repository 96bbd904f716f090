// Mocks, a validating proxy, an import into Postman, generated tests, and a linter.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { execute, json, npm, yaml } from "./tools.mjs";

/** Starts Prism, hands its URL to an action, and ends it. */
async function prism(args, action) {
  const stdio = ["ignore", "pipe", "inherit"];
  const program = spawn(resolve("node_modules/.bin/prism"), [...args, "--port", "0"], { stdio });
  const ended = once(program, "exit");
  try {
    for await (const line of createInterface({ input: program.stdout })) {
      const [, url] = line.match(/listening on (\S+)/) ?? [];
      if (url) return await action(url);
    }
    throw new Error("Prism did not start");
  } finally {
    program.kill();
    await ended;
  }
}

const redocly = (...args) => execute("../node_modules/.bin/redocly", args);

async function post(base, token, { path = "oauth2", body, headers, query = "" }) {
  const own = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${base}/providers/${path}/${query}`, { method: "POST", headers: own, body: text });
  return { status: response.status, body: await response.json() };
}

function expectRecord({ status, body }) {
  const created = [200, 201].includes(status) && body.pk > 0 && body.name;
  if (!created) throw new Error(`mocked ${status} ${JSON.stringify(body)}`);
}

const workspace = (body, more) => ({ path: "workspace_directory", body, ...more });

/** The example requests of the document. */
async function examples() {
  const { examples } = JSON.parse(await readFile(json)).components;
  return {
    oauth2: examples.OAuth2ProviderMinimalRequest.value,
    fullOauth2: examples.OAuth2ProviderFullRequest.value,
    directory: examples.WorkspaceDirectoryProviderMinimalRequest.value,
    fullDirectory: examples.WorkspaceDirectoryProviderFullRequest.value,
  };
}

/** Requests of every kind that the server tells apart; those of one key create one record. */
async function requests() {
  const { oauth2, fullOauth2, directory, fullDirectory } = await examples();
  const headers = { "Idempotency-Key": "proxy" };
  const uris = ["javascript:alert(1)", "urn:one\nDATA:x", "urn:\u2003", "no scheme", "urn:a\r\nurn:b\n"];
  return [
    { body: oauth2 },
    workspace(directory),
    { body: fullOauth2, query: "?validate_only=true" },
    workspace(fullDirectory, { query: "?validate_only=true" }),
    { body: oauth2, query: "?validate_only=false", headers: { Prefer: "handling=lenient" } },
    { body: oauth2, headers },
    { body: oauth2, headers, query: "?validate_only=true" },
    { body: { ...oauth2, name: "Other" }, headers },
    { body: { ...oauth2, client_id: "taken" }, headers: { "Idempotency-Key": "taken" } },
    { body: { ...oauth2, client_id: "taken" } },
    { body: oauth2, query: "?validate-only=true" },
    { body: oauth2, headers: { Authorization: "Bearer unknown" } },
    ...["\u3000", "\u00A0", "", 7, null].map((name) => ({ body: { ...oauth2, name } })),
    ...uris.map((redirect_uris) => ({ body: { ...oauth2, redirect_uris } })),
    { body: { ...oauth2, authorization_flow: "3f6e1c1a" } },
    { body: { ...oauth2, access_code_validity: "1h" } },
    { body: { ...oauth2, pk: 1 } },
    workspace({ ...directory, delegated_subject: "admin@" }),
    workspace({ ...directory, credentials: "secret" }),
    workspace({}),
  ];
}

export const others = [
  {
    id: "prism",
    name: "Prism as a mock",
    use: () =>
      prism(["mock", yaml], async (url) => {
        const { oauth2, directory } = await examples();
        expectRecord(await post(url, "token", { body: oauth2 }));
        expectRecord(await post(url, "token", workspace(directory)));
        const created = await post(url, "token", { body: oauth2, headers: { Prefer: "code=201" } });
        const refused = await post(url, "token", { body: {} });
        if (created.status !== 201 || refused.status !== 422) throw new Error(`${created.status}, ${refused.status}`);
      }),
  },
  {
    id: "openapi-backend",
    name: "openapi-backend as a mock",
    use: async () => {
      const { OpenAPIBackend } = await import("openapi-backend");
      const api = new OpenAPIBackend({ definition: json, quick: true });
      await api.init();
      for (const operation of ["providers_oauth2_create", "providers_workspace_directory_create"]) {
        const { status, mock } = api.mockResponseForOperation(operation);
        expectRecord({ status, body: mock });
      }
      const settings = { apiRoot: "/api/v3", ignoreTrailingSlashes: false };
      for (const [options, want] of [[{}, "none"], [settings, "providers_oauth2_create"]]) {
        const router = new OpenAPIBackend({ definition: json, quick: true, validate: false, ...options });
        router.register({ notFound: () => "none", notImplemented: ({ operation }) => operation.operationId });
        await router.init();
        const found = await router.handleRequest({ method: "POST", path: "/api/v3/providers/oauth2/", headers: {} });
        if (found !== want) throw new Error(`${JSON.stringify(options)}: ${found}`);
      }
    },
  },
  {
    // With --errors, Prism answers 422 to a request and 500 to a response that the document does not allow.
    id: "prism-proxy",
    name: "Prism as a proxy",
    use: ({ url, token }) =>
      prism(["proxy", "--errors", yaml, `${url}/api/v3`], async (proxy) => {
        for (const request of await requests()) {
          const direct = await post(`${url}/api/v3`, token, request);
          const proxied = await post(proxy, token, request);
          const refused = direct.status === 400 && proxied.body.title === "Invalid request";
          if (proxied.status !== direct.status && !refused) {
            throw new Error(JSON.stringify({ request, direct, proxied }));
          }
        }
      }),
  },
  {
    id: "postman",
    name: "openapi-to-postmanv2 with newman",
    use: async ({ url, token }) => {
      const { default: postman } = await import("openapi-to-postmanv2");
      const { default: newman } = await import("newman");
      const document = { type: "string", data: await readFile(yaml, "utf8") };
      const convert = promisify(postman.convertV2);
      const variables = { baseUrl: `${url}/api/v3`, bearerToken: token };
      const envVar = Object.entries(variables).map(([key, value]) => ({ key, value }));
      // With the default settings, booleans are the text "<boolean>".
      for (const [options, want] of [[{}, 400], [{ parametersResolution: "Example" }, 201]]) {
        const { result, reason, output } = await convert(document, options);
        if (!result) throw new Error(reason);
        const { run } = await promisify(newman.run)({ collection: output[0].data, envVar });
        const answers = run.executions.map(({ response }) => `${response.code} ${response.stream}`);
        const expected = answers.filter((answer) => answer.startsWith(`${want} `));
        if (expected.length !== 2 || answers.length !== 2) throw new Error(answers.join("\n"));
      }
    },
  },
  {
    id: "arazzo",
    name: "Redocly respect, with an Arazzo file",
    ci: true,
    use: ({ url, token }) => {
      const options = ["--input", `token=${token}`, "--server", `providers=${url}/api/v3`];
      return redocly("respect", "providers.arazzo.yaml", ...options);
    },
  },
  {
    // A generated file expects the lowest 2xx, which is a validation's.
    id: "generate-arazzo",
    name: "Redocly generate-arazzo with respect",
    use: async ({ url, token }) => {
      const file = resolve("generated/arazzo.yaml");
      await redocly("generate-arazzo", yaml, "--output-file", file);
      const respect = () => redocly("respect", file, "--input", `bearer=${token}`, "--server", `openapi=${url}/api/v3`);
      const failed = await respect().then(() => false, () => true);
      await writeFile(file, (await readFile(file, "utf8")).replaceAll("== 200", "== 201"));
      await respect();
      if (!failed) throw new Error("respect passes without a change");
    },
  },
  {
    id: "spectral",
    name: "Spectral",
    ci: true,
    use: () => npm("spectral", "lint", "--ruleset", "spectral.yaml", "--fail-severity", "warn", yaml),
  },
];
