package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// maxPlans is how often a plan is made if others change the same records meanwhile.
const maxPlans = 10

// databaseRun makes the records of a database as the files say.
type databaseRun struct {
	*Command
	database *store.Store
	contract *contract.Document
	entries  []manifest.Entry
	out      *console.Output
	messages *console.Messages
}

// run plans, asks and writes. If a record is changed meanwhile, it starts over.
func (r *databaseRun) run(ctx context.Context) error {
	var written []applied
	for range maxPlans {
		p, err := r.plan(ctx)
		if err != nil {
			return r.stop(err, written)
		}
		if err := p.print(r.out); err != nil {
			return err
		}
		p.addWritten(written)
		if err := r.checkLimit(p); err != nil {
			return r.stop(err, written)
		}
		if r.DryRun {
			return p.finish(r.out)
		}
		if err := r.confirm(p); err != nil {
			return r.stop(err, written)
		}
		if err = r.write(ctx, p); !isConflict(err) {
			if finished := p.finish(r.out); err == nil {
				err = finished
			}
			return err
		}
		written = p.written()
		r.messages.Warn("%v; a new plan follows", err)
	}
	return r.stop(errors.New("other programs change the same records all the time; run the command again later"), written)
}

// stop returns the error that ends the run, and prints what earlier plans have written.
func (r *databaseRun) stop(err error, written []applied) error {
	if len(written) == 0 {
		return err
	}
	if r.Output == console.FormatJSON {
		if err := printJSON(r.out, written); err != nil {
			return err
		}
	}
	r.messages.Note("%s written before", console.Count(len(written), "change was", "changes were"))
	if errors.Is(err, flags.ErrNotConfirmed) {
		return errors.New("not confirmed")
	}
	return err
}

// plan makes a plan.
func (r *databaseRun) plan(ctx context.Context) (*plan, error) {
	report, err := newReport(r.Command, r.messages, r.entries)
	if err != nil {
		return nil, err
	}
	p := &plan{
		report: report, database: r.database, contract: r.contract,
		caller: string(*r.As), isPruned: r.Prune.isSet, isVerbose: r.Verbose,
	}
	if err := p.make(ctx); err != nil {
		return nil, err
	}
	if p.owned == 0 {
		return p, r.checkCaller(ctx)
	}
	return p, nil
}

// checkCaller refuses a name that has neither a record nor a token: it is probably mistyped.
func (r *databaseRun) checkCaller(ctx context.Context) error {
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

// checkLimit refuses to delete more records than --prune allows, including those that earlier plans have deleted.
func (r *databaseRun) checkLimit(p *plan) error {
	counts := p.counts()
	if deleted := counts[outcomeDelete] + counts[outcomeDeleted]; r.Prune.limit > 0 && deleted > r.Prune.limit {
		return fmt.Errorf("%s would be deleted, more than --prune=%d allows", console.Count(deleted, "record"),
			r.Prune.limit)
	}
	return nil
}

// confirm asks before anything is written.
func (r *databaseRun) confirm(p *plan) error {
	counts := p.counts()
	changes := counts[outcomeCreate] + counts[outcomeUpdate] + counts[outcomeRename] + counts[outcomeDelete]
	if changes == 0 {
		return nil
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	question := "write " + console.Count(changes, "change")
	if deleted := counts[outcomeDelete]; deleted > 0 {
		question += fmt.Sprintf(", %d of them deletions", deleted)
	}
	return r.Ask(question)
}

// write writes the changes. Before, a signal ends the program at once; then, a second one does.
func (r *databaseRun) write(ctx context.Context, p *plan) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := p.write(ctx, r.Parallel)
	if err != nil && ctx.Err() != nil {
		return errInterrupted()
	}
	return err
}

func errInterrupted() error { return errors.New("interrupted; run the command again to continue") }

// isConflict reports whether a change was refused because of a change made since the plan.
func isConflict(err error) bool {
	for _, conflict := range []error{
		store.ErrChanged, store.ErrClientIDTaken, store.ErrKeyTaken, store.ErrKeyReused, store.ErrProviderInUse,
	} {
		if errors.Is(err, conflict) {
			return true
		}
	}
	return false
}
