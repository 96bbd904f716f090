package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/gen/client"
)

// sendStep sends one entry. It returns an error where further entries would fare no better.
type sendStep func(a *applied, ctx context.Context, to *client.Providers) error

// send sends the entries, a bounded number at a time. What is wrong with one entry fails that alone; what would be
// wrong with every other, too, ends it.
func (r *report) send(ctx context.Context, to *client.Providers, parallel int, step sendStep) error {
	shown := r.messages.Progress("entries sent")
	var mutex sync.Mutex
	done := int64(0)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range r.applied {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := step(&r.applied[i], groupCtx, to)
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
	shown.Clear()
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; run it again for the rest")
	case err != nil:
		return errors.New(console.Printable(reasonOf(err)) + runAgain(err))
	default:
		return nil
	}
}

// maxErrorBytes bounds what is told of the error of a server that may not be ours.
const maxErrorBytes = 4096

// reasonOf says why no entry can be sent, as far as there is room.
func reasonOf(err error) string {
	reason := err.Error()
	if lost, ok := errors.AsType[*client.ConnectionError](err); ok && lost.Timeout() {
		reason = strings.Replace(reason, "WithTryTimeout", "--timeout", 1) // It names the option of the SDK.
	}
	return strings.TrimSuffix(console.Truncate(reason, maxErrorBytes), ".")
}

// runAgain is the advice to run a command again after an error that may pass; "" after others.
func runAgain(err error) string {
	refused, isRefusal := errors.AsType[*client.Error](err)
	lost, isLost := errors.AsType[*client.ConnectionError](err)
	switch {
	case isRefusal && (refused.Status == http.StatusTooManyRequests || refused.Status >= http.StatusInternalServerError),
		isLost && lost.Temporary():
		return "; run it again for the rest"
	default:
		return ""
	}
}

// create creates the provider of an entry.
func (a *applied) create(ctx context.Context, to *client.Providers) error {
	var replayed bool
	record, err := a.kind.create(ctx, to, a.entry.Body, append(a.options(), client.WithReplayed(&replayed))...)
	if err != nil {
		return a.refuse(err)
	}
	a.Outcome, a.stored = outcomeCreated, *record
	if replayed {
		a.Outcome = outcomeUnchanged
	}
	return nil
}

// validate asks what create would do.
func (a *applied) validate(ctx context.Context, to *client.Providers) error {
	verdict, err := a.kind.validate(ctx, to, a.entry.Body, a.options()...)
	if err != nil {
		return a.refuse(err)
	}
	a.Outcome = outcomeCreate
	if verdict.Outcome == client.VerdictOutcomeAlreadyCreated {
		a.Outcome, a.PK = outcomeUnchanged, *verdict.PK
	}
	return nil
}

// options are those of a create and of its validation. A nil UUID is one that the file has, since the check of the file
// finds a flow that is missing.
func (a *applied) options() []client.CreateOption {
	return []client.CreateOption{client.WithIdempotencyKey(idempotencyKey(a.entry)), client.WithNilAuthorizationFlow()}
}

// refuse notes why an entry is not stored as the file has it. An error that is about more than the entry is returned.
func (a *applied) refuse(err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok, !concernsEntry(refused):
		return err
	case refused.Type == client.TypeIdempotencyKeyReused && refused.PK != nil:
		a.drift(refused)
		return nil
	}
	a.isClientIDTaken = refused.Type == client.TypeClientIDTaken
	a.Outcome, a.Detail, a.reason = outcomeRefused, refused.Error(), console.Truncate(refused.Title, maxReasonBytes)
	if violations := refused.Violations(); len(violations) > 0 {
		a.pointer = violations[0].Pointer
	}
	return nil
}

// drift notes how an entry differs from the record that its id made. One that means the same, with a default written
// out or a value written in another way, is as good as unchanged.
func (a *applied) drift(refused *client.Error) {
	a.Outcome, a.PK = outcomeUnchanged, *refused.PK
	for _, violation := range refused.Violations() {
		if violation.Code == client.ViolationCodeDiffers && len(a.Differs) < maxDiffers {
			a.Differs = append(a.Differs, console.Truncate(violation.Pointer, maxReasonBytes))
		}
	}
	if len(a.Differs) == 0 {
		return
	}
	a.Outcome, a.pointer = outcomeDrifted, a.Differs[0]
	fields := strings.ReplaceAll(strings.Join(a.Differs, ", "), "/", "")
	a.reason = fmt.Sprintf("%s; stored as %d", fields, a.PK)
	a.Detail = fmt.Sprintf("drifted: %s of provider %d has other values; set them back, or give the entry another id "+
		"for a second provider, or have an operator run \"providerd provider delete %[2]d\" and apply again",
		fields, a.PK)
}

// concernsEntry tells whether a refusal is about one body, or about the operation that it is sent to. Of those that no
// providerd server answered, only what a proxy may have against one body is.
func concernsEntry(refused *client.Error) bool {
	switch refused.Status {
	case http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return refused.Type != client.TypeForeign
	default:
		return false
	}
}
