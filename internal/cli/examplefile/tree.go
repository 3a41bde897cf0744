package examplefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth bounds the nesting of values in a file.
const maxDepth = 200

// faultAt returns an error with the line of the node.
func faultAt(n *yaml.Node, reason string) error {
	line := 1
	if n != nil {
		line = max(1, n.Line)
	}
	return &Error{Line: line, Reason: reason}
}

// lineOfYAML matches the line number at the beginning of an error of package yaml.
var lineOfYAML = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// yamlTree parses a YAML file, which must contain exactly one document.
func yamlTree(data []byte) (*yaml.Node, error) {
	var document, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, &Error{Reason: "is empty"}
	} else if err != nil {
		reason, line := err.Error(), 1
		if m := lineOfYAML.FindStringSubmatch(reason); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits
			reason = strings.TrimPrefix(reason, m[0])
		}
		return nil, &Error{Line: line, Reason: strings.TrimPrefix(reason, "yaml: ")}
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, faultAt(&more, "has a second document; a file has the examples of one method")
	}
	if len(document.Content) == 0 {
		return nil, &Error{Reason: "is empty"}
	}
	return document.Content[0], nil
}

// jsonTree parses a JSON document to the same kind of nodes.
func jsonTree(data []byte) (*yaml.Node, error) {
	r := &jsonReader{data: data, d: json.NewDecoder(bytes.NewReader(data)), line: 1}
	r.d.UseNumber()
	n, err := r.node(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.d.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{Line: r.lineAt(r.d.InputOffset()), Reason: "has text after the end of its document"}
	}
	return n, nil
}

// A jsonReader converts JSON tokens to nodes with line numbers.
type jsonReader struct {
	data []byte
	d    *json.Decoder
	read int64 // lines are counted up to this offset
	line int
}

// lineAt returns the line of the offset. Offsets must not decrease.
func (r *jsonReader) lineAt(offset int64) int {
	offset = max(r.read, min(offset, int64(len(r.data))))
	r.line += bytes.Count(r.data[r.read:offset], []byte("\n"))
	r.read = offset
	return r.line
}

// node reads the next value.
func (r *jsonReader) node(depth int) (*yaml.Node, error) {
	token, err := r.d.Token()
	var bad *json.SyntaxError
	switch {
	// Go 1.27 returns this message for a truncated document.
	case errors.As(err, &bad) && bad.Error() != "unexpected end of JSON input":
		return nil, &Error{Line: r.lineAt(bad.Offset - 1), Reason: bad.Error()}
	case err != nil:
		return nil, &Error{Line: r.lineAt(int64(len(r.data))), Reason: "ends too early"}
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.lineAt(r.d.InputOffset())}
	switch v := token.(type) {
	case json.Delim:
		return n, r.collection(n, v, depth+1)
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		// Without a tag: the encoder would print it with large numbers.
		n.Value = v.String()
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// collection reads the rest of an object or array whose opening delimiter has been read.
func (r *jsonReader) collection(n *yaml.Node, open json.Delim, depth int) error {
	if depth > maxDepth {
		return faultAt(n, "is nested too deeply")
	}
	n.Kind, n.Tag = yaml.MappingNode, "!!map"
	if open == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for r.d.More() {
		item, err := r.node(depth)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, item)
	}
	if _, err := r.d.Token(); err != nil {
		return &Error{Line: r.lineAt(r.d.InputOffset()), Reason: "ends too early, or a bracket does not match"}
	}
	return nil
}

// members calls each for the members of an object. A duplicate name is an error.
func members(n *yaml.Node, each func(name string, key, value *yaml.Node) error) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			return faultAt(key, "a name must be plain text")
		case seen[key.Value]:
			return faultAt(key, fmt.Sprintf("%q appears twice", key.Value))
		}
		seen[key.Value] = true
		if err := each(key.Value, key, value); err != nil {
			return err
		}
	}
	return nil
}

// jsonOf returns a node as JSON. It keeps the digits of numbers that are valid in JSON.
func jsonOf(n *yaml.Node) (json.RawMessage, error) {
	var b bytes.Buffer
	err := writeJSON(&b, n, 0)
	return b.Bytes(), err
}

func writeJSON(b *bytes.Buffer, n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return faultAt(n, "is nested too deeply")
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return faultAt(n, "anchors and aliases are not taken: an example stands for itself")
	case n.Kind == yaml.ScalarNode:
		return writeScalar(b, n)
	case n.Kind == yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	b.WriteByte('{')
	first := true
	err := members(n, func(name string, _, value *yaml.Node) error {
		if !first {
			b.WriteByte(',')
		}
		first = false
		writeText(b, name)
		b.WriteByte(':')
		return writeJSON(b, value, depth+1)
	})
	b.WriteByte('}')
	return err
}

func writeText(b *bytes.Buffer, text string) {
	data, err := json.Marshal(text)
	if err != nil {
		panic("a string has no JSON form: " + err.Error()) // encoding/json encodes every string
	}
	b.Write(data)
}

// jsonNumber matches numbers that are valid in JSON.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// writeScalar appends a scalar. Numbers in a notation that JSON lacks are converted.
func writeScalar(b *bytes.Buffer, n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!str", "!!timestamp": // a date counts as the text that is written
		writeText(b, n.Value)
		return nil
	case "!!null":
		b.WriteString("null")
		return nil
	case "!!bool", "!!int", "!!float":
		if n.ShortTag() != "!!bool" && jsonNumber.MatchString(n.Value) {
			b.WriteString(n.Value)
			return nil
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return faultAt(n, err.Error())
		}
		data, err := json.Marshal(v)
		if err != nil {
			return faultAt(n, n.Value+" has no JSON form")
		}
		b.Write(data)
		return nil
	}
	return faultAt(n, "values of the kind "+n.ShortTag()+" have no JSON form")
}
