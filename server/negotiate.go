package server

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
)

const sendJSON = `Send the body as JSON in UTF-8, with "Content-Type: application/json" and no content coding.`

// negotiate refuses a request whose body or response would not be JSON, before the body is read.
func negotiate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		if !acceptsJSON(request.Header.Values(echo.HeaderAccept)) {
			return &refusal{slug: notAcceptable}
		}
		if flaw := contentFlaw(request.Header); flaw != "" {
			return &refusal{
				slug: unsupportedMediaType, detail: flaw + " " + sendJSON,
				header: map[string]string{"Accept-Post": echo.MIMEApplicationJSON},
			}
		}
		if request.ContentLength > contract.MaxBodyBytes {
			return &refusal{slug: tooLarge}
		}
		request.Body = http.MaxBytesReader(c.Response(), request.Body, contract.MaxBodyBytes)
		return next(c)
	}
}

// contentFlaw returns a sentence about a body that is not JSON in UTF-8 without a content coding (RFC 9110 sections 8.3
// and 8.4); "" if it is.
func contentFlaw(header http.Header) string {
	for coding := range strings.SplitSeq(strings.Join(header.Values(echo.HeaderContentEncoding), ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return "The body has a content coding."
		}
	}
	values := header.Values(echo.HeaderContentType)
	if len(values) != 1 {
		return "The request does not have exactly one Content-Type."
	}
	mediaType, parameters, err := mime.ParseMediaType(values[0])
	if err != nil || mediaType != echo.MIMEApplicationJSON {
		return "Content-Type is not application/json."
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		switch value := strings.ToLower(parameters[name]); {
		case name != "charset":
			return fmt.Sprintf("Content-Type has %s.", parameterName(name))
		case value != "utf-8" && value != "utf8":
			return "Content-Type has a charset other than utf-8."
		}
	}
	return ""
}

// parameterName names a parameter of the media type. Responses repeat only names that callers are known to send.
func parameterName(name string) string {
	if slices.Contains([]string{"boundary", "odata", "odata.metadata", "profile", "q", "v", "version"}, name) {
		return "the parameter " + name
	}
	return "a parameter other than charset"
}

// acceptsJSON reports whether the response may be application/json (RFC 9110 section 12.5.1): the most specific range
// that matches decides; among equally specific ones, the highest weight. Invalid media ranges and weights are ignored,
// and a header without a valid range accepts everything.
func acceptsJSON(fields []string) bool {
	specificity, weight := 0, 1.0
	ranges := 0
	for element := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		mediaRange, parameters, err := mime.ParseMediaType(element)
		if err != nil || !isMediaRange(mediaRange) {
			continue
		}
		elementWeight, ok := parseWeight(parameters)
		if !ok {
			continue
		}
		ranges++
		elementSpecificity := jsonSpecificity(mediaRange)
		if elementSpecificity > specificity ||
			elementSpecificity == specificity && specificity > 0 && elementWeight > weight {
			specificity, weight = elementSpecificity, elementWeight
		}
	}
	return ranges == 0 || specificity > 0 && weight > 0
}

// isMediaRange reports whether a text is a media range. mime.ParseMediaType also accepts a type without a subtype, and
// "*/json".
func isMediaRange(text string) bool {
	mainType, subtype, ok := strings.Cut(text, "/")
	return ok && (mainType != "*" || subtype == "*")
}

// jsonSpecificity returns how specifically a media range names application/json; 0 if it does not match.
func jsonSpecificity(mediaRange string) int {
	switch mediaRange {
	case echo.MIMEApplicationJSON:
		return 3
	case "application/*":
		return 2
	case "*/*":
		return 1
	default:
		return 0
	}
}

// parseWeight returns the weight of a range, 1 by default (RFC 9110 section 12.4.2).
func parseWeight(parameters map[string]string) (float64, bool) {
	text, ok := parameters["q"]
	if !ok {
		return 1, true
	}
	weight, err := strconv.ParseFloat(text, 64)
	return weight, err == nil && weight >= 0 && weight <= 1
}
