//go:build slow

package hostile_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestHostileBodies sends random and hostile bodies. None may cause a 5xx, a response that is not in the contract, high
// memory use or a leak.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	const defaultBodies, maxGrowth = 2_000, 5 << 20
	count := processtest.ProofSize(t, "hostile", defaultBodies)
	server := serveShipped(t, "--ops-listen", "127.0.0.1:0")
	client, statuses := contracttest.Client(t), map[int]int{}
	// A fixed seed makes failures reproducible.
	bodies := hostileBodies{rand.New(rand.NewPCG(1, 2))}
	before := 0
	for i := range count {
		if i == count/10 {
			before = liveHeap(t, server)
		}
		path, body := bodies.next(i)
		key := ""
		if i%3 == 0 {
			key = fmt.Sprint(i)
		}
		status, text, err := server.PostWithKey(client, path, body, key)
		processtest.Require(t, err == nil, "%v: %s", err, text)
		statuses[status]++
	}
	after := liveHeap(t, server)
	checkPeakMemory(t, server)
	server.Stop(t)
	t.Logf("%d bodies: statuses %v; live heap %d KiB after a tenth, %d KiB after all", count, statuses, before>>10, after>>10)
	processtest.Expect(t, after-before <= maxGrowth, "the live heap grew by %d bytes", after-before)
	for status := range statuses {
		processtest.Expect(t, status < http.StatusInternalServerError, "%d responses with status %d", statuses[status], status)
	}
}

func liveHeap(t *testing.T, server *providerdtest.Server) int {
	t.Helper()
	url := providerdtest.OpsURL(t, server)
	var text string
	// sync.Pool releases its objects by the third garbage collection.
	for range 3 {
		_, text = providerdtest.Get(t, url+"/debug/pprof/heap?gc=1&debug=1")
	}
	return providerdtest.NumberAfter(t, text, "# HeapAlloc =")
}

func serveShipped(t *testing.T, arguments ...string) *providerdtest.Server {
	t.Helper()
	command := providerdtest.ServeCommand(t.Context(), t.TempDir(), arguments...)
	command.Path = providerdtest.Build(t)
	return providerdtest.MustStart(t, command)
}

// checkPeakMemory checks that the program has never used more than 256 MiB, and logs its peak.
func checkPeakMemory(t *testing.T, server *providerdtest.Server) {
	t.Helper()
	const maxPeakKiB = 256 << 10
	peak := providerdtest.PeakKiB(t, server.Command)
	t.Logf("peak is %d MiB", peak>>10)
	processtest.Expect(t, peak != 0 && peak <= maxPeakKiB, "peak is %d KiB, want at most %d", peak, maxPeakKiB)
}

type hostileBodies struct{ *rand.Rand }

// next returns the body with a number: a valid one, a changed one, a random one, or one that is hostile.
func (b hostileBodies) next(number int) (path, body string) {
	path = providerdtest.OAuth2Path
	valid := `{"name":"n","authorization_flow":"` + hostileFlow + `","redirect_uris":"https://a\nhttps://b",` +
		`"access_code_validity":"hours=1;minutes=2","property_mappings":[]}`
	if number%2 == 1 {
		path = providerdtest.DirectoryPath
		valid = `{"name":"n","delegated_subject":"admin@example.com","credentials":{"a":[1.10,{"b":null}]},` +
			`"default_group_email_domain":"example.com"}`
	}
	switch b.IntN(40) {
	case 0:
		shapes := hostileShapes()
		names := slices.Sorted(maps.Keys(shapes))
		shape := shapes[names[b.IntN(len(names))]]
		// Few bodies have the maximum length, because each takes long.
		return shape.path, shape.make(1 << (10 + b.IntN(11)))
	case 1:
		texts := []string{
			"", " ", "null", "[]", "{", "\xef\xbb\xbf{}", `{"name":"\ud800"}`, `{"a":1,"a":2}`, "{}{}", `{"name":1e999999}`,
			strings.Repeat(`{"a":`, 10_000), strings.Repeat("[", 100_000), `{"x":"` + strings.Repeat("x", 100_000) + `"}`,
			`{"property_mappings":[` + strings.Repeat("1,", 5_000) + `1]}`,
			`{"redirect_uris":"` + strings.Repeat(`https://a\n`, 5_000) + `\n"}`, `{"credentials":{"\u0000":"\u0000"}}`,
			`{"name":"` + strings.Repeat(" ", 50_000) + `"}`,
			`{"credentials":` + strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60) + "}",
		}
		return path, texts[b.IntN(len(texts))]
	case 2, 3, 4, 5:
		random := make([]byte, b.IntN(300))
		for i := range random {
			random[i] = byte(b.Uint32())
		}
		return path, string(random)
	case 6, 7, 8, 9:
		return path, valid
	default:
		return path, b.corrupt([]byte(valid))
	}
}

// corrupt replaces some bytes of a valid body with others, with parts of JSON, or with a piece of itself.
func (b hostileBodies) corrupt(body []byte) string {
	parts := []string{`"`, "{", "}", "[", "]", ",", ":", "null", "true", "1e9", `\u0000`, `\ud83d`, "\xff", "\x00", "é", "🔑", " "}
	for range 1 + b.IntN(4) {
		at := b.IntN(len(body))
		end := min(len(body), at+b.IntN(8))
		var with []byte
		switch b.IntN(3) {
		case 0:
			with = []byte(parts[b.IntN(len(parts))])
		case 1:
			with = []byte{byte(b.Uint32())}
		case 2:
			from := b.IntN(len(body))
			with = body[from:min(len(body), from+20)]
		}
		body = bytes.Join([][]byte{body[:at], with, body[end:]}, nil)
	}
	return string(body)
}

const hostileFlow = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"

// hostileShape generates bodies of about a length, at most 1 MiB, that take as much memory as possible.
type hostileShape struct {
	path string
	make func(length int) string
}

// hostileShapes returns valid bodies, then bodies that violate many rules, or one rule whose check is expensive.
func hostileShapes() map[string]hostileShape {
	directory := func(inside func(length int) string) hostileShape {
		const begin = `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":{`
		return hostileShape{providerdtest.DirectoryPath, func(length int) string { return begin + inside(length-len(begin)) + "}}" }}
	}
	oauth2 := func(inside func(length int) string) hostileShape {
		const begin = `{"name":"n","authorization_flow":"` + hostileFlow + `",`
		return hostileShape{providerdtest.OAuth2Path, func(length int) string { return begin + inside(length-len(begin)) + "}" }}
	}
	text := func(name, part string) func(int) string {
		return func(length int) string { return `"` + name + `":"` + fill(part, length) + `"` }
	}
	list := func(name, part, last string) func(int) string {
		return func(length int) string { return `"` + name + `":[` + fill(part, length) + last + "]" }
	}
	return map[string]hostileShape{
		"objects in a list":       directory(list("a", `{"":0},`, "0")),
		"short names":             directory(shortNames),
		"escaped in the response": directory(text("a", "<")),
		"escaped in the body":     directory(text("a", `\u0041`)),
		"white space":             directory(func(length int) string { return `"a":1` + fill(" ", length) }),
		"escaped URIs":            oauth2(text("redirect_uris", "a:<")),
		"UUIDs":                   oauth2(list("property_mappings", `"`+hostileFlow+`",`, `"`+hostileFlow+`"`)),

		"U+0000 under a long name": directory(func(length int) string {
			return `"` + fill("k", length/2) + `":[` + fill(`"\u0000",`, length/2) + "5]"
		}),
		"U+0000 under a name of 900": directory(func(length int) string {
			return list(fill("<", 1000), `"\u0000",`, "0")(length - 1000)
		}),
		"U+0000 in a name":   directory(func(length int) string { return `"` + fill(`\u0000`, length) + `":1` }),
		"a name twice":       directory(func(length int) string { return `"` + fill("k", length) + `":{"a":1,"a":1}` }),
		"numbers in a list":  oauth2(list("property_mappings", "1,", "1")),
		"lists in a list":    oauth2(list("jwks_sources", "[],", "{}")),
		"texts in a list":    oauth2(list("jwks_sources", `"ab",`, "null")),
		"objects for a text": oauth2(list("client_id", `{"":0},`, "0")),
		"unknown fields":     oauth2(shortNames),
		"long unknown field": oauth2(func(length int) string { return `"` + fill("<", length) + `":1` }),
		"bad last line":      oauth2(func(length int) string { return `"redirect_uris":"` + fill(`a:b\n`, length) + ` "` }),
		"long number":        oauth2(func(length int) string { return `"client_id":` + fill("1", length) }),
	}
}

// fill returns as many copies of part as fit in length, with some room around them.
func fill(part string, length int) string { return strings.Repeat(part, max(0, length-100)/len(part)) }

// shortNames returns as many members as fit in length.
func shortNames(length int) string {
	var members strings.Builder
	for i := 0; members.Len() < length-100; i++ {
		fmt.Fprintf(&members, `"%x":1,`, i)
	}
	return members.String() + `"last":1`
}
