package seal_test

import (
	"testing"

	"example.com/providerd/store/seal"
)

func TestTraitsOfASecret(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]seal.Traits{
		"":         {IsPrintable: true},
		"aaab ~":   {Bytes: 6, Distinct: 4, IsPrintable: true},
		"é":        {Bytes: 2, Distinct: 2},
		"a\tb":     {Bytes: 3, Distinct: 3},
		"a\x7f":    {Bytes: 2, Distinct: 2},
		"\xff\xff": {Bytes: 2, Distinct: 1},
	} {
		if got := seal.NewSecret(text).Traits(); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
