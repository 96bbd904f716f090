// Generates clients from the documents that the server serves, and uses them against the server: "make consumers".
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { generators } from "./generators.mjs";
import { others } from "./others.mjs";
import { json, yaml } from "./tools.mjs";

process.chdir(import.meta.dirname);

/** Starts the program with an empty database, and writes the documents that it serves. */
async function startServer() {
  const dir = await mkdtemp(join(tmpdir(), "providerd-"));
  const program = spawn(resolve(process.env.PROVIDERD ?? "../../bin/providerd"), ["serve", "--listen", "127.0.0.1:0"], {
    cwd: dir,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = await once(createInterface({ input: program.stdout }), "line");
  const url = line.replace("listening on ", "");
  await mkdir("generated", { recursive: true });
  for (const document of [yaml, json]) {
    await writeFile(document, await (await fetch(`${url}/${document.split("/").at(-1)}`)).text());
  }
  const token = (await readFile(join(dir, "data", "initial-token"), "utf8")).trim();
  const stop = async () => {
    program.kill();
    await once(program, "exit");
    await rm(dir, { recursive: true });
  };
  return { url, token, stop };
}

/** The columns of the table: the steps that each needs, and what a client must return for them. */
const fields = (record) => Object.keys(record).length;
const columns = {
  "creates both": [["oauth2", "workspace"], ({ oauth2, workspace }) =>
    oauth2.pk > 0 && fields(oauth2) === 25 && (oauth2.client_secret ?? oauth2.clientSecret).length === 128 &&
    workspace.pk > oauth2.pk && fields(workspace) === 18 && workspace.credentials.key === "example"],
  "decodes a refusal": [["refused"], ({ refused: { errors } }) =>
    errors?.[0].pointer === "/redirect_uris" && errors[0].code === "invalid_uri"],
  key: [["first", "again"], ({ first, again }) => first.pk > 0 && again.pk === first.pk],
  validate_only: [["validated"], ({ validated }) => validated.pk === 0 && validated.name === "Intranet"],
};

/** Runs an action; if it fails, notes why. */
async function attempt(failures, what, action) {
  try {
    return (await action()) ?? true;
  } catch (error) {
    failures.push(`${what}: ${error.message.trim()}`);
    return false;
  }
}

async function generate(tool, server, failures) {
  const out = resolve("generated", tool.id);
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  await attempt(failures, "generate", () => tool.generate(out, `${server.url}/api/v3`));
}

/** Compiles and uses a generated client; returns its row of the table. */
async function useClient(tool, server, failures) {
  const out = resolve("generated", tool.id);
  const type = (await attempt(failures, "result type", () => tool.types(out))) || "";
  const compiles = await attempt(failures, "compile", async () => void (await tool.compile(out)));
  const environment = { PROVIDERD_SERVER: server.url, PROVIDERD_TOKEN: server.token };
  const results = await attempt(failures, "run", async () => JSON.parse(await tool.run(out, environment)));
  const check = ([steps, good]) => {
    const returned = steps.map((step) => results[step]);
    const failed = returned.find((result) => result?.failed);
    if (failed || !good(results)) throw new Error(JSON.stringify(failed ?? returned));
  };
  const cells = [];
  for (const [name, column] of Object.entries(columns)) {
    cells.push(results && (await attempt(failures, name, () => check(column))));
  }
  return [type, compiles, ...cells];
}

/** Uses another tool, of which the table says only whether it creates both kinds, or finds nothing. */
async function useOther(tool, server, failures) {
  const used = await attempt(failures, "use", async () => void (await tool.use(server)));
  return ["", "", used, "", "", ""];
}

function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  rows.splice(1, 0, widths.map((width) => "-".repeat(width)));
  return rows.map((row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(" | ")} |\n`).join("");
}

// Some generators log to standard output, which is for the table.
console.log = console.error;

const chosen = process.argv.slice(2);
const all = chosen.every((word) => word === "keep");
const isChosen = ({ id, ci }) => all || chosen.includes(id) || (ci && chosen.includes("ci"));
const tools = [...generators, ...others].filter(isChosen);
if (tools.length === 0) throw new Error(`no tool is named ${chosen.join(" or ")}`);
const failures = Object.fromEntries(tools.map(({ id }) => [id, []]));
const rows = [["tool", "result of a create", "compiles", ...Object.keys(columns)]];
const server = await startServer();
try {
  for (const tool of tools) if (tool.generate) await generate(tool, server, failures[tool.id]);
  for (const tool of tools) {
    const cells = await (tool.generate ? useClient : useOther)(tool, server, failures[tool.id]);
    rows.push([tool.name, ...cells.map((cell) => (cell === true ? "yes" : cell === false ? "no" : cell))]);
    console.error(rows.at(-1).join(" "));
  }
} finally {
  await server.stop();
  if (!chosen.includes("keep")) await rm("generated", { recursive: true });
}
process.stdout.write(table(rows));
for (const [id, reasons] of Object.entries(failures)) {
  for (const reason of reasons) console.error(`\n${id}: ${reason.slice(0, 1000)}`);
  if (reasons.length > 0) process.exitCode = 1;
}
