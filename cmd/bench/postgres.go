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
)

// The subjects measured over PostgreSQL.
const (
	oneRowEach  = "pgbench"
	storeAlone  = "store"
	oneReplica  = "one replica"
	twoReplicas = "two replicas"
)

// runPostgres compares the store and replicas over a PostgreSQL server with pgbench, and writes the table and the plot.
func runPostgres(ctx context.Context, options options) error {
	return withCluster(ctx, func(server string) error {
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
		return errors.Join(figures.Put("store/postgres/README.md", "figures: make bench BENCH=-postgres writes them", text),
			os.WriteFile("store/postgres/figures.svg", []byte(bars), 0o600))
	})
}

// postgresLoad warms up, then creates records in a database and returns the rate.
type postgresLoad func(ctx context.Context, database postgresDatabase, connections int, duration time.Duration) (result, error)

// comparePostgres measures all subjects in turn, each on an empty database.
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
	// The checkpoint keeps writes for the previous database from slowing down the next one.
	for _, statement := range []string{"DROP DATABASE IF EXISTS bench", "CREATE DATABASE bench", "CHECKPOINT"} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return result{}, fmt.Errorf("%s: %w", statement, err)
		}
	}
	location, err := url.Parse(server)
	if err != nil {
		return result{}, fmt.Errorf("parse the URL of the server: %w", err)
	}
	location.Path = "/bench"
	database, err := createPostgres(ctx, location.String())
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(database.dir)) }()
	return measure(ctx, database, connections, duration)
}

// loadReplicas loads count replicas, each with its share of the connections.
func loadReplicas(count int) postgresLoad {
	return func(
		ctx context.Context, database postgresDatabase, connections int, duration time.Duration,
	) (sum result, err error) {
		var replicas []*subject
		defer func() {
			for _, replica := range replicas {
				err = errors.Join(err, replica.stop())
			}
		}()
		for n := range count {
			command := exec.CommandContext(ctx, program, "serve", "--listen", freePort, "--keyset", database.keyset())
			command.Env = append(os.Environ(), "PROVIDERD_DATABASE="+database.url)
			replica, err := launch(command, filepath.Join(database.dir, fmt.Sprintf("%d.log", n)))
			if err != nil {
				return result{}, err
			}
			replica.token = database.token
			replicas = append(replicas, replica)
		}
		for _, lasts := range []time.Duration{time.Second, duration} {
			if sum, err = loadAll(ctx, replicas, connections/count, lasts); err != nil {
				return result{}, err
			}
		}
		return sum, nil
	}
}

// loadAll loads servers concurrently. It returns the sum of their rates and the highest of their latencies.
func loadAll(ctx context.Context, servers []*subject, connections int, duration time.Duration) (sum result, err error) {
	measured := make([]result, len(servers))
	group, ctx := errgroup.WithContext(ctx)
	for n, server := range servers {
		group.Go(func() (err error) {
			measured[n], err = load(ctx, server, connections, duration)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return result{}, fmt.Errorf("load replicas: %w", err)
	}
	sum.Microseconds = 1e6
	for _, result := range measured {
		sum.Requests += result.perSecond()
		sum.P50, sum.P99 = max(sum.P50, result.P50), max(sum.P99, result.P99)
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
