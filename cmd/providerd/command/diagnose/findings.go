package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/serve"
	"example.com/providerd/store/sqlite"
)

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

func (f finding) rows() [][]string {
	return [][]string{{string(f.Status), f.Check, strings.TrimSuffix(f.Finding+"; "+f.Remedy, "; ")}}
}

type findings []finding

func (f *findings) fail(check, format string, values ...any) {
	f.add(healthFail, check, format, values...)
}

// err adds an error, with its known remedy or the one at the end of its text.
func (f *findings) err(check string, err error) { f.fail(check, "%v", console.Explain(err)) }

// add adds a finding. Unless nothing is wrong, its text ends with a semicolon and the remedy.
func (f *findings) add(status health, check, format string, values ...any) {
	text, remedy := fmt.Sprintf(format, values...), ""
	if at := strings.LastIndex(text, "; "); at >= 0 {
		text, remedy = text[:at], text[at+len("; "):]
	}
	*f = append(*f, finding{check, status, text, remedy})
}

// What to do if other users can read a secret file.
const (
	exposedKeyset = `other users can access the keys in %s; run chmod 600 on it, then replace the master key, and run ` +
		`"providerd key rotate" and "providerd key reseal"`
	exposedToken = `other users can access the token in %s; run chmod 600 on it, then create another token with ` +
		`"providerd token create" and revoke this one`
)

// configuration checks what the parser accepts.
func (f *findings) configuration(warnings []string) {
	const check = "configuration"
	for _, warning := range warnings {
		f.add(healthWarn, check, "%s", warning)
	}
	if _, err := serve.TraceEndpoint(); err != nil {
		f.add(healthWarn, check, "traces are not exported: %v", err)
	}
	if len(*f) == 0 {
		f.add(healthOK, check, "flags and environment variables are valid")
	}
}

// files checks the directory of a SQLite database and its files.
func (f *findings) files(path, dir, keyset string) {
	const check = "database file"
	owner := f.directory(dir)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		f.file(check, path+suffix, owner, "")
	}
	names, _ := sqlite.LeftoverLinks(path)
	for _, name := range names {
		f.add(healthWarn, check, "%s is not a copy, but another name for the database, left by an interrupted restore; "+
			"remove this name", name)
	}
	f.file("keyset file", keyset, owner, exposedKeyset)
	f.file("initial token", filepath.Join(dir, console.InitialTokenFile), owner, exposedToken)
	f.disk(dir, path, path+"-wal")
}

// directory checks who can replace files in a directory, and returns its owner.
func (f *findings) directory(path string) (owner int) {
	const check, othersWrite, ownerCreates = "directory", 0o022, 0o300
	info, owner, err := stat(path)
	switch me := os.Geteuid(); {
	case err != nil:
		f.err(check, err)
	case errors.Is(syscall.Access(path, 0o2), syscall.EROFS):
		f.err(check, fmt.Errorf("write to %s: %w", path, syscall.EROFS))
	case info.Mode().Perm()&othersWrite != 0 && info.Mode()&os.ModeSticky == 0:
		f.fail(check, "other users can replace files in %s; run chmod go-w on it", path)
	case me != 0 && me != owner:
		f.add(healthWarn, check, "%s belongs to user %d, but this is user %d; run the doctor as the server's user, or, if "+
			"that is this one, chown -R %[3]d %[1]s", path, owner, me)
	case owner != 0 && info.Mode().Perm()&ownerCreates != ownerCreates:
		f.fail(check, "the owner of %s, user %d, cannot create files in it; run chmod u+rwx on it", path, owner)
	default:
		f.add(healthOK, check, "%s belongs to user %d, and no other user can change it", path, owner)
	}
	return owner
}

// file checks the type, mode and owner of a file. Other checks find a missing file. What is exposed says what to do if
// other users can read the file; "" means that it has no secrets.
func (f *findings) file(check, path string, owner int, exposed string) {
	const ownerUses, othersWrite, othersRead, chmod = 0o600, 0o022, 0o044, "; run chmod 600 on it"
	info, user, err := stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		f.err(check, err)
		return
	}
	switch mode := info.Mode().Perm(); {
	case !info.Mode().IsRegular():
		f.fail(check, "%s is not a regular file; put the right file in its place", path)
	case exposed != "" && mode&^0o700 != 0:
		f.fail(check, exposed, path)
	case mode&othersWrite != 0:
		f.fail(check, "other users can write to %s"+chmod, path)
	case user != owner:
		f.fail(check, "%s belongs to user %d, its directory to user %d; run chown so that both belong to the server's user",
			path, user, owner)
	case owner != 0 && mode&ownerUses != ownerUses:
		f.fail(check, "the owner of %s cannot write to it"+chmod, path)
	case mode&othersRead != 0:
		f.add(healthWarn, check, "other users can read %s, which contains names, settings and token digests"+chmod, path)
	default:
		f.add(healthOK, check, "%s belongs to user %d, and no other user has access", path, owner)
	}
}

func stat(path string) (info fs.FileInfo, owner int, err error) {
	if info, err = os.Stat(path); err != nil {
		return nil, 0, err //nolint:wrapcheck // It names the operation and the file.
	}
	if native, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(native.Uid)
	}
	return info, owner, nil
}

// disk checks whether the disk has room for new records, and for a copy of the database.
func (f *findings) disk(dir string, files ...string) {
	const check = "disk space"
	var disk syscall.Statfs_t
	err := syscall.Statfs(dir, &disk)
	used := int64(0)
	for _, path := range files {
		if info, statErr := os.Stat(path); statErr == nil {
			used += info.Size()
		} else if !errors.Is(statErr, fs.ErrNotExist) {
			err = cmp.Or(err, statErr)
		}
	}
	if err != nil {
		f.add(healthWarn, check, "cannot determine the free space on the disk of %s, or the size of the database: %v; "+
			"run the doctor as the server's user or as root", dir, err)
		return
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:gosec,unconvert // No disk has more bytes than fit.
	status, text := judgeSpace(free, used)
	if text += " on the disk of " + dir; status != healthOK {
		text += "; free up space, or move the database to a larger disk"
	}
	f.add(status, check, "%s", text)
}

// judgeSpace judges free bytes. Minutes of load can take hundreds of MiB; the server refuses creates below 4 MiB.
func judgeSpace(free, used int64) (health, string) {
	const mebibyte, full, little = 1 << 20, 64 << 20, 256 << 20
	text := fmt.Sprintf("%d MiB are free", free/mebibyte)
	switch {
	case free < full:
		return healthFail, text
	case free < little:
		return healthWarn, text
	case free < used:
		return healthWarn, fmt.Sprintf("%s, but a copy of the database needs %d MiB", text, used/mebibyte)
	default:
		return healthOK, text
	}
}
