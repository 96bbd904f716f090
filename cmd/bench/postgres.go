package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/bench/figures"
	"example.com/providerd/store/postgres/postgrestest"
)

// What is measured over PostgreSQL.
const (
	oneRowEach  = "pgbench"
	storeAlone  = "store"
	oneReplica  = "one replica"
	twoReplicas = "two replicas"
)

// runPostgres measures the store and replicas over a PostgreSQL server beside pgbench, and writes the table and the plot.
func runPostgres(ctx context.Context, options options) error {
	return postgrestest.Run(ctx, func(server string) error {
		var rows []comparison
		for _, connections := range []int{1, 16, 64} {
			row, err := comparePostgres(ctx, server, options, connections)
			if err != nil {
				return err
			}
			rows = append(rows, row)
			fmt.Fprintf(os.Stderr, "measured %d connections\n", connections)
		}
		text := postgresTable(rows)
		fmt.Print(text)
		bars := plot(rows, []string{oneRowEach, storeAlone, oneReplica, twoReplicas},
			[]string{"pgbench", "the store alone", "one replica", "two replicas"})
		return errors.Join(figures.Put("store/postgres/README.md", "figures: make bench-postgres writes them", text),
			os.WriteFile("store/postgres/figures.svg", []byte(bars), 0o600))
	})
}

// postgresLoad creates over a database, after a warm-up, and tells the rate.
type postgresLoad func(ctx context.Context, database postgresDatabase, connections int, duration time.Duration) (result, error)

// comparePostgres measures all in turns, each over a database that begins with nothing stored.
func comparePostgres(ctx context.Context, server string, options options, connections int) (comparison, error) {
	row := comparison{connections: connections, results: map[string][]result{}}
	for range options.rounds {
		for kind, measure := range map[string]postgresLoad{
			oneRowEach: loadPgbench, storeAlone: loadStore, oneReplica: loadReplicas(1), twoReplicas: loadReplicas(2),
		} {
			if kind == twoReplicas && connections == 1 {
				continue
			}
			measured, err := measurePostgres(ctx, server, measure, connections, options.duration)
			if err != nil {
				return comparison{}, fmt.Errorf("%s with %d connections: %w", kind, connections, err)
			}
			row.results[kind] = append(row.results[kind], measured)
		}
	}
	return row, nil
}

func measurePostgres(
	ctx context.Context, server string, measure postgresLoad, connections int, duration time.Duration,
) (measured result, err error) {
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		return result{}, fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, admin.Close(ctx)) }()
	// What the database before left to be written would meet the next one.
	for _, statement := range []string{"DROP DATABASE IF EXISTS bench", "CREATE DATABASE bench", "CHECKPOINT"} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return result{}, fmt.Errorf("%s: %w", statement, err)
		}
	}
	location, err := url.Parse(server)
	if err != nil {
		return result{}, fmt.Errorf("read the URL of the server: %w", err)
	}
	location.Path = "/bench"
	database, err := createPostgres(ctx, location.String())
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(database.folder)) }()
	return measure(ctx, database, connections, duration)
}

// loadReplicas loads so many replicas, each with its share of the connections.
func loadReplicas(count int) postgresLoad {
	return func(
		ctx context.Context, database postgresDatabase, connections int, duration time.Duration,
	) (sum result, err error) {
		var replicas []*subject
		defer func() {
			for _, one := range replicas {
				err = errors.Join(err, one.stop())
			}
		}()
		for n := range count {
			command := exec.CommandContext(ctx, program, "serve", "--listen", freePort, "--keyset", database.keyset())
			command.Env = append(os.Environ(), "PROVIDERD_DATABASE="+database.url)
			one, err := launch(command, filepath.Join(database.folder, fmt.Sprintf("%d.log", n)))
			if err != nil {
				return result{}, err
			}
			one.token = database.token
			replicas = append(replicas, one)
		}
		for _, lasts := range []time.Duration{time.Second, duration} {
			if sum, err = loadAll(ctx, replicas, connections/count, lasts); err != nil {
				return result{}, err
			}
		}
		return sum, nil
	}
}

// loadAll loads servers at the same time. It returns what they do together, and the slowest's latencies.
func loadAll(ctx context.Context, servers []*subject, connections int, duration time.Duration) (sum result, err error) {
	measured := make([]result, len(servers))
	group, ctx := errgroup.WithContext(ctx)
	for n, one := range servers {
		group.Go(func() (err error) {
			measured[n], err = load(ctx, one, connections, duration)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return result{}, fmt.Errorf("load replicas: %w", err)
	}
	sum.Microseconds = 1e6
	for _, one := range measured {
		sum.Requests += one.perSecond()
		sum.P50, sum.P99 = max(sum.P50, one.P50), max(sum.P99, one.P99)
	}
	return sum, nil
}

// postgresTable renders the figures in Markdown.
func postgresTable(rows []comparison) string {
	var text strings.Builder
	text.WriteString("| connections | pgbench, transactions/s | the store alone, creates/s | one replica | two replicas | " +
		"p50 ms | p99 ms | store / pgbench | one / pgbench | two / pgbench |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		two, twoRatio := "–", "–"
		if len(row.results[twoReplicas]) > 0 {
			two = fmt.Sprintf("%.0f", row.median(twoReplicas, result.perSecond))
			twoRatio = fmt.Sprintf("%.2f", row.ratio(twoReplicas, oneRowEach))
		}
		fmt.Fprintf(&text, "| %d | %.0f | %.0f | %.0f | %s | %.2f | %.2f | %.2f | %.2f | %s |\n", row.connections,
			row.median(oneRowEach, result.perSecond), row.median(storeAlone, result.perSecond),
			row.median(oneReplica, result.perSecond), two,
			row.median(oneReplica, func(r result) float64 { return r.P50 / 1000 }),
			row.median(oneReplica, func(r result) float64 { return r.P99 / 1000 }),
			row.ratio(storeAlone, oneRowEach), row.ratio(oneReplica, oneRowEach), twoRatio)
	}
	return text.String()
}
