package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// maxEntries and maxChanges limit a run, because creates wait for its transaction.
const (
	maxEntries = 10_000
	maxChanges = 5_000
)

// errPlanChanged means that the plan is no longer the one that was shown.
var errPlanChanged = errors.New("plan changed")

// databaseRun makes the records of a database as the files say.
type databaseRun struct {
	*report
	database *store.Store
	contract *contract.Document
}

// run plans, asks and writes.
func (r databaseRun) run(ctx context.Context) error {
	if len(r.applied) > maxEntries {
		return fmt.Errorf("with --as, a run can have at most %d entries; apply fewer files at a time", maxEntries)
	}
	p, err := r.show(ctx)
	if err != nil {
		return err
	}
	changes := p.changes()
	switch {
	case r.DryRun, changes == 0:
		return p.finishDatabase(r.DryRun)
	case changes > maxChanges:
		return fmt.Errorf("%d changes are more than a run can write, %d; apply fewer files at a time", changes, maxChanges)
	}
	if err := p.ask(changes); err != nil {
		return err
	}
	// Before, a signal ends the program at once; now, a second one does.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err = r.write(ctx, p)
	switch {
	case err == nil:
		return p.finishDatabase(false)
	case ctx.Err() != nil:
		return errInterrupted()
	case isConflict(err):
		return r.showChanged(ctx)
	default:
		return fmt.Errorf("%w; run the command again", err)
	}
}

// changes returns the number of changes.
func (p *plan) changes() (count int) {
	for i := range p.applied {
		if p.applied[i].isWritten() {
			count++
		}
	}
	return count
}

// showChanged shows the plan that has replaced the one that was shown, and returns the error of the run.
func (r databaseRun) showChanged(ctx context.Context) error {
	r.messages.Warn("records were changed since the plan was shown; nothing was written, and this is the plan now:")
	p, err := r.show(ctx)
	if err != nil {
		return err
	}
	if r.Output == console.FormatJSON {
		err = p.print()
	}
	return errors.Join(err, errors.New("the plan changed; nothing was written; run the command again"))
}

// show makes a plan and prints it, unless the format is JSON, which is printed with the outcomes.
func (r databaseRun) show(ctx context.Context) (*plan, error) {
	report := *r.report
	report.applied = slices.Clone(r.applied)
	p := &plan{report: &report, contract: r.contract, entries: report.applied}
	if err := p.decide(ctx, r.database); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(p.found.pks, func(pk int64) bool { return pk != 0 }) {
		if err := r.checkCaller(ctx); err != nil {
			return nil, err
		}
	}
	var deleted []int64
	for _, a := range p.applied {
		if a.Outcome == outcomeDelete {
			deleted = append(deleted, a.PK)
		}
	}
	if _, err := r.database.Deletable(ctx, deleted); err != nil {
		return nil, fmt.Errorf("--prune: %w", err)
	}
	if r.Output != console.FormatJSON {
		if err := p.print(); err != nil {
			return nil, err
		}
	}
	if len(deleted) > r.Prune {
		return nil, fmt.Errorf("%s would be deleted, more than --prune=%d allows",
			console.Count(len(deleted), "record"), r.Prune)
	}
	return p, nil
}

// checkCaller refuses a name that has neither a record nor a token: it is probably mistyped.
func (r databaseRun) checkCaller(ctx context.Context) error {
	records, err := r.database.Identities(ctx, store.Filter{CreatedBy: string(*r.As)}, 1)
	if err != nil || len(records) > 0 {
		return err
	}
	for token, err := range r.database.Tokens(ctx) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		if err == nil && token.Name == string(*r.As) {
			return nil
		}
	}
	return fmt.Errorf("--as: no token is named %q, and no record was created with one; "+
		"see \"providerd token list\"", *r.As)
}

// ask asks before anything is written.
func (p *plan) ask(changes int) error {
	if err := p.out.Flush(); err != nil {
		return err
	}
	question := "write " + console.Count(changes, "change")
	if deleted := p.counts()[outcomeDelete]; deleted > 0 {
		question += fmt.Sprintf(", %d of them deletions", deleted)
	}
	return flags.ConsentFlag{Yes: p.Yes}.Ask(question)
}

// write makes the changes of a plan if it is still the same.
func (r databaseRun) write(ctx context.Context, p *plan) error {
	var changed []*applied
	var changes []store.Change
	for i := range p.applied {
		if a := &p.applied[i]; a.isWritten() {
			change, err := p.changeOf(a)
			if err != nil {
				return err
			}
			changed, changes = append(changed, a), append(changes, change)
		}
	}
	pks, err := r.database.Change(ctx, func(in *store.Store) ([]store.Change, error) {
		found, err := p.find(ctx, in)
		if err == nil && !reflect.DeepEqual(found, p.found) {
			err = errPlanChanged
		}
		return changes, err
	})
	if err != nil {
		return err
	}
	for i, a := range changed {
		if a.Outcome == outcomeCreate {
			a.Undo = fmt.Sprintf("providerd provider delete %d", pks[i])
		}
		if oauth2, ok := changes[i].Requested.(store.OAuth2Provider); ok {
			a.ClientID = oauth2.ClientID
		}
		a.Outcome, a.PK = a.Outcome.done(), pks[i]
	}
	return nil
}

// changeOf returns the change of an entry, or the delete of an orphan.
func (p *plan) changeOf(a *applied) (change store.Change, err error) {
	if a.Outcome == outcomeDelete {
		return store.Change{Planned: store.OAuth2Provider{Provider: store.Provider{PK: a.PK}}}, nil
	}
	if a.change == nil {
		change.Requested, err = p.requested(a, nil)
		return change, err
	}
	change = *a.change
	for _, diff := range a.Changes {
		change.Fields = append(change.Fields, diff.Field)
	}
	if a.Outcome == outcomeAdopt {
		change.Fields = append(change.Fields, "created_by")
	}
	return change, nil
}

// isConflict reports whether a plan was not written because of a change since it was shown.
func isConflict(err error) bool {
	return slices.ContainsFunc([]error{
		errPlanChanged, store.ErrClientIDTaken, store.ErrKeyTaken, store.ErrProviderInUse, store.ErrNotFound,
	}, func(conflict error) bool { return errors.Is(err, conflict) })
}

// finishDatabase prints what was not printed with the plan: all entries in JSON, and otherwise the created ones.
func (p *plan) finishDatabase(isPlan bool) error {
	rest := *p.report
	if p.Output != console.FormatJSON {
		rest.applied = slices.DeleteFunc(slices.Clone(p.applied), func(a applied) bool { return a.Outcome != outcomeCreated })
	}
	if err := rest.print(); err != nil {
		return err
	}
	if orphans := p.counts()[outcomeOrphan]; isPlan && orphans > 0 {
		p.messages.Note("%s of %s without an entry; --prune deletes them", console.Count(orphans, "applied record"), *p.As)
	}
	return p.finish()
}
