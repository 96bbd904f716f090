//go:build leaks

package command

import "testing"

func plants() []plant {
	return []plant{
		{
			"a body in the log", "server/validate.go",
			"lenient := isLenient(request.Header)", "println(string(body))\n\tlenient := isLenient(request.Header)",
		},
		{
			"a body in the text of an error", "server/json_object.go",
			`"The body is not a JSON object. Send exactly one."`, `"The body is not a JSON object: " + string(body)`,
		},
		{
			"a body in a panic", "server/json_object.go",
			`return object{}, malformed("The body begins with a byte order mark. Leave it out.")`, "panic(string(body))",
		},
		{
			"a secret that can be printed", "store/settings.go",
			"sealed, err := keys.Seal(s.ClientSecret, clientSecrets().place(pk))",
			"println(s.ClientSecret.Reveal())\n\tsealed, err := keys.Seal(s.ClientSecret, clientSecrets().place(pk))",
		},
		{
			"a column left unsealed", "store/settings.go",
			"SealedCredentials: sealed", "SealedCredentials: append(sealed[:0], s.Credentials.Reveal()...)",
		},
		{
			"a bare digest of a body in the database", "store/seal/keys.go",
			"fingerprint, err := k.mac.ComputeMAC(digest)",
			"if digest != nil {\n\t\treturn digest, nil\n\t}\n\tfingerprint, err := k.mac.ComputeMAC(digest)",
		},
		{
			"a token in the log", "server/exchange.go",
			`slog.String("path", cut(c.Request().URL.Path, maxLoggedField)),`,
			`slog.Any("header", c.Request().Header),`,
		},
		{
			"a query in the log", "server/exchange.go",
			`slog.String("path", cut(c.Request().URL.Path, maxLoggedField)),`,
			`slog.String("path", c.Request().URL.String()),`,
		},
		{
			"a token in a challenge", "server/authenticate.go",
			`s.invalidToken(c, "The access token is unknown.", err,`,
			`s.invalidToken(c, "The access token "+text+" is unknown.", err,`,
		},
		{
			"a token in the table of tokens", "store/token.go",
			"text[:len(tokenPrefix)+tokenPrefixShown]", "text",
		},
		{
			"a key in the log", "store/seal/keyring.go",
			"return durable.WriteFile(path, content, owner)", "println(string(content))\n\treturn durable.WriteFile(path, content, owner)",
		},
		{
			"a copy of the keys left behind", "store/seal/keyring.go",
			"return durable.WriteFile(path, content, owner)", "_ = durable.WriteFile(path+\".old\", content, owner)\n\treturn durable.WriteFile(path, content, owner)",
		},
		{
			"an entry of a file in the talk of apply", "cmd/providerd/command/apply_send.go",
			"a.Outcome, a.Detail, a.reason = outcomeRefused, refused.Error(), shortened(refused.Title, maxReasonBytes)",
			"a.Outcome, a.Detail, a.reason = outcomeRefused, string(a.entry.Body), shortened(refused.Title, maxReasonBytes)",
		},
		{
			"a value in a fault of a file", "cmd/providerd/manifest/manifest.go",
			`strings.HasPrefix(wrong.Message, "unknown anchor")`, `strings.HasPrefix(wrong.Message, "nothing")`,
		},
		{
			"a record that is not masked", "cmd/providerd/command/render.go",
			"answer.ClientSecret = mask", "_ = mask",
		},
		{
			"a secret in advice", "cmd/providerd/command/provider_advise.go",
			"provider.Advice = advice.OAuth2(record.OAuth2Settings)",
			"provider.Advice = []advice.Advice{{Detail: record.ClientSecret.Reveal()}}",
		},
		{
			"a secret in an export without --reveal", "cmd/providerd/command/provider_export.go",
			"isReference := !e.reveal && ", "isReference := e.reveal && ",
		},
		{
			"a secret in the talk of an export", "cmd/providerd/command/provider_export.go",
			"fields[secret] = json.RawMessage(", "println(string(fields[secret]))\n\t\tfields[secret] = json.RawMessage(",
		},
		{
			"a secret in a header of the answer", "server/oauth2.go",
			"XRequestID:          exchangeOf(ctx).requestID,",
			"XRequestID:          exchangeOf(ctx).requestID + record.ClientSecret.Reveal(),",
		},
		{
			"a query in a label of the metrics", "server/exchange.go",
			"s.metrics.count(current, c.Response().Status)",
			"current.operation = c.Request().URL.String()\n\t\ts.metrics.count(current, c.Response().Status)",
		},
		{
			"a query in the name of a span", "server/traces.go",
			"t.tracer.Start(parent, name, asServer,", "t.tracer.Start(parent, name+c.Request().URL.RawQuery, asServer,",
		},
		{
			"a token in an attribute of a span", "server/traces.go",
			"current.spans = &spans{tracer: t.tracer, root: root, fixed: fixed}",
			"root.SetAttributes(attribute.String(\"x\", c.Request().Header.Get(\"Authorization\")))\n\t\t\t\t" +
				"current.spans = &spans{tracer: t.tracer, root: root, fixed: fixed}",
		},
		{
			"the tracestate of a caller in a span", "server/traces.go",
			"propagation.MapCarrier{traceparentHeader: values[0]}", "propagation.HeaderCarrier(r.Header)",
		},
		{
			"a value in what differs", "server/made_before.go",
			"differs = append(differs, string(field.pointer()))", "differs = append(differs, string(a[field.name]))",
		},
		{
			"a secret in the talk of a validation", "server/oauth2.go",
			"if asked.ValidateOnly {", "if asked.ValidateOnly {\n\t\tprintln(settings.ClientSecret.Reveal())",
		},
		{
			"a backup that others can read", "store/durable/draft.go",
			"draft := &Draft{File: file, path: path}",
			"_ = file.Chmod(0o644)\n\tdraft := &Draft{File: file, path: path}",
		},
		{
			"a secret in the talk of a backup", "store/secrets.go",
			"if _, err := keys.Unseal(sealed, place); err == nil {",
			"if secret, err := keys.Unseal(sealed, place); err == nil {\n\t\tprintln(secret.Reveal())",
		},
		{
			"a value of the query in a problem", "server/parameters.go",
			"cut(name, maxSuggestionLength)", "cut(fmt.Sprint(name, values), maxSuggestionLength)",
		},
	}
}

// TestGateFindsPlantedLeaks builds the program once for each leak, and expects the gate to find it.
func TestGateFindsPlantedLeaks(t *testing.T) {
	t.Parallel()
	for _, plant := range plants() {
		t.Run(plant.title, func(t *testing.T) {
			t.Parallel()
			leaks := searchLeaks(t, plant.build(t)).leaks
			if len(leaks) == 0 {
				t.Fatal("the gate lets it pass")
			}
			t.Log(leaks[0])
		})
	}
}
