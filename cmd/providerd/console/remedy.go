package console

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// ErrCertificate says that the certificate of the server cannot be used.
var ErrCertificate = errors.New("certificate cannot be used")

// ReadOnlyRemedy is what to do about a file system that takes nothing.
const ReadOnlyRemedy = "mount its disk so that it can be written, or name another place"

// Explain adds what to do to an error that an operator can put right.
func Explain(err error) error {
	if remedy := RemedyFor(err); remedy != "" {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

// RemedyFor says what to do about an error; "" where the error says it, or nothing is known. Of several that fit, the
// first is the cause.
func RemedyFor(err error) string {
	for _, known := range []struct {
		sentinel error
		remedy   string
	}{
		{database.ErrNoDatabase, `"providerd serve" makes one; or name yours by --database or PROVIDERD_DATABASE`},
		{database.ErrNewer, "use a newer providerd"},
		{database.ErrOlder, `"providerd serve" of this version migrates it`},
		{database.ErrForeign, "name another place"},
		{database.ErrCopyIncomplete, `run the same "providerd copy" again for the rest, or name another database`},
		{database.ErrCorrupt, "put a backup in its place, or name another file"},
		{database.ErrFull, "make room on the disk of the database"},
		{
			database.ErrNoConnection,
			"start its primary, or let the URL name all servers, the database and its user as they are",
		},
		{store.ErrProviderInUse, `run "providerd application unlink" first`},
		{store.ErrApplicationLinked, `run "providerd application unlink" first`},
		{store.ErrKeysetFull, `run "providerd key reseal", then "providerd key retire"`},
		{seal.ErrKeysetExists, "name another one: it is not replaced"},
		{fs.ErrPermission, "run this as the user whom it belongs to, or let this user read and write it"},
		{syscall.EROFS, ReadOnlyRemedy},
		{ErrCertificate, "name a chain and the key that fits it, both in PEM"},
	} {
		if errors.Is(err, known.sentinel) {
			return known.remedy
		}
	}
	return ""
}

// SuggestList says which lists have the records that there are, where one does not exist.
func SuggestList(err error, lists string) error {
	if !errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrProviderInUse) {
		return err
	}
	return fmt.Errorf("%w; %s shows those that there are", err, lists)
}
