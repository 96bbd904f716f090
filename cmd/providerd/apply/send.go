package apply

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/records"
)

// send creates the entries in parallel or, in a dry run, validates them. It stops at an error that affects all entries.
func (r *report) send(ctx context.Context, to *client.Providers) error {
	r.warnOfPlainHTTP()
	shown := r.messages.Progress("entries sent")
	var mutex sync.Mutex
	done := int64(0)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(r.Parallel)
	for i := range r.applied {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := r.applied[i].create(groupCtx, to, r.DryRun)
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				done++
				shown.Update(done, int64(len(r.applied)))
			}
			return err
		})
	}
	err := group.Wait()
	switch {
	case ctx.Err() != nil:
		return errInterrupted()
	case err != nil:
		text := strings.TrimSuffix(console.Truncate(err.Error(), maxErrorBytes), ".")
		return errors.New(console.Printable(text) + remedyFor(err) + runAgain(err))
	default:
		return nil
	}
}

func errInterrupted() error { return errors.New("interrupted; run the command again to continue") }

// warnOfPlainHTTP warns if requests leave this host unencrypted.
func (r *report) warnOfPlainHTTP() {
	server, err := url.Parse(r.Server)
	isRemote := err == nil && server.Scheme == "http" && server.Hostname() != "localhost"
	if isRemote && !net.ParseIP(server.Hostname()).IsLoopback() {
		r.messages.Warn("the token and secrets are sent to %s unencrypted; use https", server.Host)
	}
}

// remedyFor returns what to do if there was no response to a request; "" for other errors.
func remedyFor(err error) string {
	switch {
	case is[*client.Error](err), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, http.ErrSchemeMismatch):
		return "" // The client says it.
	case errors.Is(err, context.DeadlineExceeded):
		return "; check the server, or allow more time with --timeout"
	case is[x509.UnknownAuthorityError](err):
		return "; set SSL_CERT_FILE to a PEM file with the certificate of its issuer"
	case is[*tls.CertificateVerificationError](err):
		return "; use a certificate that is valid for this host"
	case is[*url.Error](err):
		return "; start the server, or check --server"
	default:
		return ""
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// runAgain suggests to run the command again after a temporary error; "" after others.
func runAgain(err error) string {
	refused, isRefusal := errors.AsType[*client.Error](err)
	if client.IsTemporary(err) || isRefusal && refused.Status >= http.StatusInternalServerError {
		return "; run the command again to continue"
	}
	return ""
}

// create creates, or in a dry run validates, the provider of an entry, unless it is stored under its former id.
func (a *applied) create(ctx context.Context, to *client.Providers, isDryRun bool) error {
	if isRenamed, err := a.findRenamed(ctx, to); err != nil || isRenamed {
		return err
	}
	var isReplayed bool
	option, done := client.WithReplayed(&isReplayed), outcomeCreated
	if isDryRun {
		option, done = client.WithValidateOnly(), outcomeCreate
	}
	pk, clientID, err := a.send(ctx, to, a.ID, option)
	if err != nil {
		return a.refuse(err)
	}
	a.PK, a.Outcome = pk, done
	if isReplayed || isDryRun && pk != 0 {
		a.Outcome = outcomeUnchanged
	}
	if !isDryRun {
		a.ClientID = clientID
	}
	return nil
}

// send sends the entry with the idempotency key of an id, and returns the pk and client_id of the response. A nil UUID
// comes from the file: a missing flow was already reported as a problem.
func (a *applied) send(
	ctx context.Context, to *client.Providers, id string, option client.CreateOption,
) (pk int64, clientID string, err error) {
	options := []client.CreateOption{client.WithIdempotencyKey(idempotencyKey(a.Kind, id)), client.WithUnchecked(), option}
	if a.Kind == string(records.KindOAuth2) {
		record, err := send(ctx, to.CreateOAuth2, a.Body, options)
		return record.PK, console.Truncate(record.ClientID, maxClientIDBytes), err
	}
	record, err := send(ctx, to.CreateWorkspaceDirectory, a.Body, options)
	return record.PK, "", err
}

// send returns an empty record with an error.
func send[Request, Record any](
	ctx context.Context, create func(context.Context, Request, ...client.CreateOption) (*Record, error),
	body []byte, options []client.CreateOption,
) (*Record, error) {
	var request Request
	if err := json.Unmarshal(body, &request); err != nil {
		return new(Record), fmt.Errorf("read entry: %w", err)
	}
	record, err := create(ctx, request, options...)
	return cmp.Or(record, new(Record)), err
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
	a.Detail = fmt.Sprintf("stored under the id %q; %s", a.Was, operatorApplies)
	return true, nil
}

// operatorApplies is what to do about a record that a caller cannot change.
const operatorApplies = `have an operator run "providerd apply" with --as`

// storedUnder returns the pk of the record that an entry with an id created; 0 if there is none.
func (a *applied) storedUnder(ctx context.Context, to *client.Providers, id string) (int64, error) {
	pk, _, err := a.send(ctx, to, id, client.WithValidateOnly())
	refused, isRefusal := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		return pk, nil
	case errors.Is(err, client.ErrIdempotencyKeyReused) && refused.PK != nil:
		return *refused.PK, nil
	case isRefusal && concernsEntry(refused):
		return 0, nil
	default:
		return 0, err
	}
}

// Limits for responses, which may come from a server other than providerd.
const (
	maxErrorBytes  = 4096
	maxReasonBytes = 100
	maxDiffers     = 20
	// maxClientIDBytes is the length of the longest client_id, which has 255 characters.
	maxClientIDBytes = 4 * 255
)

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
	if a.Outcome, a.Detail = outcomeRefused, refused.Error(); errors.Is(refused, client.ErrClientIDTaken) {
		a.Detail += "; if the entry was renamed, write was: and its former id; if it was applied with a token of another " +
			"name, use a token of that name, or take the provider over with --as and --adopt"
	}
	if violations := refused.Violations(); len(violations) > 0 {
		a.Position = a.At(violations[0].Pointer)
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
	a.Outcome = outcomeDrifted
	a.Position = a.At(a.Differs[0])
	a.Detail = "the record differs in " + strings.ReplaceAll(strings.Join(a.Differs, ", "), "/", "") + "; change the " +
		"file back, give the entry another id to create a second provider, or " + operatorApplies
}

// concernsEntry reports whether a refusal is about one entry or its kind. A proxy's is if the body can be the cause.
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
