package console

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"example.com/providerd/store"
	"example.com/providerd/store/application"
	"example.com/providerd/store/database"
	"example.com/providerd/store/token"
)

// ErrCertificate means that the certificate of the server cannot be loaded.
var ErrCertificate = errors.New("cannot load certificate")

const remedyOfDamage = "restore a backup, or replace what is damaged"

// Explain adds what to do about an error, if that is known. If several remedies match, the first belongs to the cause.
func Explain(err error) error {
	// What failed to connect says so itself; the same error numbers mean other things for files.
	if _, isConnection := errors.AsType[*net.OpError](err); isConnection {
		return err
	}
	for _, known := range []struct {
		sentinel error
		remedy   string
	}{
		{database.ErrNoDatabase, `run "providerd serve" to create one, or pass yours with --database or PROVIDERD_DATABASE`},
		{database.ErrNewer, "use a newer providerd"},
		{database.ErrOlder, `run "providerd serve" of this version to migrate it`},
		{database.ErrForeign, "use another path or database"},
		{database.ErrCorrupt, "restore a backup, or use another file"},
		{database.ErrFull, "free space on the disk of the database"},
		{store.ErrDamaged, remedyOfDamage},
		{store.ErrChanged, "run the command again"},
		{store.ErrClientIDTaken, `see "providerd provider list --client-id"`},
		{application.ErrSlugTaken, `link providers to it with "providerd application link", or use another slug`},
		{application.ErrProviderLinked, `run "providerd application unlink" first`},
		{application.ErrLinked, `run "providerd application unlink" first`},
		{token.ErrRevoked, `create another with "providerd token create"`},
		{fs.ErrNotExist, "correct the path"},
		{syscall.ENOTDIR, "correct the path"},
		{syscall.EISDIR, "pass the path of a file"},
		{fs.ErrPermission, "run the command as the owner, or give this user access to it and its directory"},
		{syscall.EROFS, "mount the file system read-write, or use another path"},
		{ErrCertificate, "pass a certificate chain and its key, both in PEM"},
	} {
		if errors.Is(err, known.sentinel) {
			return fmt.Errorf("%w; %s", err, known.remedy)
		}
	}
	return err
}

// SuggestList adds to ErrNotFound which commands list the existing records.
func SuggestList(err error, lists string) error {
	if !errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrProviderInUse) {
		return err
	}
	return fmt.Errorf("%w; run %s to see those that exist", err, lists)
}
