package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store/sqlite"
)

// health is the status of a finding.
type health string

const (
	healthOK   health = "ok"
	healthWarn health = "warn"
	healthFail health = "fail"
)

// finding is the result of one check. Remedy is "" if Status is ok.
type finding struct {
	Check   string `json:"check"`
	Status  health `json:"status"`
	Finding string `json:"finding"`
	Remedy  string `json:"remedy"`
}

func (f finding) color() console.Color {
	return map[health]console.Color{healthOK: console.Green, healthWarn: console.Yellow, healthFail: console.Red}[f.Status]
}

func (f finding) cells() [][]string {
	return [][]string{{string(f.Status), f.Check, strings.TrimSuffix(f.Finding+"; "+f.Remedy, "; ")}}
}

// findings are those of all checks. A text ends with a semicolon and the remedy, unless nothing is wrong.
type findings []finding

func (f *findings) ok(check, format string, values ...any) {
	*f = append(*f, finding{Check: check, Status: healthOK, Finding: fmt.Sprintf(format, values...)})
}

func (f *findings) warn(check, format string, values ...any) {
	f.add(healthWarn, check, format, values...)
}

func (f *findings) fail(check, format string, values ...any) {
	f.add(healthFail, check, format, values...)
}

// err adds an error, with its known remedy or the one at the end of its text.
func (f *findings) err(check string, err error) { f.fail(check, "%v", console.Explain(err)) }

func (f *findings) add(status health, check, format string, values ...any) {
	text, remedy := fmt.Sprintf(format, values...), ""
	if at := strings.LastIndex(text, "; "); at >= 0 {
		text, remedy = text[:at], text[at+len("; "):]
	}
	*f = append(*f, finding{check, status, text, remedy})
}

// files checks the directory of a SQLite database and its files.
func (f *findings) files(path, dir, keyset string) {
	const files, chmod = "database file", "run chmod 600 on it"
	owner := f.directory(dir)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		f.file(files, path+suffix, owner, "restore the right file, or use another database", []modeRule{
			{0o022, 0, healthFail, "other users can write to %s; " + chmod},
			{0, 0o600, healthFail, "its owner cannot write to %s; " + chmod},
			{0o044, 0, healthWarn, "other users can read %s, with its names, settings and token digests; " + chmod},
		})
	}
	names, _ := sqlite.LeftoverLinks(path)
	for _, name := range names {
		f.warn(files, "%s is not a copy but the database itself; an interrupted restore left this name; remove that name",
			name)
	}
	f.keysetFile(keyset, owner)
	f.file("initial token", filepath.Join(dir, flags.InitialTokenFile), owner,
		"remove it; only the initial token belongs there", []modeRule{{0o077, 0, healthFail, "other users can access the " +
			`token in %s; run chmod 600 on it, then create another token with "providerd token create" and revoke this one`}})
	f.disk(dir, path, path+"-wal")
}

func (f *findings) keysetFile(path string, owner uint32) {
	f.file("keyset file", path, owner, "restore the keyset, or pass its path with --keyset",
		[]modeRule{{0o077, 0, healthFail, "other users can access the keys in %s; run chmod 600 on it, then replace the " +
			`master key, and run "providerd key rotate --reseal"`}})
}

// directory checks who can replace files in a directory, and returns its owner.
func (f *findings) directory(path string) (owner uint32) {
	const check, othersWrite, ownerCreates, writable = "folder", 0o022, 0o300, 2
	info, owner, err := stat(path)
	switch me := os.Geteuid(); {
	case err != nil:
		f.err(check, err)
	case !info.IsDir():
		f.fail(check, "%s is not a directory; choose another location for the database", path)
	case info.Mode().Perm()&othersWrite != 0 && info.Mode()&os.ModeSticky == 0:
		f.fail(check, "other users can replace files in %s; run chmod go-w on it", path)
	case me != 0 && uint32(me) != owner: //nolint:gosec // A user's number is not negative.
		f.warn(check, "%s belongs to user %d, but this is user %d; run the doctor as the server's user", path, owner, me)
	case errors.Is(syscall.Access(path, writable), syscall.EROFS):
		f.fail(check, "%s is on a disk that is mounted read-only; %s", path, console.ReadOnlyRemedy)
	case owner != 0 && info.Mode().Perm()&ownerCreates != ownerCreates:
		f.fail(check, "user %d, its owner, cannot create files in %s; run chmod u+rwx on it", owner, path)
	default:
		f.ok(check, "%s belongs to user %d, and no other user can change it", path, owner)
	}
	return owner
}

// modeRule is broken by a file that has one of the bits of has, or lacks one of lacks.
type modeRule struct {
	has, lacks fs.FileMode
	status     health
	text       string
}

// file checks the type, mode and owner of a file. Other checks find a missing file.
func (f *findings) file(check, path string, owner uint32, misplaced string, rules []modeRule) {
	info, user, err := stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		f.err(check, err)
		return
	case !info.Mode().IsRegular():
		*f = append(*f, finding{check, healthFail, path + " is not a regular file", misplaced})
		return
	}
	mode := info.Mode().Perm()
	for _, rule := range rules {
		isBroken := mode&rule.has != 0 || owner != 0 && mode&rule.lacks != rule.lacks
		if isBroken && (rule.status == healthFail || user == owner) {
			f.add(rule.status, check, rule.text, path)
			return
		}
	}
	if user != owner {
		f.fail(check, "%s belongs to user %d, not to the server's user %d; run chown %d on it", path, user, owner, owner)
		return
	}
	f.ok(check, "%s belongs to user %d, and no other user has access", path, owner)
}

// stat returns the type and mode of a file, and its owner.
func stat(path string) (info fs.FileInfo, owner uint32, err error) {
	if info, err = os.Stat(path); err != nil {
		return nil, 0, err //nolint:wrapcheck // It names the operation and the file.
	}
	if native, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = native.Uid
	}
	return info, owner, nil
}

// disk checks whether the disk has room for new records, and for a copy of the database.
func (f *findings) disk(dir string, files ...string) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		f.err("disk space", fmt.Errorf("inspect the file system of %s: %w", dir, err))
		return
	}
	var err error
	used := int64(0)
	for _, path := range files {
		info, statErr := os.Stat(path)
		if statErr == nil {
			used += info.Size()
		} else if !errors.Is(statErr, fs.ErrNotExist) {
			err = statErr
		}
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:gosec,unconvert // No disk has more bytes than fit.
	status, text := judgeSpace(free, used)
	switch {
	case err != nil && status == healthOK:
		f.warn("disk space", "%s on the disk of %s, but the size of the database is unknown: %v; "+
			"run the doctor as the server's user or as root", text, dir, err)
	case status == healthOK:
		f.ok("disk space", "%s on the disk of %s", text, dir)
	default:
		f.add(status, "disk space", "%s on the disk of %s; free up space, or move the database to a larger disk", text, dir)
	}
}

// judgeSpace judges the free bytes of a disk. The server refuses creates below 4 MiB, and minutes of load can take
// hundreds of MiB.
func judgeSpace(free, used int64) (health, string) {
	const mebibyte, full, little = 1 << 20, 64 << 20, 256 << 20
	text := fmt.Sprintf("%d MiB are free", free/mebibyte)
	switch {
	case free < full:
		return healthFail, text
	case free < little:
		return healthWarn, text
	case free < used:
		return healthWarn, fmt.Sprintf("%s, and a copy of the database needs %d MiB", text, used/mebibyte)
	default:
		return healthOK, text
	}
}
