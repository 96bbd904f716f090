package manifest

import (
	"errors"

	"go.yaml.in/yaml/v4"
)

// tagError says what to write instead of a tag. Only the tags of other systems are told apart, because a tag may be a
// secret that lacks its quotes.
func tagError(tag string) error {
	switch tag {
	case "!Find", "!KeyOf":
		return errors.New("has a tag of another system; write the UUID itself")
	case "!Env", "!Secret", "!File", "!Context", "!vault":
		return errors.New("has a tag of another system; write ${NAME} for a variable or ${file:PATH} for a file")
	default:
		return errors.New("has a tag other than !!str; quote a value that begins with !, or write ${NAME} for a variable " +
			"or ${file:PATH} for a file")
	}
}

// member is a member of a mapping.
type member struct {
	name  string
	value *yaml.Node
}

// members returns the members of a mapping: first its own, then those that << merges into it under other names.
func (b *bodyReader) members(node *yaml.Node, depth int) []member {
	var own, merged []member
	names := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := resolve(node.Content[i]), node.Content[i+1]
		b.used.bytes += len(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			b.report(node.Content[i], "the name of a member must be a string; render a template such as {{ x }}, or quote it")
		case key.ShortTag() == "!!merge":
			merged = append(merged, b.merged(value, depth)...)
		case names[key.Value]:
			b.report(key, "the member "+key.Value+" is repeated")
		default:
			names[key.Value] = true
			own = append(own, member{name: key.Value, value: value})
		}
	}
	for _, member := range merged {
		if !names[member.name] {
			names[member.name] = true
			own = append(own, member)
		}
	}
	return own
}

// merged returns the members of a mapping or of a list of mappings. The first member with a name counts.
func (b *bodyReader) merged(node *yaml.Node, depth int) []member {
	source := resolve(node)
	b.used.values += 1 + len(source.Content)/2
	switch {
	case b.isFull():
		return nil
	case depth > maxNesting:
		b.report(node, "merges mappings nested deeper than the contract allows")
		return nil
	case source.Kind == yaml.MappingNode:
		return b.members(source, depth+1)
	case source.Kind != yaml.SequenceNode:
		b.report(node, "<< must be an alias of a mapping, such as *defaults, or a list of them; quote a field of this name")
		return nil
	}
	var all []member
	for _, element := range source.Content {
		all = append(all, b.merged(element, depth+1)...)
	}
	return all
}

// resolve follows aliases.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}
