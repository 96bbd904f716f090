package database

import "database/sql"

// Stats are statistics of an open database at one moment.
type Stats struct {
	// Readers and Writers are the statistics of the connections that read, and of those that write.
	Readers, Writers sql.DBStats
	// FreeBytes is the free space on the disk of an embedded database; nil if there is none, or it cannot be read.
	FreeBytes *int64
	// WAL is nil if the database server manages its own WAL, or if the files cannot be used.
	WAL *WALStats
}

// WALStats are statistics of the write-ahead log (WAL) of an embedded database.
type WALStats struct {
	// Pages is the number of pages in the WAL, and CopiedPages the number already copied to the database file.
	Pages, CopiedPages uint32
	// Checkpoints and FailedCheckpoints count the checkpoints since the database was opened.
	Checkpoints, FailedCheckpoints uint64
}
