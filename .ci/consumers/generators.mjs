import { readFile, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { compileTypeScript, execute, json, npm, typeScriptResult, yaml } from "./tools.mjs";

const jar = resolve(import.meta.dirname, "node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar");

/** Generates with OpenAPI Generator, whose npm package forgets the models of Go. */
async function openapiGenerator(language, out, properties = "") {
  const classes = resolve(out, "classes");
  await execute("javac", ["-cp", jar, "-d", classes, "java/GoWithModels.java"]);
  const flags = ["-i", yaml, "-g", language, "-o", out, "--additional-properties", properties];
  await execute("java", ["-cp", `${jar}:${classes}`, "org.openapitools.codegen.OpenAPIGenerator", "generate", ...flags]);
}

/** A generator whose client the program typescript/ID.ts uses. */
const typescript = (id, name, generate, more) => ({
  id,
  name,
  generate,
  compile: () => compileTypeScript(id),
  types: () => typeScriptResult(id),
  run: (out, env) => execute("node", [resolve(out, "program.mjs")], env),
  ...more,
});

/** A generator whose client the program go/ID uses; its result types are those that match a pattern in a file. */
const go = (id, name, generate, file, pattern) => ({
  id,
  name,
  generate,
  compile: (out) => execute("go", ["build", "-o", resolve(out, "program"), `./go/${id}`], { GOFLAGS: "-trimpath" }),
  types: (out) => matches(out, file, pattern),
  run: (out, env) => execute(resolve(out, "program"), [], env),
});

async function matches(out, file, pattern) {
  const found = [...(await readFile(resolve(out, file), "utf8")).matchAll(pattern)].map(([, type]) => type);
  return [...new Set(found)].join(" or ");
}

export const generators = [
  typescript("hey-api", "@hey-api/openapi-ts with zod", async (out) => {
    const { createClient } = await import("@hey-api/openapi-ts");
    const plugins = ["@hey-api/client-fetch", "zod", { name: "@hey-api/sdk", validator: true }];
    await createClient({ input: yaml, output: out, plugins, logs: { level: "silent" } });
  }, { ci: true }),
  typescript("swagger-typescript-api", "swagger-typescript-api",
    (out) => npm("swagger-typescript-api", "generate", "--path", json, "--output", out), { ci: true }),
  typescript("orval", "orval", async (out, baseUrl) => {
    const { generate } = await import("orval");
    await generate({ input: yaml, output: { target: `${out}/client.ts`, client: "fetch", baseUrl } });
  }),
  typescript("orval-zod", "orval with zod", async (out) => {
    const { generate } = await import("orval");
    await generate({ input: json, output: { target: `${out}/schemas.ts`, client: "zod" } });
  }),
  typescript("openapi-fetch", "openapi-typescript with openapi-fetch",
    (out) => npm("openapi-typescript", yaml, "--output", `${out}/schema.ts`)),
  typescript("openapi-zod-client", "openapi-zod-client", (out) => {
    const mediaTypes = "/^application.(problem.)?json$/.test(mediaType)";
    return npm("openapi-zod-client", yaml, "--output", `${out}/client.ts`, "--media-type-expr", mediaTypes);
  }),
  typescript("ng-openapi-gen", "ng-openapi-gen", (out) => npm("ng-openapi-gen", "--input", json, "--output", out)),
  typescript("oazapfts", "oazapfts", (out) => npm("oazapfts", json, `${out}/client.ts`)),
  typescript("kubb", "kubb", async (out) => {
    const { build } = await import("@kubb/core");
    const { pluginOas } = await import("@kubb/plugin-oas");
    const { pluginTs } = await import("@kubb/plugin-ts");
    const { pluginClient } = await import("@kubb/plugin-client");
    const plugins = [pluginOas(), pluginTs(), pluginClient()];
    const output = { path: out, format: false };
    const { error } = await build({ config: { root: ".", input: { path: yaml }, output, plugins } });
    if (error) throw error;
  }),
  typescript("generator-typescript", "OpenAPI Generator, typescript-fetch",
    (out) => openapiGenerator("typescript-fetch", out, "typescriptThreePlus=true")),
  go("generator-go", "OpenAPI Generator, go", async (out) => {
    await openapiGenerator("GoWithModels", out);
    await rm(`${out}/go.mod`);
  }, "api_providers.go", /Oauth2CreateRequest\) Execute\(\) \((\w+),/g),
  {
    id: "generator-python",
    name: "OpenAPI Generator, python",
    generate: (out) => openapiGenerator("python", out),
    compile: (out) => execute("/usr/bin/python3", ["-c", "import openapi_client"], { PYTHONPATH: out }),
    types: (out) => matches(out, "openapi_client/api/providers_api.py", /response_type='(OAuth2\w+)'/g),
    run: (out, env) => execute("/usr/bin/python3", ["python/generator.py"], { ...env, PYTHONPATH: out }),
  },
  {
    // The jar of the generator has the libraries that the client needs.
    id: "generator-java",
    name: "OpenAPI Generator, java",
    generate: (out) => openapiGenerator("java", out, "library=native,openApiNullable=false"),
    compile: (out) => {
      const sources = ["-sourcepath", `${out}/src/main/java:java`, "java/Consumer.java"];
      return execute("javac", ["-cp", jar, "-d", `${out}/classes`, ...sources]);
    },
    types: (out) => matches(out, "docs/ProvidersApi.md", /> (\w+) providersOauth2Create\(/g),
    run: (out, env) => execute("java", ["-cp", `${jar}:${out}/classes`, "Consumer"], env),
  },
  go("ogen", "ogen", (out) => execute("go", ["tool", "ogen", "--target", out, "--package", "api", "--clean", yaml]),
    "oas_schemas_gen.go", /func \(\*(OAuth2Provider\w*|Providers\w*)\) providersOAuth2CreateRes/g),
  go("oapi-codegen", "oapi-codegen", (out) => {
    const flags = ["-package", "api", "-generate", "types,client", "-o", `${out}/client.go`];
    return execute("go", ["tool", "oapi-codegen", ...flags, yaml]);
  }, "client.go", /JSON20[01] +\*(OAuth2Provider)\n/g),
];
