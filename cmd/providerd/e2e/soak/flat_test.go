//go:build slow

package soak_test

import "slices"

// measure is a figure of a process that must not grow with the number of creates.
type measure struct {
	name string
	// unit is what figures are divided by in reports.
	unit  float64
	value string
	// leak is the growth per create that must be detected, and slack is how much the figure may vary without a leak.
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

// growth has the median of a figure in the second fifth of a process's time, after the warm-up, the median in the last
// fifth, the maximum, and the allowed difference of the medians.
type growth struct{ early, late, maximum, allowed float64 }

func (g growth) isFlat() bool { return g.late-g.early <= g.allowed }

// minSamples is enough for five parts of several samples each.
const minSamples = 15

// judge compares parts of the samples of a process. It allows half of the growth that a leak would cause.
func (m measure) judge(samples []soakSample) growth {
	part := len(samples) / 5
	early, late := samples[part:2*part], samples[len(samples)-part:]
	creates := medianOf(late, "creates") - medianOf(early, "creates")
	return growth{
		early: medianOf(early, m.value), late: medianOf(late, m.value), maximum: slices.Max(valuesOf(samples, m.value)),
		allowed: max(m.slack, creates*m.leak/2),
	}
}

func medianOf(samples []soakSample, value string) float64 {
	values := slices.Sorted(slices.Values(valuesOf(samples, value)))
	return values[len(values)/2]
}

func valuesOf(samples []soakSample, value string) (values []float64) {
	for _, sample := range samples {
		values = append(values, sample.values[value])
	}
	return values
}
