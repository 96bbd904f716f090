package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"example.com/providerd/store/postgres/postgrestest"
)

// withCluster calls work with the URL of a database on a PostgreSQL server of its own. It panics if that does not start.
func withCluster(ctx context.Context, work func(url string) error) error {
	s := &standIn{ctx: ctx}
	defer func() {
		for _, cleanup := range slices.Backward(s.cleanups) {
			cleanup()
		}
	}()
	cluster := postgrestest.NewCluster(s)
	// The default, which tests reduce.
	cluster.Set(s, "shared_buffers", "128MB")
	cluster.Stop(s)
	cluster.Start(s)
	return work(cluster.URL("postgres"))
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
