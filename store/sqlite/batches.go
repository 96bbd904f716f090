package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"reflect"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// batches commits over a connection of its own, and keeps the WAL short.
type batches struct {
	database    *Database
	db          *gorm.DB
	connection  *connection
	checkpoints *checkpointer
	// inserts are those into the tables that had rows, by the type of the []*Row.
	inserts map[reflect.Type]inserts
	// index is the WAL after the last commit; nil once Maintain has seen it.
	index *walIndex
	// notedPK is what SQLite has noted as the last pk when the transaction began, or those reserved since, and largestPK
	// the largest there was.
	notedPK   any
	largestPK int64
	// hasRows is set once the transaction writes rows.
	hasRows bool
}

// Batches connects the one who commits batches.
func (d *Database) Batches(ctx context.Context) (database.Batches, error) {
	pool, err := d.writers.DB()
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", classify(err))
	}
	b := &batches{
		database: d, connection: &connection{conn: conn, statements: map[string]*sql.Stmt{}},
		inserts: map[reflect.Type]inserts{},
	}
	b.db, err = gorm.Open(dialector{gormsqlite.Dialector{Conn: b.connection}}, gormConfig())
	if err == nil {
		err = b.connection.configure(ctx)
	}
	if err == nil {
		b.checkpoints, err = newCheckpointer(ctx, pool, b.connection, d)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", classify(err)), b.connection.close())
	}
	return b, nil
}

// Commit runs the statements of a batch between two looks at the files.
func (b *batches) Commit(ctx context.Context, _ int, statements func(tx *gorm.DB) error) error {
	b.hasRows = false
	err := b.commit(ctx, statements)
	b.database.failed.Store(errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown))
	return err
}

func (b *batches) commit(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := b.database.files.checkBefore(); err != nil {
		return err
	}
	err := b.connection.transact(ctx, func() error {
		if err := b.begin(ctx); err != nil {
			return err
		}
		return statements(b.db.WithContext(ctx))
	})
	if err != nil {
		return err
	}
	index, err := b.database.files.look()
	if err != nil {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	b.index = &index
	return nil
}

// selectBegin reads the level and the pks in one statement, for a lone create in less than half the time of two.
const selectBegin = `SELECT (` + selectLevel + `), (SELECT seq FROM sqlite_sequence WHERE name = 'providers'),
	(SELECT coalesce(max(pk), 0) FROM providers)`

// begin looks whether this program may still write to the database, and which pks are taken.
func (b *batches) begin(ctx context.Context) error {
	var level int64
	err := b.connection.QueryRowContext(ctx, selectBegin).Scan(&level, &b.notedPK, &b.largestPK)
	return b.database.checkLevel(ctx, level, err)
}

// ReservePKs returns the pks behind the one that was given last. Nobody else gives any while the transaction lasts, and
// SQLite notes the last one when it is inserted.
func (b *batches) ReservePKs(tx *gorm.DB, count int) ([]int32, error) {
	last, err := b.LastPK(tx)
	if err != nil {
		return nil, err
	}
	// A database that was tampered with may have noted more than the largest.
	pks := make([]int32, min(count, max(0, int(math.MaxInt32-last))))
	for i := range pks {
		pks[i] = int32(last) + int32(i) + 1 //nolint:gosec // It fits.
	}
	b.notedPK = last + int64(len(pks))
	return pks, nil
}

// LastPK returns what SQLite has noted, 0 before the first one. It returns ErrUnavailable for what cannot be the last
// pk: any program may write the table, which has no types.
func (b *batches) LastPK(*gorm.DB) (int64, error) {
	if b.notedPK == nil && b.largestPK == 0 {
		return 0, nil
	}
	last, isInteger := b.notedPK.(int64)
	if !isInteger || last < b.largestPK {
		return 0, fmt.Errorf("%w: it is damaged: sqlite_sequence does not have the pk of the last provider; "+
			"go back to a backup", database.ErrUnavailable)
	}
	return last, nil
}

// CanStore leaves it to the statements of a transaction to fail.
func (b *batches) CanStore(*gorm.DB) error { return nil }

// Maintain makes the checkpoint that is due.
func (b *batches) Maintain(ctx context.Context) {
	if b.index != nil {
		b.checkpoints.committed(ctx, *b.index)
		b.index = nil
		return
	}
	if index, err := b.database.files.look(); err == nil {
		b.checkpoints.idle(ctx, index)
	}
}

// Close waits for a checkpoint that runs, and gives the connections back.
func (b *batches) Close() error {
	if err := errors.Join(b.checkpoints.close(), b.connection.close()); err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	return nil
}
