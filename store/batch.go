package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/mattn/go-sqlite3"
	"gorm.io/gorm"
)

// chunkSizes are the lengths of the lists of rows that one INSERT writes. They are few, because each is a prepared
// statement of its own.
func chunkSizes() []int { return []int{32, 8, 1} }

// batch is some creates that share one transaction.
type batch struct {
	creates []*create
}

// commit carries the creates out in one durable transaction. Its error is that of all of them.
func (b batch) commit(ctx context.Context, db *gorm.DB) error {
	err := b.tryTogether(ctx, db)
	if isDuplicate(err) {
		// One of them breaks a constraint. Which one is only learned one by one, and its neighbours are to commit.
		err = b.tryApart(ctx, db)
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

// tryTogether inserts all rows of a table with as few statements as can be.
func (b batch) tryTogether(ctx context.Context, db *gorm.DB) error {
	return transact(ctx, db, func(tx *gorm.DB) error {
		fresh, err := withoutReplays(tx, b.creates)
		if err != nil {
			return err
		}
		return insertAll(tx, fresh)
	})
}

// tryApart inserts the rows of each create behind a savepoint, so that one that fails takes no other with it.
func (b batch) tryApart(ctx context.Context, db *gorm.DB) error {
	return transact(ctx, db, func(tx *gorm.DB) error {
		fresh, err := withoutReplays(tx, b.creates)
		if err != nil {
			return err
		}
		for _, one := range fresh {
			err := tx.Transaction(func(tx *gorm.DB) error { return insertAll(tx, []*create{one}) })
			switch {
			case isDuplicate(err):
				one.err = ErrClientIDTaken
			case err != nil:
				return fmt.Errorf("insert one by one: %w", err)
			}
		}
		return nil
	})
}

// insertAll writes the common rows first, because the rows of the kinds take their pks.
func insertAll(tx *gorm.DB, creates []*create) error {
	commons := make([]*Provider, len(creates))
	for i, one := range creates {
		one.common.PK = 0
		commons[i] = &one.common
	}
	if err := insertChunks(tx, commons); err != nil {
		return err
	}
	var oauth2Rows []*oauth2Row
	var directoryRows []*workspaceDirectoryRow
	for _, one := range creates {
		switch settings := one.settings.(type) {
		case *OAuth2Settings:
			oauth2Rows = append(oauth2Rows, &oauth2Row{PK: one.common.PK, OAuth2Settings: *settings})
		case *WorkspaceDirectorySettings:
			directoryRows = append(directoryRows,
				&workspaceDirectoryRow{PK: one.common.PK, WorkspaceDirectorySettings: *settings})
		}
	}
	if err := insertChunks(tx, oauth2Rows); err != nil {
		return err
	}
	return insertChunks(tx, directoryRows)
}

func insertChunks[Row any](tx *gorm.DB, rows []*Row) error {
	for _, size := range chunkSizes() {
		for len(rows) >= size {
			chunk := rows[:size]
			if err := tx.Omit("Application", "Backchannel").Create(&chunk).Error; err != nil {
				return fmt.Errorf("insert rows: %w", err)
			}
			rows = rows[size:]
		}
	}
	return nil
}

// transact runs statements in one transaction. When the outcome of the commit could not be learned, the error is
// ErrOutcomeUnknown; in any other error nothing was stored.
func transact(ctx context.Context, db *gorm.DB, statements func(tx *gorm.DB) error) error {
	tx := db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return classify(tx.Error)
	}
	if err := statements(tx); err != nil {
		rollback := tx.Rollback().Error
		if errors.Is(rollback, sql.ErrTxDone) {
			rollback = nil
		}
		return classify(errors.Join(err, rollback))
	}
	err := tx.Commit().Error
	if native, ok := errors.AsType[sqlite3.Error](err); ok && native.Code == sqlite3.ErrIoErr {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return classify(err)
}

// withoutReplays leaves out the creates whose key made a record before, and says which.
func withoutReplays(tx *gorm.DB, creates []*create) ([]*create, error) {
	fresh := slices.Clone(creates)
	var err error
	fresh = slices.DeleteFunc(fresh, func(one *create) bool {
		one.replays, one.err = 0, nil
		if err != nil || one.common.IdempotencyKey == nil {
			return false
		}
		var made Provider
		made, err = madeBy(tx, one.common)
		if err != nil || made.PK == 0 {
			return false
		}
		one.replays = made.PK
		if !slices.Equal(made.Fingerprint, one.common.Fingerprint) {
			one.err = ErrKeyReused
		}
		return true
	})
	return fresh, err
}

// madeBy returns the provider that was made with the key of another; its pk is 0 where there is none.
func madeBy(tx *gorm.DB, like Provider) (Provider, error) {
	var made []Provider
	err := tx.Select("pk", "fingerprint").
		Where("created_by = ? AND kind = ? AND idempotency_key = ?", like.CreatedBy, like.Kind, like.IdempotencyKey).
		Limit(1).Find(&made).Error
	if err != nil {
		return Provider{}, fmt.Errorf("look up idempotency key: %w", err)
	}
	if len(made) == 0 {
		return Provider{}, nil
	}
	return made[0], nil
}
