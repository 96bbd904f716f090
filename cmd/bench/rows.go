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

	"golang.org/x/sys/unix"

	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
)

const (
	// seedChunk is how many rows are inserted in a transaction.
	seedChunk = 50_000
	// databaseFile is the name of a database in its directory.
	databaseFile = "providerd.db"
)

// seed creates a database with rows in dir.
func seed(ctx context.Context, dir string, rows int) error {
	bare, err := openBare(ctx, dir)
	if err != nil {
		return err
	}
	for err == nil && bare.lastPK < rows {
		err = bare.commit(ctx, min(seedChunk, rows-bare.lastPK))
	}
	return errors.Join(err, bare.db.Close())
}

// createFirst creates a database with one OAuth2 provider.
func createFirst(ctx context.Context, dir string) error {
	database, err := createStore(ctx, dir)
	if err != nil {
		return err
	}
	err = createOne(ctx, database, 1)
	return errors.Join(err, database.Close())
}

// growth has, for a size of the database, the rate of creates over 64 connections and the start-up time in each round.
type growth struct {
	rows         int
	perSecond    []float64
	startSeconds []float64
}

// measureGrowth measures the sizes in turn, each time on a fresh copy of a database.
func measureGrowth(ctx context.Context, options options) (list []growth, err error) {
	sizes := []int{1_000, 100_000, 1_000_000}
	if options.huge {
		sizes = append(sizes, 10_000_000)
	}
	dir, err := makeDir()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, rows := range sizes {
		if err := seedCopies(ctx, dir, rows, options.rounds); err != nil {
			return nil, err
		}
		list = append(list, growth{rows: rows})
	}
	for round := range options.rounds {
		for i, size := range list {
			database := seedDir(dir, size.rows, round)
			if err := warm(database); err != nil {
				return nil, err
			}
			measured, err := measure(ctx, whole, 64, options.duration, database)
			if err != nil {
				return nil, fmt.Errorf("%d rows: %w", size.rows, err)
			}
			list[i].perSecond = append(list[i].perSecond, measured.perSecond())
			list[i].startSeconds = append(list[i].startSeconds, measured.StartSeconds)
		}
	}
	return list, nil
}

// seedCopies creates a database for each round. Creating and removing them keeps the disk busy, so it is not done
// during measurements.
func seedCopies(ctx context.Context, dir string, rows, rounds int) error {
	first := seedDir(dir, rows, 0)
	if err := seed(ctx, first, rows); err != nil {
		return err
	}
	for round := 1; round < rounds; round++ {
		output, err := exec.CommandContext(ctx, "cp", "-a", first, seedDir(dir, rows, round)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("copy database: %w: %s", err, output)
		}
	}
	syscall.Sync()
	return nil
}

// warm reads a database into memory, where that of a long-running server would be. The kernel caches what it reads
// ahead in large folios, in which writing a page takes longer; a server reads and writes single pages.
func warm(dir string) error {
	file, err := os.Open(filepath.Join(dir, databaseFile))
	if err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	err = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM)
	if err == nil {
		_, err = io.Copy(io.Discard, file)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	return nil
}

func seedDir(dir string, rows, round int) string {
	return filepath.Join(dir, fmt.Sprintf("%d-%d", rows, round))
}

// ratio returns the median over the rounds of the ratio of the rates for two sizes.
func (g growth) ratio(to growth) float64 {
	var values []float64
	for i, rate := range g.perSecond {
		values = append(values, rate/to.perSecond[i])
	}
	return median(values)
}

// createStore creates a database in dir, as the server does.
func createStore(ctx context.Context, dir string) (*store.Store, error) {
	database, err := sqlite.Create(ctx, filepath.Join(dir, databaseFile), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, filepath.Join(dir, "keyset.json"))
}
