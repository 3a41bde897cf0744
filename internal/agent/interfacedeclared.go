package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// notRead is the description of a position that the program skips while it reads later ones.
const notRead = "not read by the program"

// Declaration is an interface as its author wrote it, unchecked.
type Declaration struct {
	Summary    json.RawMessage `json:"summary,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Returns    json.RawMessage `json:"returns,omitempty"`
}

// Empty reports whether the author declared nothing.
func (d Declaration) Empty() bool {
	return blank(d.Summary) && blank(d.Parameters) && blank(d.Returns)
}

func blank(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// declaredParameter is a parameter as models and people write it: the type may be a list or "any".
type declaredParameter struct {
	Name        string          `json:"name"`
	Type        json.RawMessage `json:"type"`
	Description string          `json:"description"`
	Required    *bool           `json:"required"`
	Default     json.RawMessage `json:"default"`
	Schema      json.RawMessage `json:"schema"`
	Variadic    bool            `json:"variadic"`
}

// Against checks the declaration against the interface that the gate inferred from the program, and returns the
// resulting interface. It drops parameters that the program does not read, and adds those that the author did not
// declare. If no parameters are declared, the inferred ones are used. The error describes what the author has to
// change. With an *OrderError the interface can be used all the same.
func (d Declaration) Against(inferred *Interface) (*Interface, error) {
	out := *inferred.Undeclared()
	if d.Empty() {
		return &out, nil
	}
	if !blank(d.Summary) {
		if json.Unmarshal(d.Summary, &out.Summary) != nil {
			return nil, errors.New("summary: must be a string")
		}
		out.Summary = clipped(strings.Join(strings.Fields(out.Summary), " "), MaxSummary-len("..."))
	}
	if !blank(d.Returns) {
		out.Returns = d.Returns
	}
	if blank(d.Parameters) {
		return &out, out.Validate()
	}
	list, err := d.list()
	if err != nil {
		return nil, err
	}
	out.Origin, out.Parameters = OriginDeclared, make([]Parameter, 0, len(list))
	required := make([]bool, len(list))
	for i, p := range list {
		one, err := p.parameter()
		if err != nil {
			return nil, fmt.Errorf("parameters[%d]: %w", i, err)
		}
		required[i] = p.Required != nil
		out.Parameters = append(out.Parameters, one)
	}
	read, required := out.read(inferred, required)
	if err := read.Validate(); err != nil {
		return nil, err
	}
	whole, known := read.completed(inferred, required)
	var order *OrderError
	if err = whole.reconcile(inferred, known); (err == nil || errors.As(err, &order)) && whole.Validate() == nil {
		return whole, err
	}
	if err = read.reconcile(inferred, required); err != nil && !errors.As(err, &order) {
		return nil, err
	}
	if fault := read.Validate(); fault != nil {
		return nil, fault
	}
	return read, err
}

// An OrderError means that the author declared the parameters in another order than the program reads them. The program
// can also read each by name. The interface that accompanies the error has them in the declared order, read by name.
type OrderError struct {
	Place int // the first place at which both differ
	what  string
}

func (e *OrderError) Error() string { return e.what }

// list returns the declared parameters. They may be a list, an object by name, or the properties of a JSON Schema.
func (d Declaration) list() (list []declaredParameter, err error) {
	if err = json.Unmarshal(d.Parameters, &list); err == nil {
		return list, nil
	}
	err = errors.New(`parameters: must be a list such as [{"name": "text", "type": "string", "required": true}]`)
	object, required := d.Parameters, []string(nil)
	var schema struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   json.RawMessage `json:"required"`
	}
	whole := json.Unmarshal(object, &schema) == nil && schema.Type == "object" && Kind(schema.Properties) == "object"
	if whole {
		object = schema.Properties
		if json.Unmarshal(schema.Required, &required) != nil {
			required = nil
		}
	}
	names, values, ok := members(object)
	if !ok {
		return nil, err
	}
	for i, name := range names {
		p := declaredParameter{}
		if Kind(values[i]) == "string" {
			p.Type = values[i] // {"text": "string"}
		} else if json.Unmarshal(values[i], &p) != nil {
			p = declaredParameter{Schema: values[i]}
		}
		p.Name = name
		if whole {
			needed := slices.Contains(required, name)
			p.Required = &needed
		}
		list = append(list, p)
	}
	return list, nil
}

// members returns the members of an object in source order. ok is false if it is not an object or has too many members.
func members(object json.RawMessage) (names []string, values []json.RawMessage, ok bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, false
	}
	for d.More() {
		t, err := d.Token()
		name, isName := t.(string)
		var value json.RawMessage
		if err != nil || !isName || d.Decode(&value) != nil || len(names) > MaxParameters {
			return nil, nil, false
		}
		names, values = append(names, name), append(values, value)
	}
	return names, values, true
}

// Listed returns the names of the declared parameters and whether they are required, unchecked. It returns nil if they
// cannot be read.
func (d Declaration) Listed() (out []Parameter) {
	if blank(d.Parameters) {
		return nil
	}
	list, err := d.list()
	if err != nil {
		return nil
	}
	for _, p := range list {
		out = append(out, Parameter{Name: NormalForm(p.Name), Required: p.Required == nil || *p.Required})
	}
	return out
}

// parameter converts the declared parameter. A list of several types becomes a schema, unless one is declared. If the
// list includes "any", or a file among others, the type stays open.
func (p *declaredParameter) parameter() (Parameter, error) {
	out := Parameter{Name: NormalForm(p.Name), Description: clipped(p.Description, MaxDescription-len("...")),
		Variadic: p.Variadic}
	if !blank(p.Schema) {
		out.Schema = p.Schema
	}
	var several []string
	switch {
	case blank(p.Type):
	case json.Unmarshal(p.Type, &out.Type) == nil:
		out.Type = plainType(out.Type)
	case json.Unmarshal(p.Type, &several) == nil:
		for i := range several {
			several[i] = plainType(several[i])
		}
		switch {
		case slices.Contains(several, "") || len(several) > 1 && slices.Contains(several, typeFile):
		case len(several) == 1:
			out.Type = several[0]
		case out.Schema == nil:
			out.Schema = Encoded(map[string]any{"type": several})
		}
	default:
		return out, fmt.Errorf("the type of %s must be a string", p.Name)
	}
	out.Required = p.Required != nil && *p.Required
	if value := p.value(out.Type); !blank(value) {
		out.Default = value
	}
	return out, nil
}

// plainType returns a type as JSON Schema writes it, "" for any. An unknown word is returned as it is.
func plainType(word string) string {
	if word = strings.TrimSpace(word); strings.EqualFold(word, "any") {
		return ""
	}
	if lower := strings.ToLower(word); slices.Contains(parameterTypes, lower) {
		return lower
	}
	return word
}

// value returns the default value. The tool's schema asks for JSON in a string. A string that is not JSON, or that is
// the default of a string parameter and not itself quoted, is taken literally. An empty string means no default if the
// parameter is required or is not a string.
func (p *declaredParameter) value(of string) json.RawMessage {
	var text string
	if json.Unmarshal(p.Default, &text) != nil {
		return p.Default
	}
	inner := strings.TrimSpace(text)
	switch required := p.Required != nil && *p.Required; {
	case inner == "" && (required || of != "string"), inner == "null":
		return nil
	case !json.Valid([]byte(inner)), of == "string" && inner[0] != '"':
		return p.Default
	}
	return json.RawMessage(inner)
}

// reconcile completes declared parameters with how the program reads them. The error lists where both disagree.
func (f *Interface) reconcile(inferred *Interface, required []bool) error {
	var wrong, order []string
	var places []int // where the declared order and that of the program differ
	matched, rest := map[int]bool{}, inferred.rest()
	several := false // several declared parameters share the inferred variadic one
	if rest >= 0 && rest+1 < len(f.Parameters) {
		next, _ := inferred.Parameter(f.Parameters[rest+1].Name)
		several = next == nil
	}
	for i := range f.Parameters {
		p := &f.Parameters[i]
		of, at := inferred.Parameter(p.Name)
		if of == nil && i < len(inferred.Parameters) && inferred.Parameters[i].ReadBy == readByPosition && !matched[i] {
			of, at = &inferred.Parameters[i], i // the program reads the position without naming it
		}
		switch {
		case of == nil:
			p.ReadBy = inferred.readsUnlisted(i)
			continue
		case of.Description == notRead:
			p.Description, p.Required, p.Default, p.ReadBy = notRead, false, nil, readByPosition
			f.loosen()
			continue
		case at != i && of.ReadBy != readByName:
			order = append(order, fmt.Sprintf("the program reads %s at position %d, but it is declared at position %d",
				p.Name, at, i))
			places = append(places, at, i)
		}
		matched[at] = true
		p.ReadBy, p.Variadic = of.ReadBy, of.Variadic && !several
		if of.Variadic && inferred.Open && p.Name != of.Name { // the program may also read it by its own name
			p.ReadBy, p.Variadic = readEither, false
		}
		if !required[i] && p.Default == nil {
			p.Required = of.Required
		}
		p.alsoNamed(of)
	}
	for i := range inferred.Parameters {
		if of := &inferred.Parameters[i]; !matched[i] && of.Description != notRead {
			wrong = append(wrong, fmt.Sprintf("the program reads %s, which is not declared", of.where(i)))
		}
	}
	switch what := "parameters: " + strings.Join(append(order, wrong...), "; "); {
	case len(order) > 0 && len(wrong) == 0 && f.nameFrom(slices.Min(places)):
		return &OrderError{Place: slices.Min(places), what: what}
	case len(order)+len(wrong) > 0:
		return errors.New(what)
	}
	return nil
}

// nameFrom makes the parameters from that place on read by name. It returns false if the program does not read one of
// them so.
func (f *Interface) nameFrom(place int) bool {
	for i := place; i < len(f.Parameters); i++ {
		if f.Parameters[i].ReadBy == readByPosition {
			return false
		}
		f.Parameters[i].ReadBy = readByName
	}
	return true
}

// where names the parameter in messages to its author.
func (p *Parameter) where(place int) string {
	if p.ReadBy == readByPosition {
		return fmt.Sprintf("call.Args[%d]", place)
	}
	return p.Name
}

// Succeed keeps callers of the replaced program working: a parameter at the same position under another name takes the
// old name as an alias.
func (f *Interface) Succeed(earlier *Interface) {
	if f == nil || earlier == nil {
		return
	}
	for i := range earlier.Parameters {
		was := &earlier.Parameters[i]
		if i >= len(f.Parameters) || was.ReadBy == readByName || f.Parameters[i].ReadBy == readByName ||
			was.Description == notRead {
			continue
		}
		now := &f.Parameters[i]
		if other, _ := earlier.Parameter(now.Name); other != nil && other != was || len(now.Aliases) >= maxAliases {
			continue
		}
		if p, _ := f.Parameter(was.Name); p == nil {
			now.Aliases = append(slices.Clip(now.Aliases), was.Name)
		}
	}
}
