import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

import { startServer } from "./testdata/server.js";

const run = promisify(execFile);

/** The strictest compiler settings. */
const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false };
const settings = { compilerOptions: { target: "ES2022", module: "NodeNext", ...strict } };

/** The TypeScript samples of the reference page. */
async function samples(baseUrl: string): Promise<string[]> {
  const contract = await (await fetch(`${baseUrl}/openapi.json`)).text();
  const { paths } = JSON.parse(contract) as {
    paths: Record<string, { post: { "x-codeSamples": { label: string; source: string }[] } }>;
  };
  return Object.values(paths)
    .flatMap(({ post }) => post["x-codeSamples"])
    .filter(({ label }) => label === "TypeScript")
    .map(({ source }) => source);
}

/** Options that turn off what npm does not need in a test. */
const quiet = { npm_config_audit: "false", npm_config_fund: "false", npm_config_prefer_offline: "true" };

/** The blocks of the README in a language, with the server's URL instead of the default one. */
async function blocks(language: string, baseUrl: string): Promise<string[]> {
  const readme = await readFile("README.md", "utf8");
  const pattern = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms");
  return [...readme.matchAll(pattern)].map(([, text = ""]) => text.replace("http://127.0.0.1:8080", baseUrl));
}

/** Runs the program against a server with HTTPS, and trusts its certificate. */
async function overTls(project: string, program: string): Promise<void> {
  const [certificate, key] = [join(project, "cert.pem"), join(project, "key.pem")];
  const { stdout: goRoot } = await run("go", ["env", "GOROOT"]);
  const generate = join(goRoot.trim(), "src/crypto/tls/generate_cert.go");
  await run("go", ["run", generate, "--host", "127.0.0.1", "--ca"], { cwd: project });
  const server = await startServer("--tls-cert", certificate, "--tls-key", key);
  const node = async (url: string, environment: Record<string, string> = {}) => {
    await writeFile(join(project, "tls.mjs"), program.replace(/http:\/\/127\.0\.0\.1:\d+/, url));
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: "", PROVIDERD_TOKEN: server.token, ...environment };
    return run("node", ["tls.mjs"], { cwd: project, env });
  };
  try {
    await expect(node(server.baseUrl)).rejects.toThrow(/self-signed certificate; set NODE_EXTRA_CA_CERTS to a PEM file .*once\n/);
    await expect(node(server.baseUrl, { NODE_EXTRA_CA_CERTS: "tls.mjs" })).rejects.toThrow(/once; its present file lacks that/);
    expect((await node(server.baseUrl, { NODE_EXTRA_CA_CERTS: certificate })).stdout).toMatch(/^1 /);
  } finally {
    await server.stop();
  }
}

test("the README's commands create a project in which its program and the samples work", async () => {
  const parent = await mkdtemp(join(tmpdir(), "project-"));
  const server = await startServer();
  try {
    // The README's commands run in a directory like the root of the repository, with the data of the server.
    const [root, project] = [join(parent, "providerd"), join(parent, "portal")];
    await mkdir(root);
    await symlink(resolve(".."), join(root, "gen"));
    await symlink(join(server.dir, "data"), join(root, "data"));
    const env = { ...process.env, ...quiet, PROVIDERD_TOKEN: server.token, TOKEN: server.token };
    // Files of an earlier build must not be packed.
    await mkdir("dist", { recursive: true });
    await writeFile(join("dist", "left.test.js"), "");

    const [commands = "", ...others] = await blocks("sh", server.baseUrl);
    expect(others).toEqual([]);
    // This installs the dependencies of the tests.
    expect(commands).toMatch(/^npm ci --prefix gen\/typescript\n/);
    await run("bash", ["-euc", commands.replace(/^.*\n/, "")], { cwd: root, env: { ...process.env, ...quiet } });

    const { stdout: packed } = await run("tar", ["--list", "--file", join(project, "providerd-client-0.1.0.tgz")]);
    const modules = ["answer", "client", "options", "problems", "retry", "schema.gen", "secret", "values"];
    const built = modules.flatMap((name) => [`package/dist/${name}.d.ts`, `package/dist/${name}.js`]);
    expect(packed.trim().split("\n").sort()).toEqual([...built, "package/package.json", "package/README.md"].sort());

    const [program = "", further = "", ...more] = await blocks("ts", server.baseUrl);
    expect(more).toEqual([]);
    await writeFile(join(project, "portal.mjs"), program);
    for (let i = 0; i < 2; i++) {
      const result = await run("node", ["portal.mjs"], { cwd: project, env });
      expect(result.stdout).toMatch(/^1 [0-9A-Za-z]{40}\n$/);
    }
    await overTls(project, program);

    const programs = [program, ...(await samples(server.baseUrl)), further];
    expect(programs).toHaveLength(4);
    for (const [i, text] of programs.entries()) {
      await writeFile(join(project, `main${i}.mts`), text.replace("http://127.0.0.1:8080", server.baseUrl));
    }
    await writeFile(join(project, "tsconfig.json"), JSON.stringify(settings));
    await run("npm", ["install", "--silent", "typescript@5.9.3", "@types/node@20.19.25"], { cwd: project, env });
    await run(join(project, "node_modules", ".bin", "tsc"), [], { cwd: project });
    const printed: string[] = [];
    for (const i of programs.keys()) {
      printed.push((await run("node", [`main${i}.mjs`], { cwd: project, env })).stdout);
    }
    const first: unknown = expect.stringMatching(/^1 [0-9A-Za-z]{40}\n$/);
    expect(printed).toEqual([first, "2\n", "3\n", "4 false hours=1;minutes=30\n"]);
  } finally {
    await server.stop();
    await rm(parent, { recursive: true });
  }
}, 300_000);
