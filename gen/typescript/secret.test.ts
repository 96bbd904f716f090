import { inspect } from "node:util";

import {
  createClient,
  Secret,
  type OAuth2ProviderRequest,
  type WorkspaceDirectoryProviderRequest,
} from "./client.js";
import { startServer } from "./testdata/server.js";

const flow = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01";
const server = await startServer();

afterAll(() => server.stop());

function client() {
  return createClient(server.baseUrl, server.token);
}

/** Everything that a program may print of a value. */
function shown(value: unknown): string {
  return [
    inspect(value, { depth: null, showHidden: true }),
    inspect({ value }, { depth: null }),
    JSON.stringify([value]),
    JSON.stringify({ ...(value as object) }),
    String(value),
  ].join("\n");
}

const directory = { name: "Staff", delegated_subject: "admin@example.com", default_group_email_domain: "example.com" };

test("sends secrets, and does not print them", async () => {
  const request = { name: "Wiki", authorization_flow: flow, client_secret: new Secret("hunter2") };
  expect(shown(request)).not.toContain("hunter2");
  expect(shown(request)).toContain("********");
  expect(`${request.client_secret} ${request.client_secret.reveal()}`).toBe("******** hunter2");
  const record = await client().createOAuth2(request);
  expect(record.client_secret).toBe("hunter2");
  expect(shown(record)).not.toContain("hunter2");
  expect(shown(record)).toContain(record.client_id);

  const credentials = { key: "hunter2", n: [1] };
  const ofDirectory = { ...directory, credentials: new Secret(credentials) };
  expect(shown(ofDirectory)).not.toContain("hunter2");
  const stored = await client().createWorkspaceDirectory(ofDirectory);
  expect(stored.credentials).toEqual(credentials);
  expect(shown(stored)).not.toContain("hunter2");
  const nested = { ...directory, credentials: { key: new Secret("hunter2"), n: [1] } };
  expect((await client().createWorkspaceDirectory(nested)).credentials).toEqual(credentials);
});

test("accepts plain secrets, and lets those of a record be set", async () => {
  const oauth2: OAuth2ProviderRequest = { name: "Plain", authorization_flow: flow, client_secret: "hunter2" };
  const record = await client().createOAuth2(oauth2);
  record.client_secret = "other";
  expect(record.client_secret).toBe("other");
  const request: WorkspaceDirectoryProviderRequest = { ...directory, credentials: { key: "hunter2" } };
  expect((await client().createWorkspaceDirectory(request, { validateOnly: true })).pk).toBe(0);
});

test("prints neither the token nor a secret of a client or an error", async () => {
  const token = server.token.replace(/.$/, "x");
  const request = { name: " ", authorization_flow: flow, client_secret: "hunter2" };
  const strangers = createClient(server.baseUrl, token);
  const gone = createClient("http://127.0.0.1:1", token, { retries: 0 });
  const refused: unknown = await strangers.createOAuth2(request).catch((error: unknown) => error);
  const broken: unknown = await client().createOAuth2(request).catch((error: unknown) => error);
  const lost: unknown = await gone.createOAuth2(request).catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(TypeError);
  for (const value of [strangers, refused, broken, lost]) {
    expect(shown(value)).not.toContain("hunter2");
    expect(shown(value)).not.toContain(token);
  }
});
