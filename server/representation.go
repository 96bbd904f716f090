package server

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"example.com/providerd/server/contract"
)

const sendJSON = `Send the body as JSON in UTF-8, with "Content-Type: application/json" and no Content-Encoding.`

// negotiate refuses a request whose body or response would not be JSON, before the body is read.
func negotiate(c echo.Context) error {
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
	return nil
}

// contentFlaw returns a sentence about a body that is not JSON in UTF-8 without a content coding (RFC 9110 sections 8.3
// and 8.4); "" if it is.
func contentFlaw(header http.Header) string {
	codings := strings.Join(header.Values(echo.HeaderContentEncoding), ",")
	for coding := range strings.FieldsSeq(strings.ReplaceAll(codings, ",", " ")) {
		if !strings.EqualFold(coding, "identity") {
			return "Content-Encoding is not identity."
		}
	}
	values := header.Values(echo.HeaderContentType)
	value := strings.Join(values, ",")
	switch {
	case len(values) == 0:
		return "The request has no Content-Type."
	case strings.Contains(value, ","):
		return "Content-Type has several values."
	case value == echo.MIMEApplicationJSON:
		return ""
	}
	mediaType, parameters, err := mime.ParseMediaType(value)
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
	ranges, specificity, weight := 0, 0, 1.0
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
		// 0 if it does not match.
		elementSpecificity := 1 + slices.Index([]string{"*/*", "application/*", echo.MIMEApplicationJSON}, mediaRange)
		if elementSpecificity > specificity ||
			elementSpecificity == specificity && specificity > 0 && elementWeight > weight {
			specificity, weight = elementSpecificity, elementWeight
		}
	}
	return ranges == 0 || specificity > 0 && weight > 0
}

// isMediaRange reports whether a string is a media range, unlike "json" and "*/json", which mime accepts.
func isMediaRange(text string) bool {
	mainType, subtype, ok := strings.Cut(text, "/")
	return ok && (mainType != "*" || subtype == "*")
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

// maxQuotedName is how many bytes of a parameter name a problem quotes.
const maxQuotedName = 64

// validateQuery refuses a query that the contract does not allow: no typo may turn a validation into a create.
func validateQuery(c echo.Context) error {
	if c.Request().URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		// The error would quote a part of the query.
		return &refusal{
			slug: invalidParameter, detail: "The query cannot be read. Write it as ?validate_only=true.",
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if detail := wrongParameter(name, query[name]); detail != "" {
			return &refusal{slug: invalidParameter, detail: detail}
		}
	}
	if value, ok := parseBool(query[contract.ValidateOnly]); ok {
		exchangeOf(c.Request().Context()).validateOnly = value
		// The generated code knows fewer letter cases.
		c.Request().URL.RawQuery = contract.ValidateOnly + "=" + strconv.FormatBool(value)
	}
	return nil
}

// wrongParameter returns what is wrong with a query parameter; "" if nothing is.
func wrongParameter(name string, values []string) string {
	if name == contract.ValidateOnly {
		if _, ok := parseBool(values); ok {
			return ""
		}
		return fmt.Sprintf("The query parameter %s must appear at most once, as %s=true or %s=false.", name, name, name)
	}
	unknown := fmt.Sprintf("%q is not a query parameter of this operation.", truncate(name, maxQuotedName))
	parameters := []string{contract.ValidateOnly, contract.IdempotencyKey, preferHeader}
	switch meant := contract.MostSimilar(name, parameters); meant {
	case "":
		return unknown + " Remove it. To validate without storing, use validate_only=true."
	case contract.ValidateOnly:
		return unknown + " Did you mean " + meant + "?"
	default:
		return unknown + " Did you mean the header " + meant + "?"
	}
}

// parseBool parses a parameter that appears once: true or false in any letter case, or 1 or 0, as some clients send.
func parseBool(values []string) (value, ok bool) {
	if len(values) != 1 {
		return false, false
	}
	switch strings.ToLower(values[0]) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	default:
		return false, false
	}
}

// validateHeader refuses a wrong idempotency key, and headers meant as parameters, before the body is read.
func validateHeader(op *contract.Operation) echo.HandlerFunc {
	isAllowed := op.HeaderRule(contract.IdempotencyKey)
	return func(c echo.Context) error {
		keys := c.Request().Header.Values(contract.IdempotencyKey)
		if len(keys) > 1 || len(keys) == 1 && !isAllowed(keys[0]) {
			return &refusal{slug: invalidHeader}
		}
		if detail := misplacedHeader(c.Request().Header); detail != "" {
			return &refusal{slug: invalidHeader, detail: detail}
		}
		return nil
	}
}

// misplacedHeader returns what is wrong with the first header, by name, meant as a parameter that is missing, or "".
func misplacedHeader(header http.Header) (detail string) {
	first := ""
	for name := range header {
		parameter, remedy := contract.MisplacedParameter(name)
		if remedy != "" && header[parameter] == nil && (first == "" || name < first) {
			first, detail = name, fmt.Sprintf("%q is not a header of this operation; %s.", name, remedy)
		}
	}
	return detail
}

const (
	preferHeader            = "Prefer"
	preferenceAppliedHeader = "Preference-Applied"
	handlingLenient         = "handling=lenient"
)

// prefer reads the Prefer header (RFC 7240), and removes it, because the generated code refuses several.
func prefer(c echo.Context) error {
	header := c.Request().Header
	exchangeOf(c.Request().Context()).lenient = prefersLenient(header.Values(preferHeader))
	header.Del(preferHeader)
	return nil
}

// prefersLenient reports whether the first handling preference is lenient (RFC 7240 section 4.4). Others are ignored.
func prefersLenient(fields []string) bool {
	for preference := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(name), "handling") {
			value = strings.TrimSpace(value)
			return strings.EqualFold(value, "lenient") || strings.EqualFold(value, `"lenient"`)
		}
	}
	return false
}

// truncate returns at most limit bytes of a string, with an ellipsis if it was longer.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:limit] + "…"
}
