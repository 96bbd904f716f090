package client_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

// A record that was stored although only a validation was requested is an error, too.
func TestAnswersOfOtherServersAreErrors(t *testing.T) {
	t.Parallel()
	const (
		json       = "application/json"
		noRecord   = "the response is not the record of a provider of this kind; check the base URL"
		noDocument = "The response is not a problem document."
		elsewhere  = "This is not the API of providerd. Check the host, port and path of the base URL."
		encrypted  = "The server uses TLS. Use https:// in the base URL."
	)
	record := func(pk string) string { return fmt.Sprintf(recordText, pk) }
	type response struct {
		status                  int
		contentType, body, says string
	}
	for _, c := range []response{
		{201, json, `{}`, noRecord},
		{201, json, record("0"), noRecord},
		{201, json, record("1.5"), noRecord},
		{201, json, ``, noRecord},
		{201, json, record("1") + "hunter2", noRecord},
		{201, json, `{"pk": 1, "meta_model_name": "hunter2"}`, noRecord},
		{201, json, strings.Replace(record("1"), `"hunter2"`, "7", 1), noRecord},
		{201, "", record("1"), noRecord},
		{201, "application/json-seq", record("1"), noRecord},
		{202, json, record("1"), "the response has the status 202 instead of 201; check the base URL"},
		{400, "text/plain", "hunter2", noDocument},
		{400, "text/html", "<p>The plain HTTP request was sent to HTTPS port", encrypted},
		{400, "text/html", "You're speaking plain HTTP to an SSL-enabled server port.", encrypted},
		{404, "text/plain", "hunter2", elsewhere},
		{405, json, `{"message": "hunter2"}`, elsewhere},
		{501, "text/html", "hunter2", elsewhere},
		{400, "application/problem+json", `{"status": 401, "detail": "hunter2"}`, noDocument},
		{400, "application/problem+json", `{"status": 400, "errors": {"hunter2": 1}}`, noDocument},
	} {
		newStranger(t, answering(c.status, c.contentType, c.body)).expectRefusal(t, c.says)
	}
	for _, c := range []response{
		{201, json, record("1"), "the response has the status 201 instead of 200"},
		{200, json, record("-1"), noRecord},
	} {
		validating := newStranger(t, answering(c.status, c.contentType, c.body))
		validating.options = []client.CreateOption{client.WithValidateOnly()}
		validating.expectRefusal(t, c.says)
	}
}

func TestRecordIsTakenWhoeverSendsIt(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"application/json", "Application/JSON; charset=utf-8"} {
		// Larger than the responses that are read concurrently.
		body := fmt.Sprintf(recordText, "9007199254740991") + strings.Repeat(" ", 1<<20)
		other := newStranger(t, answering(http.StatusCreated, contentType, body))
		if record, err := other.create(t); err != nil || record.PK != 9007199254740991 {
			t.Errorf("%s: record is %v, %v", contentType, record, err)
		}
	}
}

func TestAnswersAreReadUpToABound(t *testing.T) {
	t.Parallel()
	const json, problem, large = "application/json", "application/problem+json", "the response is larger than 16 MiB or has too many values"
	blanks := strings.Repeat(" ", 32<<20)
	list := func(entry string, count int) string {
		return `{"status": 400, "title": "x\u001b\n", "errors": [` + strings.Repeat(entry+",", count) + `{}]}`
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"body":       {answering(http.StatusCreated, json, blanks), large},
		"violations": {answering(http.StatusBadRequest, problem, list(`{"detail":"y"}`, 100_000)), "400 x\uFFFD\uFFFD:  y y"},
		"list":       {answering(http.StatusBadRequest, problem, list("{}", 2_000_000)), large},
		"zip bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", json)
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusCreated)
			zipped := gzip.NewWriter(w)
			_, _ = io.WriteString(zipped, blanks)
			_ = zipped.Close()
		}, large},
		"header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("hunter2", 10_000))
		}, "server response headers exceeded"},
		"other protocol": {
			sending("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n" + blanks),
			"This is not a response to a create.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newStranger(t, c.handler).expectRefusal(t, c.says)
		})
	}
}

// If there are more violations than the contract allows, the first ones are kept in order.
func TestFurtherViolationsAreLeftOut(t *testing.T) {
	t.Parallel()
	for sent, want := range map[int]int{0: 0, 1: 1, 1000: 1000, 1001: 1000, 100_000: 1000} {
		listed := make([]client.Violation, sent)
		for i := range listed {
			listed[i].Pointer = strconv.Itoa(i)
		}
		text, err := json.Marshal(client.Problem{Status: http.StatusBadRequest, Errors: &listed})
		processtest.Must(t, err)
		_, err = newStranger(t, answering(http.StatusBadRequest, "application/problem+json", string(text))).create(t)
		refusal, ok := errors.AsType[*client.Error](err)
		if !ok || len(refusal.Violations()) != want ||
			want > 0 && refusal.Violations()[want-1].Pointer != strconv.Itoa(want-1) {
			t.Errorf("%d violations: error is %.200v", sent, err)
		}
	}
}

// A server that does not respond completely in time is tried again, up to the limit.
func TestEachTryHasATimeout(t *testing.T) {
	t.Parallel()
	// dripping returns a handler whose response begins with a text and never ends.
	dripping := func(begin string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, err := io.WriteString(w, begin)
			ticker := time.NewTicker(10 * time.Millisecond)
			defer ticker.Stop()
			for err == nil && r.Context().Err() == nil {
				<-ticker.C
				_, err = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"silence":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow body":       dripping(""),
		"slow large body": dripping(strings.Repeat(" ", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := newStranger(t, handler)
			_, err := slow.create(t, client.WithTryTimeout(200*time.Millisecond), client.WithRetries(1))
			processtest.Expect(t, errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), " within 200ms: "),
				"error is %v", err)
			if tries := slow.requests.Load(); tries != 2 {
				t.Errorf("%d tries, want 2", tries)
			}
		})
	}
}

// A server of a later version sends what this package does not know.
func TestRecordWithNewMembersOfEnumsIsReturned(t *testing.T) {
	t.Parallel()
	oauth2, err := newStranger(t, answering(http.StatusCreated, "application/json", `{
		"pk": 1, "meta_model_name": "providers_oauth2.oauth2provider", "component": "a-new-form", "client_type": "new_type",
		"sub_mode": "new_mode", "issuer_mode": "new_issuer", "verbose_name": "New", "a_new_field": {}
	}`)).providers(t).CreateOAuth2(t.Context(), oauth2Request())
	if err != nil || oauth2.PK != 1 || oauth2.Component != "a-new-form" || oauth2.ClientType != "new_type" ||
		oauth2.SubMode != "new_mode" || oauth2.IssuerMode != "new_issuer" || oauth2.VerboseName != "New" {
		t.Errorf("record is %+v, %v", oauth2, err)
	}
	directory, err := newStranger(t, answering(http.StatusCreated, "application/json", `{
		"pk": 1, "meta_model_name": "providers_workspace_directory.workspacedirectoryprovider", "user_delete_action": "archive"
	}`)).providers(t).CreateWorkspaceDirectory(t.Context(), directoryRequest())
	processtest.Expect(t, err == nil && directory.UserDeleteAction == "archive" && !directory.UserDeleteAction.Valid(),
		"record is %+v, %v", directory, err)
}

func TestRefusalWithNewTypeAndCodeIsReturned(t *testing.T) {
	t.Parallel()
	_, err := newStranger(t, answering(http.StatusBadRequest, "application/problem+json", `{
		"type": "/problems/new", "title": "New", "status": 400, "detail": "Something new.", "request_id": "r",
		"errors": [{"pointer": "/name", "code": "too_short", "detail": "Name must be longer."}], "a_new_member": []
	}`)).providers(t).CreateOAuth2(t.Context(), oauth2Request())
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Type != "/problems/new" || len(refused.Violations()) != 1 ||
		refused.Violations()[0].Code != "too_short" || !strings.Contains(err.Error(), "Name must be longer.") {
		t.Errorf("error is %v", err)
	}
}

// Advice is read from the links of the header, whatever their sentences contain, and other links are ignored.
func TestAdviceIsReadFromLinks(t *testing.T) {
	t.Parallel()
	const link = `</other>; rel="help"; title="x", </advice/#a_b>; rel="help"; anchor="#/x"; title="Say \"no, <yes>\" \\ .", ` +
		`</advice/#c>; rel="help"; anchor="#/y"; title="", </advice/>; rel="help"`
	s := newStranger(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Link"] = []string{"</first>; rel=next", link}
		answering(http.StatusOK, "application/json", fmt.Sprintf(recordText, "0"))(w, r)
	})
	var advice []client.Advice
	_, err := s.providers(t).CreateOAuth2(t.Context(), oauth2Request(), client.WithValidateOnly(), client.WithAdvice(&advice))
	want := []client.Advice{{Code: "a_b", Pointer: "/x", Detail: `Say "no, <yes>" \ .`}, {Code: "c", Pointer: "/y"}}
	processtest.Expect(t, err == nil && slices.Equal(advice, want), "advice is %+v, %v", advice, err)
}

// A validation returns the record as the create would store it, then the stored one, with advice and without secrets.
func TestValidationPredictsCreate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var replayed bool
	var advice []client.Advice
	options := []client.CreateOption{
		client.WithIdempotencyKey("k"), client.WithReplayed(&replayed), client.WithAdvice(&advice), client.WithLenientHandling(),
	}
	validate := append(slices.Clone(options), client.WithValidateOnly())
	oauth2, directory := oauth2Request(), directoryRequest()
	oauth2.RedirectUris, oauth2.SigningKey = new("http://app.example.com/"), new(uuid.UUID{1})
	for _, wantPK := range []int64{0, 1} {
		record, err := r.CreateOAuth2(t.Context(), oauth2, validate...)
		if err != nil || record.PK != wantPK || replayed != (wantPK != 0) || record.ClientSecret.Reveal() != "" ||
			(record.ClientID == "") != (wantPK == 0) || record.AccessTokenValidity != "hours=1" {
			t.Fatalf("record is %+v, replayed %t, %v", record, replayed, err)
		}
		if len(advice) != 1 || advice[0].Code != "redirect_uri_http" || advice[0].Pointer != "/redirect_uris" ||
			!strings.HasPrefix(advice[0].Detail, "Line 1: ") {
			t.Errorf("advice is %+v", advice)
		}
		if record, err = r.CreateOAuth2(t.Context(), oauth2, options...); err != nil || record.PK != 1 {
			t.Fatalf("record is %+v, %v", record, err)
		}
	}
	for _, wantPK := range []int64{0, 2} {
		record, err := r.CreateWorkspaceDirectory(t.Context(), directory, validate...)
		if err != nil || record.PK != wantPK || string(record.Credentials.Reveal()) != "{}" || len(advice) != 0 {
			t.Fatalf("record is %+v, %v; advice is %+v", record, err, advice)
		}
		if record, err = r.CreateWorkspaceDirectory(t.Context(), directory, options...); err != nil || record.PK != 2 {
			t.Fatalf("record is %+v, %v", record, err)
		}
	}
}
