// Prints each event at least once, as a line of JSON: node follow-events.mjs CURSOR-FILE URL... (of each server)
import fs from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const [file, ...urls] = process.argv.slice(2);
const limits = { connectionTimeoutMillis: 2000, query_timeout: 10_000 };
function idIn(cursor) {
  try {
    return JSON.parse(cursor).id;
  } catch {
    console.error(`${file} has no event; pass the path of a new cursor file`);
    return process.exit(1);
  }
}
const options = "-c synchronous_commit=on -c client_min_messages=warning";
for (let n = 0, warning; ; n++, warning = undefined) {
  const client = new pg.Client({ connectionString: urls[n % urls.length], options, ...limits });
  const query = async (text, values) => (await client.query(text, values)).rows;
  client.on("error", () => {}).on("notice", (notice) => (warning = notice));
  try {
    for (await client.connect(); ; await sleep(500)) {
      const seen = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
      const last = "SELECT coalesce(max(id), 0) AS id, pg_current_xact_id()::text AS xid FROM platform_events";
      const [{ id, xid }] = await query(last);
      const open = "SELECT pg_snapshot_xmin(pg_current_snapshot()) <= $1::xid8 AS is_open";
      while ((await query(open, [xid]))[0].is_open) await sleep(50);
      const page = "SELECT * FROM platform_events WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT 1000";
      const lines = (await query(page, [seen ? idIn(seen) : 1, id])).map((event) => JSON.stringify(event));
      await query("SELECT pg_logical_emit_message(true, 'platform', '')");
      if (warning) throw warning;
      if (seen && lines.shift() !== seen) throw new Error("the log was replaced; read all records again");
      for (const line of lines) console.log(line);
      fs.writeFileSync(`${file}.new`, lines.at(-1) ?? seen);
      fs.renameSync(`${file}.new`, file);
    }
  } catch (error) {
    console.error(error.message);
    client.end().catch(() => {});
    await sleep(1000);
  }
}
