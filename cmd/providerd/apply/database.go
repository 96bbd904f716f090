package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
	"example.com/providerd/store/records"
)

var errPlanChanged = errors.New("plan changed")

// runInDatabase makes the records of a database as the files say: it plans, asks and writes.
func (r *report) runInDatabase(ctx context.Context, database *store.Store, contract *contract.Document) error {
	if len(r.applied) > maxEntries {
		return fmt.Errorf("with --as, a run can apply at most %d entries; apply fewer files at a time", maxEntries)
	}
	p, err := r.plan(ctx, database, contract)
	if err != nil {
		return err
	}
	switch changes := len(p.changed()); {
	case r.DryRun, changes == 0:
		return p.finishDatabase()
	case changes > maxChanges:
		return fmt.Errorf("%d changes are planned, but a run can write at most %d; apply fewer files at a time", changes,
			maxChanges)
	}
	if err := p.ask(); err != nil {
		return err
	}
	// Before, a signal ends the program immediately; now, a second one does.
	ctx, stop := console.UntilInterrupted(ctx)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err = p.write(ctx)
	switch {
	case err == nil:
		return p.finishDatabase()
	case ctx.Err() != nil:
		return errInterrupted()
	case !isConflict(err):
		return fmt.Errorf("%w; run the command again", err)
	}
	r.messages.Warn("records have changed since the plan was shown; nothing was written; the new plan is:")
	if p, err = r.plan(ctx, database, contract); err != nil {
		return err
	}
	if r.Output == console.FormatJSON {
		err = p.print()
	}
	return errors.Join(err, errors.New("the plan changed; nothing was written; run the command again"))
}

// plan makes a plan and prints it, unless the format is JSON, which is printed with the outcomes.
func (r *report) plan(ctx context.Context, database *store.Store, contract *contract.Document) (*plan, error) {
	report := *r
	report.applied = slices.Clone(r.applied)
	p := &plan{report: &report, database: database, contract: contract, entries: report.applied}
	if err := p.decide(ctx); err != nil {
		return nil, err
	}
	if err := p.checkCaller(ctx); err != nil {
		return nil, err
	}
	var deleted []int64
	for _, a := range p.changed() {
		if a.Outcome == outcomeDelete {
			deleted = append(deleted, a.PK)
		}
	}
	if _, err := database.Providers.Deletable(ctx, deleted); err != nil {
		return nil, fmt.Errorf("--prune: %w", err)
	}
	if r.Output != console.FormatJSON {
		if err := p.print(); err != nil {
			return nil, err
		}
	}
	if len(deleted) > r.Prune {
		return nil, fmt.Errorf("%s would be deleted, more than --prune=%d allows; check the files, or raise --prune",
			console.Count(len(deleted), "record"), r.Prune)
	}
	return p, nil
}

// changed returns the entries and records that the plan writes or deletes.
func (p *plan) changed() (list []*applied) {
	for i := range p.applied {
		if a := &p.applied[i]; a.Outcome.isChange() {
			list = append(list, a)
		}
	}
	return list
}

// checkCaller refuses a name that has neither a record nor a token: it is probably mistyped.
func (p *plan) checkCaller(ctx context.Context) error {
	if slices.ContainsFunc(p.found.pks, func(pk int64) bool { return pk != 0 }) {
		return nil
	}
	records, err := p.database.Providers.Identities(ctx, store.Filter{CreatedBy: string(*p.As)}, 1)
	if err != nil || len(records) > 0 {
		return err
	}
	names, err := console.TokenNames(ctx, p.database)
	if err != nil || slices.Contains(names, string(*p.As)) {
		return err
	}
	return fmt.Errorf("--as: no token is named %q, and no record was created by such a token; tokens are named %s",
		*p.As, console.Truncate(strings.Join(names, ", "), maxReasonBytes))
}

func (p *plan) ask() error {
	question := "write " + console.Count(len(p.changed()), "change")
	if deleted := p.counts()[outcomeDelete]; deleted > 0 {
		question += fmt.Sprintf(", %d of them deletions", deleted)
	}
	return console.ConsentFlag{Yes: p.Yes}.Ask(p.out, question)
}

// write makes the changes of the plan if it is still the same.
func (p *plan) write(ctx context.Context) error {
	changed := p.changed()
	changes := make([]store.Change, len(changed))
	for i, a := range changed {
		changes[i] = a.change
	}
	pks, err := p.database.Providers.Change(ctx, func(in store.Reader) ([]store.Change, error) {
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
		if oauth2, ok := changes[i].Requested.(records.OAuth2Provider); ok {
			a.ClientID = oauth2.ClientID
		}
		a.Outcome, a.PK = a.Outcome.done(), pks[i]
	}
	return nil
}

// isConflict reports whether a plan was not written because of a change since it was shown.
func isConflict(err error) bool {
	return slices.ContainsFunc([]error{
		errPlanChanged, store.ErrClientIDTaken, store.ErrKeyTaken, store.ErrProviderInUse, store.ErrNotFound,
	}, func(conflict error) bool { return errors.Is(err, conflict) })
}

// finishDatabase prints what was not printed with the plan: all entries in JSON, and otherwise the created ones.
func (p *plan) finishDatabase() error {
	rest := *p.report
	if p.Output != console.FormatJSON {
		rest.applied = slices.DeleteFunc(slices.Clone(p.applied), func(a applied) bool { return a.Outcome != outcomeCreated })
	}
	if err := rest.print(); err != nil {
		return err
	}
	if orphans := p.counts()[outcomeOrphan]; p.DryRun && orphans > 0 {
		p.messages.Note("found %s of %s without an entry; pass --prune=%d to delete",
			console.Count(orphans, "applied record"), *p.As, orphans)
	}
	return p.finish()
}
