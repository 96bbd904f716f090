// Command bench compares providerd with servers that do less, in one run on one machine. The ratios show what providerd
// costs. It needs bin/providerd, wrk (from Debian's package wrk) and, with -postgres, PostgreSQL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"example.com/providerd/cmd/bench/figures"
)

func main() {
	var options options
	serve := flag.String("serve", "", "serve as a yardstick of this kind: echo or validation (internal)")
	flag.DurationVar(&options.duration, "duration", 4*time.Second, "how long each load lasts")
	flag.IntVar(&options.rounds, "rounds", 5, "how often each load is repeated; medians are reported")
	flag.BoolVar(&options.huge, "huge", false, "measure growth up to 10 million rows")
	overPostgres := flag.Bool("postgres", false, "measure over PostgreSQL and compare with pgbench")
	ofTelemetry := flag.Bool("telemetry", false, "measure the cost of metrics and traces")
	flag.Parse()
	var err error
	switch {
	case *serve != "":
		err = serveYardstick(context.Background(), *serve)
	case *overPostgres:
		err = runPostgres(context.Background(), options)
	case *ofTelemetry:
		err = runTelemetry(context.Background(), options)
	default:
		err = run(context.Background(), options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	duration time.Duration
	rounds   int
	huge     bool
}

// run measures the servers and writes the tables and the plot.
func run(ctx context.Context, options options) error {
	var rows []comparison
	for _, connections := range []int{1, 16, 64, 256} {
		row, err := compare(ctx, options, connections)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		fmt.Fprintf(os.Stderr, "measured %d connections\n", connections)
	}
	bare, err := bareCommits(ctx, options.rounds)
	if err != nil {
		return err
	}
	growth, err := measureGrowth(ctx, options)
	if err != nil {
		return err
	}
	text := table(rows, bare, growth)
	fmt.Print(text)
	bars := plot(rows, []string{echoAlone, withValidation, whole},
		[]string{"Echo alone", "with validation", "providerd, durable"})
	return errors.Join(figures.Put("cmd/bench/README.md", "figures: make bench writes them", text),
		os.WriteFile("cmd/bench/figures.svg", []byte(bars), 0o600))
}

// comparison has the results of each server in each round, for a number of connections.
type comparison struct {
	connections int
	results     map[string][]result
}

// compare measures the servers in turn, so that other load on the machine affects all of them alike.
func compare(ctx context.Context, options options, connections int) (comparison, error) {
	row := comparison{connections: connections, results: map[string][]result{}}
	for range options.rounds {
		for _, kind := range []string{echoAlone, withValidation, whole} {
			measured, err := measureFresh(ctx, kind, connections, options.duration)
			if err != nil {
				return comparison{}, fmt.Errorf("%s with %d connections: %w", kind, connections, err)
			}
			row.results[kind] = append(row.results[kind], measured)
		}
	}
	return row, nil
}

// measureFresh measures a server that starts with an empty database.
func measureFresh(
	ctx context.Context, kind string, connections int, duration time.Duration,
) (measured result, err error) {
	dir, err := makeDir()
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return measure(ctx, kind, connections, duration, dir)
}

// makeDir creates a temporary directory in the working directory, because the system's temporary directory may be in
// memory.
func makeDir() (string, error) {
	dir, err := os.MkdirTemp(".", ".bench-")
	if err != nil {
		return "", fmt.Errorf("create directory: %w", err)
	}
	return dir, nil
}

// measure starts a server with its data in dir, and loads it.
func measure(
	ctx context.Context, kind string, connections int, duration time.Duration, dir string,
) (measured result, err error) {
	target, err := start(ctx, kind, dir)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, target.stop()) }()
	measured, err = loadWarm(ctx, target, connections, duration)
	measured.StartSeconds = target.startTime.Seconds()
	return measured, err
}

// loadWarm loads a server after a second of the same load.
func loadWarm(ctx context.Context, target *subject, connections int, duration time.Duration) (result, error) {
	if _, err := load(ctx, target, connections, time.Second); err != nil {
		return result{}, err
	}
	return load(ctx, target, connections, duration)
}

// median returns the median of a function over the rounds, or 0 if nothing was measured.
func (c comparison) median(kind string, of func(result) float64) float64 {
	var values []float64
	for _, result := range c.results[kind] {
		values = append(values, of(result))
	}
	if len(values) == 0 {
		return 0
	}
	return median(values)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// ratio returns the median over the rounds of the ratio of two servers' rates.
func (c comparison) ratio(kind, to string) float64 {
	return median(c.pairs(kind, to, rateRatio))
}

func rateRatio(r, other result) float64 { return r.perSecond() / other.perSecond() }

// pairs returns a function of two servers' results for each round.
func (c comparison) pairs(kind, to string, of func(r, other result) float64) (values []float64) {
	for round, result := range c.results[kind] {
		values = append(values, of(result, c.results[to][round]))
	}
	return values
}
