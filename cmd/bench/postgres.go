package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// startPostgres starts a PostgreSQL server of its own, and returns a function that empties its database and returns its
// URL. Both panic if the server fails.
func startPostgres(ctx context.Context) (empty database, stop func()) {
	s := &standIn{ctx: ctx}
	cluster := postgrestest.NewCluster(s)
	// The default, which tests reduce.
	cluster.Set(s, "shared_buffers", "128MB")
	cluster.Stop(s)
	cluster.Start(s)
	return func(string) string {
			// The checkpoint keeps writes for the previous database from slowing down the next one.
			cluster.Exec(s, "postgres", "DROP DATABASE IF EXISTS bench WITH (FORCE)", "CREATE DATABASE bench", "CHECKPOINT")
			return cluster.URL("bench")
		},
		func() {
			for _, cleanup := range slices.Backward(s.cleanups) {
				cleanup()
			}
		}
}

// standIn is what postgrestest needs of a test.
type standIn struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func (s *standIn) Helper() {}

func (s *standIn) Context() context.Context { return s.ctx }

func (s *standIn) Cleanup(cleanup func()) { s.cleanups = append(s.cleanups, cleanup) }

func (s *standIn) Fatal(arguments ...any) { panic(fmt.Sprint(arguments...)) }

func (s *standIn) Fatalf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }
