// Package examplefile reads and describes files of examples kept in a repository: YAML or JSON, one method per file.
//
//	role: tax
//	method: net
//	examples:
//	  - args: [1000]
//	    expect: {value: 700}
//	    note: 70 percent, not 60
//
// The members of an example are those of PUT /v1/tools/{role}/methods/{method}/examples. Every error in a file is an
// *Error that names the file and the line. The package writes no files and knows nothing of the daemon.
package examplefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maxFile bounds the size of a file, in bytes. A method has at most 256 KiB of examples.
const maxFile = 1 << 20

// A File is a parsed example file.
type File struct {
	Path         string
	Role, Method string // "" if the file does not name them
	Examples     []Example
}

// An Example is one example of a file.
type Example struct {
	Line int             // of its first line, from 1
	JSON json.RawMessage // an object in the form that the daemon accepts
}

// An Error reports a fault in a file and its line.
type Error struct {
	Path   string
	Line   int // from 1; 0 means the whole file
	Reason string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// Read reads and parses the file at path.
func Read(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, &Error{Path: path, Reason: reasonOf(err)}
	case !info.Mode().IsRegular(): // opening a pipe would block
		return nil, &Error{Path: path, Reason: "is not a regular file"}
	case info.Size() > maxFile:
		return nil, &Error{Path: path, Reason: fmt.Sprintf("has %d bytes; a file of examples has at most %d",
			info.Size(), maxFile)}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{Path: path, Reason: reasonOf(err)}
	}
	return Parse(path, data)
}

// reasonOf returns the text of an error without the path, which the caller adds.
func reasonOf(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// Parse parses the content of a file: as JSON if its name ends in .json, otherwise as YAML.
func Parse(path string, data []byte) (*File, error) {
	f := &File{Path: path}
	root, err := tree(path, data)
	if err == nil {
		err = f.fill(root)
	}
	if err != nil {
		return nil, placed(err, path)
	}
	return f, nil
}

// JSON converts any document to JSON, with the format chosen as in Parse. It keeps the order of names and the digits of
// numbers.
func JSON(path string, data []byte) (json.RawMessage, error) {
	root, err := tree(path, data)
	if err != nil {
		return nil, placed(err, path)
	}
	out, err := jsonOf(root)
	return out, placed(err, path)
}

// tree parses a document as JSON or YAML, by the extension of path.
func tree(path string, data []byte) (*yaml.Node, error) {
	if !utf8.Valid(data) {
		return nil, &Error{Reason: "is not text in UTF-8; files of examples are YAML or JSON"}
	}
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return jsonTree(data)
	}
	return yamlTree(data)
}

// placed sets the path of an *Error.
func placed(err error, path string) error {
	var bad *Error
	if errors.As(err, &bad) {
		bad.Path = path
	}
	return err
}

// fill sets the file's fields from its document.
func (f *File) fill(root *yaml.Node) error {
	if root == nil || root.Kind != yaml.MappingNode {
		return faultAt(root, "must be an object with role, method and examples")
	}
	examples := false
	err := members(root, func(name string, key, value *yaml.Node) error {
		switch name {
		case "role":
			return textInto(value, name, &f.Role)
		case "method":
			return textInto(value, name, &f.Method)
		case "examples":
			examples = true
			return f.fillExamples(value)
		}
		return faultAt(key, fmt.Sprintf("%q is not a known member: role, method, examples", name))
	})
	if err == nil && !examples {
		err = faultAt(root, "has no examples")
	}
	return err
}

func textInto(value *yaml.Node, name string, into *string) error {
	if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" || value.Value == "" {
		return faultAt(value, name+" must be text; quote it where YAML takes it for something else")
	}
	*into = value.Value
	return nil
}

func (f *File) fillExamples(list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode {
		return faultAt(list, "examples must be a list")
	}
	for _, item := range list.Content {
		if err := checkExample(item); err != nil {
			return err
		}
		data, err := jsonOf(item)
		if err != nil {
			return err
		}
		f.Examples = append(f.Examples, Example{Line: item.Line, JSON: data})
	}
	return nil
}

var (
	exampleMembers = []string{"id", "args", "kwargs", "context", "expect", "tolerance", "note"}
	expectMembers  = []string{"value", "error_type", "schema"}
)

// checkExample checks the structure of an example. The daemon checks the rest.
func checkExample(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return faultAt(n, "an example must be an object with args and expect")
	}
	expect := false
	err := members(n, func(name string, key, value *yaml.Node) error {
		switch {
		case !slices.Contains(exampleMembers, name):
			return faultAt(key, fmt.Sprintf("%q is not a known member: %s", name, strings.Join(exampleMembers, ", ")))
		case name == "args" && value.Kind != yaml.SequenceNode:
			return faultAt(value, "args must be a list")
		case (name == "kwargs" || name == "context") && value.Kind != yaml.MappingNode:
			return faultAt(value, name+" must be an object")
		case name == "expect":
			expect = true
			return checkExpect(value)
		}
		return nil
	})
	if err == nil && !expect {
		err = faultAt(n, "the example has no expect, such as {value: 700}")
	}
	return err
}

func checkExpect(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return faultAt(n, "expect must have exactly one of value, error_type and schema, such as {value: 700}")
	}
	return members(n, func(name string, key, _ *yaml.Node) error {
		if !slices.Contains(expectMembers, name) {
			return faultAt(key, fmt.Sprintf("%q is not a known member: %s", name, strings.Join(expectMembers, ", ")))
		}
		return nil
	})
}

// Find returns the example files in the given files and folders, including nested ones, in order. In folders, names
// must end in .yaml, .yml or .json; hidden folders are skipped and links are not followed.
func Find(paths ...string) ([]string, error) {
	var all []string
	for _, path := range paths {
		err := filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && at != path && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case at == path && !d.IsDir(), d.Type().IsRegular() &&
				slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(at))):
				all = append(all, at)
			}
			return nil
		})
		if err != nil {
			return nil, &Error{Path: path, Reason: reasonOf(err)}
		}
	}
	return all, nil
}

// A Document is the content of an example file, for writing one.
type Document struct {
	Role     string  `json:"role"`
	Method   string  `json:"method"`
	Examples []Entry `json:"examples"` // not nil
}

// An Entry is an example without the fields that only the daemon knows.
type Entry struct {
	ID        string            `json:"id,omitempty"`
	Args      []json.RawMessage `json:"args"`
	Kwargs    json.RawMessage   `json:"kwargs,omitempty"` // nil means none
	Context   json.RawMessage   `json:"context,omitempty"`
	Expect    agent.Expectation `json:"expect"`
	Tolerance *float64          `json:"tolerance,omitempty"`
	Note      string            `json:"note,omitempty"`
}

// EntryOf returns the entry for an example.
func EntryOf(x agent.Example) Entry {
	if string(x.Kwargs) == "{}" {
		x.Kwargs = nil
	}
	return Entry{x.ID, x.Args, x.Kwargs, x.Context, x.Expect, x.Tolerance, x.Note}
}
