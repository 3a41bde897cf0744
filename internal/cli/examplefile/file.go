// Package examplefile knows the files of examples that are kept in a repository, YAML or JSON, one method per file: it reads them, and has
// what is written into one as a value.
//
//	role: tax
//	method: net
//	examples:
//	  - args: [1000]
//	    expect: {value: 700}
//	    note: 70 percent, not 60
//
// The members of an example are those of PUT /v1/tools/{role}/methods/{method}/examples. Every fault is an *Error that
// names the file and the line. The package knows nothing of the daemon.
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

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a file: a method has at most 256 KiB of examples.
const maxFile = 1 << 20

// A File is a read file.
type File struct {
	Path         string
	Role, Method string // "" where the file does not name them
	Examples     []Example
}

// An Example is one example of a file.
type Example struct {
	Line int             // of its beginning, from 1
	JSON json.RawMessage // an object, as the daemon takes it
}

// An Error says where a file is wrong.
type Error struct {
	Path   string
	Line   int // from 1; 0 for the whole file
	Reason string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// Read reads the file of that path.
func Read(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, &Error{Path: path, Reason: reasonOf(err)}
	case !info.Mode().IsRegular(): // opening a pipe would wait for a writer
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

// reasonOf is the error without the path, which the caller names.
func reasonOf(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// Parse reads a file's content: JSON where the name ends in .json, else YAML.
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

// JSON converts a document of any kind, as Parse reads it. The order of names and the digits of numbers stay.
func JSON(path string, data []byte) (json.RawMessage, error) {
	root, err := tree(path, data)
	if err != nil {
		return nil, placed(err, path)
	}
	out, err := jsonOf(root)
	return out, placed(err, path)
}

func tree(path string, data []byte) (*yaml.Node, error) {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return jsonTree(data)
	}
	return yamlTree(data)
}

func placed(err error, path string) error {
	var bad *Error
	if errors.As(err, &bad) {
		bad.Path = path
	}
	return err
}

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
		return faultAt(key, fmt.Sprintf("%q is none of role, method, examples", name))
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

func checkExample(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return faultAt(n, "an example must be an object with args and expect")
	}
	expect := false
	err := members(n, func(name string, key, value *yaml.Node) error {
		switch {
		case !slices.Contains(exampleMembers, name):
			return faultAt(key, fmt.Sprintf("%q is none of %s", name, strings.Join(exampleMembers, ", ")))
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
			return faultAt(key, fmt.Sprintf("%q is none of %s", name, strings.Join(expectMembers, ", ")))
		}
		return nil
	})
}

// Find lists the files of examples in the given files and folders, nested ones too, in order: names that end in .yaml, .yml or
// .json. Hidden folders are left out, and links are not followed.
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
