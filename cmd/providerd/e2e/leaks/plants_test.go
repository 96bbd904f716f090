//go:build slow

package leaks_test

import (
	"os"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

func faults() []providerdtest.Fault {
	return []providerdtest.Fault{
		{
			Title: "a body in the log", File: "server/validate.go",
			Old: "lenient := isLenient(request.Header)", New: "println(string(body))\n\tlenient := isLenient(request.Header)",
		},
		{
			Title: "a body in the text of an error", File: "server/contract/json_object.go",
			Old: `"The body is not a JSON object. Send exactly one."`, New: `"The body is not a JSON object: " + string(body)`,
		},
		{
			Title: "a body in a panic", File: "server/contract/json_object.go",
			Old: `return Object{}, malformed("The body begins with a byte order mark. Remove it.")`, New: "panic(string(body))",
		},
		{
			Title: "a secret that can be printed", File: "store/settings.go",
			Old: "sealed, err := keys.Seal(s.ClientSecret, clientSecrets().place(pk))",
			New: "println(s.ClientSecret.Reveal())\n\tsealed, err := keys.Seal(s.ClientSecret, clientSecrets().place(pk))",
		},
		{
			Title: "a column left unsealed", File: "store/settings.go",
			Old: "SealedCredentials: sealed", New: "SealedCredentials: append(sealed[:0], s.Credentials.Reveal()...)",
		},
		{
			Title: "a plain digest of a body in the database", File: "store/seal/keys.go",
			Old: "fingerprint, err := k.mac.ComputeMAC(digest)",
			New: "if digest != nil {\n\t\treturn digest, nil\n\t}\n\tfingerprint, err := k.mac.ComputeMAC(digest)",
		},
		{
			Title: "a token in the log", File: "server/request.go",
			Old: `slog.String("path", truncate(c.Request().URL.Path, maxLoggedField)),`,
			New: `slog.Any("header", c.Request().Header),`,
		},
		{
			Title: "a query in the log", File: "server/request.go",
			Old: `slog.String("path", truncate(c.Request().URL.Path, maxLoggedField)),`,
			New: `slog.String("path", c.Request().URL.String()),`,
		},
		{
			Title: "a token in a challenge", File: "server/authenticate.go",
			Old: `s.invalidToken(c, "The access token is unknown.", err,`,
			New: `s.invalidToken(c, "The access token "+text+" is unknown.", err,`,
		},
		{
			Title: "a token in the table of tokens", File: "store/token.go",
			Old: "text[:len(tokenPrefix)+tokenPrefixShown]", New: "text",
		},
		{
			Title: "a key in the log", File: "store/seal/keyring.go",
			Old: "return durable.WriteFile(path, content, owner)", New: "println(string(content))\n\treturn durable.WriteFile(path, content, owner)",
		},
		{
			Title: "a copy of the keys left behind", File: "store/seal/keyring.go",
			Old: "return durable.WriteFile(path, content, owner)", New: "_ = durable.WriteFile(path+\".old\", content, owner)\n\treturn durable.WriteFile(path, content, owner)",
		},
		{
			Title: "an entry of a file in the messages of apply", File: "cmd/providerd/apply/send.go",
			Old: "a.Outcome, a.Detail, a.reason = outcomeRefused, refused.Error(), console.Truncate(refused.Title, maxReasonBytes)",
			New: "a.Outcome, a.Detail, a.reason = outcomeRefused, string(a.entry.Body), console.Truncate(refused.Title, maxReasonBytes)",
		},
		{
			Title: "a value in an error about a file", File: "cmd/providerd/apply/manifest/manifest.go",
			Old: `strings.HasPrefix(wrong.Message, "unknown anchor")`, New: `strings.HasPrefix(wrong.Message, "nothing")`,
		},
		{
			Title: "a record that is not masked", File: "cmd/providerd/command/render.go",
			Old: "response.ClientSecret = console.Mask", New: "_ = console.Mask",
		},
		{
			Title: "a secret in advice", File: "cmd/providerd/command/provider_advise.go",
			Old: "provider.Advice = advice.OAuth2(record.OAuth2Settings)",
			New: "provider.Advice = []advice.Advice{{Detail: record.ClientSecret.Reveal()}}",
		},
		{
			Title: "a secret in an export without --reveal", File: "cmd/providerd/command/provider_export.go",
			Old: "isReference := !e.reveal && ", New: "isReference := e.reveal && ",
		},
		{
			Title: "a secret in the messages of an export", File: "cmd/providerd/command/provider_export.go",
			Old: "fields[secret] = json.RawMessage(", New: "println(string(fields[secret]))\n\t\tfields[secret] = json.RawMessage(",
		},
		{
			Title: "a secret in a response header", File: "server/oauth2.go",
			Old: "XRequestID:          exchangeOf(ctx).requestID,",
			New: "XRequestID:          exchangeOf(ctx).requestID + record.ClientSecret.Reveal(),",
		},
		{
			Title: "a query in a label of the metrics", File: "server/request.go",
			Old: "s.metrics.count(current, c.Response().Status)",
			New: "current.operation = c.Request().URL.String()\n\t\ts.metrics.count(current, c.Response().Status)",
		},
		{
			Title: "a query in the name of a span", File: "server/traces.go",
			Old: "t.tracer.Start(parent, name, asServer,", New: "t.tracer.Start(parent, name+c.Request().URL.RawQuery, asServer,",
		},
		{
			Title: "a token in an attribute of a span", File: "server/traces.go",
			Old: "current.spans = &spans{tracer: t.tracer, root: root, fixed: fixed}",
			New: "root.SetAttributes(attribute.String(\"x\", c.Request().Header.Get(\"Authorization\")))\n\t\t\t\t" +
				"current.spans = &spans{tracer: t.tracer, root: root, fixed: fixed}",
		},
		{
			Title: "the tracestate of a caller in a span", File: "server/traces.go",
			Old: "propagation.MapCarrier{traceparentHeader: values[0]}", New: "propagation.HeaderCarrier(r.Header)",
		},
		{
			Title: "a value in what differs", File: "server/idempotency.go",
			Old: `differs = append(differs, string(jsontext.Pointer("").AppendToken(name)))`,
			New: "differs = append(differs, string(a[name]))",
		},
		{
			Title: "a secret in the output of a validation", File: "server/oauth2.go",
			Old: "if requested.ValidateOnly {", New: "if requested.ValidateOnly {\n\t\tprintln(settings.ClientSecret.Reveal())",
		},
		{
			Title: "a backup that others can read", File: "store/durable/draft.go",
			Old: "draft := &Draft{File: file, path: path}",
			New: "_ = file.Chmod(0o644)\n\tdraft := &Draft{File: file, path: path}",
		},
		{
			Title: "a secret in the messages of a backup", File: "store/secrets.go",
			Old: "if _, err := keys.Unseal(sealed, place); err == nil {",
			New: "if secret, err := keys.Unseal(sealed, place); err == nil {\n\t\tprintln(secret.Reveal())",
		},
		{
			Title: "a value of the query in a problem", File: "server/parameters.go",
			Old: "truncate(name, maxQuotedName)", New: "truncate(fmt.Sprint(name, values), maxQuotedName)",
		},
	}
}

// TestGateFindsInjectedLeaks injects each leak into a copy of the code. It builds the first of these programs, and all of
// them if PROVIDERD_LEAKS is set, as in "make leaks". The gate must find the leak in each.
func TestGateFindsInjectedLeaks(t *testing.T) {
	t.Parallel()
	areAllBuilt := os.Getenv("PROVIDERD_LEAKS") != ""
	for i, fault := range faults() {
		t.Run(fault.Title, func(t *testing.T) {
			t.Parallel()
			if i > 0 && !areAllBuilt {
				fault.Inject(t)
				return
			}
			leaks := searchLeaks(t, fault.Build(t)).leaks
			if len(leaks) == 0 {
				t.Fatal("the gate did not find the leak")
			}
			t.Log(leaks[0])
		})
	}
}
