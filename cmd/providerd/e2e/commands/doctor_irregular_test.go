package commands_test

import "time"

// irregularFiles returns set-ups with a directory or a FIFO instead of each file, with a mode that the file must not
// have if its mode is checked.
func irregularFiles() map[string]damagedSetUp {
	database := func(file string) fault {
		return fault{"database file", healthFail, "^data/" + file + " is not a regular file; put the right file in its place, or use"}
	}
	isNoDatabase := fault{"database", healthFail, "not a regular file; put the database there"}
	const isNone = " is not a regular file; put the keyset in its place, or pass its path with --keyset$"
	isNoKeyset := fault{"keyset", healthFail, "not a regular file; put the right one in its place"}
	isNoToken := fault{"initial token", healthFail, "^data/initial-token is not a regular file; remove it"}
	isNoKey := fault{"certificate", healthFail, "key.pem: not a regular file; replace them with a PEM certificate and its key"}
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
