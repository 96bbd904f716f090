package database_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest/processtest"
)

// A database is used if this program has its schema, or a later one that still supports it, and read if it is older.
func TestSchema(t *testing.T) {
	t.Parallel()
	const program = 3
	for schema, want := range map[database.Schema]struct{ use, read error }{
		{Version: 3, MinProgram: 3}: {nil, nil},
		{Version: 4, MinProgram: 3}: {nil, nil},
		{Version: 4, MinProgram: 4}: {database.ErrNewer, database.ErrNewer},
		{Version: 2, MinProgram: 2}: {database.ErrOlder, nil},
		{Version: 0, MinProgram: 0}: {database.ErrOlder, database.ErrOlder},
	} {
		schema.Program = program
		processtest.IsError(t, schema.Check(), want.use)
		processtest.IsError(t, schema.CheckKnown(), want.read)
	}
}

// What Prepare has checked is trusted for a minute, unless it failed or another server may have taken over.
func TestPrepared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var prepared database.Prepared
		calls, failure := 0, errors.New("behind")
		renew := func(result error) error {
			return prepared.Renew(func() error { calls++; return result })
		}
		expect := func(what string, err error, want int) {
			processtest.IsError(t, renew(err), err)
			processtest.Equal(t, calls, want, "calls %s", what)
		}
		expect("at first", failure, 1)
		expect("after a failure", nil, 2)
		expect("soon after", nil, 2)
		<-time.After(time.Minute)
		expect("after a minute", nil, 3)
		prepared.Forget()
		expect("after a failover", nil, 4)
	})
}
