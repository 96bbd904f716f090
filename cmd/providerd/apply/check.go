package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/records"
)

// findProblems returns at most manifest.MaxProblems, ordered by position: invalid YAML, and violations of the contract.
func findProblems(ctx context.Context, document *contract.Document, list manifest.Manifest) []manifest.Problem {
	problems, clientIDs := list.Problems, map[string]manifest.Position{}
	for _, entry := range list.Entries {
		if len(problems) >= manifest.MaxProblems {
			break
		}
		violations := findViolations(ctx, document, entry)
		const pointer = "/client_id"
		clientID, _ := fieldOf(entry, pointer).(string)
		if first, isUsed := clientIDs[clientID]; isUsed && clientID != "" {
			detail := fmt.Sprintf("%s is already used in %s", manifest.FieldName(pointer), first)
			violations = append(violations, contract.Violation{Pointer: pointer, Detail: detail})
		} else {
			clientIDs[clientID] = entry.At(pointer)
		}
		for _, violation := range violations {
			problems = append(problems, manifest.Problem{
				Position: entry.At(violation.Pointer), Kind: entry.Kind, ID: entry.ID, Detail: violation.Detail,
			})
		}
	}
	slices.SortStableFunc(problems, func(a, b manifest.Problem) int { return a.Compare(b.Position) })
	return problems[:min(len(problems), manifest.MaxProblems)]
}

// findViolations returns the violations of the contract that the manifest has not reported as another problem.
func findViolations(ctx context.Context, document *contract.Document, entry manifest.Entry) []contract.Violation {
	kind := KindOf(records.Kind(entry.Kind))
	violations, err := document.Validate(ctx, kind.Operation, entry.Body)
	if err != nil {
		return []contract.Violation{{Detail: err.Error()}}
	}
	secret := "/" + kind.Secret
	isMasked := fieldOf(entry, secret) == contract.Mask
	violations = slices.DeleteFunc(violations, func(violation contract.Violation) bool {
		return entry.IsBroken(violation.Pointer) || isMasked && violation.Pointer == secret
	})
	for i, violation := range violations {
		violations[i].Detail += remedyInYAML(entry, violation)
	}
	if isMasked {
		violations = append(violations, contract.Violation{Pointer: secret, Detail: manifest.FieldName(secret) +
			" is a masked secret; write the secret, or a reference such as ${NAME}, as \"providerd provider export\" does"})
	}
	return violations
}

// fieldOf returns the value of the field that a pointer leads to; nil if it has none.
func fieldOf(entry manifest.Entry, pointer string) any {
	var fields map[string]any
	if json.Unmarshal(entry.Body, &fields) != nil {
		return nil
	}
	return fields[strings.TrimPrefix(pointer, "/")]
}

// adviseOnID returns advice if the id may be meant as the client_id: a client with a chosen secret exists elsewhere.
func adviseOnID(entry manifest.Entry) []advice.Advice {
	if !entry.Has("/id") || !entry.Has("/client_secret") || entry.Has("/client_id") {
		return nil
	}
	return []advice.Advice{{
		Code: "id_without_client_id", Pointer: "/id", Section: "RFC 6749, section 2.2",
		Detail: "Identifies the entry, not the client. Without client_id, a random one is generated, and the client cannot " +
			"log in with the id. Write client_id, too.",
	}}
}

// remedyInYAML returns what to write if YAML reads another type, or if a field is from a system with id as client_id.
func remedyInYAML(entry manifest.Entry, violation contract.Violation) string {
	pointer, value := violation.Pointer, fieldOf(entry, violation.Pointer)
	text, isText := value.(string)
	_, isNumber := value.(float64)
	remedy := map[string]string{ //nolint:gosec // It has no secret.
		"/pk":            " The server chooses it; `id` identifies the entry.",
		"/scopes":        " Write all scopes as one string, such as users.write groups.write.",
		"/redirect_uris": " Write a list of URIs.",
		"/client_secret": " Quote it, or write a reference such as ${NAME} or ${file:PATH}.",
	}[pointer]
	isForeign := slices.Contains([]string{"/secret", "/redirectURIs", "/public"}, pointer)
	switch {
	case violation.Code == "null":
		return " If another program fills in the file, set the variable that it uses."
	case isForeign && entry.Has("/id") && !entry.Has("/client_id"):
		return " `id` identifies the entry, not the client; write client_id, too."
	case remedy != "" && !isText:
		return remedy
	case isNumber:
		return " Quote a number to make it a string."
	case slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(text)):
		return " Write true instead of yes or on, and false instead of no or off."
	case pointer == "/redirect_uris" && strings.Contains(text, " "):
		return " Write a list, or use | instead of >, because > joins the lines."
	default:
		return ""
	}
}

// printProblems prints the problems for people and, if the format is JSON, for programs.
func (r *report) printProblems(problems []manifest.Problem) error {
	list := make([]applied, len(problems))
	for i, problem := range problems {
		r.messages.At(problem.String(), problem.Kind, problem.ID, problem.Detail)
		list[i] = applied{
			Entry: manifest.Entry{Kind: problem.Kind, ID: problem.ID}, Position: problem.Position,
			Outcome: outcomeFaulty, Detail: problem.Detail,
		}
	}
	if r.Output != console.FormatJSON {
		return nil
	}
	return r.out.JSON(list, indent)
}
