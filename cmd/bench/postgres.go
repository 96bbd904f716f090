package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/postgres/postgrestest"
)

// startPostgres starts a PostgreSQL server of its own, and returns a function that empties its database and returns its
// URL. It panics if the server does not start.
func startPostgres(ctx context.Context) (empty database, stop func()) {
	s := &standIn{ctx: ctx}
	cluster := postgrestest.NewCluster(s)
	// The default, which tests reduce.
	cluster.Set(s, "shared_buffers", "128MB")
	cluster.Stop(s)
	cluster.Start(s)
	return func(ctx context.Context, _ string) (string, error) {
			return emptyDatabase(ctx, cluster.URL("postgres"))
		},
		func() {
			for _, cleanup := range slices.Backward(s.cleanups) {
				cleanup()
			}
		}
}

// emptyDatabase creates a database, after removing the one of the same name.
func emptyDatabase(ctx context.Context, server string) (address string, err error) {
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, admin.Close(ctx)) }()
	// The checkpoint keeps writes for the previous database from slowing down the next one.
	for _, statement := range []string{"DROP DATABASE IF EXISTS bench", "CREATE DATABASE bench", "CHECKPOINT"} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return "", fmt.Errorf("%s: %w", statement, err)
		}
	}
	location, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("parse the URL of the server: %w", err)
	}
	location.Path = "/bench"
	return location.String(), nil
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
