package database

import "database/sql"

// Stats are figures of an open database at one moment.
type Stats struct {
	// Readers and Writers are those of the connections that read, and that change something.
	Readers, Writers sql.DBStats
	// WAL is nil where the server of the database keeps it, or where its files cannot be used.
	WAL *WALStats
}

// WALStats are figures of the write-ahead log (WAL) of an embedded database.
type WALStats struct {
	// Pages is how many pages the log has, and CopiedPages how many of them are in the database, too.
	Pages, CopiedPages uint32
	// Checkpoints counts those that were done since the database was opened, and FailedCheckpoints those that were not.
	Checkpoints, FailedCheckpoints uint64
}
