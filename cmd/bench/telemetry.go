package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/bench/figures"
)

// The kinds of telemetry to measure.
const (
	without     = "without"
	withMetrics = "metrics"
	withTraces  = "traces"
)

// runTelemetry compares providerd with metrics, and with traces, to providerd without telemetry, and writes the table.
func runTelemetry(ctx context.Context, options options) error {
	collector, err := startCollector(ctx)
	if err != nil {
		return err
	}
	rows, err := compareAllTelemetry(ctx, options, collector)
	if err := errors.Join(err, collector.stop()); err != nil {
		return err
	}
	text := telemetryTable(rows)
	fmt.Print(text)
	return figures.Put("cmd/bench/README.md", "figures: make bench BENCH=-telemetry writes them", text)
}

func compareAllTelemetry(ctx context.Context, options options, collector *collector) (rows []comparison, err error) {
	for _, connections := range []int{1, 16, 64} {
		row := comparison{connections: connections, results: map[string][]result{}}
		for round := range options.rounds {
			for _, kind := range orderOf(round, without, withMetrics, withTraces) {
				measured, err := measureTelemetry(ctx, kind, collector, connections, options.duration)
				if err != nil {
					return nil, fmt.Errorf("%s with %d connections: %w", kind, connections, err)
				}
				row.results[kind] = append(row.results[kind], measured)
			}
		}
		rows = append(rows, row)
		fmt.Fprintf(os.Stderr, "measured %d connections\n", connections)
	}
	return rows, nil
}

// orderOf returns the order in which a round measures kinds. Six rounds measure three kinds once in each order, so that
// neither other load on the machine nor the previous measurement favors one.
func orderOf(round int, kinds ...string) []string {
	first := round % len(kinds)
	order := slices.Concat(kinds[first:], kinds[:first])
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// measureTelemetry measures providerd with an empty database.
func measureTelemetry(
	ctx context.Context, kind string, collector *collector, connections int, duration time.Duration,
) (measured result, err error) {
	dir, err := makeDir()
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	switch kind {
	case withMetrics:
		return measureScraped(ctx, connections, duration, dir)
	case withTraces:
		return measureTraced(ctx, collector, connections, duration, dir)
	default:
		return measure(ctx, whole, connections, duration, dir)
	}
}

// measureScraped measures providerd while its metrics are scraped once per second.
func measureScraped(
	ctx context.Context, connections int, duration time.Duration, dir string,
) (measured result, err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return result{}, err
	}
	target, err := startProgram(ctx, dir, []string{"--ops-listen", address}, nil)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, target.stop()) }()
	scraping, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { return scrapeEachSecond(scraping, "http://"+address+"/metrics") })
	measured, err = loadWarm(ctx, target, connections, duration)
	stop()
	return measured, errors.Join(err, group.Wait())
}

// measureTraced measures providerd while it exports a trace of each create.
func measureTraced(
	ctx context.Context, collector *collector, connections int, duration time.Duration, dir string,
) (measured result, err error) {
	target, err := startProgram(ctx, dir, nil, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.url})
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, target.stop()) }()
	before := collector.exports.Load()
	measured, err = loadWarm(ctx, target, connections, duration)
	if err == nil && collector.exports.Load() == before {
		err = errors.New("no traces were exported")
	}
	return measured, err
}
