// Judge checks exchanges that the contract tests recorded with a validator that neither the server nor the tests use: it
// reads them from standard input, one JSON object a line, and the contract from the file that it is given.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"
)

// exchange is a request and its response.
type exchange struct {
	Method, URL           string
	RequestHeader, Header http.Header
	RequestBody, Body     string
	Status                int
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		log.Fatal(err)
	}
	judge, faults := validator.NewValidator(document)
	if len(faults) > 0 {
		log.Fatal(faults)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	judged, refused := 0, 0
	for lines.Scan() {
		var e exchange
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			log.Fatal(err)
		}
		if e.isOutside() {
			continue
		}
		judged++
		for _, fault := range e.faults(judge) {
			refused++
			log.Printf("%s %s %v: %d: %s: %s %s", e.Method, e.URL, e.RequestHeader, e.Status, fault.Message, fault.Reason, e.Body)
		}
	}
	fmt.Printf("%d of %d exchanges break the contract\n", refused, judged)
	if err := lines.Err(); err != nil || refused > 0 || judged == 0 {
		log.Fatal("the contract is broken, or there is nothing to judge: ", err)
	}
}

// isOutside reports whether the validator cannot judge an exchange: it does not know handling=lenient, decodes numbers
// as float64, which is too small for some, reads a key such as 1 or [1] as another type than a string, and knows a
// boolean in mixed case only as Go does. Other methods and paths are not in the contract.
func (e exchange) isOutside() bool {
	var value any
	return len(e.RequestHeader.Values("Prefer")) > 0 || strings.HasSuffix(e.URL, "=tru%45") || json.Valid([]byte(e.RequestHeader.Get("Idempotency-Key"))) ||
		e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotFound ||
		e.Status < http.StatusMultipleChoices && json.Unmarshal([]byte(e.RequestBody), &value) != nil
}

// faults returns what is wrong with a response, and with a request that was accepted.
func (e exchange) faults(judge validator.Validator) []*errors.ValidationError {
	request := func() *http.Request {
		sent, err := http.NewRequest(e.Method, e.URL, bytes.NewBufferString(e.RequestBody))
		if err != nil {
			log.Fatal(err)
		}
		for name, values := range e.RequestHeader {
			// HTTP removes the white space around a value.
			sent.Header.Set(name, strings.TrimSpace(values[0]))
		}
		return sent
	}
	response := &http.Response{StatusCode: e.Status, Header: e.Header, Body: io.NopCloser(bytes.NewBufferString(e.Body))}
	_, faults := judge.ValidateHttpResponse(request(), response)
	if e.Status < http.StatusMultipleChoices {
		_, wrong := judge.ValidateHttpRequest(request())
		faults = append(faults, wrong...)
	}
	return faults
}
