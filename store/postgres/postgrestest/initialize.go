package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// initialize creates the data directory: a copy of one that initdb has made before, which takes a tenth of the time.
// The original, with its password, stays in the user's cache.
func (c *Cluster) initialize(ctx context.Context) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	original := filepath.Join(cache, "providerd", "postgrestest", filepath.Base(filepath.Dir(c.binaries)))
	password, err := os.ReadFile(filepath.Join(original, "password"))
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.initdb(ctx); err != nil {
			return err
		}
		return c.keep(ctx, original)
	}
	if err != nil {
		return err
	}
	c.Password = string(password)
	return c.copy(ctx, filepath.Join(original, "data"), c.Dir())
}

// initdb creates the data directory anew.
func (c *Cluster) initdb(ctx context.Context) error {
	c.Password = rand.Text()
	password := filepath.Join(c.home.dir, "password")
	if err := c.home.write(password, c.Password); err != nil {
		return err
	}
	return c.home.run(ctx, c.program("initdb"), "--pgdata", c.Dir(), "--no-sync", "--encoding", "UTF8",
		"--locale", "C.UTF-8", "--username", c.User, "--pwfile", password, "--auth", "scram-sha-256")
}

// keep copies the data directory and its password to the path that they are copied from. If another process was faster,
// its copy stays.
func (c *Cluster) keep(ctx context.Context, original string) error {
	parent := filepath.Dir(original)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(parent, "draft-")
	if err != nil {
		return err
	}
	err = errors.Join(c.copy(ctx, c.Dir(), filepath.Join(draft, "data")),
		os.WriteFile(filepath.Join(draft, "password"), []byte(c.Password), 0o600))
	if err == nil {
		err = os.Rename(draft, original)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(draft))
}

// copy copies a directory with its owner.
func (c *Cluster) copy(ctx context.Context, from, to string) error {
	if output, err := exec.CommandContext(ctx, "cp", "--archive", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, output)
	}
	return nil
}
