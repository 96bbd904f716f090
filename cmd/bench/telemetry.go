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

// What the program is measured with.
const (
	without     = "without"
	withMetrics = "metrics"
	withTraces  = "traces"
)

// runTelemetry measures the program with metrics and with traces beside the program without, and writes the table.
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
	return figures.Put("cmd/bench/README.md", "figures: make bench-telemetry writes them", text)
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

// orderOf is the order in which a round measures kinds. Of three kinds, six rounds have each order once, so that none
// gains by what the machine does meanwhile, nor by which one came before.
func orderOf(round int, kinds ...string) []string {
	first := round % len(kinds)
	order := slices.Concat(kinds[first:], kinds[:first])
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// measureTelemetry measures a program that begins with nothing stored.
func measureTelemetry(
	ctx context.Context, kind string, collector *collector, connections int, duration time.Duration,
) (measured result, err error) {
	folder, err := makeFolder()
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	switch kind {
	case withMetrics:
		return measureScraped(ctx, connections, duration, folder)
	case withTraces:
		return measureTraced(ctx, collector, connections, duration, folder)
	default:
		return measure(ctx, whole, connections, duration, folder)
	}
}

// measureScraped measures a program whose metrics are read once a second.
func measureScraped(
	ctx context.Context, connections int, duration time.Duration, folder string,
) (measured result, err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return result{}, err
	}
	target, err := startProgram(ctx, folder, []string{"--ops-listen", address}, nil)
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

// measureTraced measures a program that exports a trace of each create.
func measureTraced(
	ctx context.Context, collector *collector, connections int, duration time.Duration, folder string,
) (measured result, err error) {
	target, err := startProgram(ctx, folder, nil, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.url})
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
