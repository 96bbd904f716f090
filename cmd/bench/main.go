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
	duration                   time.Duration
	rounds                     int
	postgres, telemetry, steps bool
}

func main() {
	var o options
	flag.DurationVar(&o.duration, "duration", 4*time.Second, "how long each load lasts, in whole seconds")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each load is repeated; medians are reported")
	flag.BoolVar(&o.postgres, "postgres", false, "measure over PostgreSQL instead of SQLite")
	flag.BoolVar(&o.telemetry, "telemetry", false, "measure the cost of metrics and traces")
	flag.BoolVar(&o.steps, "steps", false, "measure the time and allocations of the steps of a create")
	flag.Parse()
	work := o.run
	if o.steps {
		work = measureSteps
	}
	if err := work(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// server is what is measured.
type server struct {
	name string
	// measure starts it with an empty database, loads it over a number of connections, and kills it.
	measure func(ctx context.Context, connections int, duration time.Duration) (result, error)
}

// row has the results of each server, by name, in each round, for a number of connections.
type row struct {
	connections int
	results     map[string][]result
}

// run measures the servers and writes the tables and the plot.
func (o options) run(ctx context.Context) error {
	servers, stop := o.servers(ctx)
	defer stop()
	var rows []row
	for _, connections := range []int{1, 16, 64, 256} {
		measured := row{connections, map[string][]result{}}
		for round := range o.rounds {
			for i := range servers {
				// Each round has another order, so that no server always follows the same one.
				server := servers[(round+i)%len(servers)]
				result, err := server.measure(ctx, connections, o.duration)
				if err != nil {
					return fmt.Errorf("%s with %d connections: %w", server.name, connections, err)
				}
				measured.results[server.name] = append(measured.results[server.name], result)
			}
		}
		rows = append(rows, measured)
		fmt.Fprintf(os.Stderr, "measured %d connections\n", connections)
	}
	text := o.tables(rows)
	fmt.Print(text)
	return o.write(text, rows)
}

// write writes the tables into the README that shows them, and the plot beside it.
func (o options) write(text string, rows []row) error {
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
		os.WriteFile(dir+"/figures.svg", []byte(plot(rows)), 0o600))
}

// servers returns what is measured. Requests have keys, as those of the SDKs do, except where the name says otherwise.
func (o options) servers(ctx context.Context) (servers []server, stop func()) {
	over, stop := database(sqliteIn), func() {}
	if o.postgres {
		cluster := startPostgres(ctx)
		over, stop = cluster.empty, cluster.stop
		servers = append(servers, server{"pgbench", cluster.pgbench})
	}
	providerd := func(name string, variables []string, with ...telemetry) server {
		return server{name, starter(func(ctx context.Context, dir string) (*subject, error) {
			return startProviderd(ctx, dir, over, variables, with...)
		}).measure}
	}
	if o.telemetry {
		return []server{
			providerd("without", nil), providerd("metrics", nil, scraped), providerd("traces", nil, collected),
		}, stop
	}
	return append(servers, server{"yardstick", starter(startYardstick).measure}, providerd("providerd", nil),
		providerd("without keys", []string{"BENCH_KEYS=none"}),
		providerd("validations", []string{"BENCH_QUERY=?validate_only=true"})), stop
}

// starter starts a server with an empty database and its files in dir.
type starter func(ctx context.Context, dir string) (*subject, error)

// measure starts a server and loads it, after a second of the same load.
func (s starter) measure(ctx context.Context, connections int, duration time.Duration) (measured result, err error) {
	// The system's temporary directory may be in memory.
	dir, err := os.MkdirTemp(".", ".bench-")
	if err != nil {
		return result{}, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	started, err := s(ctx, dir)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, started.stop()) }()
	for _, lasts := range []time.Duration{time.Second, duration} {
		if measured, err = started.load(ctx, dir, connections, lasts); err != nil {
			return result{}, err
		}
	}
	return measured, nil
}
