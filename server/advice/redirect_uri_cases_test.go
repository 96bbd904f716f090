package advice_test

import "example.com/providerd/store"

func redirectURICases() []clientCase {
	const pointer, good = "/redirect_uris", "https://app.example.com/callback"
	// second returns redirect URIs with a URI in the second line.
	second := func(uri string) func(*store.OAuth2Settings) { return redirectURIs(good, uri) }
	all := func(change func(string) func(*store.OAuth2Settings), uris ...string) clientChanges {
		var changes clientChanges
		for _, uri := range uris {
			changes = append(changes, change(uri))
		}
		return changes
	}
	native := func(uri string) func(*store.OAuth2Settings) { return and(publicClient, second(uri)) }
	return []clientCase{
		{
			code: "redirect_uris_missing", pointer: pointer,
			trips:  clientChanges{and(publicClient, redirectURIs())},
			passes: clientChanges{redirectURIs(), and(publicClient, redirectURIs(good))},
		},
		{
			code: "redirect_uri_malformed", pointer: pointer, lines: "Line 2: ",
			trips: all(second, "https:callback", "https:/app.example.com/callback", "https:///callback", "https://:443/",
				"https://app.example.com:port/", "https://app.example.com/%zz", "https://{tenant}.example.com/",
				`https://app\.example.com/`, "https://caf\u00e9.example.com/", "https://[::1/", "http:x"),
			passes: all(second, "https://app.example.com/caf%C3%A9", "https://[2001:db8::1]:8443/a;b=(c)/~d!$&'+=@?e[]=f/g"),
		},
		{
			code: "redirect_uri_http", pointer: pointer, lines: "Line 2: ",
			trips: all(second, "http://app.example.com/", "HTTP://192.0.2.1:8080/", "http://127.0.0.1.example.com/",
				"http://localhost.example.com/", "http://127.0.0.1@app.example.com/", "http://[2001:db8::1]/"),
			passes: all(second, "http://127.0.0.1/", "http://127.0.0.1:51004/a", "http://[::1]:61023/a", "http://127.1.2.3/",
				"http://user@127.0.0.1/"),
		},
		{
			code: "redirect_uri_localhost", pointer: pointer, lines: "Line 2: ",
			trips: all(second, "http://localhost/", "HTTP://LOCALHOST:3000/callback", "http://localhost./",
				"http://app.localhost:8080/"),
			passes: all(second, "https://localhost/", "http://127.0.0.1/", "https://notlocalhost/"),
		},
		{
			code: "redirect_uri_wildcard", pointer: pointer, lines: "Line 2: ",
			trips:  all(second, "https://*.example.com/", "https://app.example.com/*", "https://app.example.com/.*"),
			passes: all(second, "https://app.example.com/?a=%2A"),
		},
		{
			code: "redirect_uri_comma", pointer: pointer, lines: "Line 2: ",
			trips:  all(second, "https://a.example.com/,https://b.example.com/", "https://a.example.com/,", "https://a.example,https://b.example"),
			passes: all(second, "https://a.example.com/%2C"),
		},
		{
			code: "redirect_uri_twice", pointer: pointer, lines: "Lines 3 and 4: ",
			trips: clientChanges{
				redirectURIs(good, "https://b.example.com/", good, good), redirectURIs(good+"\r", "https://b.example.com/", good+"\r", good),
			},
			passes: all(second, "https://app.example.com/callback/", "https://app.example.com/CALLBACK"),
		},
		{
			code: "redirect_uri_scheme_without_dot", pointer: pointer, lines: "Line 2: ",
			trips:  all(native, "myapp:/callback", "myapp://callback", "urn:ietf:wg:oauth:2.0:oob", "x-app+y:z"),
			passes: all(native, "com.example.app:/callback", "com.example.app:callback"),
		},
	}
}
