package commands_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestDoctorNamesEachFault injects one fault at a time.
func TestDoctorNamesEachFault(t *testing.T) {
	t.Parallel()
	healthy := newSetUp(t)
	for name, test := range damagedSetUps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := &setUp{dir: filepath.Join(t.TempDir(), "copy")}
			providerdtest.Run(t, "cp", "--archive", healthy.dir, broken.dir)
			test.change(t, broken)
			before := broken.state(t)
			expectOnly(t, *broken, test.faults)
			if after := broken.state(t); after != before {
				t.Errorf("files were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

type change = func(t *testing.T, s *setUp)

// damagedSetUp is a change that breaks a set-up, and what the doctor reports about it.
type damagedSetUp struct {
	change change
	faults []string
}

func damagedSetUps() map[string]damagedSetUp {
	setUps := irregularFiles()
	const again = `; restore a backup, or delete those providers and create them again: "providerd provider list --reveal" lists them`
	maps.Copy(setUps, map[string]damagedSetUp{
		"no database":   {shell("rm -r data"), fails("database", `no providerd database at /.*/data/providerd.db; run "providerd serve" to create one, or pass yours with --database or PROVIDERD_DATABASE`)},
		"database away": {shell("rm -r data/providerd.db"), fails("database", `no providerd database at .*/data/providerd\.db; run "providerd serve" to create one, or pass yours with --database or PROVIDERD_DATABASE`)},
		"no database file": {
			write("data/providerd.db", "This is no database, however long one looks at it, even if it has all of a hundred bytes: 0123456789"),
			fails("database", `data/providerd\.db: open database: storage is unavailable: database file is damaged: .*file is not a database; restore a backup, or use another file`),
		},
		"empty database": {write("data/providerd.db", ""), fails("schema", `no providerd database in .*; run "providerd serve" to create one, or pass yours with --database or PROVIDERD_DATABASE`)},
		"database of another program": {
			statement("PRAGMA application_id = 7"),
			fails("schema", "not a providerd database: .*application_id 7.*; use another path or database"),
		},
		"lost data keys": {statement("DELETE FROM keyset"), fails("keyset", "storage is unavailable: database file is damaged: table keyset is empty, so no secret can be decrypted; restore a backup, or use another file")},
		"interrupted creation": {
			statement("DELETE FROM goose_db_version"),
			fails("schema", `database must be migrated: its creation was interrupted; run "providerd serve" of this version to migrate it`),
		},
		"unfinished start": {
			statement("DELETE FROM keyset; DELETE FROM providers"),
			warns("keyset", `the database has no data keys yet; "providerd serve" creates them`),
		},
		"newer schema": {
			statement("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)"),
			fails("schema", "database is from a newer version of providerd: its schema version 99 .*; use a newer providerd"),
		},
		"missing index": {
			statement("DROP INDEX providers_idempotency_key"),
			fails("schema", `storage is unavailable: the schema differs from what this program creates: index "providers_idempotency_key" is missing; undo what another program has changed`),
		},
		"trigger": {
			statement("CREATE TRIGGER forgetting BEFORE INSERT ON providers BEGIN SELECT RAISE(IGNORE); END"),
			fails("schema", `storage is unavailable: the schema differs from what this program creates: trigger "forgetting" was added; undo what another program has changed`),
		},
		"largest pk": {
			statement("UPDATE providers SET pk = 9223372036854775806 WHERE pk = 1"),
			fails("schema", "storage is unavailable: the last key is the largest possible, 9223372036854775806, so no row can be added to these tables: providers; restore a backup, or lower that key"),
		},
		"others write the database":  {shell("chmod 666 data/providerd.db"), fails("database file", "other users can write to .*; run chmod 600 on it")},
		"others read the database":   {shell("chmod 644 data/providerd.db"), warns("database file", "other users can read .*; run chmod 600 on it")},
		"others write the directory": {shell("chmod 777 data"), fails("directory", "other users can replace files in data; run chmod go-w on it")},
		"others read the token":      {shell("chmod 604 data/initial-token"), fails("initial token", "other users can access the token .*revoke this one")},
		"others read the keyset": {shell("chmod 640 data/keyset.json"), append(
			fails("keyset file", `other users can access the keys .*chmod 600.*replace the master key.*key rotate" and "providerd key reseal"`),
			fails("keyset", `keyset cannot be used: other users can read data/keyset\.json; run chmod 600 on it`)...,
		)},
		"no keyset":          {shell("rm -r data/keyset.json"), fails("keyset", "no keyset file: data/keyset.json; restore it, or pass its path with --keyset; without it the secrets in the database cannot be decrypted")},
		"rubbish for keyset": {write("data/keyset.json", "{}"), fails("keyset", "keyset cannot be used: data/keyset.json is not a Tink keyset of AEAD keys; restore the right one")},
		"empty keyset":       {write("data/keyset.json", ""), fails("keyset", "keyset cannot be used: data/keyset.json is empty; restore the right one")},
		"keyset in Base64":   {shell("base64 data/keyset.json >k; cat k >data/keyset.json"), fails("keyset", "keyset cannot be used: data/keyset.json is Base64; decode it with base64 --decode")},
		"keyset of another database": {
			shell("rm data/keyset.json; providerd key create --keyset data/keyset.json"),
			fails("keyset", `data/keyset\.json: keyset cannot be used: it lacks master key [0-9]+, which encrypts the data keys of the database; copy the keyset file of another replica or of a backup, or pass it with --keyset`),
		},
		"older keyset": {
			shell("providerd key create --keyset new --add data/keyset.json; providerd key rewrap --keyset new"),
			fails("keyset", `data/keyset\.json: keyset cannot be used: it lacks master key [0-9]+, which encrypts the data keys of the database; copy the keyset file of another replica or of a backup, or pass it with --keyset`),
		},
		"data keys of another database": {
			statement("UPDATE keyset SET database_id = x'00'"),
			fails("keyset", `data/keyset\.json: keyset cannot be used: the data keys in the database are damaged, or belong to another database; restore a backup`),
		},
		"key of one secret": {
			statement("UPDATE providers SET secret = x'01010203044444444444444444'"),
			fails("records", `1 of 1 providers cannot be read, such as provider 1: secret: sealed secret is damaged, or its key is missing \(the database lacks data key 16909060\)`+again),
		},
		"damaged secret": {
			statement("UPDATE providers SET secret = x'00'"),
			fails("records", "1 of 1 providers cannot be read, such as provider 1: secret: sealed secret is damaged, or its key is missing"+again),
		},
		"no token": {shell("providerd token revoke 1"), warns("tokens", `no token is valid.*; run "providerd token create"`)},
		"token that ends": {
			shell("providerd token create --name ci --allow all --expires-in 2d"),
			warns("tokens", `the tokens of these callers expire before .*: ci; run .*token renew" with the ids of their newest tokens`),
		},
		"WAL of another state": {
			// The database is much older.
			all(shell("cp --archive data/providerd.db old; for i in 1 2 3; do providerd token create --name x --allow all; done"),
				crash, shell("mv old data/providerd.db")),
			fails("database", `storage is unavailable: data/providerd\.db does not match what SQLite wrote; .*restore the original files \(with an older copy of the database, remove the -wal and -shm files\), and restart`),
		},
		"WAL without database": {
			all(crash, shell("rm data/providerd.db")),
			fails("database", `storage is unavailable: .*/data/providerd\.db is missing or empty, but its WAL, which contains the newest changes, exists; restore the database file, or move the -wal and -shm files away to start with a new database`),
		},
		"WAL without its index": {all(crash, shell("rm data/providerd.db-shm")), fails("database", `storage is unavailable: data/providerd\.db-wal exists without its -shm file; run "providerd serve" to rebuild it`)},
		"replaced under a server": {
			all(serveIn, shell("cp --archive data/providerd.db copy; mv copy data/providerd.db")),
			fails("database", `storage is unavailable: data/providerd\.db(-wal)? (was removed or replaced while in use|does not match what SQLite wrote); `+
				`stop every program that uses the database, restore the original file.*, and restart`),
		},
		"WAL moved away under a server": {
			all(serveIn, shell("mv data/providerd.db-wal moved")),
			fails("database", "storage is unavailable: data/providerd.db-wal was removed or replaced while in use; stop every program that uses the database, restore the original file, and restart"),
		},
		"lost pages": {
			// The header counts free pages that no list has.
			shell(`printf '\005' | dd of=data/providerd.db bs=1 seek=39 conv=notrunc status=none`),
			fails("integrity", `storage is unavailable: database file is damaged: .*list: size is 0 but should be 5; restore a backup`),
		},
		"damaged page": {
			shell("dd if=/dev/zero of=data/providerd.db bs=4096 seek=1 count=20 conv=notrunc status=none"),
			fails("database", `data/providerd\.db: open database: storage is unavailable: database file is damaged: initialize GORM: database disk image is malformed; restore a backup, or use another file`),
		},
		"mistyped variable":       {environment("PROVIDERD_LISTN=127.0.0.1:80"), warns("configuration", `PROVIDERD_LISTN is set, but providerd has no such variable; did you mean PROVIDERD_LISTEN\?`)},
		"certificate out of date": {certificate(-2*time.Hour, -time.Hour), fails("certificate", "cert.pem expired at .*; renew it, and the server reloads it")},
		"certificate that ends":   {certificate(-time.Hour, 2*day), warns("certificate", "cert.pem expires at .*; renew it, and the server reloads it")},
		"certificate of tomorrow": {certificate(day, 90*day), fails("certificate", "cert.pem is not valid before .*; check the system clock")},
		"key that others read": {
			all(certificate(-time.Hour, 90*day), shell("chmod 644 key.pem")),
			fails("certificate", "every user can read the private key .*key.pem; run chmod 600 on it, and get a certificate for a new key"),
		},
		"certificate of a CA first": {
			all(certificate(0, day), shell("mv cert.pem ca.pem"), certificate(0, day), shell("cat cert.pem >> ca.pem; mv ca.pem cert.pem")),
			fails("certificate", "cannot load certificate: --tls-cert and --tls-key: the chain must begin with the certificate of the key, before the certificates of its CAs; .*"),
		},
		"certificate without key": {
			all(certificate(-time.Hour, 90*day), write("key.pem", "rubbish")),
			fails("certificate", "cannot load certificate: --tls-cert and --tls-key: .*; pass a certificate chain and its key, both in PEM"),
		},
	})
	if os.Geteuid() == 0 {
		for path, check := range map[string]string{
			"data/providerd.db": "database file", "data/keyset.json": "keyset file", "data/initial-token": "initial token",
		} {
			commands := "chown 1 " + path
			if check == "database file" {
				// That another user owns it is worse than that others can read it.
				commands += "; chmod 644 " + path
			}
			setUps[path+" of another user"] = damagedSetUp{
				shell(commands), fails(check, path+" belongs to user 1, its directory to user 0; run chown so that both belong to the server's user"),
			}
		}
		setUps["directory that takes no file"] = damagedSetUp{
			shell("chown -R 1 data; chmod 500 data"), fails("directory", "the owner of data, user 1, cannot create files in it; run chmod u.rwx on it"),
		}
		setUps["database that cannot be changed"] = damagedSetUp{
			shell("chown -R 1 data; chmod 400 data/providerd.db"),
			fails("database file", "the owner of data/providerd.db cannot write to it; run chmod 600 on it"),
		}
	}
	return setUps
}

// irregularFiles returns set-ups with a directory or a FIFO instead of each file, with a mode that the file must not
// have if its mode is checked.
func irregularFiles() map[string]damagedSetUp {
	const isNone = " is not a regular file; put the right file in its place"
	database := func(file string) []string { return []string{"^fail database file: data/" + file + isNone + "$"} }
	noDatabase := append(database("providerd.db"), fails("database", `storage is unavailable: data/providerd\.db is not a regular file; pass the path of the database file`)...)
	noKeyset := func(path string) []string {
		return append(fails("keyset", "keyset cannot be used: read data.*: not a regular file; restore the right one"), "^fail keyset file: "+path+isNone+"$")
	}
	noToken := []string{"^fail initial token: data/initial-token" + isNone}
	noKey := fails("certificate", "cannot load certificate: --tls-cert and --tls-key: read key.pem: not a regular file; pass a certificate chain and its key, both in PEM")
	return map[string]damagedSetUp{
		"directory for database":           {directoryAt("data/providerd.db"), noDatabase},
		"FIFO for database":                {fifoAt("data/providerd.db"), noDatabase},
		"FIFO for WAL":                     {fifoAt("data/providerd.db-wal"), database("providerd.db-wal")},
		"FIFO for wal-index":               {fifoAt("data/providerd.db-shm"), database("providerd.db-shm")},
		"directory for keyset":             {directoryAt("data/keyset.json"), noKeyset("data/keyset.json")},
		"FIFO for keyset":                  {fifoAt("data/keyset.json"), noKeyset("data/keyset.json")},
		"directory of variable for keyset": {environment("PROVIDERD_KEYSET=data"), noKeyset("data")},
		"directory for token":              {directoryAt("data/initial-token"), noToken},
		"FIFO for token":                   {fifoAt("data/initial-token"), noToken},
		"directory for key of certificate": {all(certificate(-time.Hour, 90*day), directoryAt("key.pem")), noKey},
		"FIFO for key of certificate":      {all(certificate(-time.Hour, 90*day), fifoAt("key.pem")), noKey},
	}
}

func directoryAt(path string) change {
	return shell("rm --force " + path + "; mkdir --mode=755 " + path)
}

func fifoAt(path string) change {
	return shell("rm --force " + path + "; mkfifo --mode=644 " + path)
}

// all makes several changes.
func all(changes ...change) change {
	return func(t *testing.T, s *setUp) {
		for _, change := range changes {
			change(t, s)
		}
	}
}

// shell runs commands in the directory of the set-up.
func shell(commands string) change {
	return func(t *testing.T, s *setUp) { providerdtest.RunShell(t, s.dir, commands) }
}

func write(path, content string) change {
	return func(t *testing.T, s *setUp) {
		processtest.Must(t, os.WriteFile(filepath.Join(s.dir, path), []byte(content), 0o600))
	}
}

// statement runs an SQL statement, bypassing the program.
func statement(statement string) change {
	return func(t *testing.T, s *setUp) {
		processtest.Must(t, providerdtest.Execute(t.Context(), filepath.Join(s.dir, "data", "providerd.db"), statement))
	}
}

func environment(variables ...string) change {
	return func(_ *testing.T, s *setUp) { s.environment = variables }
}

// certificate writes a certificate that is valid for a time.
func certificate(from, to time.Duration) change {
	return func(t *testing.T, s *setUp) {
		providerdtest.WriteCertificateValid(t, s.dir, 1, time.Now().Add(from), time.Now().Add(to))
		s.flags = []string{"--tls-cert", "cert.pem", "--tls-key", "key.pem"}
	}
}

// serveIn runs a server over the database until the test ends.
func serveIn(t *testing.T, s *setUp) {
	t.Helper()
	server := providerdtest.Serve(t, s.dir)
	t.Cleanup(func() { _ = server.Child.Kill() })
}

// crash leaves a WAL.
func crash(t *testing.T, s *setUp) {
	t.Helper()
	server := providerdtest.Serve(t, s.dir)
	providerdtest.RunCommand(t, s.dir, strings.Fields("application create s --name n")...)
	server.Kill(t)
}
