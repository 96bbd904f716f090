// An OAuth server, or a client. A list has the clients of the server, or the attempts of the client, each of which asks
// for authorization and sends a code. Errors are ignored: the test sees the responses.
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Auth } from "@auth/core";
import * as openid from "openid-client";
import { Strategy } from "passport-oauth2";
import { AuthorizationCode } from "simple-oauth2";

const state = "some-state";
const get = (url) => fetch(url, { redirect: "manual" });

const clients = {
  "openid-client": async ({ id, secret, redirect, base }) => {
    const metadata = { issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token` };
    const config = new openid.Configuration(metadata, id, {}, openid.ClientSecretBasic(secret));
    openid.allowInsecureRequests(config);
    await get(openid.buildAuthorizationUrl(config, { redirect_uri: redirect, scope: "openid", state }));
    const returned = new URL(redirect);
    returned.searchParams.set("code", "code");
    await openid.authorizationCodeGrant(config, returned, { expectedState: openid.skipStateCheck });
  },
  // Its redirect URIs have a path of its own.
  "@auth/core": async ({ id, secret, base }) => {
    const endpoints = { authorization: `${base}/authorize`, token: `${base}/token`, userinfo: `${base}/userinfo` };
    const provider = { id: "test", type: "oauth", clientId: id, clientSecret: secret, checks: ["none"], ...endpoints };
    const silent = { error() {}, warn() {}, debug() {} };
    const config = { secret: "a secret", trustHost: true, basePath: "/auth", logger: silent, providers: [provider] };
    await Auth(new Request("http://127.0.0.1/auth/callback/test?code=code"), config);
  },
  "simple-oauth2": async ({ id, secret, redirect, base }) => {
    const { origin, pathname } = new URL(base);
    const auth = { tokenHost: origin, tokenPath: `${pathname}/token`, authorizePath: `${pathname}/authorize` };
    const client = new AuthorizationCode({ client: { id, secret }, auth });
    await get(client.authorizeURL({ redirect_uri: redirect, scope: "openid", state }));
    await client.getToken({ code: "code", redirect_uri: redirect });
  },
  "passport-oauth2": async ({ id, secret, redirect, base }) => {
    const urls = { authorizationURL: `${base}/authorize`, tokenURL: `${base}/token`, callbackURL: redirect };
    const strategy = new Strategy({ ...urls, clientID: id, clientSecret: secret, scope: "openid" }, () => {});
    const authenticate = (query) => new Promise((resolve) => {
      strategy.redirect = strategy.fail = strategy.error = resolve;
      strategy.authenticate({ query, headers: {}, connection: {} }, { state });
    });
    await get(await authenticate({}));
    await authenticate({ code: "code" });
  },
};

const servers = {
  "oidc-provider": async (listed) => {
    // Its warnings are not what the server prints first.
    console.info = console.error;
    const { default: Provider } = await import("oidc-provider");
    const clients = listed.map(({ client_id, client_secret, redirect_uris }) => (
      { client_id, client_secret, redirect_uris: [redirect_uris], grant_types: ["authorization_code"] }));
    const routes = { authorization: "/authorize", token: "/token" };
    return new Provider("http://127.0.0.1", { clients, routes, pkce: { required: () => false } }).callback();
  },
  "oauth2-server": async (listed) => {
    const { default: Server } = await import("@node-oauth/oauth2-server");
    const find = (id, secret) => listed.find((c) => c.client_id === id && [null, c.client_secret].includes(secret));
    const grants = ["authorization_code"];
    const model = {
      getClient: (id, secret) => find(id, secret) && { id, grants, redirectUris: [find(id, secret).redirect_uris] },
      saveAuthorizationCode: (code, client, user) => ({ ...code, client, user }),
      getAuthorizationCode: () => null,
      ...{ getAccessToken() {}, saveToken() {}, revokeAuthorizationCode() {} },
    };
    const server = new Server({ model, authenticateHandler: { handle: () => ({}) } });
    return async (incoming, outgoing) => {
      const { pathname, searchParams } = new URL(incoming.url, "http://127.0.0.1");
      const [query, body] = [searchParams, new URLSearchParams(await text(incoming))].map(Object.fromEntries);
      const request = new Server.Request({ method: incoming.method, headers: incoming.headers, query, body });
      const response = new Server.Response({});
      const handled = server[pathname === "/authorize" ? "authorize" : "token"](request, response);
      await handled.catch(({ code }) => (response.status = response.status === 302 ? 302 : code));
      outgoing.writeHead(response.status, response.headers).end(JSON.stringify(response.body));
    };
  },
};

const [name, , list] = process.argv.slice(2);
const listed = JSON.parse(list);
if (servers[name]) {
  const server = createServer(await servers[name](listed));
  server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
} else {
  for (const { client_id: id, client_secret: secret, redirect_uris: redirect, base } of listed) {
    await clients[name]({ id, secret, redirect, base }).catch(() => {});
  }
}
