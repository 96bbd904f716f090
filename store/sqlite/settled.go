package sqlite

import "context"

// Settled returns the last key of each table. Transactions that write take turns, so no lower key is committed later.
func (d *Database) Settled(ctx context.Context, tables []string) (keys []int64, err error) {
	keys = make([]int64, len(tables))
	for i, table := range tables {
		if keys[i], err = d.LastKey(d.readers.GORM.WithContext(ctx), table); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
