package flags_test

import (
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/flags"
)

func TestTimeSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90d": 90 * flags.Day, "1d": flags.Day, "65535d": 65535 * flags.Day, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute, "60s": time.Minute,
		"": 0, "0d": 0, "d": 0, "-1d": 0, "65536d": 0, "1.5d": 0, "0s": 0, "-1h": 0, "90": 0, "1w": 0, "2562047h": 0,
		"1s": time.Second,
	} {
		var got flags.Duration
		err := got.UnmarshalText([]byte(text))
		if (err == nil) != (want > 0) || time.Duration(got) != want {
			t.Errorf("%q is %v, %v, want %v", text, time.Duration(got), err, want)
		}
	}
}

func TestRateLimitOfFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]flags.RateLimit{
		"100/s": {Requests: 100, Window: time.Second}, "100/m": {Requests: 100, Window: time.Minute},
		"100/h": {Requests: 100, Window: time.Hour}, "1/s": {Requests: 1, Window: time.Second},
		"999999/h": {Requests: 999_999, Window: time.Hour},
		"":         {}, "/s": {}, "0/s": {}, "01/s": {}, "-1/s": {}, "+1/s": {}, "1000000/s": {}, "1.5/s": {}, "1": {},
		"1/": {}, "1/d": {}, "1/S": {}, "1/ms": {}, "1/1s": {}, "1 /s": {}, "1/s ": {}, "1/s\n": {}, "1/s,1/m": {},
	} {
		var got flags.RateLimit
		if err := got.UnmarshalText([]byte(text)); (err == nil) != (want.Requests > 0) || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
}
