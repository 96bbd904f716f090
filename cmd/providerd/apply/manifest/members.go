package manifest

import (
	"errors"

	"go.yaml.in/yaml/v4"
)

var errTag = errors.New("has a tag other than !!str; leave the tag out")

// member is one of a mapping.
type member struct {
	name  string
	value *yaml.Node
}

// members lists what a mapping has: its own members, and behind them those that it merges in by <<, as far as it has
// none of their names.
func (b *bodyReader) members(node *yaml.Node, depth int) []member {
	var own, merged []member
	names := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := resolve(node.Content[i]), node.Content[i+1]
		b.used.bytes += len(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			b.fault(node.Content[i], "the name of a member must be a string")
		case key.ShortTag() == "!!merge":
			merged = append(merged, b.merged(value, depth)...)
		case names[key.Value]:
			b.fault(key, "the member "+key.Value+" occurs twice")
		default:
			names[key.Value] = true
			own = append(own, member{name: key.Value, value: value})
		}
	}
	for _, one := range merged {
		if !names[one.name] {
			names[one.name] = true
			own = append(own, one)
		}
	}
	return own
}

// merged lists the members of one mapping or of a list of mappings, of which the first that has a name counts.
func (b *bodyReader) merged(node *yaml.Node, depth int) []member {
	source := resolve(node)
	b.used.values += 1 + len(source.Content)/2
	switch {
	case b.isFull():
		return nil
	case depth > maxNesting:
		b.fault(node, "merges mappings deeper than the contract allows")
		return nil
	case source.Kind == yaml.MappingNode:
		return b.members(source, depth+1)
	case source.Kind != yaml.SequenceNode:
		b.fault(node, "<< must be an alias of a mapping, such as *defaults, or a list of them; quote a field of this name")
		return nil
	}
	var all []member
	for _, element := range source.Content {
		all = append(all, b.merged(element, depth+1)...)
	}
	return all
}

// resolve follows an alias.
func resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}
