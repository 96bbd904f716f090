import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";

const directory = import.meta.dirname;

/** The documents that the server serves. */
export const yaml = resolve(directory, "generated/openapi.yaml");
export const json = resolve(directory, "generated/openapi.json");

/** Runs a program and returns its output; an error has the end of what the program printed. */
export async function execute(program, args, env = {}) {
  const options = { cwd: directory, env: { ...process.env, ...env }, maxBuffer: 2 ** 28 };
  try {
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    throw new Error(`${error.stdout}\n${error.stderr}`.trim().slice(-1000) || error.message);
  }
}

/** Runs a program of an npm package. */
export const npm = (program, ...args) => execute(resolve(directory, "node_modules/.bin", program), args);

let checked;

/** Checks all generated TypeScript clients in one go, because reading the libraries takes longest. */
async function check() {
  const { default: ts } = await import("typescript");
  const programs = readdirSync("typescript").filter((name) => existsSync(`generated/${name.replace(".ts", "")}`));
  const program = ts.createProgram(programs.map((name) => `typescript/${name}`), {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: ["node"],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    experimentalDecorators: true,
  });
  return { ts, program, checker: program.getTypeChecker() };
}

/** Bundles the program that uses a client, and fails if the program or the client has type errors. */
export async function compileTypeScript(id) {
  const { build } = await import("esbuild");
  const [source, outfile] = [`typescript/${id}.ts`, `generated/${id}/program.mjs`];
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
  const options = { bundle: true, platform: "node", format: "esm", packages: "external", tsconfigRaw };
  await build({ entryPoints: [source], outfile, logLevel: "silent", ...options });
  const { ts, program } = await (checked ??= check());
  const isOwn = ({ fileName }) => fileName.endsWith(source) || fileName.includes(`generated/${id}/`);
  const own = program.getSourceFiles().filter(isOwn);
  const errors = own.flatMap((file) => [
    ...program.getSyntacticDiagnostics(file),
    ...program.getSemanticDiagnostics(file),
  ]);
  if (errors.length > 0) throw new Error(ts.formatDiagnostics(errors.slice(0, 3), ts.createCompilerHost({})));
}

/** Returns the type of what the program's function oauth2 gets from the client. */
export async function typeScriptResult(id) {
  const { program, checker } = await (checked ??= check());
  const module = checker.getSymbolAtLocation(program.getSourceFile(`typescript/${id}.ts`));
  const [signature] = checker.getTypeOfSymbol(module.exports.get("oauth2")).getCallSignatures();
  const type = checker.getAwaitedType(signature.getReturnType());
  const name = checker.typeToString(type).replaceAll(" | ", " or ");
  return name.length > 70 ? `object of ${type.getProperties().length} fields` : name;
}
