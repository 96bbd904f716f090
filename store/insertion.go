package store

import (
	"fmt"
	"math"
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

// insertion writes the rows of creates in a transaction that has begun.
type insertion struct {
	tx   *gorm.DB
	keys *keys
}

// together inserts all rows of a table with as few statements as can be. One that fails ends the transaction.
func (i insertion) together(creates []*create) error {
	fresh, err := i.withoutReplays(creates)
	if err != nil {
		return err
	}
	return i.all(orRollback, fresh)
}

// apart inserts the rows of each create behind a savepoint, so that one that fails takes no other with it.
func (i insertion) apart(creates []*create) error {
	const savepoint = "before_one"
	fresh, err := i.withoutReplays(creates)
	if err != nil {
		return err
	}
	for _, one := range fresh {
		if err := i.tx.SavePoint(savepoint).Error; err != nil {
			return fmt.Errorf("insert one by one: %w", err)
		}
		err := i.all(orAbort, []*create{one})
		switch {
		case isDuplicate(err):
			one.err = ErrClientIDTaken
			if err := i.tx.RollbackTo(savepoint).Error; err != nil {
				return fmt.Errorf("insert one by one: %w", err)
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// all writes the common rows first, because the rows of the kinds take their pks.
func (i insertion) all(onConflict string, creates []*create) error {
	last, err := lastPK(i.tx)
	if err != nil {
		return err
	}
	if fit := int(math.MaxInt32 - last); len(creates) > fit {
		for _, one := range creates[fit:] {
			one.err = ErrNoPKLeft
		}
		creates = creates[:fit]
	}
	audits := make([]*Audit, len(creates))
	for n, one := range creates {
		one.audit.PK = last + int32(n) + 1
		if one.digest != nil {
			if one.audit.Fingerprint, err = i.keys.fingerprint(one.digest); err != nil {
				return err
			}
		}
		audits[n] = &one.audit
	}
	if err := insertChunks(i.tx, onConflict, audits); err != nil {
		return err
	}
	return i.settings(onConflict, creates)
}

// settings writes the rows of the kinds.
func (i insertion) settings(onConflict string, creates []*create) error {
	var oauth2Rows []*oauth2Row
	var directoryRows []*workspaceDirectoryRow
	for _, one := range creates {
		switch settings := one.settings.(type) {
		case *OAuth2Settings:
			row, err := sealOAuth2(i.keys, one.audit.PK, *settings)
			if err != nil {
				return err
			}
			oauth2Rows = append(oauth2Rows, row)
		case *WorkspaceDirectorySettings:
			row, err := sealWorkspaceDirectory(i.keys, one.audit.PK, *settings)
			if err != nil {
				return err
			}
			directoryRows = append(directoryRows, row)
		}
	}
	if err := insertChunks(i.tx, onConflict, oauth2Rows); err != nil {
		return err
	}
	return insertChunks(i.tx, onConflict, directoryRows)
}

// lastPK is the pk that was given last. Nobody else gives one while the transaction lasts.
func lastPK(tx *gorm.DB) (int32, error) {
	var last int32
	err := tx.Raw("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'providers'").Row().Scan(&last)
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
func (i insertion) withoutReplays(creates []*create) ([]*create, error) {
	fresh := slices.Clone(creates)
	var err error
	fresh = slices.DeleteFunc(fresh, func(one *create) bool {
		one.replays, one.err = 0, nil
		if err != nil || one.audit.IdempotencyKey == nil {
			return false
		}
		var made Audit
		made, err = madeBy(i.tx, one.audit)
		if err != nil || made.PK == 0 {
			return false
		}
		one.replays = made.PK
		if !i.keys.matches(made.Fingerprint, one.digest) {
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
