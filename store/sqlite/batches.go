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

// batches commits batches on a connection of its own and runs checkpoints between them. It is also the database.Batch
// of the transaction in progress.
type batches struct {
	database    *Database
	db          *gorm.DB
	connection  *connection
	checkpoints *checkpointer
	// inserts are the statements of each table, by the type of its []*Row.
	inserts map[reflect.Type]inserts
	// index is the wal-index after the last commit; nil once Maintain has used it.
	index *guard.WALIndex
	// tx is a handle to the transaction. pks are those assigned when it began, updated by ReservePKs.
	tx  *gorm.DB
	pks assignedPKs
	// keysetVersion is that of the keyset when the transaction began.
	keysetVersion []byte
	// hasRows is set once the transaction writes rows. probeErr is why rows could not be stored before it began.
	hasRows  bool
	probeErr error
}

var (
	_ database.Batches = (*batches)(nil)
	_ database.Batch   = (*batches)(nil)
)

// Batches opens the connections for committing batches and for checkpoints.
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

// Commit runs the statements of a batch and checks the files before and after. After a failure, only stored rows or a
// successful probe show that creates work again: a transaction without rows also commits on a full disk.
func (b *batches) Commit(ctx context.Context, _ int, statements func(database.Batch) error) error {
	b.hasRows, b.probeErr = false, nil
	if b.database.failed.Load() {
		b.probeErr = b.database.probeWrite(ctx)
	}
	if isBusy(b.probeErr) {
		// The batch would wait for the same lock for another busy timeout.
		return b.probeErr
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

// selectBegin reads the versions of the schema and the keyset and the pks in one statement, which takes less than half
// the time of two. This matters to creates that are committed alone.
const selectBegin = `SELECT (` + selectSchemaVersion + `), (SELECT version FROM keyset), ` + pkColumns

// begin checks that this program still supports the schema, and reads the version of the keyset and which pks are
// taken.
func (b *batches) begin(ctx context.Context) error {
	var version int64
	err := b.connection.QueryRowContext(ctx, selectBegin).
		Scan(&version, &b.keysetVersion, &b.pks.Sequence, &b.pks.Largest)
	return b.database.checkSchemaVersion(ctx, version, err)
}

// DB returns a handle to the transaction.
func (b *batches) DB() *gorm.DB { return b.tx }

// KeysetVersion returns the version of the keyset when the transaction began.
func (b *batches) KeysetVersion() []byte { return b.keysetVersion }

// ReservePKs returns the pks after the last one. The transaction holds the write lock, so nobody else takes them, and
// inserting the rows updates sqlite_sequence.
func (b *batches) ReservePKs(count int) ([]int32, error) {
	last, err := b.LastPK()
	if err != nil {
		return nil, err
	}
	// In a database that was tampered with, the sequence may exceed the largest pk.
	pks := make([]int32, min(count, max(0, int(math.MaxInt32-last))))
	for i := range pks {
		pks[i] = int32(last) + int32(i) + 1 //nolint:gosec // It fits.
	}
	b.pks.Sequence = last + int64(len(pks))
	return pks, nil
}

// LastPK returns the last pk that was assigned, from sqlite_sequence, or 0 if there is none.
func (b *batches) LastPK() (int64, error) { return b.pks.last() }

// CanStore returns the result of the probe before the transaction.
func (b *batches) CanStore() error { return b.probeErr }

// Maintain runs the checkpoint that is due, if any.
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

// Close waits for a running checkpoint and closes the connections.
func (b *batches) Close() error {
	if err := errors.Join(b.checkpoints.close(), b.connection.close()); err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	return nil
}
