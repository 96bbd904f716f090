package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/postgres/postgrestest"
)

// cluster is a PostgreSQL server of its own. Its methods panic if the server fails.
type cluster struct {
	*postgrestest.Cluster
	standIn *standIn
}

func startPostgres(ctx context.Context) cluster {
	s := &standIn{ctx: ctx}
	c := cluster{postgrestest.NewCluster(s), s}
	// The default, which tests reduce.
	c.Set(s, "shared_buffers", "128MB")
	c.Stop(s)
	c.Start(s)
	return c
}

// empty empties the database and returns its URL.
func (c cluster) empty(string) (url string) {
	// The checkpoint keeps writes for the previous database from slowing down the next one.
	c.Exec(c.standIn, "postgres", "DROP DATABASE IF EXISTS bench WITH (FORCE)", "CREATE DATABASE bench", "CHECKPOINT")
	return c.URL("bench")
}

func (c cluster) stop() {
	for _, cleanup := range slices.Backward(c.standIn.cleanups) {
		cleanup()
	}
}

// pgbench inserts a row in each transaction, over as many connections as providerd has, at most 24.
func (c cluster) pgbench(ctx context.Context, connections int, duration time.Duration) (result, error) {
	url := c.empty("")
	c.Exec(c.standIn, "bench", "CREATE TABLE rows (pk bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)")
	// The time includes two seconds for connecting, which the rate does not.
	command := exec.CommandContext(ctx, c.Program("pgbench"), "--no-vacuum", "--protocol", "prepared", "--file", "-",
		"--client", strconv.Itoa(min(connections, 24)), "--time", seconds(duration+2*time.Second), url)
	command.Stdin = strings.NewReader("INSERT INTO rows (name) VALUES ('one row');")
	output, err := command.CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("run pgbench: %w: %s", err, output)
	}
	_, rate, _ := strings.Cut(string(output), "tps = ")
	measured := result{Microseconds: 1e6}
	if _, err := fmt.Sscan(rate, &measured.Requests); err != nil {
		return result{}, fmt.Errorf("read the result of pgbench: %w: %s", err, output)
	}
	return measured, nil
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
