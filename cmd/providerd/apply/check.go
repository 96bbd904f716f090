package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server/contract"
)

// findFaults returns all faults of the files in the order of their positions: those of its form, and those that the
// contract finds in its entries. There are at most manifest.MaxProblems.
func findFaults(ctx context.Context, contract *contract.Document, list manifest.Manifest) ([]manifest.Problem, error) {
	faults := slices.Concat(list.Problems, clientIDTwins(list.Entries))
	for _, entry := range list.Entries {
		if len(faults) >= manifest.MaxProblems {
			break
		}
		broken, err := entryFaults(ctx, contract, entry)
		if err != nil {
			return nil, err
		}
		faults = append(faults, broken...)
	}
	slices.SortStableFunc(faults, func(a, b manifest.Problem) int { return a.Compare(b.Position) })
	return faults[:min(len(faults), manifest.MaxProblems)], nil
}

func entryFaults(ctx context.Context, contract *contract.Document, entry manifest.Entry) ([]manifest.Problem, error) {
	kind, err := kindOf(entry)
	if err != nil {
		return nil, err
	}
	violations, err := contract.Validate(ctx, kind.Operation, entry.Body)
	if err != nil {
		return []manifest.Problem{faultAt(entry, "", err.Error())}, nil
	}
	var faults []manifest.Problem
	masked := maskedSecret(kind, entry)
	if masked != "" {
		faults = append(faults, faultAt(entry, masked, masked+" is the mask that is shown instead of a secret; write the "+
			"secret, or a reference such as ${NAME}, as \"providerd provider export\" does"))
	}
	for _, violation := range violations {
		if violation.Pointer != masked && !entry.IsBroken(violation.Pointer) {
			faults = append(faults, faultAt(entry, violation.Pointer, violation.Detail))
		}
	}
	return faults, nil
}

// maskedSecret is the pointer of the secret of an entry that was copied from where secrets are masked; "" for others.
func maskedSecret(kind Kind, entry manifest.Entry) string {
	field := kind.SecretField()
	var fields map[string]json.RawMessage
	if json.Unmarshal(entry.Body, &fields) != nil || console.Unquote(fields[field]) != console.Mask {
		return ""
	}
	return "/" + field
}

// clientIDTwins finds entries of which the server would refuse all but one, since a client_id is unique.
func clientIDTwins(entries []manifest.Entry) []manifest.Problem {
	const pointer = "/client_id"
	var faults []manifest.Problem
	places := map[string]manifest.Position{}
	for _, entry := range entries {
		clientID := clientIDOf(entry)
		if clientID == "" {
			continue
		}
		place := entry.At(pointer)
		if first, ok := places[clientID]; ok {
			detail := fmt.Sprintf("%s is that of %s, too", pointer, first.RelativeTo(place))
			faults = append(faults, faultAt(entry, pointer, detail))
			continue
		}
		places[clientID] = place
	}
	return faults
}

func faultAt(entry manifest.Entry, pointer, detail string) manifest.Problem {
	return manifest.Problem{Position: entry.At(pointer), Kind: entry.Kind, ID: entry.ID, Detail: detail}
}

// printFaults tells the faults as people read them, and as JSON where that is asked for.
func printFaults(out *console.Output, messages *console.Messages, format string, faults []manifest.Problem) error {
	for _, fault := range faults {
		messages.At(fault.String(), fault.Kind, fault.ID, fault.Detail)
	}
	if format != console.FormatJSON {
		return nil
	}
	list := make([]appliedJSON, len(faults))
	for i, fault := range faults {
		list[i] = appliedJSON{
			Kind: fault.Kind, ID: fault.ID, File: fault.File, Line: fault.Line, Column: fault.Column,
			Outcome: outcomeFaulty, Detail: fault.Detail,
		}
	}
	return printJSON(out, list)
}
