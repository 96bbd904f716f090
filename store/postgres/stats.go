package postgres

import (
	"database/sql"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Stats returns figures of the connections.
func (d *Database) Stats() database.Stats {
	return database.Stats{Readers: poolStats(d.readers), Writers: poolStats(d.writers)}
}

func poolStats(db *gorm.DB) sql.DBStats {
	pool, err := db.DB()
	if err != nil {
		return sql.DBStats{}
	}
	return pool.Stats()
}
