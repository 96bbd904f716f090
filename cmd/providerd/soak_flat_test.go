//go:build slow

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// measure is something that a process has no more of after many creates than after a few.
type measure struct {
	name string
	// unit is what a figure is divided by to be told.
	unit float64
	of   func(one soakSample) float64
	// leak is how much a leak that must be found adds with each create, and slack how much the figure may differ without
	// any: a connection that is just busy has one goroutine more, and so on.
	leak, slack float64
}

const mib = 1 << 20

func soakMeasures() []measure {
	return []measure{
		{"resident memory, MiB", mib, func(one soakSample) float64 { return one.resident }, 1 << 10, 16 * mib},
		{"live heap of Go, MiB", mib, func(one soakSample) float64 { return one.heap }, 1 << 10, 8 * mib},
		{"descriptors", 1, func(one soakSample) float64 { return one.descriptors }, 0.01, soakCallers},
		{"goroutines", 1, func(one soakSample) float64 { return one.goroutines }, 0.01, 2 * soakCallers},
	}
}

// growth is how a figure of one process went on: its median in the second fifth of the time, when nothing warms up any
// more, its median in the last fifth, and the most that it ever was.
type growth struct{ early, late, most, allowed float64 }

func (g growth) isFlat() bool { return g.late-g.early <= g.allowed }

// minSamples are those that make five parts of some samples each.
const minSamples = 15

// judge compares the parts of the samples of one process. Half of what a leak would add between them is allowed.
func (m measure) judge(samples []soakSample) (growth, error) {
	if len(samples) < minSamples {
		return growth{}, fmt.Errorf("%d samples of %s are too few", len(samples), m.name)
	}
	part := len(samples) / 5
	early, late := samples[part:2*part], samples[len(samples)-part:]
	creates := medianOf(late, soakSample.createsSoFar) - medianOf(early, soakSample.createsSoFar)
	return growth{
		early: medianOf(early, m.of), late: medianOf(late, m.of), allowed: max(m.slack, creates*m.leak/2),
		most: m.of(slices.MaxFunc(samples, func(a, b soakSample) int { return int(m.of(a) - m.of(b)) })),
	}, nil
}

func medianOf(samples []soakSample, of func(soakSample) float64) float64 {
	var values []float64
	for _, one := range samples {
		values = append(values, of(one))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// madeUpSamples are those of a process that warms up, works unevenly, and leaks as much with each create.
func madeUpSamples(creates int, leak float64, of measure) []soakSample {
	const count = 120
	level := 10 * of.slack
	var samples []soakSample
	for i := range count {
		one := soakSample{at: time.Duration(i) * time.Second, creates: creates * i / count}
		warm := level * min(1, 0.5+float64(i)/(count/6))
		// Something that lasts for some samples may take much.
		spike := level * float64(i/7%5/4)
		value := warm + spike + of.slack/2*rand.Float64() + leak*float64(one.creates)
		one.resident, one.heap, one.descriptors, one.goroutines = value, value, value, value
		samples = append(samples, one)
	}
	return samples
}

// A leak of the size that must be found is found in as many creates as a process of a whole run has. What warms up,
// swings and is high for a while is no leak.
func TestSoakJudgement(t *testing.T) {
	t.Parallel()
	for _, m := range soakMeasures() {
		for _, c := range []struct {
			creates int
			leak    float64
			isFlat  bool
		}{
			{40_000, 0, true},
			{40_000, m.leak, false},
			{400_000, m.leak, false},
			{40_000, m.leak / 10, true},
			{40_000, -m.leak, true},
			{0, 0, true},
			{1_000, 100 * m.leak, false},
		} {
			got, err := m.judge(madeUpSamples(c.creates, c.leak, m))
			if err != nil || got.isFlat() != c.isFlat {
				t.Errorf("%s: %d creates that leak %g each: %+v, %v, want flat %v",
					m.name, c.creates, c.leak, got, err, c.isFlat)
			}
		}
		if _, err := m.judge(madeUpSamples(1_000, 0, m)[:minSamples-1]); err == nil {
			t.Errorf("%s: too few samples are judged", m.name)
		}
	}
}
