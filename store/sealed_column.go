package store

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// resealBatch is the number of secrets resealed in one transaction; more would make creates wait.
const resealBatch = 200

// sealedColumn is a column of secrets.
type sealedColumn struct{ table, name string }

// sealedValue is the value of a column in one row.
type sealedValue struct {
	PK    int32
	Value []byte
}

func (c sealedColumn) place(pk int32) seal.Place {
	return seal.Place{Table: c.table, Column: c.name, PK: pk}
}

// values returns the first values that the query selects, ordered by pk.
func (c sealedColumn) values(query *gorm.DB) ([]sealedValue, error) {
	var values []sealedValue
	err := query.Table(c.table).Select("pk", c.name+" AS value").Order("pk").Limit(resealBatch).Find(&values).Error
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.name, err)
	}
	return values, nil
}

func (c sealedColumn) update(db *gorm.DB, pk int32, value []byte) error {
	if err := db.Table(c.table).Where("pk = ?", pk).UpdateColumn(c.name, value).Error; err != nil {
		return fmt.Errorf("write %s: %w", c.name, err)
	}
	return nil
}

// outdated narrows a query to values not sealed with the primary key.
func (c sealedColumn) outdated(db *gorm.DB, keys *seal.Keys) *gorm.DB {
	return db.Where("substr("+c.name+", 1, 5) <> ?", seal.Prefix(keys.PrimaryID()))
}
