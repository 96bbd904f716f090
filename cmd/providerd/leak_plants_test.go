//go:build leaks

package main

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
			"sealed, err := keys.Seal(s.ClientSecret, clientSecretOf(pk))",
			"println(s.ClientSecret.Reveal())\n\tsealed, err := keys.Seal(s.ClientSecret, clientSecretOf(pk))",
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
			`s.invalidToken(c, "The access token is unknown.", err)`,
			`s.invalidToken(c, "The access token "+text+" is unknown.", err)`,
		},
		{
			"a token in the table of tokens", "store/token.go",
			"text[:len(tokenPrefix)+tokenPrefixShown]", "text",
		},
		{
			"a key in the log", "store/seal/keyring.go",
			"return durable.WriteFile(path, content)", "println(string(content))\n\treturn durable.WriteFile(path, content)",
		},
		{
			"a copy of the keys left behind", "store/seal/keyring.go",
			"return durable.WriteFile(path, content)", "_ = durable.WriteFile(path+\".old\", content)\n\treturn durable.WriteFile(path, content)",
		},
		{
			"an entry of a file in the talk of apply", "cmd/providerd/apply_send.go",
			"a.outcome, a.detail = outcomeFailed, refused.Error()",
			"a.outcome, a.detail = outcomeFailed, string(a.entry.Body)",
		},
		{
			"a value in a fault of a file", "cmd/providerd/manifest/manifest.go",
			`strings.HasPrefix(wrong.Message, "unknown anchor")`, `strings.HasPrefix(wrong.Message, "nothing")`,
		},
		{
			"a record that is not masked", "cmd/providerd/render.go",
			"answer.ClientSecret = mask", "_ = mask",
		},
		{
			"a secret in a header of the answer", "server/oauth2.go",
			"XRequestID:          exchangeOf(ctx).requestID,",
			"XRequestID:          exchangeOf(ctx).requestID + record.ClientSecret.Reveal(),",
		},
	}
}

// TestGateFindsPlantedLeaks builds the program once for each leak, and expects the gate to find it.
func TestGateFindsPlantedLeaks(t *testing.T) {
	found := 0
	for _, plant := range plants() {
		t.Run(plant.title, func(t *testing.T) {
			leaks := searchLeaks(t, plant.build(t)).leaks
			if len(leaks) == 0 {
				t.Fatal("the gate lets it pass")
			}
			found++
			t.Log(leaks[0])
		})
	}
	t.Logf("the gate finds %d of %d planted leaks", found, len(plants()))
}
