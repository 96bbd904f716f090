#!/usr/bin/env bash
# Package: pg-mem 3.0.14 (npm), the PostgreSQL in memory for tests of Node programs, through its client for `pg`.
# Expected: as in PostgreSQL, INSERT ... ON CONFLICT DO NOTHING RETURNING returns the rows that were inserted, with or
#   without a conflict target.
# Happens: without a target, pg-mem does that. With a target (`ON CONFLICT (client_id) DO NOTHING`), it returns the
#   existing row for each one that was skipped, counts it in rowCount, and reports 1 for a statement that inserted
#   nothing.
# Why it matters here: a program learns from the missing row that a record existed. On pg-mem, code that relies on a
#   returned row passes its tests and fails on PostgreSQL, and code that is right fails its tests.
# Date: 2026-11-27
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund pg-mem@3.0.14
cat >insert.mjs <<'JS'
import { newDb } from 'pg-mem';
for (const target of ['', '(client_id) ']) {
  const { Client } = newDb().adapters.createPg();
  const client = new Client();
  await client.connect();
  await client.query('CREATE TABLE oauth_client (id integer PRIMARY KEY, client_id text UNIQUE)');
  await client.query("INSERT INTO oauth_client VALUES (1, 'wiki')");
  const both = await client.query(
    `INSERT INTO oauth_client VALUES (2, 'wiki'), (3, 'shop') ON CONFLICT ${target}DO NOTHING RETURNING id, client_id`,
  );
  const skipped = await client.query(`INSERT INTO oauth_client VALUES (4, 'wiki') ON CONFLICT ${target}DO NOTHING`);
  const { rows } = await client.query('SELECT id FROM oauth_client ORDER BY id');
  console.log(`ON CONFLICT ${target}DO NOTHING:`, both.rowCount, JSON.stringify(both.rows), skipped.rowCount,
    JSON.stringify(rows));
}
JS
seen=$(node insert.mjs)
expected='ON CONFLICT DO NOTHING: 1 [{"id":3,"client_id":"shop"}] 0 [{"id":1},{"id":3}]
ON CONFLICT (client_id) DO NOTHING: 2 [{"id":1,"client_id":"wiki"},{"id":3,"client_id":"shop"}] 1 [{"id":1},{"id":3}]'
if [ "$seen" != "$expected" ]; then
  printf 'pg-mem-returns-skipped-rows: changed\nexpected:\n%s\nseen:\n%s\n' "$expected" "$seen"
  exit 1
fi
echo "pg-mem-returns-skipped-rows: as recorded: with a conflict target, RETURNING returns the rows that were skipped"
