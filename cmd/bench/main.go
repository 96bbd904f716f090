// Command bench compares providerd with a server that only validates, in one run on one machine. The ratios show what
// providerd costs. It needs bin/providerd, bin/yardstick, wrk (from Debian's package wrk) and, with -postgres, PostgreSQL.
//
// Start with run and measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"example.com/providerd/cmd/bench/figures"
)

type options struct {
	duration            time.Duration
	rounds              int
	postgres, telemetry bool
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 4*time.Second, "how long each load lasts")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each load is repeated; medians are reported")
	flag.BoolVar(&o.postgres, "postgres", false, "measure over PostgreSQL instead of SQLite")
	flag.BoolVar(&o.telemetry, "telemetry", false, "measure the cost of metrics and traces")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// server is what is measured.
type server struct {
	name string
	// start starts it with an empty database and its files in dir.
	start func(ctx context.Context, dir string) (*subject, error)
}

// row has the results of each server in each round, for a number of connections.
type row struct {
	connections int
	results     [][]result
}

// run measures the servers and writes the table and the plot.
func run(ctx context.Context, o options) error {
	servers, stop := serversOf(ctx, o)
	defer stop()
	var rows []row
	for _, connections := range []int{1, 16, 64, 256} {
		measured := row{connections, make([][]result, len(servers))}
		for round := range o.rounds {
			for i := range servers {
				// Each round has another order, so that no server always follows the same one.
				at := (round + i) % len(servers)
				result, err := measure(ctx, servers[at], connections, o.duration)
				if err != nil {
					return fmt.Errorf("%s with %d connections: %w", servers[at].name, connections, err)
				}
				measured.results[at] = append(measured.results[at], result)
			}
		}
		rows = append(rows, measured)
		fmt.Fprintf(os.Stderr, "measured %d connections\n", connections)
	}
	text := table(servers, rows)
	fmt.Print(text)
	return o.write(text, plot(servers, rows))
}

// write writes the table into the README that shows it, and the plot beside it.
func (o options) write(text, chart string) error {
	dir, target := "cmd/bench", "make bench"
	switch {
	case o.postgres && o.telemetry:
		return nil
	case o.telemetry:
		return figures.Put("cmd/bench/README.md", "figures: make bench BENCH=-telemetry writes them", text)
	case o.postgres:
		dir, target = "store/postgres", "make bench BENCH=-postgres"
	}
	return errors.Join(figures.Put(dir+"/README.md", "figures: "+target+" writes them", text),
		os.WriteFile(dir+"/figures.svg", []byte(chart), 0o600))
}

// serversOf returns the servers to measure. The others are compared with the first.
func serversOf(ctx context.Context, o options) (servers []server, stop func()) {
	over, stop := database(sqliteIn), func() {}
	if o.postgres {
		over, stop = startPostgres(ctx)
	}
	providerd := func(name string, with ...telemetry) server {
		return server{name, func(ctx context.Context, dir string) (*subject, error) {
			return startProviderd(ctx, dir, over, with...)
		}}
	}
	if o.telemetry {
		return []server{providerd("without"), providerd("metrics", scraped), providerd("traces", collected)}, stop
	}
	return []server{{"yardstick", startYardstick}, providerd("providerd")}, stop
}

// measure starts a server and loads it, after a second of the same load.
func measure(ctx context.Context, of server, connections int, duration time.Duration) (measured result, err error) {
	// The system's temporary directory may be in memory.
	dir, err := os.MkdirTemp(".", ".bench-")
	if err != nil {
		return result{}, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	target, err := of.start(ctx, dir)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, target.stop()) }()
	for _, lasts := range []time.Duration{time.Second, duration} {
		if measured, err = target.load(ctx, dir, connections, lasts); err != nil {
			return result{}, err
		}
	}
	return measured, nil
}
