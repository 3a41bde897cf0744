package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// Forms in which a command prints data.
const (
	formTable = "table" // for people: tables, lines, a bare value
	formJSON  = "json"  // one document per line, as the daemon sent it
	formYAML  = "yaml"  // the same documents
)

var errForm = errors.New("must be one of table, json, yaml")

// An output prints a command's data in the form selected by its flags.
type output struct {
	sh        Shell
	form      string
	documents int // number of YAML documents printed so far
}

// addOutput declares --output and its short form --json. The last one given wins.
func addOutput(c *cobra.Command, sh Shell) *output {
	o := &output{sh: sh, form: formTable}
	c.Flags().VarP((*formFlag)(o), "output", "o", "how to print data: table (for people), json or yaml")
	c.Flags().VarPF((*jsonFlag)(o), "json", "", "short for --output json").NoOptDefVal = "true"
	forms := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{formTable, formJSON, formYAML}, cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.RegisterFlagCompletionFunc("output", forms); err != nil {
		panic("the flag --output was declared above: " + err.Error())
	}
	return o
}

// formFlag is the flag --output of an output.
type formFlag output

func (f *formFlag) String() string { return f.form }

func (f *formFlag) Type() string { return "table|json|yaml" }

func (f *formFlag) Set(text string) error {
	if !slices.Contains([]string{formTable, formJSON, formYAML}, text) {
		return errForm
	}
	f.form = text
	return nil
}

// jsonFlag is the flag --json of an output.
type jsonFlag output

func (f *jsonFlag) String() string { return "false" }

func (f *jsonFlag) Type() string { return "bool" }

func (f *jsonFlag) IsBoolFlag() bool { return true }

func (f *jsonFlag) Set(text string) error {
	switch text {
	case "true":
		f.form = formJSON
	case "false":
		f.form = formTable
	default:
		return fmt.Errorf("%q is neither true nor false", text)
	}
	return nil
}

// human reports whether the output is meant for people.
func (o *output) human() bool { return o.form == formTable }

func (o *output) colours() text.Palette { return o.sh.colours(o.sh.Stdout) }

// value prints v as a document, for scripts.
func (o *output) value(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.document(data)
}

// document prints one JSON document: on one line, indented on a terminal, or as YAML.
func (o *output) document(data []byte) error {
	if o.form != formYAML {
		_, err := fmt.Fprintf(o.sh.Stdout, "%s\n", o.readable(bytes.TrimSpace(data)))
		return err
	}
	text, err := yamlOf(data, nil)
	if err != nil {
		return err
	}
	if o.documents++; o.documents > 1 {
		text = append([]byte("---\n"), text...)
	}
	_, err = o.sh.Stdout.Write(text)
	return err
}

// readable returns a JSON document in printed form: hidden characters escaped, and indented on a terminal.
func (o *output) readable(data []byte) []byte {
	if _, terminal := o.sh.terminal(o.sh.Stdout); terminal {
		var pretty bytes.Buffer
		if json.Indent(&pretty, data, "", "  ") == nil {
			data = pretty.Bytes()
		}
	}
	return visibleJSON(data)
}

// indented prints an indented JSON document.
func (o *output) indented(data []byte) error {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, data, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.sh.Stdout, "%s\n", visibleJSON(pretty.Bytes()))
	return err
}

// line prints a formatted line. Arguments from elsewhere must have been cleaned (package text).
func (o *output) line(format string, args ...any) error {
	_, err := fmt.Fprintf(o.sh.Stdout, format+"\n", args...)
	return err
}

// table prints rows below a header, or "nothing" if there are none. Widths count terminal columns: a Chinese character
// takes two.
func (o *output) table(header string, rows [][]string) error {
	if len(rows) == 0 {
		return o.line("nothing")
	}
	colours := o.colours()
	head := strings.Fields(header)
	widths := make([]int, len(head))
	for i, h := range head {
		widths[i] = len(h)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = text.Cell(row[i])
			widths[i] = max(widths[i], ansi.StringWidth(row[i]))
		}
	}
	var b strings.Builder
	for i, h := range head {
		if i < len(head)-1 {
			h = text.Pad(h, widths[i]+2)
		}
		b.WriteString(colours.Paint(text.Bold, h))
	}
	b.WriteByte('\n')
	for _, row := range rows {
		for i, value := range row {
			padded := value
			if i < len(row)-1 {
				padded = text.Pad(value, widths[i]+2)
			}
			b.WriteString(colours.Status(value, padded))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(o.sh.Stdout, b.String())
	return err
}

// hidden reports whether the non-ASCII character is invisible or could control a terminal. JSON itself escapes ASCII
// control characters.
func hidden(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }

// visibleJSON escapes hidden characters and unescapes <, > and &. They occur only in strings, where the two forms are
// equivalent.
func visibleJSON(data []byte) []byte {
	return visible(rawjson.WithoutHTML(data), func(out []byte, r rune) []byte {
		if r > 0xffff {
			a, b := utf16.EncodeRune(r)
			return fmt.Appendf(out, `\u%04x\u%04x`, a, b)
		}
		return fmt.Appendf(out, `\u%04x`, r)
	})
}

// visible escapes hidden characters in valid UTF-8, and replaces invalid bytes. Text without either is returned as it
// is.
func visible(data []byte, escape func([]byte, rune) []byte) []byte {
	if utf8.Valid(data) && !bytes.ContainsFunc(data, hidden) {
		return data
	}
	out := make([]byte, 0, len(data)+64)
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if hidden(r) {
			out = escape(out, r)
		} else {
			// Invalid bytes become U+FFFD.
			out = utf8.AppendRune(out, r)
		}
		data = data[n:]
	}
	return out
}

// yamlOf converts a JSON document to YAML. It keeps names, their order and the digits of numbers. style, unless nil,
// may set the style of nodes.
func yamlOf(data []byte, style func(root *yaml.Node)) ([]byte, error) {
	if !json.Valid(data) { // also bounds the depth
		return nil, errors.New("the reply is not JSON")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	node, err := yamlNode(d)
	if err != nil {
		return nil, err
	}
	if style != nil {
		style(node)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(node), e.Close()); err != nil {
		return nil, err
	}
	// Strings with hidden characters are double-quoted, where \U is an escape.
	return visible(b.Bytes(), func(out []byte, r rune) []byte { return fmt.Appendf(out, `\U%08x`, r) }), nil
}

// yamlNode decodes the next JSON value.
func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return yamlCollection(d, v)
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if strings.ContainsFunc(v, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || olderYAML(v) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		// Without a tag: the encoder would print it with large numbers.
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// olderYAML reports whether YAML 1.1 reads the plain word as a boolean or a sexagesimal number.
func olderYAML(v string) bool {
	switch strings.ToLower(v) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return v != "" && strings.Contains(v, ":") && strings.Trim(v, "+-0123456789_:.") == ""
}

// yamlCollection decodes the rest of an object or array whose opening delimiter has been read.
func yamlCollection(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if open == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for d.More() {
		item, err := yamlNode(d) // in a mapping, names alternate with values
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, item)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle // [] and {}
	}
	_, err := d.Token() // the closing delimiter
	return n, err
}
