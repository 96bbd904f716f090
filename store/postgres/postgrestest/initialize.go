package postgrestest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// initialize creates the data directory as a copy of one in the user's cache, with its password, which is much faster than
// initdb. If there is none yet, initialize runs initdb and keeps a copy. All copies have the same system identifier.
func (c *Cluster) initialize(ctx context.Context) error {
	arguments := []string{"--no-sync", "--encoding", "UTF8", "--locale", "C.UTF-8", "--username", c.User, "--auth", "scram-sha-256"}
	original, err := c.original(arguments)
	if err != nil {
		return err
	}
	password, err := os.ReadFile(filepath.Join(original, "password"))
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.initdb(ctx, arguments); err != nil {
			return err
		}
		return c.keep(ctx, original)
	}
	if err != nil {
		return err
	}
	c.Password = string(password)
	return copyDirectory(ctx, filepath.Join(original, "data"), c.Dir())
}

// original returns the path in the cache for these programs, the user that they run as, and the arguments of initdb.
func (c *Cluster) original(arguments []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	uid := os.Geteuid()
	if c.home.account != nil {
		uid = int(c.home.account.Uid)
	}
	kind := sha256.Sum256(fmt.Append(nil, c.binaries, uid, arguments))
	return filepath.Join(cache, "providerd", "postgrestest", hex.EncodeToString(kind[:8])), nil
}

// initdb runs initdb with a random password.
func (c *Cluster) initdb(ctx context.Context, arguments []string) error {
	c.Password = rand.Text()
	password := filepath.Join(c.home.dir, "password")
	if err := c.home.write(password, c.Password); err != nil {
		return err
	}
	return c.home.run(ctx, c.program("initdb"), append(arguments, "--pgdata", c.Dir(), "--pwfile", password)...)
}

// keep copies the data directory and its password into the cache. If another test was faster, its copy stays.
func (c *Cluster) keep(ctx context.Context, original string) error {
	parent := filepath.Dir(original)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(parent, "draft-")
	if err != nil {
		return err
	}
	err = errors.Join(copyDirectory(ctx, c.Dir(), filepath.Join(draft, "data")),
		os.WriteFile(filepath.Join(draft, "password"), []byte(c.Password), 0o600))
	if err == nil {
		err = os.Rename(draft, original)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(draft))
}

// copyDirectory copies a directory and keeps the owners of its files.
func copyDirectory(ctx context.Context, from, to string) error {
	if output, err := exec.CommandContext(ctx, "cp", "--archive", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, output)
	}
	return nil
}
