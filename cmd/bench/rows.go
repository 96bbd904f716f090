package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	_ "github.com/mattn/go-sqlite3" // The driver of the bare commit.
	"golang.org/x/sync/errgroup"

	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
)

// seed makes a database with rows in a folder.
func seed(ctx context.Context, folder string, rows int) error {
	database, err := createStore(ctx, folder)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(256)
	for range rows {
		group.Go(func() error {
			_, _, err := database.CreateOAuth2Provider(ctx, store.CreateRequest{Name: "seed", CreatedBy: "seed", RequestID: "seed"},
				store.OAuth2Settings{
					AuthorizationFlow: uuid.New(), ClientID: store.RandomAlphanumeric(40),
					ClientSecret: store.NewSecret(store.RandomAlphanumeric(128)), PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
				})
			return err
		})
	}
	return errors.Join(group.Wait(), database.Close())
}

// growth is the rate of creates, by 64 connections, over a database of a size: one for each round.
type growth struct {
	rows      int
	perSecond []float64
}

// measureGrowth measures the sizes in turns, each time over a copy of a database that is made once.
func measureGrowth(ctx context.Context, options options) (list []growth, err error) {
	sizes := []int{1_000, 100_000, 1_000_000}
	if options.huge {
		sizes = append(sizes, 10_000_000)
	}
	folder, err := makeFolder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	for _, rows := range sizes {
		if err := seedCopies(ctx, folder, rows, options.rounds); err != nil {
			return nil, err
		}
		list = append(list, growth{rows: rows})
	}
	for round := range options.rounds {
		for i, one := range list {
			measured, err := measure(ctx, whole, 64, options.duration, seedFolder(folder, one.rows, round))
			if err != nil {
				return nil, fmt.Errorf("%d rows: %w", one.rows, err)
			}
			list[i].perSecond = append(list[i].perSecond, measured.perSecond())
		}
	}
	return list, nil
}

// seedCopies makes a database for each round. All are made, and removed, while nothing is measured: the disk would be
// busy with them.
func seedCopies(ctx context.Context, folder string, rows, rounds int) error {
	first := seedFolder(folder, rows, 0)
	if err := seed(ctx, first, rows); err != nil {
		return err
	}
	for round := 1; round < rounds; round++ {
		output, err := exec.CommandContext(ctx, "cp", "-a", first, seedFolder(folder, rows, round)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("copy database: %w: %s", err, output)
		}
	}
	syscall.Sync()
	return nil
}

func seedFolder(folder string, rows, round int) string {
	return filepath.Join(folder, fmt.Sprintf("%d-%d", rows, round))
}

// ratio is the median over the rounds of the rates over two databases in the same round.
func (g growth) ratio(to growth) float64 {
	var values []float64
	for i, rate := range g.perSecond {
		values = append(values, rate/to.perSecond[i])
	}
	return median(values)
}

// bareCommit is how long SQLite takes for one durable commit of a row of the size of a provider's, with nothing around.
func bareCommit(ctx context.Context) (each time.Duration, err error) {
	folder, err := makeFolder()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(folder, "bare.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return 0, fmt.Errorf("open bare database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "CREATE TABLE rows (pk INTEGER PRIMARY KEY, value TEXT)"); err != nil {
		return 0, fmt.Errorf("make bare table: %w", err)
	}
	const commits, size = 1000, 600
	begun := time.Now()
	for range commits {
		_, err := db.ExecContext(ctx, "INSERT INTO rows (value) VALUES (?)", strings.Repeat("x", size))
		if err != nil {
			return 0, fmt.Errorf("commit a bare row: %w", err)
		}
	}
	return time.Since(begun) / commits, nil
}

// createStore makes a database in a folder, as the server does.
func createStore(ctx context.Context, folder string) (*store.Store, error) {
	database, err := sqlite.Create(ctx, filepath.Join(folder, "providerd.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, filepath.Join(folder, "keyset.json"))
}
