package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"log"
	"os"
	"strconv"
	"strings"
)

// candidate is a mutant and where it changes its file.
type candidate struct {
	mutant
	from, to int
}

// readCandidates returns all mutants of a file.
func readCandidates(file string) ([]candidate, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, content, 0)
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, declaration := range parsed.Decls {
		function, isFunction := declaration.(*ast.FuncDecl)
		if !isFunction || function.Body == nil {
			continue
		}
		counts := map[string]int{}
		ast.Inspect(function.Body, func(node ast.Node) bool {
			kind, part, after := change(files, node)
			if kind == "" {
				return true
			}
			counts[kind]++
			from, to := files.Position(part.Pos()).Offset, files.Position(part.End()).Offset
			found = append(found, candidate{mutant{
				file: file, function: nameOf(function), kind: kind, nth: strconv.Itoa(counts[kind]),
				before: oneLine(string(content[from:to])), after: oneLine(after),
			}, from, to})
			return true
		})
	}
	return found, nil
}

func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	if pointer, isPointer := receiver.(*ast.StarExpr); isPointer {
		receiver = pointer.X
	}
	if generic, isGeneric := receiver.(*ast.IndexExpr); isGeneric {
		receiver = generic.X
	}
	return fmt.Sprint(receiver) + "." + function.Name.Name
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// swapped returns the operators that replace others.
func swapped() map[token.Token]token.Token {
	return map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ,
		token.GEQ: token.GTR, token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
	}
}

// change returns how a node is mutated: the kind, the part that is replaced, and its replacement.
func change(files *token.FileSet, node ast.Node) (kind string, part ast.Node, after string) {
	switch n := node.(type) {
	case *ast.BinaryExpr:
		if operator, isSwapped := swapped()[n.Op]; isSwapped {
			return "operator", n, text(files, &ast.BinaryExpr{X: n.X, Op: operator, Y: n.Y})
		}
	case *ast.IfStmt:
		return "condition", n.Cond, "!(" + text(files, n.Cond) + ")"
	case *ast.BasicLit:
		if number, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
			return "constant", n, strconv.Itoa(number + 1)
		}
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			return "", nil, ""
		}
		last := n.Results[len(n.Results)-1]
		replaced := map[string]string{"err": "nil", "true": "false", "false": "true"}
		if name, isName := last.(*ast.Ident); isName && replaced[name.Name] != "" {
			return "return", last, replaced[name.Name]
		}
	}
	return "", nil, ""
}

func text(files *token.FileSet, node ast.Node) string {
	var written bytes.Buffer
	if err := printer.Fprint(&written, files, node); err != nil {
		log.Fatal(err)
	}
	return written.String()
}
