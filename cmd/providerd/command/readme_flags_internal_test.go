package command

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// documentedFlag is what the README, or the program itself, says of a flag of a command.
type documentedFlag struct{ command, name, environment, byDefault string }

// tableUnder returns the cells of the rows of a table in the README for operators, which has this header.
func tableUnder(t *testing.T, header string) [][]string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(readme), "\n"+header+"\n")
	if !found {
		t.Fatalf("the README has no table %s", header)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][]string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows[1:]
}

// codes are the pieces of code in a text.
func codes(text string) []string {
	var found []string
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// flagsOfRow are the flags that a row is about, of each of the commands. The first cells of it are flags, variables and
// their default.
func flagsOfRow(flags, environment, byDefault string, commands []string) []documentedFlag {
	var found []documentedFlag
	variables := codes(environment)
	short := ""
	for _, name := range codes(flags) {
		if !strings.HasPrefix(name, "--") {
			short = name + ", "
			continue
		}
		variable := ""
		if len(variables) > 0 {
			variable, variables = variables[0], variables[1:]
		}
		for _, command := range commands {
			found = append(found, documentedFlag{command, short + name, variable, strings.ReplaceAll(byDefault, "`", "")})
		}
	}
	return found
}

// ofProgram is what the program's own model says of a flag. A default that no flag can have is in its help.
func ofProgram(command string, flag *kong.Flag) documentedFlag {
	said := documentedFlag{command, "--" + flag.Name, strings.Join(flag.Envs, " "), "none"}
	if flag.Short != 0 {
		said.name = "-" + string(flag.Short) + ", " + said.name
	}
	switch explained := regexp.MustCompile(`\bdefault ([^)]+)\)`).FindStringSubmatch(flag.Help); {
	case flag.HasDefault:
		said.byDefault = flag.Default
	case flag.Required:
		said.byDefault = "required"
	case explained != nil:
		said.byDefault = explained[1]
	}
	return said
}

// listedFlags are the flags of the README's tables with their meanings, those of "serve" first.
func listedFlags(t *testing.T, commands []string) map[documentedFlag]string {
	t.Helper()
	others := slices.DeleteFunc(commands, func(name string) bool { return name == "serve" })
	listed := map[documentedFlag]string{}
	add := func(flags []documentedFlag, meaning string) {
		for _, flag := range flags {
			if _, isThere := listed[flag]; isThere {
				t.Errorf("the README has twice %+v", flag)
			}
			listed[flag] = meaning
		}
	}
	for _, row := range tableUnder(t, "| flag of `providerd serve` | environment | default | meaning |") {
		add(flagsOfRow(row[0], row[1], row[2], []string{"serve"}), row[3])
	}
	for _, row := range tableUnder(t, "| flag | of | environment | default | meaning |") {
		of := codes(row[1])
		if strings.HasPrefix(row[1], "all but ") {
			of = slices.DeleteFunc(slices.Clone(others), func(name string) bool { return slices.Contains(of, name) })
		}
		add(flagsOfRow(row[0], row[2], row[3], of), row[4])
	}
	return listed
}

// TestReadmeListsFlags compares the tables of flags with the program: each flag of each command, its variable and its
// default, and the values of those that have a choice.
func TestReadmeListsFlags(t *testing.T) {
	t.Parallel()
	commands := newTestParser(t).Model.Leaves(true)
	var names []string
	for _, command := range commands {
		names = append(names, nameOf(command))
	}
	listed := listedFlags(t, names)
	for _, command := range commands {
		for _, flag := range command.Flags {
			said := ofProgram(nameOf(command), flag)
			meaning, isListed := listed[said]
			if !isListed {
				t.Errorf("the README does not have %+v", said)
			}
			delete(listed, said)
			for choice := range strings.SplitSeq(flag.Enum, ",") {
				if choice != "" && !slices.Contains(codes(meaning), choice) {
					t.Errorf("%s %s: the README does not name %s", said.command, said.name, choice)
				}
			}
		}
	}
	for flag := range listed {
		t.Errorf("the program does not have %+v", flag)
	}
}
