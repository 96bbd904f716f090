package commands_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestDoctorNamesEachFault injects one fault at a time.
func TestDoctorNamesEachFault(t *testing.T) {
	t.Parallel()
	healthy := newSetUp(t)
	for name, test := range damagedSetUps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := healthy.copy(t)
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
	faults []fault
}

func damagedSetUps() map[string]damagedSetUp {
	setUps := irregularFiles()
	maps.Copy(setUps, wrongVariables())
	maps.Copy(setUps, map[string]damagedSetUp{
		"no database":   {remove("data"), []fault{{"database", healthFail, `no providerd database at /.*/data/providerd.db; run "providerd serve" to create one`}}},
		"database away": {remove("data/providerd.db"), []fault{{"database", healthFail, "no providerd database"}}},
		"no database file": {
			write("data/providerd.db", "This is no database, however long one looks at it, even if it has all of a hundred bytes: 0123456789"),
			[]fault{{"database", healthFail, "database file is damaged: .*file is not a database; restore a backup"}},
		},
		"empty database": {write("data/providerd.db", ""), []fault{{"schema", healthFail, "no providerd database in .*; run \"providerd serve\" to create one"}}},
		"database of another program": {
			statement("PRAGMA application_id = 7"),
			[]fault{{"schema", healthFail, "not a providerd database: .*application_id 7.*; use another path or database"}},
		},
		"unfinished copy": {
			statement("UPDATE keyset SET sealed = x''"),
			[]fault{{"keyset", healthFail, `run the same "providerd copy" again`}},
		},
		"unfinished start": {
			statement("DELETE FROM keyset"),
			[]fault{{"keyset", healthWarn, `the database has no keyset yet; "providerd serve" assigns it`}},
		},
		"newer schema": {
			statement("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)"),
			[]fault{{"schema", healthFail, "its schema version is 99.*; use a newer providerd"}},
		},
		"older schema": {
			statement("DELETE FROM goose_db_version WHERE version_id > 1"),
			[]fault{{"schema", healthWarn, `its schema version is 1 but this program needs 5; "providerd serve" migrates it`}},
		},
		"missing index": {
			statement("DROP INDEX providers_idempotency_key"),
			[]fault{{"schema", healthFail, `differs from what this program creates: index "providers_idempotency_key" is missing; undo what another program has changed`}},
		},
		"trigger": {
			statement("CREATE TRIGGER forgetting BEFORE INSERT ON providers BEGIN SELECT RAISE(IGNORE); END"),
			[]fault{{"schema", healthFail, `trigger "forgetting" was added; undo`}},
		},
		"others write the database":  {mode("data/providerd.db", 0o666), []fault{{"database file", healthFail, "others can write to .*; run chmod 600"}}},
		"others read the database":   {mode("data/providerd.db", 0o644), []fault{{"database file", healthWarn, "others can read .*; run chmod 600"}}},
		"others write the directory": {mode("data", 0o777), []fault{{"folder", healthFail, "others can replace files in data; run chmod go-w"}}},
		"others read the token":      {mode("data/initial-token", 0o604), []fault{{"initial token", healthFail, "others can access the token .*revoke"}}},
		"others read the keyset": {mode("data/keyset.json", 0o640), []fault{
			{"keyset file", healthFail, "others can access the keys .*chmod 600.*key rotate"}, {"keyset", healthFail, "keyset cannot be used: others can read"},
		}},
		"no keyset":          {remove("data/keyset.json"), []fault{{"keyset", healthFail, "no keyset file: data/keyset.json; put it back"}}},
		"rubbish for keyset": {write("data/keyset.json", "{}"), []fault{{"keyset", healthFail, `"sealing" is not a Tink keyset; put the right one`}}},
		"keyset of another database": {func(t *testing.T, s *setUp) {
			providerdtest.Run(t, "rm", s.keyset)
			providerdtest.RunCommand(t, s.dir, strings.Fields("key create --keyset data/keyset.json")...)
		}, []fault{{"keyset", healthFail, "it belongs to another database; restore the keyset"}}},
		"older keyset": {func(t *testing.T, s *setUp) {
			providerdtest.Run(t, "cp", "--archive", s.keyset, s.keyset+".old")
			providerdtest.RunCommand(t, s.dir, strings.Fields("key rotate")...)
			providerdtest.RunCommand(t, s.dir, strings.Fields("key reseal")...)
			providerdtest.Run(t, "mv", s.keyset+".old", s.keyset)
		}, []fault{{"keyset", healthFail, "it lacks key [0-9]+, which encrypts secrets of this database; copy the newest"}}},
		"key of one secret": {
			statement("UPDATE oauth2_providers SET client_secret = x'01010203044444444444444444'"),
			[]fault{{"secrets", healthFail, "1 of 1 secrets are encrypted with key 16909060, which the keyset lacks; put the newest keyset"}},
		},
		"damaged secret": {
			statement("UPDATE oauth2_providers SET client_secret = x'00'"),
			[]fault{{"secrets", healthFail, "1 of 1 secrets cannot be decrypted, such as that of provider 1: client_secret"}},
		},
		"old key": {
			statement("UPDATE key_events SET at = '2020-01-31 08:00:00+00:00'"),
			[]fault{{"key age", healthWarn, `the newest key, [0-9]+, was created at 2020-01-31T08:00:00Z; run "providerd key rotate"`}},
		},
		"no token": {
			func(t *testing.T, s *setUp) {
				providerdtest.RunCommand(t, s.dir, strings.Fields("token revoke 1")...)
			},
			[]fault{{"tokens", healthWarn, `no token is valid.*; run "providerd token create"`}},
		},
		"token that ends": {func(t *testing.T, s *setUp) {
			providerdtest.RunCommand(t, s.dir, strings.Fields("token create --name ci --allow all --expires-in 2d")...)
		}, []fault{{"tokens", healthWarn, "the tokens of these callers expire before .*: ci; run .*token renew"}}},
		"few pks": {
			statement(providerWithPK("2140000000")),
			[]fault{{"pks", healthWarn, "7483647 pks are left; plan a new database"}},
		},
		"no pk": {
			statement(providerWithPK("2147483647")),
			[]fault{{"pks", healthFail, "the largest pk is in use; every create fails; use a new database"}},
		},
		"clock": {
			statement("UPDATE providers SET created_at = '2999-01-31 08:00:00+00:00'"),
			[]fault{{"clock", healthFail, "before the newest record was stored; synchronize the clock"}},
		},
		"long WAL":             {longWALOf, []fault{{"WAL", healthWarn, "the WAL has grown to 192 MiB; close programs that keep"}}},
		"WAL of another state": {otherWAL, []fault{{"database", healthFail, "does not match what SQLite wrote; .*put the original files back"}}},
		"WAL without database": {func(t *testing.T, s *setUp) {
			crash(t, s)
			providerdtest.Run(t, "rm", s.database)
		}, []fault{{"database", healthFail, "is missing or empty, but its WAL exists; put the database file back"}}},
		"WAL without its index": {func(t *testing.T, s *setUp) {
			crash(t, s)
			providerdtest.Run(t, "rm", s.database+"-shm")
		}, []fault{{"database", healthFail, "-wal exists without its -shm file; run"}}},
		"replaced under a server": {func(t *testing.T, s *setUp) {
			serveIn(t, s)
			providerdtest.Run(t, "cp", "--archive", s.database, s.database+".copy")
			providerdtest.Run(t, "mv", s.database+".copy", s.database)
		}, []fault{{"database", healthFail, "was removed or replaced while in use|does not match what SQLite wrote"}}},
		"WAL moved away under a server": {func(t *testing.T, s *setUp) {
			serveIn(t, s)
			providerdtest.Run(t, "mv", s.database+"-wal", s.database+".moved")
		}, []fault{{"database", healthFail, "providerd.db-wal was removed or replaced while in use; stop every program that uses the database, put the original file back"}}},
		"damaged page": {func(t *testing.T, s *setUp) {
			providerdtest.Run(t, "dd", "if=/dev/zero", "of="+s.database, "bs=4096", "seek=1", "count=20", "conv=notrunc", "status=none")
		}, []fault{{"database", healthFail, "malformed; restore a backup, or use another file"}}},
		"in memory": {func(t *testing.T, s *setUp) {
			dir, err := os.MkdirTemp("/dev/shm", "providerd") //nolint:usetesting // It must be in memory.
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			providerdtest.Run(t, "cp", "--archive", s.dir+"/data", dir)
			*s = setUpIn(dir)
		}, []fault{{"file system", healthWarn, "is in memory, and is lost when the machine restarts; move"}}},
		"wrong variable": {
			environment("PROVIDERD_LISTEN=nowhere"),
			[]fault{{"configuration", healthFail, `"nowhere" is not of the form HOST:PORT.*; correct the variable or flag`}},
		},
		"mistyped variable": {
			environment("PROVIDERD_LISTN=127.0.0.1:80"),
			[]fault{{"configuration", healthWarn, "PROVIDERD_LISTN is set, but providerd has no such variable"}},
		},
		"certificate out of date": {certificate(-2*time.Hour, -time.Hour), []fault{{"certificate", healthFail, "cert.pem expired at .*; renew it"}}},
		"certificate that ends":   {certificate(-time.Hour, 2*day), []fault{{"certificate", healthWarn, "cert.pem expires at .*; renew it"}}},
		"certificate of tomorrow": {certificate(day, 90*day), []fault{{"certificate", healthFail, "cert.pem is not valid before"}}},
		"key that others read": {func(t *testing.T, s *setUp) {
			certificate(-time.Hour, 90*day)(t, s)
			mode("key.pem", 0o644)(t, s)
		}, []fault{{"certificate", healthFail, "every user can read the private key .*key.pem; run chmod 600"}}},
		"certificate without the flag of its key": {func(_ *testing.T, s *setUp) {
			s.flags = []string{"--tls-cert", "cert.pem"}
		}, []fault{{"configuration", healthFail, "--tls-cert and --tls-key must be used together; correct the variable or flag"}}},
		"certificate without key": {func(t *testing.T, s *setUp) {
			certificate(-time.Hour, 90*day)(t, s)
			write("key.pem", "rubbish")(t, s)
		}, []fault{{"certificate", healthFail, "cannot load certificate .* with key \".*key.pem\".*; replace them with"}}},
	})
	if os.Geteuid() == 0 {
		for path, check := range map[string]string{
			"data/providerd.db": "database file", "data/keyset.json": "keyset file", "data/initial-token": "initial token",
		} {
			setUps[path+" of another user"] = damagedSetUp{func(t *testing.T, s *setUp) {
				providerdtest.Run(t, "chown", "1", filepath.Join(s.dir, path))
				if check == "database file" {
					// That the server cannot write to it is worse than that others can read it.
					providerdtest.Run(t, "chmod", "644", filepath.Join(s.dir, path))
				}
			}, []fault{{check, healthFail, path + " belongs to user 1, not to the server's user 0; run chown 0 on it"}}}
		}
		ofUserWith := func(mode, path string) change {
			return func(t *testing.T, s *setUp) {
				providerdtest.Run(t, "chown", "-R", "1", filepath.Dir(s.database))
				providerdtest.Run(t, "chmod", mode, filepath.Join(s.dir, path))
			}
		}
		setUps["directory that takes no file"] = damagedSetUp{ofUserWith("500", "data"), []fault{
			{"folder", healthFail, "user 1, its owner, cannot create files in data; run chmod u.rwx on it"},
		}}
		setUps["database that cannot be changed"] = damagedSetUp{ofUserWith("400", "data/providerd.db"), []fault{
			{"database file", healthFail, "its owner cannot write to data/providerd.db; run chmod 600 on it"},
		}}
	}
	return setUps
}

func remove(path string) change {
	return func(t *testing.T, s *setUp) { providerdtest.Run(t, "rm", "-r", filepath.Join(s.dir, path)) }
}

func write(path, content string) change {
	return func(t *testing.T, s *setUp) {
		if err := os.WriteFile(filepath.Join(s.dir, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func mode(path string, mode os.FileMode) change {
	return func(t *testing.T, s *setUp) {
		if err := os.Chmod(filepath.Join(s.dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// statement runs an SQL statement, bypassing the program.
func statement(statement string) change {
	return func(t *testing.T, s *setUp) {
		if err := execute(t.Context(), s.database, statement); err != nil {
			t.Fatal(err)
		}
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
	t.Cleanup(func() { _ = server.Kill() })
}

// crash leaves a WAL.
func crash(t *testing.T, s *setUp) {
	t.Helper()
	server := providerdtest.Serve(t, s.dir)
	providerdtest.RunCommand(t, s.dir, strings.Fields("application create --slug s --name n")...)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
}

// longWALOf makes the WAL long. What follows its last frame is ignored.
func longWALOf(t *testing.T, s *setUp) {
	crash(t, s)
	if err := os.Truncate(s.database+"-wal", 192<<20); err != nil {
		t.Fatal(err)
	}
}

// otherWAL replaces the database with a much older one, but not the WAL.
func otherWAL(t *testing.T, s *setUp) {
	providerdtest.Run(t, "cp", "--archive", s.database, s.database+".old")
	for range 3 {
		providerdtest.RunCommand(t, s.dir, strings.Fields("token create --name x --allow all")...)
	}
	crash(t, s)
	providerdtest.Run(t, "mv", s.database+".old", s.database)
}

// providerWithPK returns a statement that stores a provider.
func providerWithPK(pk string) string {
	return `INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address)
		VALUES (` + pk + `, 'oauth2', '', '2020-01-31 08:00:00+00:00', '', '', '')`
}
