package commands_test

import (
	"testing"
	"time"
)

// irregularFiles returns set-ups with a directory or a FIFO instead of each file, with a mode that the file must not
// have if its mode is checked.
func irregularFiles() map[string]damagedSetUp {
	database := func(file string) fault {
		return fault{"database file", healthFail, "^data/" + file + " is not a regular file; restore the right file, or use"}
	}
	isNoDatabase := fault{"database", healthFail, "not a regular file; put the database there"}
	const isNone = " is not a regular file; restore the keyset, or pass its path with --keyset$"
	isNoKeyset := fault{"keyset", healthFail, "not a regular file; restore the right one"}
	isNoToken := fault{"initial token", healthFail, "^data/initial-token is not a regular file; remove it"}
	isNoKey := fault{"certificate", healthFail, "key.pem: not a regular file; pass a certificate chain and its key, both in PEM"}
	return map[string]damagedSetUp{
		"directory for database": {directoryAt("data/providerd.db"), []fault{database("providerd.db"), isNoDatabase}},
		"FIFO for database":      {fifoAt("data/providerd.db"), []fault{database("providerd.db"), isNoDatabase}},
		"FIFO for WAL":           {fifoAt("data/providerd.db-wal"), []fault{database("providerd.db-wal")}},
		"FIFO for wal-index":     {fifoAt("data/providerd.db-shm"), []fault{database("providerd.db-shm")}},
		"directory for keyset":   {directoryAt("data/keyset.json"), []fault{{"keyset file", healthFail, "^data/keyset.json" + isNone}, isNoKeyset}},
		"FIFO for keyset":        {fifoAt("data/keyset.json"), []fault{{"keyset file", healthFail, "^data/keyset.json" + isNone}, isNoKeyset}},
		"directory of variable for keyset": {environment("PROVIDERD_KEYSET=data"), []fault{
			{"keyset file", healthFail, "/data" + isNone}, isNoKeyset,
		}},
		"directory for token":              {directoryAt("data/initial-token"), []fault{isNoToken}},
		"FIFO for token":                   {fifoAt("data/initial-token"), []fault{isNoToken}},
		"directory for key of certificate": {all(certificate(-time.Hour, 90*day), directoryAt("key.pem")), []fault{isNoKey}},
		"FIFO for key of certificate":      {all(certificate(-time.Hour, 90*day), fifoAt("key.pem")), []fault{isNoKey}},
	}
}

func directoryAt(path string) change {
	return shell("rm --force " + path + "; mkdir --mode=755 " + path)
}

func fifoAt(path string) change {
	return shell("rm --force " + path + "; mkfifo --mode=644 " + path)
}

// wrongVariables returns set-ups in which a variable does not even name the database or a file correctly. The doctor
// still runs the checks that do not need it.
func wrongVariables() map[string]damagedSetUp {
	const remedy = ".*; correct the variable or flag$"
	noURL := fault{"configuration", healthFail, `^--database: .* nor does it begin with postgres:// \(from the environment variable PROVIDERD_DATABASE\)` + remedy}
	empty := func(flag, variable string) fault {
		return fault{"configuration", healthFail, "^--" + flag + `: must not be empty \(from the environment variable ` + variable + `\)` + remedy}
	}
	return map[string]damagedSetUp{
		"flag beside a variable": {func(_ *testing.T, s *setUp) {
			s.environment = []string{"PROVIDERD_DATABASE=postgres://u@127.0.0.1:1/x"}
			s.flags = []string{"--database=sqlite:data/providerd.db"}
		}, nil},
		"rate limit that the server alone reads": {environment("PROVIDERD_RATE_LIMIT=100"), fails("configuration", `100/h, with 1 to 999999 \(from the environment variable PROVIDERD_RATE_LIMIT\)`+remedy)},
		"no URL":                                 {environment("PROVIDERD_DATABASE=foo"), []fault{noURL}},
		"empty URL":                              {environment("PROVIDERD_DATABASE="), []fault{noURL}},
		"no URL and no keyset": {environment("PROVIDERD_DATABASE=foo", "PROVIDERD_KEYSET=none.json"), []fault{
			noURL, {"keyset", healthFail, "no keyset file: .*/none.json; restore it"},
		}},
		"no URL and keyset that others read": {all(shell("chmod 644 data/keyset.json"), environment("PROVIDERD_DATABASE=foo", "PROVIDERD_KEYSET=data/keyset.json")), []fault{
			noURL, {"keyset file", healthFail, "other users can access the keys"}, {"keyset", healthFail, "other users can read"},
		}},
		"server without keyset": {environment("PROVIDERD_DATABASE=postgres://u@127.0.0.1:1/x"), []fault{
			{"configuration", healthFail, `^--keyset is required with a PostgreSQL database, .*` + remedy},
			{"database", healthFail, "no connection: .*refused; start the primary"},
		}},
		"empty path of keyset":      {environment("PROVIDERD_KEYSET="), []fault{empty("keyset", "PROVIDERD_KEYSET")}},
		"empty path of certificate": {environment("PROVIDERD_TLS_CERT="), []fault{empty("tls-cert", "PROVIDERD_TLS_CERT")}},
		"empty path of key":         {environment("PROVIDERD_TLS_KEY="), []fault{empty("tls-key", "PROVIDERD_TLS_KEY")}},
		"database for keyset":       {environment("PROVIDERD_KEYSET=data/providerd.db"), fails("configuration", "^the database and the keyset would both be .*/data/providerd.db; use another file"+remedy)},
	}
}
