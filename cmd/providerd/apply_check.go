package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"example.com/providerd/cmd/providerd/manifest"
	"example.com/providerd/server"
)

// findFaults returns all faults of a file in the order of their positions: those of its form, and those that the
// contract finds in its entries.
func findFaults(ctx context.Context, contract *server.Contract, list manifest.Manifest) ([]manifest.Fault, error) {
	faults := slices.Concat(list.Faults, clientIDTwins(list.Entries))
	for _, entry := range list.Entries {
		broken, err := entryFaults(ctx, contract, entry)
		if err != nil {
			return nil, err
		}
		faults = append(faults, broken...)
	}
	slices.SortStableFunc(faults, func(a, b manifest.Fault) int { return a.Compare(b.Position) })
	return faults, nil
}

func entryFaults(ctx context.Context, contract *server.Contract, entry manifest.Entry) ([]manifest.Fault, error) {
	kind, err := kindOf(entry)
	if err != nil {
		return nil, err
	}
	violations, err := contract.Check(ctx, kind.operation, entry.Body)
	if err != nil {
		return []manifest.Fault{faultAt(entry, "", err.Error())}, nil
	}
	var faults []manifest.Fault
	for _, violation := range violations {
		if !entry.IsBroken(violation.Pointer) {
			faults = append(faults, faultAt(entry, violation.Pointer, violation.Pointer+" "+violation.Detail))
		}
	}
	return faults, nil
}

// clientIDTwins finds entries of which the server would refuse all but one, since a client_id is unique.
func clientIDTwins(entries []manifest.Entry) []manifest.Fault {
	const pointer = "/client_id"
	var faults []manifest.Fault
	lines := map[string]int{}
	for _, entry := range entries {
		var body struct {
			ClientID string `json:"client_id"`
		}
		if json.Unmarshal(entry.Body, &body) != nil || body.ClientID == "" {
			continue
		}
		if line, ok := lines[body.ClientID]; ok {
			faults = append(faults, faultAt(entry, pointer, fmt.Sprintf("%s is that of line %d, too", pointer, line)))
			continue
		}
		lines[body.ClientID] = entry.At(pointer).Line
	}
	return faults
}

func faultAt(entry manifest.Entry, pointer, detail string) manifest.Fault {
	return manifest.Fault{Position: entry.At(pointer), Kind: entry.Kind, ID: entry.ID, Detail: detail}
}
