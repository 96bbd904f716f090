package main

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	queueSizeVariable = "OTEL_BSP_MAX_QUEUE_SIZE"
	// defaultExportTimeout is how long the collector has to take spans, by the standard.
	defaultExportTimeout = 10 * time.Second
)

// checkVariables refuses what the SDK would leave out, or take for something else, most often without a word.
func checkVariables() error {
	for _, check := range []func() error{
		checkProtocol, checkCompression, checkHeaders, checkNumbers, checkSampler, checkResource,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkProtocol refuses a protocol that the exporter does not speak. It would speak another one without a word.
func checkProtocol() error {
	name := ofTraces("PROTOCOL")
	switch protocol := variable(name); protocol {
	case "", "http/protobuf", "http/json":
		return nil
	default:
		return fmt.Errorf("%s is %q, but traces are sent over HTTP alone; set it to http/protobuf or http/json, and the "+
			"endpoint to where the collector takes that, most often port 4318", name, protocol)
	}
}

func checkCompression() error {
	name := ofTraces("COMPRESSION")
	switch compression := variable(name); compression {
	case "", "gzip", "none":
		return nil
	default:
		return fmt.Errorf("%s is %q; set it to gzip or none, or unset it", name, compression)
	}
}

func checkHeaders() error {
	isName := regexp.MustCompile(`^[0-9A-Za-z!#$%&'*+.^_\x60|~-]+$`)
	isValue := regexp.MustCompile(`^[^\x00-\x08\x0A-\x1F\x7F]*$`)
	return checkPairs(ofTraces("HEADERS"), func(name, value string) bool {
		return isName.MatchString(name) && isValue.MatchString(value)
	})
}

// checkResource refuses what cannot be sent as the name and the attributes of the server.
func checkResource() error {
	const name = "OTEL_SERVICE_NAME"
	if !utf8.ValidString(os.Getenv(name)) {
		return fmt.Errorf("%s is not UTF-8; set it to text that is, or unset it", name)
	}
	return checkPairs("OTEL_RESOURCE_ATTRIBUTES", func(name, value string) bool {
		return name != "" && utf8.ValidString(name) && utf8.ValidString(value)
	})
}

// checkPairs refuses a list of names and values in which one is not as it must be. It says which, but not what it is.
func checkPairs(variableName string, isSound func(name, value string) bool) error {
	list := variable(variableName)
	if list == "" {
		return nil
	}
	for at, pair := range strings.Split(list, ",") {
		name, escaped, isPair := strings.Cut(pair, "=")
		value, err := url.PathUnescape(escaped)
		if !isPair || err != nil || !isSound(strings.TrimSpace(name), strings.TrimSpace(value)) {
			return fmt.Errorf("%s cannot be read at entry %d; set it to NAME=VALUE, with a comma before each further one, "+
				"and other characters than letters and digits in values as %%XX", variableName, at+1)
		}
	}
	return nil
}

// checkNumbers refuses sizes and times that the SDK would not survive, go on without a pause with, or not be able to
// read.
func checkNumbers() error {
	const maxSpans, maxMilliseconds = 1 << 16, 3_600_000
	for _, one := range []struct {
		name        string
		least, most int
	}{
		{queueSizeVariable, 1, maxSpans},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, maxSpans},
		{"OTEL_BSP_SCHEDULE_DELAY", 1, maxMilliseconds},
		{"OTEL_BSP_EXPORT_TIMEOUT", 1, maxMilliseconds},
		{ofTraces("TIMEOUT"), 0, maxMilliseconds},
	} {
		text := os.Getenv(one.name)
		if number, err := strconv.Atoi(text); text != "" && (err != nil || number < one.least || number > one.most) {
			return fmt.Errorf("%s is %q; set it to a whole number from %d to %d, or unset it",
				one.name, text, one.least, one.most)
		}
	}
	return nil
}

// checkSampler refuses what the SDK would leave out, and so record every trace.
func checkSampler() error {
	const name, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	samplers := []string{
		"always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	}
	if sampler := strings.ToLower(variable(name)); sampler != "" && !slices.Contains(samplers, sampler) {
		return fmt.Errorf("%s is %q; set it to one of %s, or unset it", name, sampler, strings.Join(samplers, ", "))
	}
	text := variable(argument)
	if ratio, err := strconv.ParseFloat(text, 64); text != "" &&
		(err != nil || ratio < 0 || ratio > 1 || math.IsNaN(ratio)) {
		return fmt.Errorf("%s is not a part of all traces; set it to a number from 0 to 1, such as 0.01, or unset it",
			argument)
	}
	return nil
}

// exportTimeout is how long the collector has to take spans, where the variables were checked; 0 is no limit.
func exportTimeout() time.Duration {
	if milliseconds, err := strconv.Atoi(os.Getenv(ofTraces("TIMEOUT"))); err == nil {
		return time.Duration(milliseconds) * time.Millisecond
	}
	return defaultExportTimeout
}

// spanQueueSize is how many spans wait for the collector at most, where the variables were checked.
func spanQueueSize() int {
	if size, err := strconv.Atoi(os.Getenv(queueSizeVariable)); err == nil {
		return size
	}
	return sdktrace.DefaultMaxQueueSize
}
