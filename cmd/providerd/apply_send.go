package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/gen/client"
)

// send creates the providers, a bounded number at a time. What is wrong with one entry fails that alone; what would be
// wrong with every other, too, ends it.
func (r *applyReport) send(ctx context.Context, to *client.Providers, parallel int) error {
	shown := newProgress(os.Stderr, "entries sent")
	var mutex sync.Mutex
	done := int64(0)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range r.applied {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := r.applied[i].send(groupCtx, to)
			mutex.Lock()
			defer mutex.Unlock()
			if err == nil {
				done++
				shown.update(done, int64(len(r.applied)))
			}
			return err
		})
	}
	err := group.Wait()
	shown.clear()
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; run it again for the rest")
	case err != nil:
		reason := strings.TrimSuffix(shortened(err.Error(), maxErrorBytes), ".")
		return errors.New(printable(reason) + "; run it again for the rest")
	default:
		return nil
	}
}

// Types of refusals: of an entry that was edited since it was stored, and of one that no providerd server answered.
const (
	reusedKeyType = "/problems/idempotency-key-reused"
	foreignType   = "about:blank"
)

// send creates one provider. It returns an error where further entries would fare no better.
func (a *applied) send(ctx context.Context, to *client.Providers) error {
	kind, err := kindOf(a.entry)
	if err != nil {
		return err
	}
	var replayed bool
	stored, err := kind.create(ctx, to, a.entry.Body,
		client.WithIdempotencyKey(idempotencyKey(a.entry)), client.WithReplayed(&replayed))
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case err == nil && replayed:
		a.outcome, a.stored = outcomeUnchanged, stored
	case err == nil:
		a.outcome, a.stored = outcomeCreated, stored
	case !ok, !concernsEntry(refused):
		return err
	case refused.Type == reusedKeyType:
		a.outcome = outcomeDiffering
		a.detail = "differs from the stored record, which an operator can see; nothing was changed"
	default:
		a.outcome, a.detail = outcomeFailed, refused.Error()
		if violations := refused.Violations(); len(violations) > 0 {
			a.pointer = violations[0].Pointer
		}
	}
	return nil
}

// concernsEntry tells whether a refusal is about one body, or about the operation that it is sent to. Of those that no
// providerd server answered, only what a proxy may have against one body is.
func concernsEntry(refused *client.Error) bool {
	switch refused.Status {
	case http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return refused.Type != foreignType
	default:
		return false
	}
}
