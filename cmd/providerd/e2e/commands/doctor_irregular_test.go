package commands_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

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

// TestDoctorRefusesWhatServeRefuses compares what both say about a configuration.
func TestDoctorRefusesWhatServeRefuses(t *testing.T) {
	t.Parallel()
	healthy := newSetUp(t)
	for line, want := range map[string]string{
		"PROVIDERD_DATABASE=foo":                        "--database: .*postgres://.*PROVIDERD_DATABASE",
		"PROVIDERD_DATABASE=":                           "--database: .*postgres://.*PROVIDERD_DATABASE",
		"PROVIDERD_DATABASE=postgres://u@127.0.0.1:1/x": "--keyset is required with a PostgreSQL database",
		"PROVIDERD_KEYSET=":                             "--keyset: must not be empty.*PROVIDERD_KEYSET",
		"PROVIDERD_KEYSET=data/providerd.db":            "the database and the keyset would both be .*; use another file",
		"PROVIDERD_TLS_CERT=":                           "--tls-cert: must not be empty.*PROVIDERD_TLS_CERT",
		"PROVIDERD_TLS_KEY=":                            "--tls-key: must not be empty.*PROVIDERD_TLS_KEY",
		"PROVIDERD_TLS_CERT=cert.pem":                   "--tls-cert and --tls-key must be used together",
		"PROVIDERD_LISTEN=nowhere":                      `"nowhere" is not of the form HOST:PORT.*PROVIDERD_LISTEN`,
		"PROVIDERD_RATE_LIMIT=100":                      "100/h, with a number from 1 to 999999 .*PROVIDERD_RATE_LIMIT",
		"PROVIDERD_OPS_LISTEN=127.0.0.1:8080":           "--listen and --ops-listen must differ",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			var said []string
			for _, command := range []string{"serve", "doctor"} {
				run := providerdtest.Command(t.Context(), healthy.dir, line, command)
				output, err := run.CombinedOutput()
				if err == nil || run.ProcessState.ExitCode() != providerdtest.ExitUsage {
					t.Errorf("%s: %v", command, err)
				}
				text, _, _ := strings.Cut(string(output), "Run \"providerd")
				said = append(said, strings.TrimPrefix(text, "providerd: "+command+": "))
			}
			if said[0] != said[1] || !regexp.MustCompile(want).MatchString(said[0]) {
				t.Errorf("serve says %q and doctor %q, want %q", said[0], said[1], want)
			}
		})
	}
	healthy.environment = []string{"PROVIDERD_DATABASE=postgres://u@127.0.0.1:1/x"}
	healthy.flags = []string{"--database=sqlite:data/providerd.db"}
	expectOnly(t, healthy)
}
