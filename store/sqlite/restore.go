package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
	"example.com/providerd/store/sqlite/guard"
)

// Restoration puts a copy of a backup in the place of a database.
type Restoration struct {
	// Backup is the path of the backup, and Database that of the database.
	Backup, Database string
	// Replace allows that there is a database already.
	Replace  bool
	Progress Progress
	Check    Check
}

// Run copies the backup, verifies the copy as Backup does, and gives it the name of the database. A database that has
// the name gets another one with the time, which is returned. Where Run fails, nothing has changed. What root restores
// belongs to the owner of what it replaces, or else to that of the folder, who can read it, as a server of theirs must.
//
// It returns database.ErrForeign, ErrNewer or ErrOlder for a file that is no backup of this program, ErrUnavailable for
// one that is damaged or that the disk has no room for, fs.ErrExist where there is a database that is not to be
// replaced, ErrInUse while a program has it open or where files are beside it that a program has left, ErrReservedName,
// the error of the check or ctx, one that tells how the schema differs from that of its level, or one of the file
// system.
func (r Restoration) Run(ctx context.Context) (kept string, err error) {
	backup, size, err := r.openBackup()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, backup.Close()) }()
	place, err := r.place()
	if err != nil {
		return "", err
	}
	if _, err := r.checkTarget(place); err != nil {
		return "", err
	}
	if err := requireFree(filepath.Dir(place), size+minFreeBytes); err != nil {
		return "", err
	}
	draft, err := durable.CreateDraft(place)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", place, err)
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	if err := r.copy(ctx, draft, backup, size); err != nil {
		return "", err
	}
	err = verify(ctx, draft.Name(), r.Backup, nil, func(copied database.Readable) error {
		if err := r.checkDrift(ctx, copied); err != nil {
			return err
		}
		return r.Check(copied)
	})
	if err != nil {
		return "", err
	}
	err = durable.WithLock(ctx, filepath.Dir(place), func() error {
		kept, err = r.exchange(draft, place)
		return err
	})
	return kept, err
}

// openBackup opens a file that has all that belongs to its database.
func (r Restoration) openBackup() (file *os.File, size int64, err error) {
	// A FIFO is not waited for.
	file, err = os.OpenFile(r.Backup, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("open the backup: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file", database.ErrForeign, r.Backup)
	}
	if err == nil {
		err = checkHeader(file)
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if beside, statErr := os.Stat(r.Backup + suffix); err == nil && statErr == nil && beside.Size() > 0 {
			err = fmt.Errorf("%w: %s holds changes that the backup lacks; use a backup that no program has written to",
				database.ErrInUse, r.Backup+suffix)
		}
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// place returns the path of the database without symbolic links, and makes its folder where it is missing.
func (r Restoration) place() (string, error) {
	if err := CheckName(durable.Resolve(r.Database)); err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(r.Database)
	if err == nil {
		return path, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find the database: %w", err)
	}
	dir := filepath.Dir(r.Database)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the database directory: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("find the database: %w", err)
	}
	return filepath.Join(dir, filepath.Base(r.Database)), nil
}

// checkTarget tells whether there is a database, and returns an error where nothing may be put in its place.
func (r Restoration) checkTarget(place string) (isThere bool, err error) {
	isThere, err = durable.Exists(place)
	if err != nil {
		return false, err
	}
	if isThere {
		if err := checkUnused(place); err != nil {
			return false, err
		}
	}
	for _, suffix := range sidecars() {
		isLeft, err := durable.Exists(place + suffix)
		if err != nil {
			return false, err
		}
		if isLeft {
			return false, fmt.Errorf("%w: %s was left by a program that was killed; start and stop "+
				"\"providerd serve\" to recover it, or move it away together with the database",
				database.ErrInUse, place+suffix)
		}
	}
	if isThere && !r.Replace {
		return false, fmt.Errorf("%w: %s; pass --replace to keep it under another name and restore", fs.ErrExist, place)
	}
	return isThere, nil
}

// checkUnused returns ErrInUse while a program has the database open.
func checkUnused(path string) error {
	file, err := guard.Open(path)
	if err != nil {
		return err
	}
	inUse, err := file.IsInUse()
	if err == nil && inUse {
		err = fmt.Errorf("%w: %s; stop the server and every other program that has it open", database.ErrInUse, path)
	}
	return errors.Join(err, file.Close())
}

// copyChunk is how much is copied between looks at ctx.
const copyChunk = 4 << 20

func (r Restoration) copy(ctx context.Context, draft *durable.Draft, backup io.Reader, size int64) error {
	for done := int64(0); done < size; {
		count, err := io.CopyN(draft, backup, min(copyChunk, size-done))
		if err := errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("copy %s: %w", r.Backup, err)
		}
		done += count
		r.Progress(done, size)
	}
	return nil
}

// checkDrift returns an error for a backup in which another program decides over rows. What a level should have that
// only a later program knows, this one cannot tell.
func (r Restoration) checkDrift(ctx context.Context, copied database.Readable) error {
	pool, err := copied.Reader().DB()
	if err != nil {
		return fmt.Errorf("read %s: %w", r.Backup, err)
	}
	schema, err := readSchema(ctx, pool, r.Backup)
	if err != nil || schema.Level > schema.Program() {
		return err
	}
	found, err := drift(ctx, copied.Reader(), schema.Level)
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%s has schema version %d but differs from what this program creates: %s; use an earlier backup",
		r.Backup, schema.Level, strings.Join(found, ", "))
}

// exchange gives the draft its name. Nobody opens a database in the folder meanwhile.
func (r Restoration) exchange(draft *durable.Draft, place string) (kept string, err error) {
	isThere, err := r.checkTarget(place)
	if err != nil {
		return "", err
	}
	owner, err := durable.OwnerFor(place)
	if err != nil {
		return "", err
	}
	if err := durable.Chown(draft.File, owner); err != nil {
		return "", err
	}
	if !isThere {
		return "", draft.Publish()
	}
	if err := removeLeftoverLinks(place); err != nil {
		return "", err
	}
	if kept, err = durable.UnusedName(place, replaced); err != nil {
		return "", err
	}
	return kept, draft.Replace(kept)
}

// replaced is what becomes of a database that another one takes the place of.
const replaced = "replaced"

// LeftoverLinks returns the paths that look like databases which the one at path has replaced, but are that itself: a
// restoration leaves one that is killed before the backup has its place. It returns an error of the file system.
func LeftoverLinks(path string) (second []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("find hard links to the database: %w", err)
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("find hard links to the database: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), filepath.Base(path)+"."+replaced+"-") {
			continue
		}
		// What is removed meanwhile is none.
		if info, err := entry.Info(); err == nil && os.SameFile(own, info) {
			second = append(second, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return second, nil
}

func removeLeftoverLinks(path string) error {
	names, err := LeftoverLinks(path)
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
