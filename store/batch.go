package store

import (
	"context"
	"errors"
)

// batch is some creates that share one transaction.
type batch struct {
	creates []*create
}

// commit carries the creates out in one durable transaction. Its error is that of all of them.
func (b batch) commit(ctx context.Context, w *writer) error {
	keys, err := w.keyring.current()
	if err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	insert := insertion{tx: w.db.WithContext(ctx), keys: keys}
	err = w.connection.transact(ctx, func() error { return insert.together(b.creates) })
	if isDuplicate(err) {
		// One of them breaks a constraint. Which one is only learned one by one, and its neighbours are to commit.
		err = w.connection.transact(ctx, func() error { return insert.apart(b.creates) })
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
