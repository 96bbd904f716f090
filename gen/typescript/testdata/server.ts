import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** A providerd server for a test. */
export interface Server {
  /** The directory in which it was started. */
  dir: string;
  baseUrl: string;
  token: string;
  stop(): Promise<void>;
}

/** Starts the program in its own directory. */
export async function startServer(...flags: string[]): Promise<Server> {
  const dir = await mkdtemp(join(tmpdir(), "providerd-"));
  const program = spawn(resolve("../../bin/providerd"), ["serve", "--listen", "127.0.0.1:0", ...flags], {
    cwd: dir,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = (await once(createInterface({ input: program.stdout }), "line")) as [string];
  return {
    dir,
    baseUrl: line.replace("listening on ", ""),
    token: (await readFile(join(dir, "data", "initial-token"), "utf8")).trim(),
    stop: async () => {
      const ended = once(program, "exit");
      program.kill();
      await ended;
      await rm(dir, { recursive: true });
    },
  };
}
