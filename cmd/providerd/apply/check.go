package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

// findProblems returns the problems of the files, ordered by position: invalid YAML, and violations of the contract.
// There are at most manifest.MaxProblems.
func findProblems(
	ctx context.Context, document *contract.Document, list manifest.Manifest,
) ([]manifest.Problem, error) {
	problems := slices.Concat(list.Problems, repeatedClientIDs(list.Entries))
	for _, entry := range list.Entries {
		if len(problems) >= manifest.MaxProblems {
			break
		}
		broken, err := entryProblems(ctx, document, entry)
		if err != nil {
			return nil, err
		}
		problems = append(problems, broken...)
	}
	slices.SortStableFunc(problems, func(a, b manifest.Problem) int { return a.Compare(b.Position) })
	return problems[:min(len(problems), manifest.MaxProblems)], nil
}

func entryProblems(ctx context.Context, document *contract.Document, entry manifest.Entry) ([]manifest.Problem, error) {
	kind, err := KindOf(store.Kind(entry.Kind))
	if err != nil {
		return nil, err
	}
	violations, err := document.Validate(ctx, kind.Operation, entry.Body)
	if err != nil {
		return []manifest.Problem{problemAt(entry, "", err.Error())}, nil
	}
	var problems []manifest.Problem
	masked := maskedSecret(kind, entry)
	if masked != "" {
		problems = append(problems, problemAt(entry, masked, manifest.FieldName(masked)+" is a masked secret; "+
			"write the secret, or a reference such as ${NAME}, as \"providerd provider export\" does"))
	}
	for _, violation := range violations {
		if violation.Pointer != masked && !entry.IsBroken(violation.Pointer) {
			detail := violation.Detail + remedyInYAML(entry, violation.Pointer)
			problems = append(problems, problemAt(entry, violation.Pointer, detail))
		}
	}
	return problems, nil
}

// remedyInYAML returns what to write if a value has another type than it seems to have.
func remedyInYAML(entry manifest.Entry, pointer string) string {
	var fields map[string]any
	if json.Unmarshal(entry.Body, &fields) != nil {
		return ""
	}
	switch value := fields[strings.TrimPrefix(pointer, "/")].(type) {
	case float64:
		return " Quote a number to make it a string."
	case string:
		isFolded := pointer == "/redirect_uris" && strings.Contains(value, " ")
		switch {
		case slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(value)):
			return " Write true instead of yes or on, and false instead of no or off."
		case isFolded:
			return " Write a list, or | instead of >, which joins the lines."
		}
	}
	return ""
}

// maskedSecret returns the pointer of a secret that was copied from masked output; "" if there is none.
func maskedSecret(kind Kind, entry manifest.Entry) string {
	field := kind.SecretField()
	var fields map[string]json.RawMessage
	if json.Unmarshal(entry.Body, &fields) != nil || console.Unquote(fields[field]) != contract.Mask {
		return ""
	}
	return "/" + field
}

// repeatedClientIDs returns a problem for each client_id that an earlier entry has.
func repeatedClientIDs(entries []manifest.Entry) []manifest.Problem {
	const pointer = "/client_id"
	var problems []manifest.Problem
	places := map[string]manifest.Position{}
	for _, entry := range entries {
		clientID := clientIDOf(entry)
		if clientID == "" {
			continue
		}
		place := entry.At(pointer)
		if first, ok := places[clientID]; ok {
			detail := fmt.Sprintf("%s is already used in %s", manifest.FieldName(pointer), first.RelativeTo(place))
			problems = append(problems, problemAt(entry, pointer, detail))
			continue
		}
		places[clientID] = place
	}
	return problems
}

func problemAt(entry manifest.Entry, pointer, detail string) manifest.Problem {
	return manifest.Problem{Position: entry.At(pointer), Kind: entry.Kind, ID: entry.ID, Detail: detail}
}

// printProblems prints the problems for people and, if the format is JSON, for programs.
func printProblems(out *console.Output, messages *console.Messages, format string, problems []manifest.Problem) error {
	for _, problem := range problems {
		messages.At(problem.String(), problem.Kind, problem.ID, problem.Detail)
	}
	if format != console.FormatJSON {
		return nil
	}
	list := make([]appliedJSON, len(problems))
	for i, problem := range problems {
		list[i] = appliedJSON{
			Kind: problem.Kind, ID: problem.ID, File: problem.File, Line: problem.Line, Column: problem.Column,
			Outcome: outcomeFaulty, Detail: problem.Detail,
		}
	}
	return printJSON(out, list)
}
