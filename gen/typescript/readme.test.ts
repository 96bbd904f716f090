import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

import { startServer } from "./server.js";

const run = promisify(execFile);

/** The strictest settings that a project may have. */
const settings = {
  compilerOptions: {
    target: "ES2022",
    module: "NodeNext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
  },
};

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

test("the README's program and the samples work in a project that installs the package", async () => {
  const project = await mkdtemp(join(tmpdir(), "project-"));
  const server = await startServer();
  try {
    const { stdout } = await run("npm", ["pack", "--json", "--silent", "--pack-destination", project]);
    const name = /"filename": "([^"]+)"/.exec(stdout)?.[1] ?? "";
    await writeFile(join(project, "package.json"), '{"type": "module"}');
    await writeFile(join(project, "tsconfig.json"), JSON.stringify(settings));
    const packages = [`./${name}`, "typescript@5.9.3", "@types/node@20.19.25"];
    await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", ...packages], { cwd: project });

    const readme = await readFile(resolve("README.md"), "utf8");
    const program = /^```ts\n(.*?)^```$/ms.exec(readme)?.[1] ?? "";
    const programs = [program, ...(await samples(server.baseUrl))];
    expect(programs).toHaveLength(3);
    for (const [i, text] of programs.entries()) {
      await writeFile(join(project, `main${i}.ts`), text.replace("http://127.0.0.1:8080", server.baseUrl));
    }
    await run(join(project, "node_modules", ".bin", "tsc"), [], { cwd: project });
    for (let i = 0; i < 2; i++) {
      const result = await run("node", [join(project, "main0.js")], { cwd: server.folder });
      expect(result.stdout).toMatch(/^1 [0-9A-Za-z]{40}\n$/);
    }
    for (const i of [1, 2]) {
      const result = await run("node", [join(project, `main${i}.js`)], { env: { ...process.env, TOKEN: server.token } });
      expect(result.stdout).toBe(`${i + 1}\n`);
    }
  } finally {
    await server.stop();
    await rm(project, { recursive: true });
  }
});
