//go:build slow

package leaks_test

import (
	"crypto/rand"
	"strings"
)

// applies passes secrets to apply in every way: created, unchanged, drifted, refused, and in invalid files.
func (s *search) applies() {
	run := rand.Text()[:10]
	oauth2, directory := s.oauth2Body("applied "+run, "applied-"+run), s.directoryBody("applied directory "+run)
	file := "oauth2: [" + oauth2 + "]\nworkspace_directory: [" + directory + "]\n"
	other := strings.Replace(s.oauth2Body("refused "+run, "applied-"+run), "{", `{"id": "other", `, 1)
	secret := s.fresh("secret in a faulty file")
	for _, input := range []struct{ text, want string }{
		{file, "2 created"},
		{file, "2 unchanged"},
		{strings.Replace(file, oauth2, s.oauth2Body("applied "+run, "other-"+run), 1), "1 drifted"},
		{"oauth2: [" + other + "]", "1 refused"},
		{"oauth2: []\noauth2: " + secret, "occurs twice"},
		{"oauth2: [{name: a, client_secret: *" + secret + "}]", "anchor"},
		{"oauth2: [{name: a, client_secret: !" + secret + " x}]", "tag"},
		{"oauth2: [{name: a, client_secret: '${" + secret + "-'}]", "that is not part of a reference"},
		{"oauth2: [{name: a, client_secret: \"" + secret, "is not valid YAML"},
		{"oauth2: [{name: a, client_secret: [" + secret + "], authorization_flow: " + secret + "}]", "must be a UUID"},
		{"oauth2:\n- " + secret, "must be a mapping"},
		{secret, "must be a mapping"},
	} {
		s.runWithInput(input.text, "apply", "-f", "-", "--server", s.server.URL, "--dry-run", "--output", "json")
		s.runWithInput(input.text, "apply", "-f", "-", "--server", s.server.URL)
		s.expect("apply", s.stderr, input.want)
	}
	s.runWithInput(file, "apply", "-f", "-", "--dry-run")
	s.runWithInput(file, "apply", "-f", "-", "--server", s.server.URL, "--dry-run")
	s.runWithInput(file, "apply", "-f", "-", "--dry-run", "--strict", "--output", "json")
	s.runWithInput(file, "apply", "-f", "-", "--server", s.server.URL, "--output", "json")
	s.plans("applied "+run, "applied-"+run)
}

// plans passes new secrets for stored providers to plans of changes.
func (s *search) plans(name, clientID string) {
	changed := "oauth2: [" + s.oauth2Body(name, clientID) + "]\n"
	for flags, want := range map[string]string{
		"--dry-run": "1 update", "--dry-run --output json": "1 update", "--dry-run --prune=1000": " delete,",
	} {
		s.runWithInput(changed, append([]string{"apply", "-f", "-", "--as", "initial"}, strings.Fields(flags)...)...)
		s.expect("a plan with "+flags, s.stderr, want)
	}
	s.runWithInput(changed, "apply", "-f", "-", "--as", "initial", "--yes", "--output", "json")
	s.expect("a plan", s.stderr, "1 updated")
}
