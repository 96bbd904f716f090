// Command bench measures providerd against servers that do less, in one run on one machine, so that their ratios tell
// what providerd costs. It needs wrk, from Debian's package of that name, and bin/providerd; over PostgreSQL also that.
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
	serve := flag.String("serve", "", "serve as the yardstick of this kind, for a run of this program")
	flag.DurationVar(&options.duration, "duration", 4*time.Second, "how long each load lasts")
	flag.IntVar(&options.rounds, "rounds", 5, "how often each load is repeated; medians are reported")
	flag.BoolVar(&options.huge, "huge", false, "measure growth up to 10 million rows")
	overPostgres := flag.Bool("postgres", false, "measure over PostgreSQL, beside pgbench")
	ofTelemetry := flag.Bool("telemetry", false, "measure what metrics and traces cost")
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

// run measures everything and writes the table and the plot.
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

// comparison is what some connections get from each server: a result for each round.
type comparison struct {
	connections int
	results     map[string][]result
}

// compare measures the servers in turns, so that what else the machine does meets all of them alike.
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

// measureFresh measures a server that begins with nothing stored.
func measureFresh(
	ctx context.Context, kind string, connections int, duration time.Duration,
) (measured result, err error) {
	folder, err := makeFolder()
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return measure(ctx, kind, connections, duration, folder)
}

// makeFolder makes a folder for a while. It lies beside the repository's files, because the temporary folder of the
// system may be in memory.
func makeFolder() (string, error) {
	folder, err := os.MkdirTemp(".", ".bench-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	return folder, nil
}

// measure starts a server with its data in a folder, and loads it.
func measure(
	ctx context.Context, kind string, connections int, duration time.Duration, folder string,
) (measured result, err error) {
	target, err := start(ctx, kind, folder)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, target.stop()) }()
	measured, err = loadWarm(ctx, target, connections, duration)
	measured.StartSeconds = target.startTime.Seconds()
	return measured, err
}

// loadWarm loads a server that a second of the same load has warmed up.
func loadWarm(ctx context.Context, target *subject, connections int, duration time.Duration) (result, error) {
	if _, err := load(ctx, target, connections, time.Second); err != nil {
		return result{}, err
	}
	return load(ctx, target, connections, duration)
}

// median is the middle of what the function gives for each round, and 0 where nothing was measured.
func (c comparison) median(kind string, of func(result) float64) float64 {
	var values []float64
	for _, one := range c.results[kind] {
		values = append(values, of(one))
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

// ratio is the median over the rounds of the rates of two servers in the same round.
func (c comparison) ratio(kind, to string) float64 {
	return median(c.pairs(kind, to, rateRatio))
}

func rateRatio(one, other result) float64 { return one.perSecond() / other.perSecond() }

// pairs is what the function gives for the results of two servers in the same round, for each round.
func (c comparison) pairs(kind, to string, of func(one, other result) float64) (values []float64) {
	for round, one := range c.results[kind] {
		values = append(values, of(one, c.results[to][round]))
	}
	return values
}
