package generate

import (
	"go/types"
	"slices"
	"strings"
)

// A calledMethod is a method that the standard library calls if a type has it. In its bodies SELF stands for the text
// of the value, MADE for a function that makes a new value, NAME for the quoted name of the method, and TYPE for the
// receiver's type.
type calledMethod struct {
	name, sig string
	changes   bool // changes the value, so the receiver is a pointer
	library   bool // only the library can create its parameters
	bodies    []string
}

func init() {
	text := []string{"\treturn NAME + \" \" + SELF\n"}
	called = []calledMethod{
		{name: "String", sig: "() string", bodies: text},
		{name: "String", sig: "() string", bodies: text},
		{name: "Error", sig: "() string", bodies: text},
		{name: "Error", sig: "() string", bodies: text},
		{name: "GoString", sig: "() string", bodies: text},
		{name: "Format", sig: "(s fmt.State, verb rune)", library: true,
			bodies: []string{formatBody, "\tfmt.Fprintf(s, fmt.FormatString(s, verb), len(SELF))\n"}},
		{name: "Scan", sig: "(s fmt.ScanState, verb rune) error", changes: true, library: true,
			bodies: []string{scanBody, scanRunesBody}},
		{name: "MarshalJSON", sig: "() ([]byte, error)", bodies: []string{
			"\treturn []byte(strconv.QuoteToGraphic(fmt.Sprint(len(SELF)))), nil\n",
			"\treturn []byte(`{\"b\": [1, {}], \"a\":  null}`), nil\n",
			"\treturn []byte(`{`), nil\n",
			"\treturn json.Marshal(map[string]any{\"n\": len(SELF), \"e\": []TYPE{}})\n",
			"\treturn []byte(strconv.Itoa(len(SELF))), nil\n"}},
		{name: "MarshalText", sig: "() ([]byte, error)", bodies: []string{marshalTextBody}},
		{name: "AppendText", sig: "(b []byte) ([]byte, error)", bodies: []string{"\treturn append(b, SELF...), nil\n"}},
		{name: "UnmarshalJSON", sig: "(b []byte) error", changes: true, bodies: []string{unmarshalBody}},
		{name: "UnmarshalText", sig: "(b []byte) error", changes: true, bodies: []string{unmarshalBody}},
		{name: "MarshalXML", sig: "(e *xml.Encoder, start xml.StartElement) error", library: true,
			bodies: []string{marshalXMLBody, "\treturn e.EncodeElement(len(SELF), start)\n", "\treturn nil\n"}},
		{name: "UnmarshalXML", sig: "(d *xml.Decoder, start xml.StartElement) error", changes: true, library: true,
			bodies: []string{unmarshalXMLBody, "\tlogø(NAME, start.Name.Local)\n\treturn d.Skip()\n"}},
		{name: "MarshalXMLAttr", sig: "(name xml.Name) (xml.Attr, error)", bodies: []string{
			"\treturn xml.Attr{Name: name, Value: SELF}, nil\n", "\treturn xml.Attr{}, nil\n"}},
		{name: "UnmarshalXMLAttr", sig: "(attr xml.Attr) error", changes: true,
			bodies: []string{"\tlogø(NAME, attr.Name.Local, attr.Value)\n\t*v = MADE(attr.Value)\n\treturn nil\n"}},
		{name: "IsZero", sig: "() bool", bodies: []string{"\treturn len(SELF)%2 == 0\n"}},
		{name: "Is", sig: "(target error) bool", bodies: []string{"\treturn target != nil && len(SELF)%2 == 0\n",
			"\t_, ok := target.(fmt.Stringer)\n\treturn ok\n"}},
		{name: "As", sig: "(target any) bool", bodies: []string{asBody}},
		{name: "Unwrap", sig: "() error", bodies: []string{"\treturn nil\n", "\treturn errors.ErrUnsupported\n",
			"\treturn fmt.Errorf(\"inner\")\n"}},
		{name: "Unwrap", sig: "() []error", bodies: []string{"\treturn nil\n",
			"\treturn []error{errors.New(\"one\"), nil, fmt.Errorf(\"two: %w\", errors.ErrUnsupported)}\n"}},
		{name: "Write", sig: "(b []byte) (int, error)",
			bodies: []string{"\tlogø(NAME, strconv.Itoa(len(b)), string(b[:min(len(b), 9)]))\n\tif len(b)%7 == 6 {\n\t\treturn len(b) / 2, errors.New(\"no room\")\n\t}\n\treturn len(b), nil\n"}},
		{name: "Read", sig: "(b []byte) (int, error)",
			bodies: []string{"\tn := copy(b, NAME+\"\\n\"+SELF)\n\tif n%3 == 0 {\n\t\treturn n, io.EOF\n\t}\n\treturn n, nil\n"}},
	}
}

// called lists these methods. The most important ones occur more than once, so they are chosen more often.
var called []calledMethod

// These are the longer method bodies.
const formatBody = `	w, wide := s.Width()
	p, precise := s.Precision()
	fmt.Fprint(s, NAME, string(verb), w, wide, p, precise, s.Flag('+'), s.Flag('#'), s.Flag('-'))
	io.WriteString(s, SELF)
`

const scanBody = `	word, err := s.Token(verb != 'd', nil)
	logø(NAME, string(verb), string(word))
	if len(word)%4 == 3 {
		return errors.New("a bad word")
	}
	*v = MADE(string(word))
	return err
`

const scanRunesBody = `	s.SkipSpace()
	c, n, err := s.ReadRune()
	d, _, _ := s.ReadRune()
	if d == 'b' {
		err = s.UnreadRune()
	}
	w, wide := s.Width()
	logø(NAME, string(c), string(d), fmt.Sprint(n, w, wide))
	*v = *new(TYPE)
	return err
`

const marshalTextBody = `	if s := SELF; len(s)%11 == 3 {
		return nil, errors.New(s)
	}
	return []byte("text " + SELF), nil
`

const unmarshalBody = `	logø(NAME, SELF, string(b))
	if len(b)%5 == 4 {
		return errors.New("bad")
	}
	*v = MADE(string(b))
	return nil
`

const marshalXMLBody = `	start.Attr = append(start.Attr, xml.Attr{Name: xml.Name{Local: "by"}, Value: NAME})
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	if err := e.EncodeElement(SELF, xml.StartElement{Name: xml.Name{Local: "self"}}); err != nil {
		return err
	}
	return e.EncodeToken(start.End())
`

const unmarshalXMLBody = `	var in struct {
		Attr []xml.Attr ` + "`xml:\",any,attr\"`" + `
		Text string     ` + "`xml:\",innerxml\"`" + `
	}
	err := d.DecodeElement(&in, &start)
	logø(NAME, start.Name.Local, strconv.Itoa(len(in.Attr)), in.Text)
	*v = MADE(in.Text)
	return err
`

const asBody = `	switch t := target.(type) {
	case *error:
		*t = errors.New(NAME)
		return true
	case *interface{ Is(error) bool }:
		return len(SELF)%2 == 0
	}
	logø(NAME, fmt.Sprintf("%T", target))
	return false
`

// calledBody returns the body of a method that the library calls, or "" for any other method.
func (g *gen) calledBody(d *declaration, m *method, self, made string) string {
	i := slices.IndexFunc(called, func(c calledMethod) bool { return c.name == m.name && c.sig == m.sig })
	if i < 0 {
		return ""
	}
	return strings.NewReplacer("SELF", self, "NAME", `"`+d.name+"."+m.name+`"`, "MADE", made, "TYPE",
		d.self).Replace(pick(g, called[i].bodies...))
}

// ofLibrary reports whether only the library can create the arguments of a method.
func ofLibrary(m types.Object) bool {
	return slices.ContainsFunc(called, func(c calledMethod) bool { return c.library && c.name == m.Name() })
}
