package postgrestest

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// Run starts an empty cluster for a program that is not a test, calls work with the URL of a database, and removes the
// cluster. It panics if that fails.
func Run(ctx context.Context, work func(url string) error) error {
	p := &program{ctx: ctx}
	defer func() {
		for _, cleanup := range slices.Backward(p.cleanups) {
			cleanup()
		}
	}()
	return work(newCluster(p, "", "").URL(ownDatabase))
}

// program is what NewCluster needs of a test.
type program struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func (p *program) Helper() {}

func (p *program) Context() context.Context { return p.ctx }

func (p *program) Cleanup(cleanup func()) { p.cleanups = append(p.cleanups, cleanup) }

func (p *program) Fatal(arguments ...any) { panic(fmt.Sprint(arguments...)) }

func (p *program) Fatalf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }
