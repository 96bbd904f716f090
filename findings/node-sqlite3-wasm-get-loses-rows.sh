#!/usr/bin/env bash
# Package: node-sqlite3-wasm 0.8.60 (npm).
# Expected: `statement.get()` of a prepared INSERT ... RETURNING commits the row, as in other libraries:
#   without BEGIN, every statement is a transaction of its own.
# Happens: get() reads the first row and does not reset the statement, so its transaction stays open. `inTransaction` is
#   false, run() of later inserts reports `changes: 1`, and the connection itself sees all rows; but other connections
#   get "database is locked", and when the process ends, even after close(), none of the rows are in the file.
#   finalize() commits them; its documentation mentions only memory leaks.
# Why it matters here: INSERT ... RETURNING is how an id of a new record is read, and the statement is prepared once and
#   kept. Such a program reports ids of records that are lost.
# Date: 2026-11-27
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund node-sqlite3-wasm@0.8.60

cat >insert.mjs <<'JS'
import sqlite from 'node-sqlite3-wasm';
const [file, ending] = process.argv.slice(2);
const db = new sqlite.Database(file);
db.exec('CREATE TABLE record (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT');
const insert = db.prepare('INSERT INTO record (name) VALUES (?) RETURNING id');
const { id } = insert.get(['wiki']);
const { changes } = db.run("INSERT INTO record (name) VALUES ('intranet')");
const { rows } = db.get('SELECT count(*) AS rows FROM record');
const other = new sqlite.Database(file);
let reader;
try {
  reader = `${other.get('SELECT count(*) AS rows FROM record').rows} rows`;
} catch (error) {
  reader = error.message;
}
other.close();
const open = db.inTransaction;
if (ending === 'finalize') insert.finalize();
if (ending !== 'none') db.close();
console.log(`id ${id}, changes ${changes}, own rows ${rows}, in transaction ${open}, other: ${reader}`);
JS
cat >count.mjs <<'JS'
import sqlite from 'node-sqlite3-wasm';
const db = new sqlite.Database(process.argv[2]);
console.log(db.get('SELECT count(*) AS rows FROM record').rows);
db.close();
JS
seen=$(
  for ending in none close finalize; do
    printf '%s: %s' "$ending" "$(node insert.mjs "$ending.db" "$ending")"
    rm -rf "$ending.db.lock"
    echo ", afterwards: $(node count.mjs "$ending.db")"
  done
)
line='id 1, changes 1, own rows 2, in transaction false, other: database is locked, afterwards:'
expected="none: $line 0
close: $line 0
finalize: $line 2"
if [ "$seen" != "$expected" ]; then
  printf 'node-sqlite3-wasm-get-loses-rows: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "node-sqlite3-wasm-get-loses-rows: as recorded: rows inserted with get() are lost, also after close()"
