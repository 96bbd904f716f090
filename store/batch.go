package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// What an INSERT does when a row breaks a constraint (SQLite's ON CONFLICT).
const (
	orAbort    = "OR ABORT"
	orRollback = "OR ROLLBACK"
)

// chunkSizes are the lengths of the lists of rows that one INSERT writes. They are few, because each is a prepared
// statement of its own.
func chunkSizes() []int { return []int{64, 32, 16, 8, 4, 2, 1} }

// batch is some creates that share one transaction.
type batch struct {
	creates []*create
}

// commit carries the creates out in one durable transaction. Its error is that of all of them.
func (b batch) commit(ctx context.Context, w *writer) error {
	db := w.db.WithContext(ctx)
	err := w.connection.transact(ctx, func() error { return b.insertTogether(db) })
	if isDuplicate(err) {
		// One of them breaks a constraint. Which one is only learned one by one, and its neighbours are to commit.
		err = w.connection.transact(ctx, func() error { return b.insertApart(db) })
	}
	return err
}

// finish tells every caller the outcome.
func (b batch) finish(err error) {
	for _, one := range b.creates {
		if err != nil {
			one.err = err
		}
		close(one.done)
	}
}

// insertTogether inserts all rows of a table with as few statements as can be. One that fails ends the transaction.
func (b batch) insertTogether(tx *gorm.DB) error {
	fresh, err := withoutReplays(tx, b.creates)
	if err != nil {
		return err
	}
	return insertAll(tx, orRollback, fresh)
}

// insertApart inserts the rows of each create behind a savepoint, so that one that fails takes no other with it.
func (b batch) insertApart(tx *gorm.DB) error {
	const savepoint = "before_one"
	fresh, err := withoutReplays(tx, b.creates)
	if err != nil {
		return err
	}
	for _, one := range fresh {
		if err := tx.SavePoint(savepoint).Error; err != nil {
			return fmt.Errorf("insert one by one: %w", err)
		}
		err := insertAll(tx, orAbort, []*create{one})
		switch {
		case isDuplicate(err):
			one.err = ErrClientIDTaken
			if err := tx.RollbackTo(savepoint).Error; err != nil {
				return fmt.Errorf("insert one by one: %w", err)
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// insertAll writes the common rows first, because the rows of the kinds take their pks.
func insertAll(tx *gorm.DB, onConflict string, creates []*create) error {
	last, err := lastPK(tx)
	if err != nil {
		return err
	}
	audits := make([]*Audit, len(creates))
	for i, one := range creates {
		one.audit.PK = last + int32(i) + 1
		audits[i] = &one.audit
	}
	if err := insertChunks(tx, onConflict, audits); err != nil {
		return err
	}
	var oauth2Rows []*oauth2Row
	var directoryRows []*workspaceDirectoryRow
	for _, one := range creates {
		switch settings := one.settings.(type) {
		case *OAuth2Settings:
			oauth2Rows = append(oauth2Rows, &oauth2Row{PK: one.audit.PK, OAuth2Settings: *settings})
		case *WorkspaceDirectorySettings:
			directoryRows = append(directoryRows,
				&workspaceDirectoryRow{PK: one.audit.PK, WorkspaceDirectorySettings: *settings})
		}
	}
	if err := insertChunks(tx, onConflict, oauth2Rows); err != nil {
		return err
	}
	return insertChunks(tx, onConflict, directoryRows)
}

// lastPK is the pk that was given last. Nobody else gives one while the transaction lasts.
func lastPK(tx *gorm.DB) (int32, error) {
	var last int32
	err := tx.Raw("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'providers'").Scan(&last).Error
	if err != nil {
		return 0, fmt.Errorf("read the last pk: %w", err)
	}
	return last, nil
}

func insertChunks[Row any](tx *gorm.DB, onConflict string, rows []*Row) error {
	for _, size := range chunkSizes() {
		for len(rows) >= size {
			chunk := rows[:size]
			if err := tx.Clauses(clause.Insert{Modifier: onConflict}).Create(&chunk).Error; err != nil {
				return fmt.Errorf("insert rows: %w", err)
			}
			rows = rows[size:]
		}
	}
	return nil
}

// withoutReplays leaves out the creates whose key made a record before, and says which.
func withoutReplays(tx *gorm.DB, creates []*create) ([]*create, error) {
	fresh := slices.Clone(creates)
	var err error
	fresh = slices.DeleteFunc(fresh, func(one *create) bool {
		one.replays, one.err = 0, nil
		if err != nil || one.audit.IdempotencyKey == nil {
			return false
		}
		var made Audit
		made, err = madeBy(tx, one.audit)
		if err != nil || made.PK == 0 {
			return false
		}
		one.replays = made.PK
		if !slices.Equal(made.Fingerprint, one.audit.Fingerprint) {
			one.err = ErrKeyReused
		}
		return true
	})
	return fresh, err
}

// madeBy returns the provider that was made with the key of another; its pk is 0 where there is none.
func madeBy(tx *gorm.DB, like Audit) (Audit, error) {
	var made []Audit
	err := tx.Select("pk", "fingerprint").
		Where("created_by = ? AND kind = ? AND idempotency_key = ?", like.CreatedBy, like.Kind, like.IdempotencyKey).
		Limit(1).Find(&made).Error
	if err != nil {
		return Audit{}, fmt.Errorf("look up idempotency key: %w", err)
	}
	if len(made) == 0 {
		return Audit{}, nil
	}
	return made[0], nil
}
