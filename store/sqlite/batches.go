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
	"example.com/providerd/store/sqlite/guard"
)

// batches commits over a connection of its own, and keeps the WAL short. It is also the transaction of the batch that
// is being committed.
type batches struct {
	database    *Database
	db          *gorm.DB
	connection  *connection
	checkpoints *checkpointer
	// inserts are those into the tables that had rows, by the type of the []*Row.
	inserts map[reflect.Type]inserts
	// index is the WAL after the last commit; nil once Maintain has seen it.
	index *guard.WALIndex
	// tx is a handle on the transaction, and pks are those when it began, or with those reserved since.
	tx  *gorm.DB
	pks assignedPKs
	// hasRows is set once the transaction writes rows, and refusal is why none could be stored before it began.
	hasRows bool
	refusal error
}

var (
	_ database.Batches = (*batches)(nil)
	_ database.Batch   = (*batches)(nil)
)

// Batches connects the one who commits batches.
func (d *Database) Batches(ctx context.Context) (database.Batches, error) {
	conn, err := d.writers.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", classify(err))
	}
	b := &batches{
		database: d, connection: &connection{conn: conn, statements: map[string]*sql.Stmt{}},
		inserts: map[reflect.Type]inserts{},
	}
	b.db, err = database.OpenGORM(gormsqlite.Dialector{Conn: b.connection}, classify, false)
	if err == nil {
		err = b.connection.configure(ctx)
	}
	if err == nil {
		b.checkpoints, err = newCheckpointer(ctx, b.connection, d)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", classify(err)), b.connection.close())
	}
	return b, nil
}

// Commit runs the statements of a batch between two looks at the files. After a failure, only rows that are stored or a
// probe prove that creates succeed again: a transaction without rows commits on a full disk, too.
func (b *batches) Commit(ctx context.Context, _ int, statements func(database.Batch) error) error {
	b.hasRows, b.refusal = false, nil
	if b.database.failed.Load() {
		b.refusal = b.database.probeWrite(ctx)
	}
	if isBusy(b.refusal) {
		// The batch would wait for the same lock as long again.
		return b.refusal
	}
	err := b.commit(ctx, statements)
	switch {
	case errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown):
		b.database.failed.Store(true)
	case err == nil && b.hasRows:
		b.database.failed.Store(false)
	}
	return err
}

func (b *batches) commit(ctx context.Context, statements func(database.Batch) error) error {
	if err := b.database.files.CheckUnlessRecent(); err != nil {
		return err
	}
	err := b.connection.transact(ctx, func() error {
		if err := b.begin(ctx); err != nil {
			return err
		}
		b.tx = b.db.WithContext(ctx)
		return statements(b)
	})
	if err != nil {
		return err
	}
	index, err := b.database.files.Inspect()
	if err != nil {
		return fmt.Errorf("%w: %w", database.ErrOutcomeUnknown, err)
	}
	b.index = &index
	return nil
}

// selectBegin reads the level and the pks in one statement, for a lone create in less than half the time of two.
const selectBegin = `SELECT (` + selectSchemaVersion + `), ` + pkColumns

// begin looks whether this program may still write to the database, and which pks are taken.
func (b *batches) begin(ctx context.Context) error {
	var level int64
	err := b.connection.QueryRowContext(ctx, selectBegin).Scan(&level, &b.pks.Sequence, &b.pks.Largest)
	return b.database.checkSchemaVersion(ctx, level, err)
}

// DB returns a handle on the transaction.
func (b *batches) DB() *gorm.DB { return b.tx }

// ReservePKs returns the pks behind the one that was given last. Nobody else gives any while the transaction lasts, and
// SQLite notes the last one when it is inserted.
func (b *batches) ReservePKs(count int) ([]int32, error) {
	last, err := b.LastPK()
	if err != nil {
		return nil, err
	}
	// A database that was tampered with may have noted more than the largest.
	pks := make([]int32, min(count, max(0, int(math.MaxInt32-last))))
	for i := range pks {
		pks[i] = int32(last) + int32(i) + 1 //nolint:gosec // It fits.
	}
	b.pks.Sequence = last + int64(len(pks))
	return pks, nil
}

// LastPK returns what SQLite has noted, 0 before the first one.
func (b *batches) LastPK() (int64, error) { return b.pks.last() }

// CanStore returns what was found before the transaction began.
func (b *batches) CanStore() error { return b.refusal }

// Maintain makes the checkpoint that is due.
func (b *batches) Maintain(ctx context.Context) {
	committed := b.index
	b.index = nil
	if committed != nil && !b.database.failed.Load() {
		b.checkpoints.committed(ctx, *committed)
		return
	}
	index, err := b.database.files.Inspect()
	switch {
	case err != nil:
	case b.database.failed.Load():
		b.checkpoints.makeRoom(ctx, index)
	default:
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
