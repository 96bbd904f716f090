//go:build slow

package soak_test

import "slices"

// measure is something that a process has no more of after many creates than after a few.
type measure struct {
	name string
	// unit is what a figure is divided by to be told.
	unit  float64
	value string
	// leak is how much a leak that must be found adds with each create, and slack how much the figure may differ without
	// any: a connection that is just busy has one goroutine more, and so on.
	leak, slack float64
}

const mib = 1 << 20

func soakMeasures() []measure {
	return []measure{
		{"resident memory, MiB", mib, residentSeries, 1 << 10, 16 * mib},
		{"live heap of Go, MiB", mib, "heap", 1 << 10, 8 * mib},
		{"descriptors", 1, "process_open_fds", 0.01, soakCallers},
		{"goroutines", 1, "go_goroutines", 0.01, 2 * soakCallers},
	}
}

// growth is how a figure of one process went on: its median in the second fifth of the time, when nothing warms up any
// more, its median in the last fifth, and the most that it ever was.
type growth struct{ early, late, most, allowed float64 }

func (g growth) isFlat() bool { return g.late-g.early <= g.allowed }

// minSamples are those that make five parts of some samples each.
const minSamples = 15

// judge compares the parts of the samples of one process. Half of what a leak would add between them is allowed.
func (m measure) judge(samples []soakSample) growth {
	part := len(samples) / 5
	early, late := samples[part:2*part], samples[len(samples)-part:]
	creates := medianOf(late, "creates") - medianOf(early, "creates")
	return growth{
		early: medianOf(early, m.value), late: medianOf(late, m.value), most: slices.Max(valuesOf(samples, m.value)),
		allowed: max(m.slack, creates*m.leak/2),
	}
}

func medianOf(samples []soakSample, value string) float64 {
	values := slices.Sorted(slices.Values(valuesOf(samples, value)))
	return values[len(values)/2]
}

func valuesOf(samples []soakSample, value string) (values []float64) {
	for _, one := range samples {
		values = append(values, one.values[value])
	}
	return values
}
