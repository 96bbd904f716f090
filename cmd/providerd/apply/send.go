package apply

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/contract"
)

// sendStep sends one entry. It returns an error if the remaining entries would fail, too.
type sendStep func(a *applied, ctx context.Context, to *client.Providers) error

// send sends the entries, with a limited number of parallel requests. It stops at an error that would affect all
// entries.
func (r *report) send(ctx context.Context, to *client.Providers, parallel int, step sendStep) error {
	entries := make([]*applied, len(r.applied))
	for i := range r.applied {
		entries[i] = &r.applied[i]
	}
	err := inParallel(ctx, parallel, r.messages.Progress("entries sent"), entries,
		func(ctx context.Context, a *applied) error { return step(a, ctx, to) })
	switch {
	case ctx.Err() != nil:
		return errInterrupted()
	case err != nil:
		return errors.New(console.Printable(reasonOf(err)) + runAgain(err))
	default:
		return nil
	}
}

// inParallel carries out a step for each entry, with a limited number of them in parallel, and shows the progress. It
// stops at the first error.
func inParallel(
	ctx context.Context, parallel int, shown *console.Progress, entries []*applied,
	step func(ctx context.Context, a *applied) error,
) error {
	var mutex sync.Mutex
	done := int64(0)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, a := range entries {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := step(ctx, a)
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				done++
				shown.Update(done, int64(len(entries)))
			}
			return err
		})
	}
	err := group.Wait()
	shown.Clear()
	return err //nolint:wrapcheck // It is the error of a step.
}

// maxErrorBytes limits the text of an error, which may come from a server other than providerd.
const maxErrorBytes = 4096

// reasonOf returns the text of an error, shortened.
func reasonOf(err error) string {
	return strings.TrimSuffix(console.Truncate(err.Error(), maxErrorBytes), ".") + remedyFor(err)
}

// remedyFor returns what to do if there was no response to a request; "" for other errors.
func remedyFor(err error) string {
	_, isRefusal := errors.AsType[*client.Error](err)
	_, isUnanswered := errors.AsType[*url.Error](err)
	_, isUntrusted := errors.AsType[x509.UnknownAuthorityError](err)
	_, isOtherCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, isNotTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case isRefusal:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "; check the server, or allow more time with --timeout"
	case isUntrusted:
		return "; set SSL_CERT_FILE to a PEM file with the certificate of its issuer"
	case isOtherCertificate:
		return "; use a certificate that is valid for this host"
	case isNotTLS, errors.Is(err, http.ErrSchemeMismatch):
		return "; use http, or enable TLS on the server"
	case isUnanswered:
		return "; start the server, or check --server"
	default:
		return ""
	}
}

// runAgain suggests to run the command again after a temporary error; "" after others.
func runAgain(err error) string {
	refused, isRefusal := errors.AsType[*client.Error](err)
	if client.IsTemporary(err) || isRefusal && refused.Status >= http.StatusInternalServerError {
		return "; run the command again to continue"
	}
	return ""
}

// create creates the provider of an entry, unless it is stored under its former id.
func (a *applied) create(ctx context.Context, to *client.Providers) error {
	if isRenamed, err := a.findRenamed(ctx, to); err != nil || isRenamed {
		return err
	}
	var replayed bool
	options := append(createOptions(a.Kind, a.ID), client.WithReplayed(&replayed))
	record, err := a.kind.create(ctx, to, a.entry.Body, options...)
	if err != nil {
		return a.refuse(err)
	}
	a.Outcome, a.stored = outcomeCreated, *record
	if replayed {
		a.Outcome = outcomeUnchanged
	}
	return nil
}

// validate finds out what create would do.
func (a *applied) validate(ctx context.Context, to *client.Providers) error {
	if isRenamed, err := a.findRenamed(ctx, to); err != nil || isRenamed {
		return err
	}
	options := append(createOptions(a.Kind, a.ID), client.WithValidateOnly())
	record, err := a.kind.create(ctx, to, a.entry.Body, options...)
	if err != nil {
		return a.refuse(err)
	}
	a.Outcome, a.PK = outcomeCreate, record.PK
	if record.PK != 0 {
		a.Outcome = outcomeUnchanged
	}
	return nil
}

// createOptions returns the options of a create and its validation. A nil UUID comes from the file: a missing flow was
// already reported as a problem.
func createOptions(kind, id string) []client.CreateOption {
	return []client.CreateOption{
		client.WithIdempotencyKey(idempotencyKey(kind, id)), client.WithNilAuthorizationFlow(),
	}
}

// findRenamed reports whether a record is stored under the former id of an entry, and none under its id.
func (a *applied) findRenamed(ctx context.Context, to *client.Providers) (bool, error) {
	if a.Was == "" {
		return false, nil
	}
	if pk, err := a.storedUnder(ctx, to, a.ID); err != nil || pk != 0 {
		return false, err
	}
	pk, err := a.storedUnder(ctx, to, a.Was)
	if err != nil || pk == 0 {
		return false, err
	}
	a.Outcome, a.PK = outcomeRenamed, pk
	a.reason = fmt.Sprintf("stored as %d under %q", pk, a.Was)
	a.Detail = fmt.Sprintf("renamed: provider %d is stored under the id %q; have an operator run \"providerd apply\" "+
		"with --as", pk, a.Was)
	return true, nil
}

// storedUnder returns the pk of the record that an entry with an id created; 0 if there is none.
func (a *applied) storedUnder(ctx context.Context, to *client.Providers, id string) (int64, error) {
	record, err := a.kind.create(ctx, to, a.entry.Body, append(createOptions(a.Kind, id), client.WithValidateOnly())...)
	refused, isRefusal := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return record.PK, nil
	case errors.Is(err, client.ErrIdempotencyKeyReused) && refused.PK != nil:
		return *refused.PK, nil
	case isRefusal && concernsEntry(refused):
		return 0, nil
	default:
		return 0, err
	}
}

// refuse records why an entry was refused. It returns errors that are not about this entry alone.
func (a *applied) refuse(err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok, !concernsEntry(refused):
		return err
	case errors.Is(refused, client.ErrIdempotencyKeyReused) && refused.PK != nil:
		a.drift(refused)
		return nil
	}
	a.isClientIDTaken = errors.Is(refused, client.ErrClientIDTaken)
	a.Outcome, a.Detail, a.reason = outcomeRefused, refused.Error(), console.Truncate(refused.Title, maxReasonBytes)
	if violations := refused.Violations(); len(violations) > 0 {
		a.pointer = violations[0].Pointer
	}
	return nil
}

// drift records how an entry differs from the record that its id created. If no field does, the entry is unchanged.
func (a *applied) drift(refused *client.Error) {
	a.Outcome, a.PK = outcomeUnchanged, *refused.PK
	for _, violation := range refused.Violations() {
		if violation.Code == contract.CodeDiffers && len(a.Differs) < maxDiffers {
			a.Differs = append(a.Differs, console.Truncate(violation.Pointer, maxReasonBytes))
		}
	}
	if len(a.Differs) == 0 {
		return
	}
	a.Outcome, a.pointer = outcomeDrifted, a.Differs[0]
	fields := strings.ReplaceAll(strings.Join(a.Differs, ", "), "/", "")
	a.reason = fmt.Sprintf("%s; stored as %d", fields, a.PK)
	a.Detail = fmt.Sprintf("drifted: %s of provider %d differs; change the file back, give the entry another id to "+
		"create a second provider, or have an operator run \"providerd apply\" with --as", fields, a.PK)
}

// concernsEntry reports whether a refusal is about one entry or its kind. Refusals by a proxy are only if they can
// depend on the body.
func concernsEntry(refused *client.Error) bool {
	switch refused.Status {
	case http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return !errors.Is(refused, client.ErrForeign)
	default:
		return false
	}
}
