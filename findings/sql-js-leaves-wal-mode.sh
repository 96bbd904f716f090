#!/usr/bin/env bash
# Package:  sql.js 1.17.0 (npm), SQLite in WebAssembly
# Expected: a database in WAL mode, which SQLite keeps until another mode is set, cannot be opened, or is still in WAL
#           mode when it is exported.
# Happens:  it can be read and written, and export() returns a database in rollback mode: bytes 18 and 19 are 1 instead
#           of 2. This needs no write, and PRAGMA journal_mode was never set. Exported bytes differ from those opened.
# Matters:  a tool that edits a copy of the server's database and puts it back has changed its mode, and readers wait
#           for writers until a program sets WAL again. Compare the content, and set the mode after an export.
# Date:     2026-11-28
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund sql.js@1.17.0

cat >run.mjs <<'JS'
import initialize from 'sql.js';

const { Database } = await initialize();
const source = new Database();
source.run("CREATE TABLE providers (name TEXT) STRICT; INSERT INTO providers VALUES ('Intranet')");
const bytes = source.export();
// These two bytes are all that journal_mode=WAL changes in a file without a log.
bytes[18] = bytes[19] = 2;

const statements = { read: 'SELECT 1 FROM providers', write: "INSERT INTO providers VALUES ('B')" };
for (const [name, statement] of Object.entries(statements)) {
  const database = new Database(bytes);
  const names = database.exec('SELECT name FROM providers')[0].values.join();
  const mode = database.exec('PRAGMA journal_mode')[0].values.join();
  database.run(statement);
  console.log(name, bytes.slice(18, 20).join(), names, mode, database.export().slice(18, 20).join());
}
JS

seen=$(node run.mjs)
expected='read 2,2 Intranet wal 1,1
write 2,2 Intranet wal 1,1'
diff <(echo "$expected") <(echo "$seen") || {
  echo "sql-js-leaves-wal-mode: < as recorded, > seen now"
  exit 1
}
echo "sql-js-leaves-wal-mode: as recorded: a database in WAL mode is exported in rollback mode"
