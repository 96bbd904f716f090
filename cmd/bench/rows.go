package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
)

const (
	// seedChunk is how many rows are written in a transaction.
	seedChunk = 50_000
	// databaseFile is the name of a database in its folder.
	databaseFile = "providerd.db"
)

// seed makes a database with rows in a folder.
func seed(ctx context.Context, folder string, rows int) error {
	bare, err := openBare(ctx, folder)
	if err != nil {
		return err
	}
	for err == nil && bare.lastPK < rows {
		err = bare.commit(ctx, min(seedChunk, rows-bare.lastPK))
	}
	return errors.Join(err, bare.db.Close())
}

// createFirst makes a database with one OAuth2 provider.
func createFirst(ctx context.Context, folder string) error {
	database, err := createStore(ctx, folder)
	if err != nil {
		return err
	}
	_, _, err = database.CreateOAuth2Provider(ctx, store.CreateRequest{Name: "seed", CreatedBy: "seed", RequestID: "seed"},
		store.OAuth2Settings{
			AuthorizationFlow: uuid.New(), ClientID: store.RandomAlphanumeric(40),
			ClientSecret: store.NewSecret(store.RandomAlphanumeric(128)), PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
		})
	return errors.Join(err, database.Close())
}

// growth is the rate of creates, by 64 connections, over a database of a size, and how long the server took to listen:
// one of each for a round.
type growth struct {
	rows         int
	perSecond    []float64
	startSeconds []float64
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
			database := seedFolder(folder, one.rows, round)
			if err := warm(database); err != nil {
				return nil, err
			}
			measured, err := measure(ctx, whole, 64, options.duration, database)
			if err != nil {
				return nil, fmt.Errorf("%d rows: %w", one.rows, err)
			}
			list[i].perSecond = append(list[i].perSecond, measured.perSecond())
			list[i].startSeconds = append(list[i].startSeconds, measured.StartSeconds)
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

// warm reads a database once. That of a server which has been running for a while is in memory, as far as it fits.
func warm(folder string) error {
	file, err := os.Open(filepath.Join(folder, databaseFile))
	if err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	_, err = io.Copy(io.Discard, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("read database: %w", err)
	}
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

// createStore makes a database in a folder, as the server does.
func createStore(ctx context.Context, folder string) (*store.Store, error) {
	database, err := sqlite.Create(ctx, filepath.Join(folder, databaseFile), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, filepath.Join(folder, "keyset.json"))
}
